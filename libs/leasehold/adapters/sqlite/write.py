"""What a prepared INSERT, UPDATE or DELETE would write, found on a snapshot: nothing is written
here.

Also a transaction's own rows, as temporary tables of a connection that later statements read.
"""

# ruff: noqa: S608 - statement text comes from integer ids alone, values are bound

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import apsw

from leasehold.adapters.sqlite.part_check import check_read
from leasehold.adapters.sqlite.query import (
    NO_LIMITS,
    ROW_BYTES,
    Limits,
    Rows,
    emitted_rows,
    open_budget,
)
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, CommitContext
from leasehold.catalog.physical_names import column_name, shadow_name, table_name
from leasehold.model.budget import Budget, size_of
from leasehold.model.errors import (
    ROW_NUMBER,
    NotNullViolation,
    Refused,
    RequestTooLarge,
    TooManyRows,
)
from leasehold.model.keys import Key
from leasehold.model.records.events import Genids, Image
from leasehold.rows.generated import derive
from leasehold.sql.binding.bound_tree import Value
from leasehold.sql.binding.bound_write import BoundAction, BoundWrite
from leasehold.sql.planning.emitted import Emitted
from leasehold.sql.planning.plan import Prepared, Write
from leasehold.transaction.duplicate_key import primary_key_exists

WRITES_MAX: Final = 250_000
WRITE_BYTES: Final = 400
"""Of a row that is to be written, beside its values: about what holds them."""
OWN_TABLES_KEPT_MAX: Final = 100
_HALF: Final = 1 << 63
_OWN_TABLES: Final[WeakKeyDictionary[apsw.Connection, dict[int, Descriptor]]] = WeakKeyDictionary()
"""Of each connection, by table id, with their shapes: a table that comes or goes would have all
that was prepared on the connection prepared anew."""


@dataclass(frozen=True, slots=True)
class RowWrite:
    """A row that a statement writes. `before` is None for an insert and `after` for a delete, else
    `after` may have another key than `key`. Images hold public columns, storage values. `genids`
    are those of the row that was found, None for an insert and for a row that this transaction has
    written before. `given` are the columns that an update sets; `arbiters` are, of an insert, the
    unique indexes (0: the primary key) by which ON CONFLICT has found no row."""

    key: Key
    before: Image | None
    after: Image | None
    genids: Genids | None
    given: frozenset[int]
    arbiters: tuple[int, ...] = ()


@dataclass(slots=True)
class Written:
    """The result of a write: `count` is the rows as the command's tag counts them, `rows` are those
    of RETURNING, and `sought` the keys that ON CONFLICT has looked for, with the index (0: the
    primary key). `before`: what the parts of the statement have come to that have run before this
    one; with `is_query` this one has read rows and written none."""

    writes: list[RowWrite] = field(default_factory=list)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    sought: list[tuple[int, Key]] = field(default_factory=list)
    before: list[Written] = field(default_factory=list)
    is_query: bool = False

    @property
    def count(self) -> int:
        return len(self.rows if self.is_query else self.writes)

    @property
    def parts(self) -> tuple[Written, ...]:
        """Return what all parts of the statement have come to, in their order."""
        return (*self.before, self)


Done: TypeAlias = dict[Key, Image | None]
"""What a statement has made of rows of one table, by the keys that they had before; None: gone."""


class Writing:
    """The run of one statement. Raises what its functions raise, NotNullViolation, and DuplicateKey
    for a key that this statement has itself."""

    def __init__(
        self,
        connection: apsw.Connection,
        prepared: Prepared,
        parameters: Sequence[Any],
        context: CommitContext,
        limits: Limits = NO_LIMITS,
        hidden_keys: Iterator[str] | None = None,
        as_of: int = 0,
        done: Done | None = None,
    ) -> None:
        """Prepare a run. `hidden_keys` gives keys of rows that are inserted into a table without a
        primary key; `as_of` is as in `query.run`; `done` is what other parts of the statement have
        made of rows of its table."""
        assert prepared.write is not None
        self._connection = connection
        self._prepared = prepared
        self._write: Write = prepared.write
        self._parameters = tuple(parameters)
        self._context = context
        self._limits = limits
        self._hidden_keys = hidden_keys or iter(())
        self._as_of = as_of
        bound = self._write.bound
        self._descriptor: Descriptor = bound.descriptor
        self._ids = tuple(c.element_id for c in bound.columns)
        self._written = Written()
        self._done: Done = {} if done is None else done
        self._done_keys: dict[int, Counter[Key]] = {}
        """Of each arbiter that was asked for: how many rows of `_done` have which key."""
        self._budget: Budget
        plain = bound.plain_rows or ()
        constants = (v.value for row in plain for v in row if isinstance(v, Value))
        self._plain = plain if plain and all(map(_stays, constants)) else None

    def run(self) -> Written:
        """Return what the statement would write. Raises besides OutOfMemory (53200) and
        RequestTooLarge, before rows are looked for that are too many."""
        return self.run_each((self._parameters,))

    def run_each(self, many: Sequence[tuple[Any, ...]]) -> Written:
        """Run the statement once for each of many parameters, as one statement."""
        self._budget = open_budget(self._connection, self._limits)
        done = 0
        try:
            for self._parameters in many:
                self._run_once()
                done += 1
        except Refused as error:
            error.detail = {**error.detail, ROW_NUMBER: done}
            raise
        finally:
            self._budget.close()
        return self._written

    def _run_once(self) -> None:
        kind = self._write.bound.kind
        check_read(self._connection, self._prepared, self._parameters)
        rows = self._plain_rows()
        if rows is not None:
            for row in rows:
                self._insert(self._write.bound.given, row)
            return
        with closing(self._found(self._prepared.emitted, self._parameters)) as found:
            for row in found:
                if kind == "INSERT":
                    self._insert(self._write.bound.given, row)
                elif kind == "MERGE":
                    self._merge(row)
                else:
                    self._change(row, deletes=kind == "DELETE")

    def _plain_rows(self) -> list[tuple[Any, ...]] | None:
        """Return the rows of an INSERT of parameters and constants as SQLite would give them back,
        which has nothing to compute; None where it has, or might give something else."""
        if self._plain is None or not all(map(_stays, self._parameters)):
            return None
        parameters = (None, *self._parameters)
        return [
            tuple([v.value if isinstance(v, Value) else parameters[v.number] for v in values])
            for values in self._plain
        ]

    def _found(self, emitted: Emitted, values: tuple[Any, ...]) -> Rows:
        return emitted_rows(
            self._connection,
            emitted,
            values,
            context=self._context,
            limits=self._limits,
            as_of=self._as_of,
            budget=self._budget,
        )

    def _rows(self, emitted: Emitted, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return self._found(emitted, values).all()

    # ---------------------------------------------------------- UPDATE and DELETE

    def _change(self, row: tuple[Any, ...], *, deletes: bool) -> None:
        found = found_in(self._write.bound, row)
        before, genids, new, extra = found
        key = tuple(before[e] for e in self._descriptor.primary_key)
        if key in self._done:
            return  # FROM has joined it more than once, or another part has: it is changed once
        if deletes:
            self._add(RowWrite(key, before, None, genids, frozenset()), before, extra)
            return
        after = self._updated(before, new)
        self._add(RowWrite(key, before, after, genids, frozenset(new)), after, extra)

    def _updated(self, before: Image, values: Mapping[int, Any]) -> Image:
        return self._checked(before, {**before, **values})

    def _checked(self, before: Image | None, image: dict[int, Any]) -> Image:
        """Return the image with generated columns and without NULLs. Raises NotNullViolation."""
        descriptor = self._descriptor
        kept = {e: v for e, v in image.items() if v is not None}
        derive(descriptor, before, kept)
        for element_id in self._write.bound.required:
            if element_id not in kept:
                name = descriptor.by_id[element_id].name
                raise NotNullViolation(
                    f"null value in column {name!r} of relation {descriptor.name!r}"
                    " violates not-null constraint",
                    table=descriptor.name,
                    column=name,
                )
        return kept

    # ---------------------------------------------------------- INSERT

    def _insert(self, given: Sequence[Column], row: tuple[Any, ...]) -> None:
        bound = self._write.bound
        values = {c.element_id: v for c, v in zip(given, row, strict=True)}
        if self._descriptor.hidden_key:
            values[self._descriptor.primary_key[0]] = next(self._hidden_keys)
        image = self._checked(None, values)
        key = tuple(image[e] for e in self._descriptor.primary_key)
        if bound.conflict is not None and self._meets(key, image):
            return
        there = self._done.get(key)
        if there is not None and self._key_in(0, there) == key:
            raise primary_key_exists(self._descriptor, key)
        arbiters = tuple(self._write.there)  # by none of them a row is in the way, or there is none
        self._add(RowWrite(key, None, image, None, frozenset(values), arbiters), image, ())

    def _meets(self, key: Key, image: Image) -> bool:
        """Whether a row is in the way: DO NOTHING leaves the new one out, DO UPDATE changes the old
        one."""
        conflict = self._write.bound.conflict
        assert conflict is not None
        for arbiter, emitted in self._write.there.items():
            sought = self._key_in(arbiter, image)
            self._budget.hold(ROW_BYTES + size_of(sought))
            self._written.sought.append((arbiter, sought))
            own = self._own_in_the_way(arbiter, image)
            found = [] if own else self._rows(emitted, self._values(image))
            # What this statement has made of a row is what counts, not what is there.
            found = [row for row in found if self._key_of(row) not in self._done]
            if own or found:
                if self._write.update is None:
                    return True
                if own:
                    raise TooManyRows(
                        "ON CONFLICT DO UPDATE command cannot affect row a second time"
                    )
                self._update_instead(found[0], image)
                return True
        return False

    def _key_of(self, row: tuple[Any, ...]) -> Key:
        image = _image(self._ids, row[: len(self._ids)])
        return tuple(image[e] for e in self._descriptor.primary_key)

    def _own_in_the_way(self, arbiter: int, image: Image) -> bool:
        """Whether this very statement has written a row with the arbiter's key."""
        mine = self._key_in(arbiter, image)
        index = next((i for i in self._descriptor.indexes if i.element_id == arbiter), None)
        collides = None not in mine if index is None else index.can_collide(mine)
        return collides and self._keys_done(arbiter)[mine] > 0

    def _keys_done(self, arbiter: int) -> Counter[Key]:
        """Return how many rows this statement has made that have a key. ⚠ Looked for among all of
        them, many rows ON CONFLICT would take time by the square of their number."""
        keys = self._done_keys.get(arbiter)
        if keys is None:
            made = [
                self._key_in(arbiter, after) for after in self._done.values() if after is not None
            ]
            self._budget.hold(sum(ROW_BYTES + size_of(key) for key in made))
            keys = self._done_keys[arbiter] = Counter(made)
        return keys

    def _key_in(self, arbiter: int, image: Image) -> Key:
        descriptor = self._descriptor
        index = next((i for i in descriptor.indexes if i.element_id == arbiter), None)
        ids = descriptor.primary_key if index is None else index.columns
        return tuple(image.get(e) for e in ids)

    def _update_instead(self, row: tuple[Any, ...], image: Image) -> None:
        bound, emitted = self._write.bound, self._write.update
        assert emitted is not None
        assert bound.conflict is not None
        width = len(self._ids)
        before = _image(self._ids, row[:width])
        slots = (*self._parameters, *self._values(before), *self._values(image))
        found = self._rows(emitted, slots)
        if not found:
            return
        _, *new = found[0]
        assigned = bound.conflict.assigned
        given = {c.element_id: v for c, v in zip(assigned, new, strict=True)}
        after = self._updated(before, given)
        key = tuple(before[e] for e in self._descriptor.primary_key)
        genids = _genids(self._descriptor, row[width:])
        self._add(RowWrite(key, before, after, genids, frozenset(given)), after, ())

    # ---------------------------------------------------------- MERGE

    def _merge(self, row: tuple[Any, ...]) -> None:
        """Do with a row of the source what the first WHEN says that holds."""
        before, genids, _, extra = found_in(self._write.bound, row)
        matched = bool(before)
        slots = (*self._parameters, *self._values(before), *extra)
        for action in self._write.actions:
            bound, condition = action.bound, action.condition
            if bound.matched is not matched:
                continue
            if condition is not None and not self._rows(condition, slots)[0][0]:
                continue
            values = () if action.values is None else self._rows(action.values, slots)[0]
            if bound.kind == "INSERT":
                self._insert(bound.given, values)
            elif bound.kind != "NOTHING":
                self._change_matched(bound, before, genids, values)
            return

    def _change_matched(
        self,
        action: BoundAction,
        before: dict[int, Any],
        genids: Genids | None,
        values: tuple[Any, ...],
    ) -> None:
        key = tuple(before[e] for e in self._descriptor.primary_key)
        if key in self._done:
            raise TooManyRows(
                "MERGE command cannot affect row a second time",
                hint="Ensure that not more than one source row matches any one target row.",
            )
        if action.kind == "DELETE":
            self._add(RowWrite(key, before, None, genids, frozenset()), before, ())
            return
        new = {c.element_id: v for c, v in zip(action.given, values, strict=True)}
        after = self._updated(before, new)
        self._add(RowWrite(key, before, after, genids, frozenset(new)), after, ())

    # ---------------------------------------------------------- both

    def _values(self, image: Image) -> tuple[Any, ...]:
        return tuple(image.get(e) for e in self._ids)

    def _add(self, write: RowWrite, shown: Image, extra: tuple[Any, ...]) -> None:
        if len(self._done) >= WRITES_MAX:
            raise RequestTooLarge(f"a statement writes at most {WRITES_MAX} rows")
        size = WRITE_BYTES + size_of(write.key)
        for image in (write.before, write.after):
            if image is not None:
                size += size_of(image.values())
        for arbiter, keys in self._done_keys.items():
            replaced = self._done.get(write.key)
            if replaced is not None:
                keys[self._key_in(arbiter, replaced)] -= 1
            if write.after is not None:
                key = self._key_in(arbiter, write.after)
                keys[key] += 1
                size += ROW_BYTES + size_of(key)
        self._budget.hold(size)
        self._done[write.key] = write.after
        self._written.writes.append(write)
        returning = self._write.returning
        if returning is not None:
            slots = (*self._parameters, *self._values(shown), *extra)
            rows = self._rows(returning, slots)
            for row in rows:
                self._budget.hold(ROW_BYTES + size_of(row))
            self._written.rows += rows


class Found(NamedTuple):
    """A row that UPDATE or DELETE has found, and what it is to become. `new`: by element id."""

    before: dict[int, Any]
    genids: Genids | None
    new: dict[int, Any]
    extra: tuple[Any, ...]


def found_in(bound: BoundWrite, row: tuple[Any, ...]) -> Found:
    """Return what one row of `bound.find` says of the row that was found."""
    descriptor = bound.descriptor
    width, locks = len(bound.columns), len(descriptor.locks)
    new, extra = row[width + locks : len(row) - bound.extra], row[len(row) - bound.extra :]
    return Found(
        _image(tuple(c.element_id for c in bound.columns), row[:width]),
        _genids(descriptor, row[width : width + locks]),
        {c.element_id: v for c, v in zip(bound.given, new, strict=True)},
        extra,
    )


def _stays(value: Any) -> bool:
    """Return whether a parameter comes back from SQLite as the same value. A float may be NaN,
    which comes back as NULL; a large integer does not get there."""
    kind = type(value)
    return value is None or kind is str or (kind is int and -_HALF <= value < _HALF)


def _image(ids: tuple[int, ...], values: Sequence[Any]) -> dict[int, Any]:
    return {e: v for e, v in zip(ids, values, strict=True) if v is not None}


def _genids(descriptor: Descriptor, values: Sequence[Any]) -> Genids | None:
    found = {lock: v for lock, v in zip(descriptor.locks, values, strict=True) if v is not None}
    return found or None


@contextmanager
def own_rows(
    connection: apsw.Connection,
    tables: Mapping[int, tuple[Descriptor, Mapping[Key, Image | None]]],
    emptied: Collection[int] = (),
) -> Iterator[None]:
    """Temporary tables of a transaction's own rows (None: deleted), by table id, for statements
    that were prepared with these tables shadowed; empty they stay for the next transaction. Of
    those `emptied` all other rows are gone."""
    if not tables:
        yield
        return
    connection.execute("PRAGMA query_only = 0")  # what is written is of this connection alone
    known = _OWN_TABLES.setdefault(connection, {})
    if len(known) > OWN_TABLES_KEPT_MAX:
        for table_id in known:
            connection.execute(f"DROP TABLE IF EXISTS temp.{shadow_name(table_id)}")
        known.clear()
    try:
        for table_id, (descriptor, rows) in tables.items():
            if known.get(table_id) is not descriptor:
                connection.execute(f"DROP TABLE IF EXISTS temp.{shadow_name(table_id)}")
                known[table_id] = descriptor
            _make_own(connection, table_id, descriptor, rows)
            if table_id in emptied and not descriptor.provisional:
                _hide_others(connection, table_id, descriptor)
        yield
    finally:
        for table_id in tables:
            connection.execute(f"DELETE FROM temp.{shadow_name(table_id)}")
        connection.execute("PRAGMA query_only = 1")


def _hide_others(connection: apsw.Connection, table_id: int, descriptor: Descriptor) -> None:
    key = ", ".join(map(column_name, descriptor.primary_key))
    connection.execute(
        f"INSERT OR IGNORE INTO temp.{shadow_name(table_id)} ({key}, gone)"
        f" SELECT {key}, 1 FROM {table_name(table_id)}"
    )


def _make_own(
    connection: apsw.Connection,
    table_id: int,
    descriptor: Descriptor,
    rows: Mapping[Key, Image | None],
) -> None:
    ids = [c.element_id for c in descriptor.row_columns]
    names = ", ".join(map(column_name, ids))
    key = ", ".join(map(column_name, descriptor.primary_key))
    name = shadow_name(table_id)
    connection.execute(
        f"CREATE TEMP TABLE IF NOT EXISTS {name}"
        f" ({names}, gone INTEGER, PRIMARY KEY ({key})) WITHOUT ROWID"
    )
    holes = ", ".join("?" * (len(ids) + 1))
    made = _own_values(descriptor, ids, rows)
    connection.executemany(f"INSERT INTO temp.{name} VALUES ({holes})", made)


def _own_values(
    descriptor: Descriptor, ids: Sequence[int], rows: Mapping[Key, Image | None]
) -> Iterator[tuple[Any, ...]]:
    if descriptor.temporary and not descriptor.hidden_key:  # an image has all of its row
        for primary, image in rows.items():
            found = image or dict(zip(descriptor.primary_key, primary, strict=True))
            yield (*map(found.get, ids), int(image is None))
        return
    for primary, image in rows.items():
        whole = {**(image or {}), **dict(zip(descriptor.primary_key, primary, strict=True))}
        yield (*(whole.get(e) for e in ids), int(image is None))
