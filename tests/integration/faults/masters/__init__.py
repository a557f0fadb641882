"""What becomes of writes when masters are stopped, killed, paused, or fed with poison, on one
cluster. A package, as `cluster/changes` is one."""

from typing import Final

MASTERS: Final = ("m1", "m2")
NODES: Final = (*MASTERS, "r1", "r2")
SERVICES: Final = (*NODES, "changefeed")
HANDOVER_KEYS: Final = range(10, 16)
"""Rows of `t` that the writers of handed over terms change. Those of takeovers make their own."""
BY_SQL: Final = 50
"""The row that is written by SQL alone."""
