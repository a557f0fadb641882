"""What has become of rows in the transaction that writes them: a row that WHERE CURRENT OF means
may have another key by now, or be gone, and another one may have come under its key."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from leasehold.model.records import Key


@dataclass(slots=True)
class RowFates:
    """`place`: of a statement in its transaction, the same where that runs again; it rises. A row
    has one fate in a statement."""

    _fates: dict[tuple[int, Key], list[tuple[int, Key | None]]] = field(default_factory=dict)
    _told: list[tuple[int, tuple[int, Key]]] = field(default_factory=list)
    _emptied: dict[int, list[int]] = field(default_factory=dict)

    def became(self, place: int, table_id: int, fates: Iterable[tuple[Key, Key | None]]) -> None:
        """Rows of that table, by the keys that they had, have these keys now (None: are gone)."""
        for key, to in fates:
            name = table_id, key
            known = self._fates.setdefault(name, [])
            assert not known or known[-1][0] < place, "one fate in a statement"
            known.append((place, to))
            self._told.append((place, name))

    def emptied(self, place: int, tables: Iterable[int]) -> None:
        """No row of these is left."""
        for table_id in tables:
            self._emptied.setdefault(table_id, []).append(place)

    def now(self, table_id: int, key: Key, since: int) -> Key | None:
        """The key of the row that had `key` after the statement at `since`; None: it is gone."""
        if any(place > since for place in self._emptied.get(table_id, ())):
            return None
        found: Key | None = key
        while found is not None:
            known = self._fates.get((table_id, found), [])
            at = bisect_right(known, since, key=lambda fate: fate[0])
            if at == len(known):
                return found
            since, found = known[at]
        return None

    def back_to(self, place: int) -> None:
        """What statements behind it have done is taken back."""
        while self._told and self._told[-1][0] > place:
            _, name = self._told.pop()
            self._fates[name].pop()
            if not self._fates[name]:
                del self._fates[name]
        for places in self._emptied.values():
            while places and places[-1] > place:
                places.pop()
