"""Rows of leasehold.catalog: the schema as a node has it at one position of the log, in the form in
which programs compare schemas (`schema_change/declared/catalog_rows.py` reads it)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgpack

from leasehold.adapters.sqlite.counts import read_counts
from leasehold.adapters.sqlite.snapshot import SqliteSnapshot
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.states import READABLE
from leasehold.model.errors import NotCoherent
from leasehold.replica.serving_node import SqlNode
from leasehold.schema_change.declared.catalog_rows import (
    COMMENT,
    ENUM,
    JOB,
    PACE,
    SEQUENCE,
    TABLE,
    VIEW,
)
from leasehold.schema_change.job.estimate import measure_pace

Row = Mapping[str, Any]
SETTLE_S: Final = 10.0
_OF_OLD_ROWS: Final = frozenset({"missing", "moment", "moment_zone"})


def catalog_rows(node: SqlNode) -> Iterator[Row]:
    """Yield a row for each table, sequence, view, enum type and comment, each job that runs, and
    the pace of recent jobs, all of one snapshot but for the jobs. Raises NotCoherent where this
    node's reads do not come up to what it has applied."""
    # ⚠ Jobs first: one that has ended by then has done so in the snapshot, too. What is applied is
    # seen by reads a moment later.
    jobs = list(node.jobs().values())
    if not node.wait(node.is_settled, SETTLE_S):
        raise NotCoherent(f"reads of this node are not up to its log after {SETTLE_S:g} s")
    with node.single_read().snapshot() as snapshot:
        assert isinstance(snapshot, SqliteSnapshot), "what is newest, in this process"
        tables, access, lsn = snapshot.tables(), snapshot.access, snapshot.lsn
        counts = read_counts(snapshot.connection)
    for table in tables:
        if table.state in READABLE:
            yield {
                "kind": TABLE if table.sequence is None else SEQUENCE,
                "object_id": table.table_id,
                "name": table.name,
                "lsn": lsn,
                "rows_about": counts.get(table.table_id, 0),
                "body": msgpack.packb(_body(table)),
            }
    for view in access.views.values():
        body = msgpack.packb(view.to_wire())
        yield {
            "kind": VIEW,
            "object_id": view.table_id,
            "name": view.name,
            "lsn": lsn,
            "body": body,
        }
    for enum in access.enums.values():
        yield {
            "kind": ENUM,
            "object_id": enum.type_id,
            "name": enum.name,
            "lsn": lsn,
            "body": msgpack.packb(enum.to_wire()),
        }
    for (object_id, element_id), text in access.comments.items():
        yield {
            "kind": COMMENT,
            "object_id": object_id,
            "element_id": element_id,
            "lsn": lsn,
            "said": text,
        }
    for job in jobs:
        if not job.status.ended:
            yield {"kind": JOB, "object_id": job.job_id, "name": job.table, "lsn": lsn}
    yield {"kind": PACE, "lsn": lsn, "body": msgpack.packb(measure_pace(jobs))}


def _body(table: Descriptor) -> dict[str, Any]:
    """Return a table's wire form without what its columns say of rows that were there before them:
    that is no part of the schema, and random values are made of it."""
    body = table.to_wire()
    columns = [
        {name: value for name, value in column.items() if name not in _OF_OLD_ROWS}
        for column in body["columns"]
    ]
    return {**body, "columns": columns}
