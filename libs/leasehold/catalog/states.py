"""States of schema elements (F1) and what each lets an operation do.

The table below is `design` in code: `key_values` and the checkers read it, nothing else decides.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class State(IntEnum):
    """Order matters: adding walks upwards, dropping downwards."""

    ABSENT = 0
    DELETE_ONLY = 1
    WRITE_ONLY = 2
    PUBLIC = 3

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", "-")


READABLE: Final = frozenset({State.PUBLIC})
WRITTEN: Final = frozenset({State.WRITE_ONLY, State.PUBLIC})
DELETED: Final = frozenset({State.DELETE_ONLY, State.WRITE_ONLY, State.PUBLIC})
