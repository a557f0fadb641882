"""Entries that a check has found unlike their rows, until the store's writer comes to them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from leasehold.model.keys import Key


class WrongEntry(NamedTuple):
    """An entry that is not as its row says, or (`entry` None) one that the row lacks. `entry` is
    what lies in the store: index columns, `key` (the primary one), then what else it carries."""

    index_id: int
    key: Key
    entry: tuple[Any, ...] | None


class Repairs:
    """Of the newest check alone: whoever asks for a repair asks for one after the other."""

    def __init__(self) -> None:
        self._asked: tuple[bytes, int] = (b"", 0)
        self._wrong: deque[WrongEntry] = deque()

    def remember(self, subject: bytes, table_id: int, wrong: Iterable[WrongEntry]) -> None:
        self._wrong = deque(wrong)
        self._asked = (subject, table_id)

    def take(self, subject: bytes, table_id: int, entries_max: int) -> list[WrongEntry]:
        """The next ones; [] when there are none, or another check has come since."""
        if self._asked != (subject, table_id):
            return []
        return [self._wrong.popleft() for _ in range(min(entries_max, len(self._wrong)))]
