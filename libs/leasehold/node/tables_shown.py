"""Chooses which tables have series of their own: the largest, and no more than a few.

What is shown of a counter must never fall, and a table that is shown has to stay. So a table gets a
series when it is among the largest and a place is free; what it had before stays with the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from leasehold.model.measures import OTHERS

TABLES_MAX: Final = 30


class TablesShown:
    """The tables that are shown of one counter by table. For one thread at a time."""

    def __init__(self, tables_max: int = TABLES_MAX) -> None:
        """Begin with none."""
        self._tables_max = tables_max
        self._before: dict[int, int] = {}  # what each had when it got its series
        self._dropped = 0  # what tables had come to that are gone
        self._told = False

    def series(
        self, counts: Mapping[int, int], names: Mapping[int, str]
    ) -> Iterator[tuple[str, int]]:
        """Yield name and count of each table that is shown, and then of all others. A table is
        shown by the name that it has now; one without a name is dropped, or one of the others."""
        before = self._before
        for table_id in [each for each in before if each not in names]:
            self._dropped += counts.get(table_id, 0) - before.pop(table_id)
        self._take_places(counts, names)
        self._told = True
        shown = {each: counts.get(each, 0) - before[each] for each in before}
        for table_id, count in shown.items():
            yield names[table_id], count
        yield OTHERS, sum(counts.values()) - sum(shown.values()) - self._dropped

    def _take_places(self, counts: Mapping[int, int], names: Mapping[int, str]) -> None:
        before = self._before
        free = self._tables_max - len(before)
        if free <= 0:
            return
        new = [each for each in counts if each not in before and each in names]
        for table_id in sorted(new, key=lambda each: -counts[each])[:free]:
            # Nobody was told of the others yet: all that it has is its own.
            before[table_id] = counts[table_id] if self._told else 0
