"""Foreign keys' actions: what becomes of rows that refer to one which goes, or to values that it
loses (ON DELETE, ON UPDATE).

Done by the master when all of a request is known, so what follows is in the same commit and every
node only applies it. Rows are found and changed first, and written when all of it has come to rest:
each row once, those that leave a key before those that take it. A row is changed at most once for
each foreign key and each loss, so circles end.

Of one loss the foreign keys of a table come in the order in which they were made, as PostgreSQL's
triggers do, and what follows from it comes when all of them have been. So a key without an action
that is not deferrable, and was made first, finds a row that an action of a later one would take
away (`_rely`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, CommitContext, ForeignKey, OnChange
from leasehold.catalog.references import Reference
from leasehold.model.errors import Refused, RequestTooLarge
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.model.records.events import Image
from leasehold.model.records.log import ChangeKind, RowChange
from leasehold.rows.defaults import Draw, default_of
from leasehold.rows.key_values import compose
from leasehold.transaction.binding import binding
from leasehold.transaction.decide import delete_row, key_in, land_row, update_row
from leasehold.transaction.duplicate_key import primary_key_exists
from leasehold.transaction.foreign_keys import keys_by, still_referred_to, values_of
from leasehold.transaction.locks import covering_locks
from leasehold.transaction.overlay import Overlay
from leasehold.transaction.referenced_changes import Identity, Loss, ReferencedChanges
from leasehold.transaction.uniqueness import HolderReader
from leasehold.values.storage import fit_stored

ROWS_MAX: Final = 10_000
"""That actions change in one request: as many as a transaction may write itself. A record of the
log could hold more of the smallest; but while they are looked for nothing else is decided."""

_Columns: TypeAlias = tuple[int, tuple[int, ...]]


@dataclass(slots=True)
class _Held:
    """A row that an action has changed: where and how the request's own operations leave it, and
    its image now (None: gone)."""

    descriptor: Descriptor
    key: Key
    row: Row
    image: Image | None


class Actions:
    """The actions of one request. Raises what the changed rows' constraints raise,
    RequestTooLarge."""

    def __init__(
        self,
        overlay: Overlay,
        losses: ReferencedChanges,
        catalog: Catalog,
        holders: HolderReader,
        context: CommitContext | None,
        draw: Draw | None = None,
    ) -> None:
        self._overlay = overlay
        self._losses = losses
        self._catalog = catalog
        self._holders = holders
        self._context = context
        self._draw = draw
        self._held: dict[Identity, _Held] = {}
        self._room = ROWS_MAX
        self._found: dict[int, list[Reference]] = {}
        self._acted: set[tuple[Identity, int, int]] = set()  # row, foreign key, loss
        self._follows: dict[tuple[Identity, int], Identity] = {}
        self._by_values: dict[_Columns, dict[Key, dict[Identity, None]]] = {}

    def run(self) -> Generator[None, None, None]:
        """Put what follows from the request's losses into the overlay; yield behind each row."""
        last = len(self._losses.found)
        for number, loss in enumerate(self._losses.found, start=1):
            # What follows from a loss comes before the next one of the request.
            waiting = deque([loss])
            while waiting:
                followed: list[Loss] = []
                one = waiting.popleft()
                # ⚠ PostgreSQL looks at all losses of a statement before what follows from any. Of
                # which statement a loss is, nobody knows here: so where another one is to come,
                # what follows is not held to a key that is looked at in between.
                looks = one is loss or number == last
                yield from self._follow(one, followed, looks=looks)
                waiting += followed
        yield from self._write()

    # ------------------------------------------------------------ what follows

    def _follow(
        self, loss: Loss, followed: list[Loss], *, looks: bool
    ) -> Generator[None, None, None]:
        """Do what follows from a loss, and add the losses that this is; yield behind each row.
        `looks`: at keys without an action, too. Raises ForeignKeyViolation."""
        relied: dict[Identity, tuple[ForeignKey, Key]] = {}
        references = self._references(loss.row[0])
        for place, (child, key) in enumerate(references):
            action = _action_of(key, loss)
            lost = values_of(loss.before, key.parent_columns)
            if lost is None or _keeps(loss.after, key, lost):
                continue
            if not action.acts:
                # ⚠ Nobody says whether SET CONSTRAINTS has deferred it: it may have.
                deferred = bool(key.deferral) and action is not OnChange.RESTRICT
                if looks and not deferred and _acts_later(references[place:], child, loss):
                    found = self._rely(child, key, lost, loss)
                    relied |= {row: (key, lost) for row in found if row not in relied}
                continue
            for row in self._concerned(child, key, lost, loss):
                known = (row, key.element_id)
                if (*known, loss.number) in self._acted:
                    continue
                self._acted.add((*known, loss.number))
                if action is OnChange.CASCADE and loss.after is not None:
                    self._follows[known] = loss.row
                followed += self._act(row, child, key, action, loss)
                self._refuse_taken(row, relied, loss)
                yield

    def _concerned(
        self, child: Descriptor, key: ForeignKey, lost: Key, loss: Loss
    ) -> Iterator[Identity]:
        """Yield the rows that refer to a loss. ⚠ Not one that was made to refer to it later, nor
        one that has come to refer to another row, which is about to take this one's values."""
        for row in self._referring(child, key, lost):
            later = self._losses.set_at(row, key.columns) >= loss.number
            if not later and self._follows.get((row, key.element_id), loss.row) == loss.row:
                yield row

    def _rely(
        self, child: Descriptor, key: ForeignKey, lost: Key, loss: Loss
    ) -> tuple[Identity, ...]:
        """Return the rows that a key without an action finds referring to a loss: none where
        another row has taken its values."""
        if self._places(loss.row[0], key.parent_columns).get(lost):
            return ()
        return tuple(self._concerned(child, key, lost, loss))

    def _refuse_taken(
        self, row: Identity, relied: dict[Identity, tuple[ForeignKey, Key]], loss: Loss
    ) -> None:
        """Refuse an action that has taken away what an earlier key has found. What is still there
        is refused in the end, unless it goes by another loss."""
        if row not in relied:
            return
        key, lost = relied[row]
        held = self._held[row]
        if values_of(held.image, key.columns) != lost:
            parent = self._catalog.newest(loss.row[0])
            raise still_referred_to(parent, held.descriptor, key, lost)

    def _references(self, table_id: int) -> list[Reference]:
        known = self._found.get(table_id)
        if known is None:
            known = self._found[table_id] = self._references_to(table_id)
        return known

    def _references_to(self, table_id: int) -> list[Reference]:
        """Return the references to a table. ⚠ While a table changes its primary key there are two
        with the same rows, and what is done to a row of one is done to the other's: one that the
        request uses itself, else the new one."""
        found = self._catalog.references(table_id)
        children = {child.table_id for child, _ in found}
        used = {table for table, _ in self._overlay.rows}
        twice: set[int] = set()
        for child in {child for child, _ in found if child.former in children}:
            twice.add(child.table_id if child.former in used else child.former)
        kept = [each for each in found if each.child.table_id not in twice]
        return sorted(kept, key=lambda each: (each.child.table_id, each.key.element_id))

    def _act(
        self, row: Identity, child: Descriptor, key: ForeignKey, action: OnChange, loss: Loss
    ) -> Iterator[Loss]:
        held = self._held[row]
        before = held.image
        assert before is not None, "what is gone refers to nothing"
        after: Image | None = None
        if loss.after is not None or action is not OnChange.CASCADE:
            changed = self._set(child, key, action, before, loss.after)
            after = compose(child, ChangeKind.UPDATE, before, changed, self._context, self._draw)
        held.descriptor, held.image = child, after
        self._placed(row, before, after)
        if self._losses.is_referred_to(child.table_id):
            yield Loss(loss.number, row, before, after)

    def _set(
        self,
        child: Descriptor,
        key: ForeignKey,
        action: OnChange,
        before: Image,
        parent: Image | None,
    ) -> Image:
        """The columns of the foreign key as the action sets them."""
        columns = [child.by_id[column] for column in key.columns]
        set_now = key.delete_sets if parent is None and key.delete_sets else key.columns
        if action is OnChange.SET_NULL:
            return dict.fromkeys(set_now)
        if action is OnChange.SET_DEFAULT:
            return {
                column.element_id: default_of(child, column, before, self._context, self._draw)
                for column in columns
                if column.element_id in set_now
            }
        assert parent is not None
        of = self._catalog.newest(key.parent)
        return {
            column.element_id: _brought(of.by_id[theirs], column, parent.get(theirs))
            for column, theirs in zip(columns, key.parent_columns, strict=True)
        }

    # ------------------------------------------------------------ rows that refer

    def _referring(self, child: Descriptor, key: ForeignKey, values: Key) -> list[Identity]:
        """Rows whose reference this is now, each held."""
        table = child.table_id
        touched = self._overlay.rows
        placed = self._places(table, key.columns)
        rows_max = self._room + len(touched) + len(self._held) + 1
        read = self._overlay.row
        stored = keys_by(child, key.columns, key.index, values, rows_max, read, self._holders)
        for found in map(tuple, stored):
            row = (table, found, 0)
            if (table, found) in touched or row in self._held:
                continue  # as it is now it is among the placed ones, or refers to it no more
            if self._room <= 0:
                raise RequestTooLarge(
                    f"foreign keys' actions would change more than {ROWS_MAX} rows in one commit"
                    f" (the last by foreign key {key.name!r} of table {child.name!r}): delete or"
                    f" change rows of {child.name!r} first, in several transactions",
                    table=child.name,
                    constraint=key.name,
                )
            self._room -= 1
            self._hold(child, row, found)
        return list(placed.get(values, ()))

    def _places(self, table: int, columns: tuple[int, ...]) -> dict[Key, dict[Identity, None]]:
        """Rows that are touched or held by what they have in these columns."""
        known = self._by_values.get((table, columns))
        if known is None:
            known = self._by_values[table, columns] = {}
            for (table_id, key), row in self._overlay.rows.items():
                identity = self._losses.identity(table_id, key)
                if table_id == table and row is not None and identity not in self._held:
                    self._hold(self._catalog.newest(table), identity, key)
            for identity, held in self._held.items():
                if identity[0] == table:
                    _place(known, identity, None, values_of(held.image, columns))
        return known

    def _hold(self, table: Descriptor, identity: Identity, key: Key) -> None:
        row = self._overlay.row(table, key)
        assert row is not None, "it has an entry, hence it is there"
        self._held[identity] = _Held(table, key, row, row.values)
        self._placed(identity, None, row.values)

    def _placed(self, identity: Identity, before: Image | None, after: Image | None) -> None:
        for (table, columns), known in self._by_values.items():
            if table == identity[0]:
                _place(known, identity, values_of(before, columns), values_of(after, columns))

    # ------------------------------------------------------------ into the overlay

    def _write(self) -> Generator[None, None, None]:
        """Write all rows, and yield behind each. ⚠ Those that leave their key go first: another one
        may take it."""
        landing: list[tuple[Descriptor, RowChange]] = []
        staying: list[tuple[_Held, RowChange]] = []
        for held in self._held.values():
            yield
            table, key, row = held.descriptor, held.key, held.row
            if held.image == row.values:
                continue
            if held.image is None:
                self._overlay.put(table, row, delete_row(table, key, row))
                continue
            bound = binding(table)
            if key_in(table, held.image) == key:
                bound.check(row.values, held.image)
                staying.append((held, self._updated(held, held.image)))
                continue
            landing.append((table, land_row(bound, held.image)))
            self._overlay.put(table, row, delete_row(table, key, row))
        for held, change in staying:
            self._overlay.put(held.descriptor, held.row, change)
        for table, change in landing:
            if self._overlay.row(table, change.key) is not None:
                raise primary_key_exists(table, change.key)
            self._overlay.put(table, None, change)

    def _updated(self, held: _Held, image: Image) -> RowChange:
        table, row = held.descriptor, held.row
        columns = {e for e in row.values.keys() | image.keys() if row.values.get(e) != image.get(e)}
        locks = covering_locks(table, table.changed_with(columns))
        return update_row(table, held.key, row, image, locks)


def _action_of(key: ForeignKey, loss: Loss) -> OnChange:
    return key.on_delete if loss.after is None else key.on_update


def _acts_later(references: Iterable[Reference], child: Descriptor, loss: Loss) -> bool:
    """Return whether one of these keys does something with rows of a table."""
    return any(
        _action_of(key, loss).acts for table, key in references if table.table_id == child.table_id
    )


def _keeps(after: Image | None, key: ForeignKey, lost: Key) -> bool:
    return after is not None and values_of(after, key.parent_columns) == lost


def _place(
    known: dict[Key, dict[Identity, None]],
    identity: Identity,
    before: Key | None,
    after: Key | None,
) -> None:
    if before is not None:
        known.get(before, {}).pop(identity, None)
    if after is not None:
        known.setdefault(after, {})[identity] = None


def _brought(theirs: Column, own: Column, value: Any) -> Any:
    """A parent's value in the child's column. Raises OutOfRange, TooLong."""
    if theirs.type == own.written_type or value is None:
        return value
    try:
        return fit_stored(own.written_type)(value)
    except Refused as error:
        raise type(error)(f"column {own.name!r}: {error.message}", column=own.name) from error
