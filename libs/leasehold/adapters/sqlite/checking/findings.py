"""What a check of a table finds, gathered while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import apsw

from leasehold.adapters.sqlite.checking.repair import WrongEntry
from leasehold.adapters.sqlite.plan import EntriesPlan
from leasehold.catalog.descriptor import Descriptor
from leasehold.model.keys import Key
from leasehold.model.records.events import Image
from leasehold.rows.check_constraints import find_sqlstate
from leasehold.schema_change.coordinator.verification import code_of, make_finding

FINDINGS_MAX: Final = 100
Finding = tuple[int, int, Key, str]


class TableFindings(NamedTuple):
    """The result of a check. `entries` counts the entries of each index, by its id; `wrong` are
    those that a repair may put right; `code` is as in a CheckReport."""

    rows: int
    entries: dict[int, int]
    checksum: bytes
    rows_checksum: bytes
    findings_total: int
    findings: tuple[Finding, ...]
    wrong: tuple[WrongEntry, ...]
    code: str = ""


class Findings:
    """Counts all findings and keeps the first ones, and wrong entries as long as there is room."""

    def __init__(
        self, connection: apsw.Connection, newest: Descriptor, kept_max: int, repairs_max: int
    ) -> None:
        self._connection = connection
        self._newest = newest
        self._kept_max = kept_max
        self._kept: list[Finding] = []
        self._repairs_max = repairs_max
        self._wrong: list[WrongEntry] = []
        self._total = 0
        self._raised = ""  # the first SQLSTATE of what could not be computed of a row

    def add(self, condition: int, element: int, key: Key, words: str) -> None:
        self._total += 1
        if len(self._kept) < self._kept_max:
            self._kept.append(make_finding(condition, element, key, words))

    def add_selected(
        self,
        condition: int,
        element: int,
        clause: str,
        shown: tuple[str, ...],
        words: str | Callable[[Key], str],
        key_width: int | None = None,
        *,
        by_key: bool = False,
    ) -> None:
        """Count what `clause` (FROM … WHERE) selects, and keep the first in order while there is
        room. The last `key_width` of the columns `shown` are the row's key, by default all of them;
        `words` may be made of what stands before it, and the order is its, too, unless `by_key`."""
        count: int = self._connection.execute(f"SELECT count(*) {clause}").get
        self._total += count
        room = self._kept_max - len(self._kept)
        if not count or room <= 0:
            return
        columns = ", ".join(shown)
        before = 0 if key_width is None else len(shown) - key_width
        order = ", ".join(shown[before:]) if by_key else columns
        for row in self._connection.execute(
            f"SELECT {columns} {clause} ORDER BY {order} LIMIT ?", (room,)
        ):
            said = words if isinstance(words, str) else words(row[:before])
            self._kept.append(make_finding(condition, element, row[before:], said))

    def note_raised(self, compute: Callable[[Image], object], image: Image) -> None:
        """Keep the SQLSTATE of what `compute` raises on a row, if it is the first one."""
        self._raised = self._raised or find_sqlstate(compute, image)

    def remember_wrong(self, index_id: int, statements: EntriesPlan, clause: str) -> None:
        """Keep whole entries `x` that are wrong, for a repair."""
        first, end = len(statements.keys), len(statements.columns)
        for entry in self._some("x.*", clause):
            self._wrong.append(WrongEntry(index_id, entry[first:end], entry))

    def remember_lacking(self, index_id: int, shown: Sequence[str], clause: str) -> None:
        """Keep the primary keys `shown` of rows without their entry, for a repair."""
        for key in self._some(", ".join(shown), clause):
            self._wrong.append(WrongEntry(index_id, key, None))

    def _some(self, columns: str, clause: str) -> list[Any]:
        room = self._repairs_max - len(self._wrong)
        if room <= 0:
            return []
        return self._connection.execute(f"SELECT {columns} {clause} LIMIT ?", (room,)).fetchall()

    def result(
        self, rows: int, entries: dict[int, int], checksum: bytes, rows_checksum: bytes = b""
    ) -> TableFindings:
        """Return all of it, with what was counted and summed."""
        found = self._total, tuple(self._kept), tuple(self._wrong)
        return TableFindings(rows, entries, checksum, rows_checksum, *found, self._code())

    def _code(self) -> str:
        """Return the SQLSTATE that the first finding comes to, or that was raised: a value that
        can't be computed is why it is not there, too."""
        if self._raised or not self._kept:
            return self._raised
        condition, element, *_ = self._kept[0]
        return code_of(self._newest.element(element), condition)
