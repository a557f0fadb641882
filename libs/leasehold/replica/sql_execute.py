"""SQL statements inside a transaction: what they find and write, as operations of its write set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from leasehold.adapters.os.clock import random_bytes, unix_us
from leasehold.adapters.sqlite.query import Limits, Rows, run
from leasehold.adapters.sqlite.reads import ranges_read
from leasehold.adapters.sqlite.statement_run import StatementRun
from leasehold.adapters.sqlite.write import RowWrite, own_rows
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import ROW_NUMBER, Refused
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.replica.queries import BYTES_MAX, ROWS_MAX, as_tuples, python_rows, stored
from leasehold.replica.sql_reads import Seen, gather, gather_sought, planned
from leasehold.sql.functions.system.session import drawing
from leasehold.sql.planning.plan import Plans, Prepared
from leasehold.sql.system_catalog.system_relations import with_system
from leasehold.transaction.pinned_version import check_pinned
from leasehold.values.storage import from_storage
from leasehold.values.time_zone import UTC

if TYPE_CHECKING:
    from leasehold.replica.reads import Reads
    from leasehold.replica.write_set import WriteSet

T = TypeVar("T")
_PLANS: Final = Plans()


class Executed(NamedTuple):
    """The result of a statement. `rows`: tuples of Python values, of a query or of RETURNING, under
    `names`. `rowcount`: rows that were found, or written."""

    rowcount: int
    rows: list[tuple[Any, ...]]
    names: tuple[str, ...]


def execute(writes: WriteSet, reads: Reads, sql: str, parameters: Sequence[Any] = ()) -> Executed:
    """Run one statement on what the transaction's level shows, with its own rows where it shows
    those; its changes are in the write set then, named with the genids that it has seen, and what
    it has read where the level verifies it.

    Raises every Refused of the statement, NotCoherent, SnapshotTooOld.
    """
    isolation = writes.isolation
    tables = writes.pending.tables if isolation.own_writes else frozenset()
    context = CommitContext(unix_us(), random_bytes(16))
    limits = Limits(None, ROWS_MAX, BYTES_MAX)
    snapshot, prepared = planned(_PLANS.get, sql, (), tables, reads, reads.pin, UTC, lambda: None)
    with snapshot:
        values = stored(prepared, parameters)
        names = tuple(column.name for column in prepared.columns or ())
        for descriptor in prepared.tables.values() if reads.snapshot_lsn is None else ():
            check_pinned(descriptor, snapshot.min_version(descriptor.table_id))
        connection = snapshot.connection
        with own_rows(connection, writes.pending.images(tables_read(prepared) & tables)):
            if prepared.counts:
                drawn = drawing(context, writes.sequence_values)
                context = with_system(drawn, snapshot.tables, jobs=snapshot.now.running_jobs)
            if not prepared.runs_whole:

                def read() -> list[tuple[Any, ...]]:
                    rows = find_rows(writes, snapshot, prepared, values, context, limits)
                    return list(as_tuples(prepared, rows))

                found = _drawing(writes, prepared, read)
                return Executed(len(found), found, names)

            def look(part: Prepared, given: Sequence[Any], context: CommitContext) -> None:
                gather_places(writes, snapshot, part, given, context, limits)

            statement = StatementRun(
                connection,
                prepared,
                tuple(values),
                context,
                limits,
                writes.hidden_keys,
                writes.lsn,
                writes.seen.visit,
                look,
            )
            written = _drawing(writes, prepared, statement.run)
        with reads.within(snapshot):
            for each, part in zip(prepared.plans, written.parts, strict=True):
                if each.write is None:
                    continue
                target = each.write.bound.descriptor
                if isolation.verifies_reads:
                    gather_sought(writes.seen.reads, target, part.sought)
                apply(writes, target, part.writes)
    return Executed(written.count, list(python_rows(prepared, written.rows)), names)


def gather_places(
    writes: WriteSet,
    snapshot: Seen,
    plan: Prepared,
    values: Sequence[Any],
    context: CommitContext,
    limits: Limits,
) -> None:
    """Add to the read set where a statement reads, if the level verifies that."""
    if writes.isolation.verifies_reads:
        places = ranges_read(snapshot.connection, plan, values, context, limits, writes.lsn)
        gather(writes.seen.reads, plan, places)


def find_rows(
    writes: WriteSet,
    snapshot: Seen,
    plan: Prepared,
    values: Sequence[Any],
    context: CommitContext,
    limits: Limits,
    *,
    later: bool = False,
) -> Rows:
    """Return the rows of a query, on own rows where these are there; what it reads is in the read
    set then. `later`: as of `run`."""
    if not plan.explain:
        gather_places(writes, snapshot, plan, values, context, limits)
    return run(
        snapshot.connection,
        plan,
        values,
        context=context,
        limits=limits,
        as_of=writes.lsn,
        visit=writes.seen.visit,
        later=later,
    )


def _drawing(writes: WriteSet, plan: Prepared, work: Callable[[], T]) -> T:
    """Run a statement, again where it had to wait for numbers of sequences."""
    if not plan.counts or writes.sequence_values is None:
        return work()
    position, local = next(writes.statements), writes.pending.local_sequences
    return writes.sequence_values.running(position, local, work, _go_on, _go_on)


def _go_on() -> None:
    """Do nothing: a function that a replica runs waits where it stands."""


def tables_read(plan: Prepared) -> frozenset[int]:
    """Return ids of tables whose rows a statement may look at; an INSERT of values looks at
    none."""
    write = plan.write
    if write is not None and not (plan.parts or write.update or write.there):
        found = plan.reads.table_ids
        return found if write.bound.kind == "INSERT" else found | {write.bound.descriptor.table_id}
    return frozenset(descriptor.table_id for descriptor in plan.tables.values())


def _names(descriptor: Descriptor, arbiters: tuple[int, ...]) -> tuple[str, ...]:
    """Return the names of unique indexes; "" for the primary key."""
    if not arbiters:
        return ()
    names = {index.element_id: index.name for index in descriptor.indexes}
    return tuple(names.get(arbiter, "") for arbiter in arbiters)


def apply(writes: WriteSet, descriptor: Descriptor, rows: Iterable[RowWrite]) -> None:
    """Make operations of what a statement does to rows. Raises what the write set raises."""
    moving: list[tuple[Key, dict[str, Any]]] = []
    table = writes.name_of(descriptor)
    hidden = descriptor.hidden_key
    for number, write in enumerate(rows):
        if hidden and write.before is None:
            writes.insert_with_hidden_key(table, write.key, _given_values(descriptor, write))
            continue
        key = tuple(
            from_storage(column.type, value)
            for column, value in zip(descriptor.key_columns, write.key, strict=True)
        )
        found: Row | None = None
        if write.before is not None and write.genids is not None:
            found = Row(write.before, write.genids, 0)
            writes.seen.read(descriptor, write.key, found)
        moves = write.before is not None and any(
            e in write.given and (write.after or {}).get(e) != value
            for e, value in zip(descriptor.primary_key, write.key, strict=True)
        )
        values = _given_values(descriptor, write, moves=moves)
        there = True
        if write.before is None:
            _move(writes, table, moving)  # it may take a key that one before it leaves
            try:
                writes.insert(table, key, values, _names(descriptor, write.arbiters))
            except Refused as error:
                error.detail = {**error.detail, ROW_NUMBER: number}
                raise
        elif write.after is None:
            there = writes.delete(table, key, found=found)
        elif moves:
            moving.append((key, values))
        else:
            there = writes.update(table, key, values, found=found)
        assert there, "the statement has found it in the same snapshot"
    _move(writes, table, moving)


def _given_values(
    descriptor: Descriptor, write: RowWrite, *, moves: bool = False
) -> dict[str, Any]:
    """Return what a statement gives of a row, by column name; with `moves` also of its key."""
    after = write.after or {}
    return {
        column.name: from_storage(column.type, after.get(column.element_id))
        for column in descriptor.by_name.values()
        if column.element_id in write.given
        and (moves or column.element_id not in descriptor.primary_key)
    }


def _move(writes: WriteSet, table: str, moving: list[tuple[Key, dict[str, Any]]]) -> None:
    """Change rows whose keys change, together: one may take what another one leaves."""
    if moving:
        there = writes.update_together(table, moving)
        assert there, "the statement has found them in the same snapshot"
        moving.clear()
