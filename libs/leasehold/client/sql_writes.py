"""SQL statements inside a transaction: what they find and write, as operations of its write set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from leasehold.adapters.clock import random_bytes, unix_us
from leasehold.adapters.sqlite_query import Limits, run
from leasehold.adapters.sqlite_snapshot import SqliteSnapshot
from leasehold.adapters.sqlite_write import RowWrite, Writing, own_rows
from leasehold.client.queries import BYTES_MAX, ROWS_MAX, as_tuples, python_rows, stored
from leasehold.model.errors import VerifyError
from leasehold.model.ports import Row
from leasehold.schema.descriptor import Descriptor
from leasehold.schema.elements import Moment
from leasehold.schema.types import from_storage
from leasehold.sql.query_plan import Plans
from leasehold.transaction.pinned import check_pinned

if TYPE_CHECKING:
    from leasehold.client.replica_reads import Reads
    from leasehold.client.write_set import WriteSet

_PLANS: Final = Plans()


class Executed(NamedTuple):
    """`rows`: tuples of Python values, of a query or of RETURNING, under `names`. `rowcount`: rows
    that were found, or written."""

    rowcount: int
    rows: list[tuple[Any, ...]]
    names: tuple[str, ...]


def execute(writes: WriteSet, reads: Reads, sql: str, parameters: Sequence[Any] = ()) -> Executed:
    """Runs one statement on the newest data with the transaction's own rows; its changes are in the
    write set then, named with the genids that it has seen.

    Raises every Refused of the statement; VerifyError when a row has gone meanwhile.
    """
    tables = writes.own_images()
    prepared = _PLANS.get(sql, reads.pin, (), frozenset(tables))
    values = stored(prepared, parameters)
    moment = Moment(unix_us(), random_bytes(16))
    limits = Limits(None, ROWS_MAX, BYTES_MAX)
    names = tuple(column.name for column in prepared.columns or ())
    with reads.snapshot() as snapshot:
        assert isinstance(snapshot, SqliteSnapshot), "of now, on a store of this process"
        for descriptor in prepared.tables.values():
            check_pinned(descriptor, snapshot.min_version(descriptor.table_id))
        shown = {d.table_id for d in prepared.tables.values()} & tables.keys()
        with own_rows(snapshot.connection, {table: tables[table] for table in shown}):
            if prepared.write is None or prepared.explain:
                rows = run(snapshot.connection, prepared, values, moment=moment, limits=limits)
                found = list(as_tuples(prepared, rows))
                return Executed(len(found), found, names)
            keys = writes.hidden_keys
            writing = Writing(snapshot.connection, prepared, values, moment, limits, keys)
            written = writing.run()
    for write in written.writes:
        apply(writes, prepared.write.bound.descriptor, write)
    return Executed(written.count, python_rows(prepared, written.rows), names)


def apply(writes: WriteSet, descriptor: Descriptor, write: RowWrite) -> None:
    """What a statement does to one row becomes an operation. Raises what the write set raises, and
    VerifyError when the row has gone meanwhile."""
    key = tuple(
        from_storage(column.type, value)
        for column, value in zip(descriptor.key_columns, write.key, strict=True)
    )
    if write.before is not None and write.genids is not None:
        writes.saw(descriptor, write.key, Row(write.before, write.genids, 0))
    values = {
        column.name: from_storage(column.type, (write.after or {}).get(column.element_id))
        for column in descriptor.by_name.values()
        if column.element_id in write.given and column.element_id not in descriptor.primary_key
    }
    if write.before is None:
        writes.insert(descriptor.name, key, values)
        return
    there = (
        writes.delete(descriptor.name, key)
        if write.after is None
        else writes.update(descriptor.name, key, values)
    )
    if not there:
        raise VerifyError(
            f"a row of table {descriptor.name!r} that the statement has found is there no more",
            table=descriptor.name,
        )
