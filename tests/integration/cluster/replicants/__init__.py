"""What clients see of a master and its replicants, on one cluster. A package, as `changes` is one.

Modules have tables of their own names; who ends a process starts it again."""

from typing import Final

NODES: Final = ("m1", "r1", "r2")
