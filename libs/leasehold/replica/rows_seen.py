"""What a transaction has read, as it is verified at its commit (T1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.model.budget import Budget, size_of
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.model.records.events import Genids
from leasehold.transaction.locks import Expected, covering_locks, expected_of
from leasehold.transaction.read_set import ReadsSoFar

RowName: TypeAlias = tuple[int, Key]
"""A table's id, and a key in storage form."""
SEEN_BYTES: Final = 300
"""Of a row that was read, beside its key: about what keeps that."""
_MARK_BITS: Final = (1 << 64) - 1


class HeldRows:
    """The rows that nobody else may change before the transaction commits, or it runs again: those
    that it has locked, and those that a statement has found and changed or deleted, which in
    PostgreSQL make others wait just so. What is shown from then on stands behind them.

    `mark` stands for which they are and the genids that they had: a replay that comes to the same
    one has found each of them as it was. It is kept in one process, and 0 if there are none.
    """

    def __init__(self) -> None:
        self.mark = 0

    def __bool__(self) -> bool:
        return self.mark != 0

    def add(self, name: RowName, genids: Genids) -> None:
        """Add a row. `genids` are {} for one that ON CONFLICT has not found."""
        self.mark += (hash((name, frozenset(genids.items()))) & _MARK_BITS) + 1


class Locked(NamedTuple):
    """A row that was locked, with the genids that it had then."""

    table: Descriptor
    genids: Genids


class RowsSeen:
    """The rows that were read, with the genids that their *first* read has seen.

    ROLLBACK TO takes nothing of it back: the client knows what was read. `reads` is the read set of
    levels that verify all reads, and of SELECTV at every level. `locked`: the rows of FOR UPDATE
    and its like, which are verified as well; `held`: those and the ones that were written.
    """

    def __init__(self, budget: Budget) -> None:
        """Begin. `budget` holds what is kept."""
        self._budget = budget
        self.reads = ReadsSoFar()
        self.locked: dict[RowName, Locked] = {}
        self.held = HeldRows()
        self._genids: dict[RowName, Genids] = {}
        self._elements: dict[RowName, set[int]] = {}

    def find(self, descriptor: Descriptor, key: Key, row: Row | None) -> None:
        """Keep the genids of a row that was looked up. A look-up that found none has no genid that
        could be verified."""
        if row is not None:
            self._keep((descriptor.table_id, key), row.genids)

    def _keep(self, name: RowName, genids: Genids) -> None:
        if name not in self._genids:
            self._budget.hold(SEEN_BYTES + size_of(name[1]))
            self._genids[name] = genids

    def read(
        self,
        descriptor: Descriptor,
        key: Key,
        row: Row | None,
        columns: Iterable[Column] | None = None,
        *,
        selectv: bool = False,
    ) -> None:
        """Keep that a row's columns (None: all) were read. `selectv`: its commit is refused if the
        row has changed. Raises MalformedRequest for too many of those."""
        self.find(descriptor, key, row)
        ids = descriptor.public_ids if columns is None else {c.element_id for c in columns}
        name = descriptor.table_id, key
        if name not in self._elements:
            self._budget.hold(SEEN_BYTES + size_of(key))
            self._elements[name] = set()
        self._elements[name].update(ids)
        if selectv and row is not None:
            self.reads.visited(descriptor, key, row.genids)

    def visit(self, descriptor: Descriptor, key: Key, genids: Genids, locks: bool = False) -> None:
        """Keep a row that SELECTV has shown, or FOR UPDATE (`locks`). Raises MalformedRequest for
        too many."""
        name = descriptor.table_id, key
        self._keep(name, genids)
        self.reads.visited(descriptor, key, genids)
        if locks and name not in self.locked:
            self._budget.hold(SEEN_BYTES + size_of(key))
            self.locked[name] = Locked(descriptor, genids)
            self.held.add(name, genids)

    def genids_of(self, name: RowName) -> Genids | None:
        """Return the genids that the first read of a row has seen, None where none has found it."""
        return self._genids.get(name)

    def expected(self, descriptor: Descriptor, key: Key, changed: Iterable[int]) -> Expected:
        """Return the genids of the locks over the columns that were read or are changed (T1)."""
        name = descriptor.table_id, key
        concerned = {*changed, *self._elements.get(name, ())}
        return expected_of(descriptor, self._genids[name], covering_locks(descriptor, concerned))
