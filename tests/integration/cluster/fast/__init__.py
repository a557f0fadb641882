"""What nodes publish to each other through Redis, on one cluster whose Redis is ended and stands
still. A package, as `changes` is one."""

from typing import Final

MASTERS: Final = ("m1", "m2")
REPLICANTS: Final = ("r1", "r2")
NODES: Final = (*MASTERS, *REPLICANTS)
LOG_KEYS: Final = range(6)
REQUEST_KEYS: Final = range(30, 36)
"""Rows of `t`, by whose writers change them."""
WIRE: Final = 200
ORDERED: Final = 10
OF_CLIENTS: Final = range(20, 24)
