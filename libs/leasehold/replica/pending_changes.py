"""What a transaction has written and not committed: rows, operations, and changes of tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import count
from typing import Any, Final, NamedTuple

from leasehold.catalog.definitions import quoted
from leasehold.catalog.descriptor import TEMPORARY_FROM, Descriptor
from leasehold.model.budget import Budget, size_of
from leasehold.model.errors import FeatureNotSupported, MalformedRequest
from leasehold.model.keys import Key
from leasehold.model.records.events import Image
from leasehold.model.records.requests import Expression, Operation, OperationKind
from leasehold.replica.pending_notifications import PendingNotifications, Sent
from leasehold.replica.reads import Reads
from leasehold.replica.row_values import given_in_row, image_of, key_in_row
from leasehold.replica.rows_seen import RowName
from leasehold.replica.schema_in_transaction import BlockSchema, Shown
from leasehold.replica.sequences.session_values import LocalSequence
from leasehold.replica.temporary_tables import (
    TemporarySchema,
    TemporaryTables,
    size_of_row,
)
from leasehold.rows.defaults import default_of_old_rows
from leasehold.transaction.duplicate_key import primary_key_duplicated
from leasehold.values.storage import from_storage, to_json
from leasehold.values.types import Type, holds_all_of

OPERATIONS_MAX: Final = 250_000
"""As many as a request takes; what they may come to in bytes is found out when it is packed."""
_DIGEST_BYTES: Final = 16
OPERATION_BYTES: Final = 350
ROW_BYTES: Final = 150
"""Of an operation and of an own row, beside the values: about what holds them."""


class _Nothing:
    """What a row was that was not written."""


_NOTHING: Final = _Nothing()


class Mark(NamedTuple):
    """A savepoint. `operations`: the first `kept` of them stay; `replaced`: as many of what was
    replaced in the rows; `held`: as many bytes."""

    operations: list[Operation]
    kept: int
    replaced: int
    held: int
    emptied: Mapping[int, Descriptor]
    restarted: Mapping[int, LocalSequence]
    schema: BlockSchema
    notified: Sent
    temporary: TemporarySchema
    temporary_bytes: int


class RowChange(NamedTuple):
    """How a row that was written follows a change of its table: columns that go, that are called
    otherwise now, and that come, with their values. `names`: of the table, up to now; `made`: that
    of one which the transaction makes, "" = of one that was there; `keyed`: such a table, where its
    rows are found by another key then."""

    gone: frozenset[str]
    renamed: Mapping[str, str]
    new: Mapping[str, Any]
    names: frozenset[str]
    made: str = ""
    keyed: Descriptor | None = None

    @property
    def does_something(self) -> bool:
        """Whether rows or operations are told otherwise."""
        called = bool(self.made) and self.names != {self.made}
        return bool(self.gone or self.renamed or self.new or called)

    def of(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the row as it is after the change."""
        kept = {name: value for name, value in row.items() if name not in self.gone}
        return {**self.of_given(kept), **self.new}

    def of_given(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return what an operation gives by the names that columns have after the change."""
        return {self.renamed.get(name, name): value for name, value in values.items()}

    def of_operation(self, operation: Operation) -> Operation:
        """Return an operation as it is said after the change. Of a table that was there the master
        knows what rows have in a new column."""
        values = self.of_given(
            {name: value for name, value in operation.values.items() if name not in self.gone}
        )
        if not self.made:
            return operation._replace(values=values)
        if operation.kind is OperationKind.INSERT:
            values |= self.new
        return operation._replace(table=self.made, values=values)


class _Rekeyed(NamedTuple):
    """Own rows of a table that the transaction makes, by the key that it gets; `names`: those that
    it has had."""

    table: Descriptor
    names: frozenset[str]
    rows: Mapping[Key, dict[str, Any]]


def _cannot_follow(table: Descriptor) -> FeatureNotSupported:
    return FeatureNotSupported(
        f"columns of table {table.name!r} change after this very transaction has written rows of"
        " it: change the table first",
        table=table.name,
    )


def _is_changed(before: Type, after: Type) -> bool:
    """Say whether values of a column are others under the type that it gets."""
    return before != after and not holds_all_of(after, before)


def _gives(operation: Operation, columns: frozenset[str]) -> bool:
    """Say whether an operation gives a value of one of these columns, or may compute with it. ⚠ Who
    reads by the version before would be shown another value of it than was committed."""
    if not columns:
        return False
    values = operation.values
    computes = any(isinstance(value, Expression) for value in values.values())
    return computes or not columns.isdisjoint(values)


class PendingChanges:
    """All that ROLLBACK TO takes back, and which tables were ever written.

    `operations` say for the master what `rows` are for this transaction: own rows by column name,
    None: deleted. `emptied`: tables, by id, that have no rows but those written since. Each row's
    table is in `_written`, or made by `schema`.
    """

    def __init__(
        self, reads: Reads, budget: Budget, temporary: TemporaryTables | None = None
    ) -> None:
        """Begin, with nothing written. `budget` holds what is. `temporary`: the temporary tables of
        the session."""
        self._reads = reads
        self._budget = budget
        self._held = 0
        temporary = temporary or TemporaryTables(0)
        self.temporary = temporary.schema
        self._temporary_images = temporary.images
        self.temporary_bytes = temporary.bytes
        self.temporary_changed = False
        self.operations: list[Operation] = []
        self.rows: dict[RowName, dict[str, Any] | None] = {}
        self._replaced: list[tuple[RowName, dict[str, Any] | _Nothing | None]] = []
        """What the rows were before each change, from the first savepoint on: a savepoint takes no
        copy of them, which would grow by all rows with each."""
        self._can_go_back = False
        self.emptied: dict[int, Descriptor] = {}
        self.schema = BlockSchema()
        self.notifications = PendingNotifications(budget)
        self._written: dict[int, Descriptor] = {}
        self._restarted: dict[int, LocalSequence] = {}
        self._restarts = count(-1, -1)
        """⚠ None that was taken back, and none of `StatementBatch`, which counts upwards."""
        if not temporary.is_empty:
            budget.hold(temporary.bytes)
            self.rows |= temporary.rows
            self._use_schema()

    def __bool__(self) -> bool:
        written = self.operations or self.emptied or self._restarted or self.schema.texts
        return bool(written or self.notifications)

    def add(self, descriptor: Descriptor, operation: Operation) -> None:
        """Add an operation on a row. Raises MalformedRequest for too many, OutOfMemory."""
        table_id = descriptor.table_id
        if descriptor.temporary:  # nobody else is told of it
            return
        # ⚠ As the transaction leaves a table it is only until ROLLBACK TO.
        if table_id not in self.schema.shown or table_id not in self._written:
            self._written[table_id] = descriptor
        if len(self.operations) >= OPERATIONS_MAX:
            raise MalformedRequest(f"at most {OPERATIONS_MAX} operations in one transaction")
        self._hold(OPERATION_BYTES, operation.values)
        self.operations.append(operation)

    @property
    def written(self) -> Mapping[int, Descriptor]:
        """The tables, by id, that were there and of which it has written rows at any time."""
        return self._written

    def has_only_own_rows(self, table: Descriptor) -> bool:
        """Return whether no row of a table is there but those written here."""
        return table.provisional or table.table_id in self.emptied

    def put(self, name: RowName, values: dict[str, Any] | None) -> None:
        """Let a row be as `values` for this transaction; None: deleted. Raises OutOfMemory."""
        self._hold(ROW_BYTES, values or {})
        if name[0] >= TEMPORARY_FROM:
            self.temporary_changed = True
            self.temporary_bytes += size_of_row(values) - size_of_row(self.rows.get(name))
        if self._can_go_back:
            self._replaced.append((name, self.rows.get(name, _NOTHING)))
        self.rows[name] = values

    def _hold(self, size: int, values: Mapping[str, Any]) -> None:
        size += size_of(values.values())
        self._budget.hold(size)
        self._held += size

    # ------------------------------------------------------------ savepoints

    def mark(self) -> Mark:
        """Return how far it is, for `back_to`."""
        self._can_go_back = True
        return Mark(
            self.operations,
            len(self.operations),
            len(self._replaced),
            self._held,
            dict(self.emptied),
            dict(self._restarted),
            self.schema,
            self.notifications.mark(),
            self.temporary,
            self.temporary_bytes,
        )

    def back_to(self, mark: Mark) -> None:
        """Forget what was written since the mark."""
        self.operations = mark.operations
        del self.operations[mark.kept :]
        while len(self._replaced) > mark.replaced:
            name, before = self._replaced.pop()
            if isinstance(before, _Nothing):
                del self.rows[name]
            else:
                self.rows[name] = before
        self._budget.give_back(self._held - mark.held)
        self._held = mark.held
        self.emptied = dict(mark.emptied)
        self._restarted = dict(mark.restarted)
        self.notifications.back_to(mark.notified)
        self.temporary_bytes = mark.temporary_bytes
        if mark.schema is not self.schema or mark.temporary is not self.temporary:
            self.temporary = mark.temporary
            self._set_schema(mark.schema)

    # ------------------------------------------------------------ tables

    def change(self, schema: BlockSchema) -> None:
        """Let the tables be as `schema` says from here on, which goes out with the rows. Raises
        FeatureNotSupported where rows that were written would have to follow."""
        followed = [*self._check_follow(schema), *self._check_follow_made(schema)]
        rekeyed = [self._find_rekeyed(c.keyed, c) for _, c in followed if c.keyed is not None]
        for table_id, change in followed:
            if change.keyed is not None:
                continue
            own = (
                [each for each in self.rows if each[0] == table_id] if change.does_something else ()
            )
            for row_name in own:
                row = self.rows[row_name]
                if row is not None:
                    self.put(row_name, change.of(row))
            if change.does_something:
                # Another list: a savepoint may keep this one.
                self.operations = [
                    change.of_operation(each) if each.table in change.names else each
                    for each in self.operations
                ]
        gone = self.schema.gone_with(schema)
        # What was written of a table names it as the transaction has called it then.
        ids, names = {t.table_id for t in gone}, {t.name for t in gone}
        names |= {each.after.name for t, each in self.schema.shown.items() if t in ids}
        self._forget(ids, names)
        self.emptied = {k: t for k, t in self.emptied.items() if t not in gone}
        anew = {t.table_id for t in gone} | self.schema.begun_by(schema)
        self._restarted = {k: s for k, s in self._restarted.items() if k not in anew}
        for each in rekeyed:
            self._put_anew(each)
        self._set_schema(schema)

    def _find_rekeyed(self, table: Descriptor, change: RowChange) -> _Rekeyed:
        """Return own rows of a table that the transaction makes as they are found by its new key.
        Raises NotNullViolation, DuplicateKey, and FeatureNotSupported where a key is not known."""
        rows: dict[Key, dict[str, Any]] = {}
        for (table_id, _), before in self.rows.items():
            if table_id != table.table_id or before is None:
                continue
            row = change.of(before)
            key = key_in_row(table, row)
            if key is None:
                raise _cannot_follow(table)
            if key in rows:
                raise primary_key_duplicated(table, key)
            rows[key] = row
        return _Rekeyed(table, change.names, rows)

    def _put_anew(self, found: _Rekeyed) -> None:
        """Let own rows be found by the new key of their table. Nobody else has any of it, so all
        that was written to it comes to an insert for each row that is left."""
        table = found.table
        self._forget({table.table_id}, found.names)
        for key, row in found.rows.items():
            outside = tuple(
                to_json(column.type, value)
                for column, value in zip(table.key_columns, key, strict=True)
            )
            values = given_in_row(table, row)
            self.add(table, Operation(OperationKind.INSERT, table.name, outside, values))
            self.put((table.table_id, key), row)

    def _set_schema(self, schema: BlockSchema) -> None:
        self.schema = schema
        self._use_schema()

    def _use_schema(self) -> None:
        """Let names mean what they mean for this transaction. A temporary table hides one of the
        same name."""
        schema = self.schema
        shown = schema.shown.values()
        changed = {each.table.name: (each.name, each.table, each.closed) for each in shown}
        gone = {*schema.dropped, *(each.name for each in shown)} - changed.keys()
        self._reads.use_schema(schema.made, gone, changed, self.temporary.made)

    def change_temporary(self, schema: TemporarySchema) -> None:
        """Let the temporary tables be as `schema` says from here on. Raises FeatureNotSupported
        where their rows would have to follow."""
        before = {table.table_id: table for table in self.temporary.made.values()}
        after = {table.table_id: table for table in schema.made.values()}
        for table_id, table in after.items():
            own = [name for name in self.rows if name[0] == table_id]
            if not own or table is before.get(table_id):
                continue
            change = self._follow_made(before[table_id], table)
            if change.keyed is not None:
                raise _cannot_follow(table)
            for name in own if change.gone or change.renamed or change.new else ():
                row = self.rows[name]
                if row is not None:
                    self.put(name, change.of(row))
        self._forget(before.keys() - after.keys(), ())
        self.temporary, self.temporary_changed = schema, True
        self._use_schema()

    def _check_follow(self, schema: BlockSchema) -> list[tuple[int, RowChange]]:
        """Return how `schema` changes own rows of tables that were there. Raises
        FeatureNotSupported where the rows can't follow."""
        own = {table_id for table_id, _ in self.rows}
        followed = []
        for table_id, shown in schema.shown.items():
            if table_id in self.emptied:
                raise FeatureNotSupported(
                    f"this very transaction has truncated table {shown.name!r}: change it first",
                    table=shown.name,
                )
            if table_id in own:
                followed.append((table_id, self._follow(shown, self._known[table_id])))
        return followed

    def _check_follow_made(self, schema: BlockSchema) -> list[tuple[int, RowChange]]:
        """Return how `schema` changes own rows of tables that it makes. Raises FeatureNotSupported
        where the rows can't follow."""
        own = {table_id for table_id, _ in self.rows}
        before = {table.table_id: table for table in self.schema.made.values()}
        return [
            (table.table_id, self._follow_made(before[table.table_id], table))
            for table in schema.made.values()
            if table.table_id in own and table.table_id in before
        ]

    def _follow_made(self, before: Descriptor, table: Descriptor) -> RowChange:
        there = {c.element_id: c for c in before.columns}
        after = {c.element_id: c for c in table.columns}
        new = [c for e, c in after.items() if e not in there]
        computes = any(
            isinstance(value, Expression)
            for each in self.operations
            if each.table == before.name
            for value in each.values.values()
        )
        keyed = before.primary_key != table.primary_key
        if (
            (keyed and computes)
            or any(_is_changed(c.type, after[e].type) for e, c in there.items() if e in after)
            or any(c.generated or (c.has_default and default_of_old_rows(c) is None) for c in new)
            or any(c.ordinal for c in new)  # it has another type, and other values
            or (computes and before.columns != table.columns)
        ):
            raise _cannot_follow(before)
        gone = frozenset(c.name for e, c in there.items() if e not in after)
        renamed = {c.name: after[e].name for e, c in there.items() if e in after}
        changed = {old: name for old, name in renamed.items() if old != name}
        values = {c.name: from_storage(c.type, default_of_old_rows(c)) for c in new}
        own = table if keyed else None
        return RowChange(gone, changed, values, frozenset((before.name,)), table.name, own)

    def _follow(self, shown: Shown, before: Descriptor) -> RowChange:
        """Return how own rows of a table become what they are after a change of it."""
        there = {c.element_id: c for c in before.by_name.values()}
        after = {c.element_id: c for c in shown.table.by_name.values()}
        kept = [c.type for e, c in after.items() if e in there]
        gone = frozenset(c.name for e, c in there.items() if e not in after)
        names = {before.name, shown.name, shown.table.name}
        if (
            shown.closed
            or kept != [c.type for e, c in there.items() if e in after]
            or any(_gives(each, gone) for each in self.operations if each.table in names)
        ):
            raise _cannot_follow(before)
        ahead = shown.table.ahead
        new = {c.name: from_storage(c.type, ahead[e]) for e, c in after.items() if e not in there}
        renamed = {there[e].name: c.name for e, c in after.items() if e in there}
        changed = {old: name for old, name in renamed.items() if old != name}
        return RowChange(gone, changed, new, frozenset(names))

    def empty(self, tables: Sequence[Descriptor]) -> None:
        """Let all rows of these tables go at COMMIT, before any that is written from here on.
        Raises FeatureNotSupported for one that this transaction changes."""
        for table in tables:
            if table.table_id in self.schema.shown:
                raise FeatureNotSupported(
                    f"this very transaction changes table {table.name!r}: TRUNCATE it before, by"
                    " itself, or say DELETE",
                    table=table.name,
                )
        shared = [table for table in tables if not table.temporary]
        self.emptied |= {table.table_id: table for table in shared}
        self._written |= self.emptied
        self._forget({t.table_id for t in tables}, {t.name for t in tables if not t.temporary})

    def _forget(self, ids: Collection[int], names: Collection[str]) -> None:
        """Forget what was written to tables of these ids and names."""
        if not ids:
            return
        # Another list: a savepoint may keep this one.
        self.operations = [one for one in self.operations if one.table not in names]
        for name in [name for name in self.rows if name[0] in ids]:
            before = self.rows.pop(name)
            if name[0] >= TEMPORARY_FROM:
                self.temporary_bytes -= size_of_row(before)
                self.temporary_changed = True
            if self._can_go_back:
                self._replaced.append((name, before))

    def restart(self, sequences: Iterable[Descriptor]) -> None:
        """Let sequences start over, for this transaction now (TRUNCATE … RESTART IDENTITY)."""
        starts: dict[int, int] = {}
        for each in sequences:
            assert each.sequence is not None, each
            if each.temporary:
                starts[each.table_id] = each.sequence.start
                continue
            begun = LocalSequence(each, each.sequence.start, next(self._restarts))
            self._restarted[each.table_id] = begun
        if starts:
            self.change_temporary(self.temporary.with_starts(starts))

    @property
    def local_sequences(self) -> Mapping[int, LocalSequence]:
        """The sequences of which nobody else draws until its commit: made or restarted by it, and
        those of temporary tables."""
        own = self.temporary.local_sequences
        return {**self.committed_sequences, **own} if own else self.committed_sequences

    @property
    def committed_sequences(self) -> Mapping[int, LocalSequence]:
        """Return those of them that its commit tells of."""
        script = self.schema.script
        if script is None:
            return self._restarted
        own = {
            each.table_id: LocalSequence(each, *script.start_of(each))
            for each in script.own_sequences
        }
        return {**own, **self._restarted} if self._restarted else own

    @property
    def held_text(self) -> str:
        """What becomes of tables by the job that is held for the rows, as SQL."""
        texts, _ = self.schema.request_texts(late=False)
        return ";\n".join(texts)

    @property
    def text(self) -> str | None:
        """What becomes of tables and sequences, as SQL for the master; of tables that were there
        beside a job that is held."""
        holds = self.schema.holds
        emptied = (t for t in self.emptied.values() if not (holds and t.provisional))
        names = ", ".join(quoted(table.name) for table in emptied)
        begun = (quoted(each.descriptor.name) for each in self._restarted.values())
        texts = (
            *(self.schema.request_texts(late=True)[0] if holds else self.schema.texts),
            *([f"TRUNCATE TABLE {names}"] if names else ()),
            *(f"ALTER SEQUENCE {name} RESTART" for name in begun),
        )
        return ";\n".join(texts) or None

    # ------------------------------------------------------------ its rows

    def rows_of(self, descriptor: Descriptor) -> dict[Key, dict[str, Any] | None]:
        return {k: v for (t, k), v in self.rows.items() if t == descriptor.table_id}

    @property
    def tables(self) -> frozenset[int]:
        """Ids of the tables that this transaction sees otherwise than others do, and perhaps of
        some of which it has taken back all."""
        made = (table.table_id for table in self.schema.made.values())
        return frozenset((*self._written, *made, *self.schema.shown, *self.temporary_ids))

    @property
    def temporary_ids(self) -> frozenset[int]:
        """Ids of the session's temporary tables."""
        return frozenset(table.table_id for table in self.temporary.made.values())

    def find_table(self, table_id: int) -> Descriptor:
        """Return a table that it has written, made or changed, as it sees its rows."""
        return self._known[table_id]

    @property
    def _known(self) -> dict[int, Descriptor]:
        """Return the tables that it has written, made or changed, by id."""
        schema = self.schema
        tables = (*schema.made.values(), *self.temporary.made.values())
        made = {table.table_id: table for table in tables}
        return {**self._written, **made, **{t: each.table for t, each in schema.shown.items()}}

    def images(
        self, tables: Collection[int]
    ) -> dict[int, tuple[Descriptor, dict[Key, Image | None]]]:
        """Return own rows, by table id, of each of `tables`; None: deleted. Raises
        FeatureNotSupported for a value that there is only once the row is committed."""
        known = self._known
        found: dict[int, tuple[Descriptor, dict[Key, Image | None]]] = {
            table_id: (known[table_id], {}) for table_id in tables
        }
        for (table_id, key), values in self.rows.items() if tables else ():
            if table_id in found:
                descriptor, images = found[table_id]
                images[key] = None if values is None else self._image(descriptor, key, values)
        return found

    def _image(self, descriptor: Descriptor, key: Key, values: dict[str, Any]) -> Image:
        """Return a row as stores have it; of a temporary table it is made once, since each
        statement on one asks for all of its rows."""
        if not descriptor.temporary:
            return image_of(descriptor, values)
        name = descriptor.table_id, key
        known = self._temporary_images.get(name)
        if known is not None and known[0] is values and known[1] is descriptor:
            return known[2]
        image = image_of(descriptor, values)
        self._temporary_images[name] = (values, descriptor, image)
        return image

    def digest(self, table_id: int, prefix: Key, *, whole: bool) -> bytes:
        """Return a digest of own rows whose keys begin so (`whole`: is that key); b"": of none."""
        width = len(prefix)
        names = [(table_id, prefix)] if whole else [n for n in self.rows if n[0] == table_id]
        names = [name for name in names if name in self.rows and name[1][:width] == prefix]
        if not names:
            return b""
        digest = blake2b(digest_size=_DIGEST_BYTES)
        for name in sorted(names, key=repr):
            values = self.rows[name]
            shown = None if values is None else sorted(values.items())
            digest.update(repr((name, shown)).encode())
        return digest.digest()
