"""What a transaction on a replica has changed so far: the write set, with its own reads on top."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from leasehold.adapters.os.clock import new_request_id
from leasehold.catalog.definitions import quoted
from leasehold.catalog.descriptor import Column, Descriptor
from leasehold.model.errors import (
    FeatureNotSupported,
    MalformedRequest,
    Uncommittable,
)
from leasehold.model.ids import hidden_keys
from leasehold.model.keys import order_of
from leasehold.model.ports import Row
from leasehold.model.records import (
    ChangeRequest,
    Expression,
    Genids,
    Image,
    Key,
    OnConflict,
    Operation,
    OperationKind,
    ReadRange,
)
from leasehold.replica.schema_in_transaction import BlockSchema
from leasehold.replica.sequences.session_values import DrawnNumbers, LocalSequence
from leasehold.rows.generated import derive
from leasehold.rows.index_entries import entry_of
from leasehold.transaction.binding import binding
from leasehold.transaction.duplicate_key import primary_key_exists
from leasehold.transaction.isolation import ISOLATION, Isolation, Level
from leasehold.transaction.locks import Expected, covering_locks, expected_of
from leasehold.transaction.read_set import ReadsSoFar
from leasehold.values.types import STORED_AS_THEY_ARE, Type, from_storage, to_json, to_storage

if TYPE_CHECKING:
    from leasehold.replica.reads import Reads
    from leasehold.replica.sql_execute import Executed

OPERATIONS_MAX: Final = 250_000
"""As many as a request takes; what they may come to in bytes is found out when it is packed."""
_DIGEST_BYTES: Final = 16
_UNDECIDED: Final = object()
"""In an own row: the default of a column that only the master can compute."""


class Mark(NamedTuple):
    """Of a write set: a savepoint. `operations`: the first `kept` of them stay."""

    operations: list[Operation]
    kept: int
    own: Mapping[tuple[int, Key], dict[str, Any] | None]
    emptied: Mapping[int, Descriptor]
    restarted: Mapping[int, LocalSequence]
    schema: BlockSchema


class _Updated(NamedTuple):
    """An update of the row `name`, which is the row `to` then, as `after` shows it."""

    descriptor: Descriptor
    name: tuple[int, Key]
    to: tuple[int, Key]
    values: Mapping[str, Any]
    expect: Expected | None
    after: dict[str, Any]


class WriteSet:
    """Handed to the function that `Replica.transact` runs; lives as long as one run of it.

    Reads see what the isolation level says: what is newest at each statement, or one moment; with
    or without this transaction's own writes. Every row that is changed is named with the genid that
    its *first* read here has seen, and verified at commit (T1): between a `get` and the `update` of
    what was computed from it the row may change. From serializable up everything read is verified,
    and at any level what was read with `selectv`. A table's descriptor version is pinned from its
    first use to the end (D8).
    """

    def __init__(
        self,
        reads: Reads,
        isolation: Isolation = ISOLATION[Level.READ_COMMITTED],
        numbers: DrawnNumbers | None = None,
    ) -> None:
        """`numbers`: what its statements draw from sequences; None: nothing."""
        self._reads = reads
        self.numbers = numbers
        self.statements = count(1)
        """Their places, by which they draw what they have drawn before."""
        self._restarted: dict[int, LocalSequence] = {}
        self._restarts = count(-1, -1)
        """⚠ None that was taken back, and none of `StatementBatch`, which counts upwards."""
        self.isolation = isolation
        self.so_far = ReadsSoFar()
        self._own: dict[tuple[int, Key], dict[str, Any] | None] = {}
        self._seen: dict[tuple[int, Key], Genids] = {}
        self._read: dict[tuple[int, Key], set[int]] = {}  # element ids
        self._written: dict[int, Descriptor] = {}
        self._emptied: dict[int, Descriptor] = {}
        self.operations: list[Operation] = []
        self.schema = BlockSchema()

    # ------------------------------------------------------------ reading

    def get(
        self,
        table: str,
        key: Any,
        columns: Sequence[str] | None = None,
        *,
        selectv: bool = False,
    ) -> dict[str, Any] | None:
        """The row by column name, or None. `key`: a value, a tuple in key order, or a mapping.

        With `columns` only those: what is changed later in this row is then verified by the locks
        of the columns that were read or are written, so that writers under other locks of the row
        don't collide with this one. With `selectv` the commit is refused if the row has changed.
        """
        descriptor, stored, row = self._row(table, key)
        name = (descriptor.table_id, stored)
        self._first_seen(name, row)
        if selectv and row is not None:
            self.so_far.visited(descriptor, stored, row.genids)
        wanted = None if columns is None else [descriptor.column(c) for c in columns]
        self._has_read(name, descriptor, wanted)
        found: dict[str, Any] | None
        if self._shows_own(name):
            own = self._own[name]
            found = None if own is None else dict(own)
        else:
            found = None if row is None else named(descriptor, row)
        if found is not None and wanted is not None:
            found = {column.name: found[column.name] for column in wanted}
        return None if found is None else _decided(descriptor, found)

    def scan(
        self,
        table: str,
        low: Any = None,
        high: Any = None,
        *,
        rows_max: int = 10_000,
        selectv: bool = False,
    ) -> Iterator[dict[str, Any]]:
        """Rows with low <= key < high, in key order. `selectv` as in `get`, for each row; it tells
        nothing of rows that come into the range."""
        descriptor = self._reads.pin(table)
        first = self._reads.bound(descriptor, low)
        last = self._reads.bound(descriptor, high)
        if self.isolation.verifies_reads:
            self.so_far.range(descriptor, ReadRange(low=first or (), high=last or ()))
        found = {}
        for key, row in self._reads.scan(descriptor, first, last, rows_max):
            self._seen_by_scan(descriptor, key, row, selectv=selectv)
            found[key] = named(descriptor, row)
        for key, values in self._own_rows(descriptor).items():
            inside = (first is None or order_of(key[: len(first)]) >= order_of(first)) and (
                last is None or order_of(key[: len(last)]) < order_of(last)
            )
            if values is None:
                found.pop(key, None)
            elif inside:
                found[key] = _decided(descriptor, values)
        for key in sorted(found, key=order_of)[:rows_max]:
            yield found[key]

    def get_by(
        self, index: str, values: Any, *, rows_max: int = 10_000, selectv: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Rows whose index key starts with `values`, in index order; see `Replica.get_by`."""
        descriptor, by = self._reads.index(index)
        stored = self._reads.index_key(descriptor, by, _tuple_of(values))
        if self.isolation.verifies_reads:
            self.so_far.range(descriptor, ReadRange(descriptor.read_name(by), stored))
        made, width = entry_of(descriptor, by), len(by.columns)
        found: dict[Key, tuple[Key, dict[str, Any]]] = {}
        for key, row in self._reads.get_by(descriptor, by, stored, rows_max):
            self._seen_by_scan(descriptor, key, row, selectv=selectv)
            entry = made(row.values)
            assert entry is not None, "it was found by its entry"
            found[key] = entry[:width], named(descriptor, row)
        for key, own in self._own_rows(descriptor).items():
            found.pop(key, None)
            entry = None if own is None else made(_image(descriptor, _decided(descriptor, own)))
            if own is not None and entry is not None and entry[: len(stored)] == stored:
                found[key] = entry[:width], own
        in_order = sorted(found, key=lambda k: (order_of(found[k][0]), order_of(k)))
        for key in in_order[:rows_max]:
            yield found[key][1]

    def _seen_by_scan(self, descriptor: Descriptor, key: Key, row: Row, *, selectv: bool) -> None:
        self._first_seen((descriptor.table_id, key), row)
        self._has_read((descriptor.table_id, key), descriptor, None)
        if selectv:
            self.so_far.visited(descriptor, key, row.genids)

    def _shows_own(self, name: tuple[int, Key]) -> bool:
        return self.isolation.own_writes and name in self._own

    def _own_rows(self, descriptor: Descriptor) -> dict[Key, dict[str, Any] | None]:
        """What reads of a table have to show on top."""
        if not self.isolation.own_writes:
            return {}
        return {k: v for (t, k), v in self._own.items() if t == descriptor.table_id}

    # ------------------------------------------------------------ writing

    @cached_property
    def hidden_keys(self) -> Iterator[str]:
        """Of rows that are inserted into tables without a primary key (T7), in storage form."""
        return hidden_keys(new_request_id())

    def insert(
        self, table: str, key: Any, values: Mapping[str, Any], arbiters: tuple[str, ...] = ()
    ) -> None:
        """Raises DuplicateKey when the row is there already. `key` None: of a table without a
        primary key. `arbiters`: as of `Operation`; then a row that others commit meanwhile is a
        verify error."""
        if key is None and self._reads.pin(table).hidden_key:
            key = next(self.hidden_keys)
        descriptor, stored, row = self._row(table, key)
        name = (descriptor.table_id, stored)
        there = self._own[name] is not None if self._shows_own(name) else row is not None
        if there:
            raise primary_key_exists(descriptor, stored)
        binding(descriptor).values(values, None)
        self._add(OperationKind.INSERT, descriptor, stored, values, None, arbiters)
        self._own[name] = self._inserted(descriptor, stored, values)

    def update(
        self, table: str, key: Any, values: Mapping[str, Any], *, found: Row | None = None
    ) -> bool:
        """Change columns, those of the primary key, too; False when there is no such row. What was
        computed from a row that was read here is never written over a newer one. Raises
        DuplicateKey for a key that another row has. `found`: the row, of who has just read it."""
        return self._update([self._updated(table, key, values, found)], table)

    def update_together(self, table: str, updates: Sequence[tuple[Any, Mapping[str, Any]]]) -> bool:
        """Several rows, (key, values) each; one may take the key of another that leaves it. False
        when one of them is not there: nothing is changed then."""
        return self._update([self._updated(table, *each) for each in updates], table)

    def _update(self, found: Sequence[_Updated | None], table: str) -> bool:
        if None in found:
            return False
        changed = [each for each in found if each is not None]
        left = {each.name for each in changed if each.to != each.name}
        landed: set[tuple[int, Key]] = set()
        for each in changed:
            if each.to != each.name:
                if each.to in landed or (each.to not in left and self._is_there(table, each)):
                    raise primary_key_exists(each.descriptor, each.to[1])
                landed.add(each.to)
        for each in changed:
            kind, (_, key) = OperationKind.UPDATE, each.name
            self._add(kind, each.descriptor, key, each.values, each.expect)
            if each.name not in landed:
                self._own[each.name] = None
        for each in changed:
            self._own[each.to] = each.after
        return True

    def _updated(
        self, table: str, key: Any, values: Mapping[str, Any], found: Row | None = None
    ) -> _Updated | None:
        """None: there is no such row."""
        descriptor, stored, row = self._row(table, key, found)
        name = (descriptor.table_id, stored)
        if any(isinstance(value, Expression) for value in values.values()):
            raise MalformedRequest(
                "compute the value from the row that `get` gave; expressions are for requests"
            )
        bound = binding(descriptor)
        given = bound.values(values, None, keys=True)
        to = tuple(given.get(e, v) for e, v in zip(descriptor.primary_key, stored, strict=True))
        moves = to != stored
        if moves:
            bound.check_key(dict(zip(descriptor.primary_key, to, strict=True)))
        expect: Expected | None = None
        if self._shows_own(name):
            before = self._own[name]
        else:
            self._first_seen(name, row)
            before = None if row is None else named(descriptor, row)
            if before is not None:
                self._check_own(table, name)
            if before is not None and name not in self._own:
                concerned = descriptor.public_ids if moves else descriptor.changed_with(given)
                expect = self._expected(name, descriptor, concerned)
        if before is None:
            return None
        after = _with_generated(descriptor, {**before, **values})
        return _Updated(descriptor, name, (name[0], to), values, expect, after)

    def _is_there(self, table: str, updated: _Updated) -> bool:
        """Has a row the key that the updated one comes under?"""
        columns = updated.descriptor.key_columns
        _, key = updated.to
        outside = tuple(from_storage(c.type, v) for c, v in zip(columns, key, strict=True))
        _, _, row = self._row(table, outside)
        if self._shows_own(updated.to):
            return self._own[updated.to] is not None
        return row is not None

    def delete(self, table: str, key: Any, *, found: Row | None = None) -> bool:
        """False when there is no such row. `found`: as of `update`."""
        descriptor, stored, row = self._row(table, key, found)
        name = (descriptor.table_id, stored)
        expect: Expected | None = None
        if self._shows_own(name):
            if self._own[name] is None:
                return False
        else:
            self._first_seen(name, row)
            if row is None:
                return False
            self._check_own(table, name)
            if name not in self._own:
                expect = self._expected(name, descriptor, descriptor.public_ids)
        self._add(OperationKind.DELETE, descriptor, stored, {}, expect)
        self._own[name] = None
        return True

    # ------------------------------------------------------------ SQL

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Executed:
        """One SELECT, INSERT, UPDATE or DELETE, which sees what `get` would see. What it changes is
        verified and committed with the rest; so is what it has read, where the level verifies that.
        """
        from leasehold.replica.sql_execute import execute  # it stands on this module

        return execute(self, self._reads, sql, parameters)

    def saw(self, descriptor: Descriptor, key: Key, row: Row) -> None:
        """A row that a statement has found by itself: as if `get` had read it."""
        self._first_seen((descriptor.table_id, key), row)
        self._has_read((descriptor.table_id, key), descriptor, None)

    def visited(self, descriptor: Descriptor, key: Key, genids: Genids) -> None:
        """A row that SELECTV has shown. Raises MalformedRequest for too many."""
        self._seen.setdefault((descriptor.table_id, key), genids)
        self.so_far.visited(descriptor, key, genids)

    def mark(self) -> Mark:
        """How far it is, for `back_to`."""
        own, emptied = dict(self._own), dict(self._emptied)
        restarted = dict(self._restarted)
        return Mark(self.operations, len(self.operations), own, emptied, restarted, self.schema)

    def back_to(self, mark: Mark) -> None:
        """What was written since the mark is forgotten; what was read since stays verified."""
        self.operations = mark.operations
        del self.operations[mark.kept :]
        self._own = dict(mark.own)
        self._emptied = dict(mark.emptied)
        self._restarted = dict(mark.restarted)
        if mark.schema is not self.schema:
            self._shape(mark.schema)

    def change(self, schema: BlockSchema) -> None:
        """The tables are as `schema` says from here on, which goes out with the rows. Raises
        FeatureNotSupported where rows that were written would have to follow."""
        before = self.schema.made
        for name, table in schema.made.items():
            same = name in before and before[name].columns == table.columns
            if not same and any(table_id == table.table_id for table_id, _ in self._own):
                raise FeatureNotSupported(
                    f"columns of table {name!r} change after this very transaction has written rows"
                    " of it: change the table first",
                    table=name,
                )
        gone = self.schema.gone_with(schema)
        self._forget(gone)
        self._emptied = {k: t for k, t in self._emptied.items() if t not in gone}
        anew = {t.table_id for t in gone} | self.schema.begun_by(schema)
        self._restarted = {k: s for k, s in self._restarted.items() if k not in anew}
        self._shape(schema)

    def _shape(self, schema: BlockSchema) -> None:
        self.schema = schema
        self._reads.sees(schema.made, schema.dropped)

    def empty(self, tables: Sequence[Descriptor]) -> None:
        """All rows of these tables are to go at COMMIT, before any that is written from here on."""
        self._emptied |= {table.table_id: table for table in tables}
        self._written |= self._emptied
        self._forget(tables)

    def restart(self, sequences: Collection[Descriptor]) -> None:
        """TRUNCATE … RESTART IDENTITY: they begin anew, for this transaction now."""
        for each in sequences:
            assert each.sequence is not None, each
            begun = LocalSequence(each, each.sequence.start, next(self._restarts))
            self._restarted[each.table_id] = begun

    @property
    def local_sequences(self) -> Mapping[int, LocalSequence]:
        """Those of which nobody else draws until its commit: made or restarted by it."""
        script = self.schema.script
        if script is None:
            return self._restarted
        own = {
            each.table_id: LocalSequence(each, *script.start_of(each))
            for each in script.own_sequences
        }
        return {**own, **self._restarted} if self._restarted else own

    def _forget(self, tables: Collection[Descriptor]) -> None:
        """What was written to these tables."""
        if not tables:
            return
        names, ids = {t.name for t in tables}, {t.table_id for t in tables}
        # Another list: a savepoint may keep this one.
        self.operations = [one for one in self.operations if one.table not in names]
        self._own = {k: v for k, v in self._own.items() if k[0] not in ids}

    @property
    def emptied(self) -> Collection[int]:
        """Ids of the tables that have no rows but those written since."""
        return self._emptied.keys()

    @property
    def has_written(self) -> bool:
        return bool(self.operations or self._emptied or self._restarted or self.schema.texts)

    @property
    def own_tables(self) -> frozenset[int]:
        """Ids of the tables that this transaction sees otherwise than others do, and perhaps of
        some of which it has taken back all."""
        made = (table.table_id for table in self.schema.made.values())
        return frozenset((*self._written, *made))

    def own_images(
        self, tables: Collection[int]
    ) -> dict[int, tuple[Descriptor, dict[Key, Image | None]]]:
        """Rows that this transaction has written, by table id, of each of `tables`; None: deleted.
        Raises FeatureNotSupported for a value that there is only once the row is committed."""
        known = self._written | {table.table_id: table for table in self.schema.made.values()}
        found: dict[int, tuple[Descriptor, dict[Key, Image | None]]] = {
            table_id: (known[table_id], {}) for table_id in tables
        }
        for (table_id, key), values in self._own.items() if tables else ():
            if table_id not in found:
                continue
            descriptor = known[table_id]
            image: Image | None = None
            if values is not None:
                image = _image(descriptor, _decided(descriptor, values))
            found[table_id][1][key] = image
        return found

    def own_digest(self, table_id: int, prefix: Key, *, whole: bool) -> bytes:
        """Of what this transaction has made of rows whose keys begin so (`whole`: is that key);
        b"": of none."""
        width = len(prefix)
        names = [(table_id, prefix)] if whole else [n for n in self._own if n[0] == table_id]
        names = [name for name in names if name in self._own and name[1][:width] == prefix]
        if not names:
            return b""
        digest = blake2b(digest_size=_DIGEST_BYTES)
        for name in sorted(names, key=repr):
            values = self._own[name]
            shown = None if values is None else sorted(values.items())
            digest.update(repr((name, shown)).encode())
        return digest.digest()

    # ------------------------------------------------------------ its end

    def request(
        self, request_id: bytes, attempt: int, on_conflict: OnConflict
    ) -> ChangeRequest | None:
        """What is to be committed; None: nothing was written, and it ends here (T1)."""
        if not self.has_written:
            return None
        names = ", ".join(quoted(table.name) for table in self._emptied.values())
        begun = (quoted(each.descriptor.name) for each in self._restarted.values())
        texts = (
            *self.schema.texts,
            *([f"TRUNCATE TABLE {names}"] if names else ()),
            *(f"ALTER SEQUENCE {name} RESTART" for name in begun),
        )
        settings = () if self.numbers is None else self.numbers.settings(self.local_sequences)
        return ChangeRequest(
            request_id,
            (*settings, *self.operations),
            sql=";\n".join(texts) or None,
            on_conflict=on_conflict,
            attempt=attempt,
            used=self._reads.used(),
            reads=self.so_far.read_set(self._reads.moment or 0),
            time_zones=self.schema.zones,
        )

    # ------------------------------------------------------------ inside

    def _check_own(self, table: str, name: tuple[int, Key]) -> None:
        """T2: who doesn't see his own writes may change a row that he has deleted."""
        if name in self._own and self._own[name] is None:
            raise Uncommittable(
                f"row {name[1]!r} of table {table!r} was deleted by this very transaction, which"
                " does not see its own writes: this can never be committed",
                table=table,
                key=list(name[1]),
            )

    def _row(
        self, table: str, key: Any, found: Row | None = None
    ) -> tuple[Descriptor, Key, Row | None]:
        descriptor = self._reads.pin(table)
        stored = self._reads.key(descriptor, key)
        if self.isolation.verifies_reads:
            self.so_far.key(descriptor, stored)
        if descriptor.provisional or descriptor.table_id in self._emptied:
            return descriptor, stored, None
        return descriptor, stored, found or self._reads.row(descriptor, stored)

    def _first_seen(self, name: tuple[int, Key], row: Row | None) -> None:
        """Keep the genids of the first read that has shown this row; `row` is what this one has
        found. A read that found none has no genid that could be verified."""
        if row is not None:
            self._seen.setdefault(name, row.genids)

    def _has_read(
        self, name: tuple[int, Key], descriptor: Descriptor, columns: list[Column] | None
    ) -> None:
        ids = descriptor.public_ids if columns is None else {c.element_id for c in columns}
        self._read.setdefault(name, set()).update(ids)

    def _expected(
        self, name: tuple[int, Key], descriptor: Descriptor, changed: Iterable[int]
    ) -> Expected:
        """The genids of the locks over the columns that were read or are changed (T1)."""
        seen = self._seen[name]
        concerned = {*changed, *self._read.get(name, ())}
        return expected_of(descriptor, seen, covering_locks(descriptor, concerned))

    def _add(
        self,
        kind: OperationKind,
        descriptor: Descriptor,
        key: Key,
        values: Mapping[str, Any],
        expect: Expected | None,
        arbiters: tuple[str, ...] = (),
    ) -> None:
        self._written[descriptor.table_id] = descriptor
        if len(self.operations) >= OPERATIONS_MAX:
            raise MalformedRequest(f"at most {OPERATIONS_MAX} operations in one transaction")
        outside = tuple(
            to_json(column.type, value)
            for column, value in zip(descriptor.key_columns, key, strict=True)
        )
        # A name that is given anew in this transaction means the table that is there without one.
        version = None if descriptor.provisional else descriptor.version
        self.operations.append(
            Operation(kind, descriptor.name, outside, dict(values), expect, version, arbiters)
        )

    def _inserted(
        self, descriptor: Descriptor, key: Key, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        row: dict[str, Any] = {
            column.name: _UNDECIDED
            if column.default_expression
            else from_storage(column.type, column.default)
            for column in descriptor.by_name.values()
        }
        row.update(values)
        for column, value in zip(descriptor.key_columns, key, strict=True):
            if not column.hidden:
                row[column.name] = from_storage(column.type, value)
        return _with_generated(descriptor, row)


def _tuple_of(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


def _image(descriptor: Descriptor, row: Mapping[str, Any]) -> Image:
    return {c.element_id: to_storage(c.type)(row[c.name]) for c in descriptor.by_name.values()}


def _with_generated(descriptor: Descriptor, row: dict[str, Any]) -> dict[str, Any]:
    """An own row with its generated columns as its other ones are now. Raises what the expressions
    raise, as the commit would."""
    if not descriptor.generated:
        return row
    plain = [c for c in descriptor.by_name.values() if not c.generated]
    known = [c for c in plain if row[c.name] is not _UNDECIDED]
    image: dict[int, Any] = {c.element_id: to_storage(c.type)(row[c.name]) for c in known}
    derive(descriptor, None, image)
    missing = {c.element_id for c in plain} - image.keys()
    for column in descriptor.by_name.values():
        if column.derived is not None:
            value = from_storage(column.type, image.get(column.element_id))
            row[column.name] = value if missing.isdisjoint(column.derived.sources) else _UNDECIDED
    return row


def _decided(descriptor: Descriptor, row: dict[str, Any]) -> dict[str, Any]:
    """Raises FeatureNotSupported for a value that there is only once the row is committed."""
    for name, value in row.items():
        if value is _UNDECIDED:
            raise FeatureNotSupported(
                f"the value of column {name!r} of table {descriptor.name!r} is decided when this"
                " transaction commits: read it afterwards, name other columns, or give a value",
                table=descriptor.name,
                column=name,
            )
    return row


def named(descriptor: Descriptor, row: Row) -> dict[str, Any]:
    """Public columns by name, as Python values."""
    values = row.values
    return {
        name: values.get(element_id) if plain else from_storage(kind, values.get(element_id))
        for name, element_id, kind, plain in _shape(descriptor)
    }


def named_values(descriptor: Descriptor, found: Sequence[Any]) -> dict[str, Any]:
    """As `named`, of storage values of the public columns in their order; more may follow."""
    return {
        name: value if plain else from_storage(kind, value)
        for (name, _, kind, plain), value in zip(_shape(descriptor), found, strict=False)
    }


_SHAPES: dict[int, tuple[Descriptor, list[tuple[str, int, Type, bool]]]] = {}
_SHAPES_MAX: Final = 1_000


def _shape(descriptor: Descriptor) -> list[tuple[str, int, Type, bool]]:
    """(name, element id, type, whether storage and Python value are the same) per public column.

    By identity, which is one look-up; the descriptor is kept, so no id comes twice."""
    found = _SHAPES.get(id(descriptor))
    if found is None:
        if len(_SHAPES) >= _SHAPES_MAX:
            _SHAPES.clear()
        found = _SHAPES[id(descriptor)] = (
            descriptor,
            [
                (name, column.element_id, column.type, column.type.name in STORED_AS_THEY_ARE)
                for name, column in descriptor.by_name.items()
            ],
        )
    return found[1]
