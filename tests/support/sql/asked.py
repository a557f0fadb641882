"""A store with two small tables, and a way to ask it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from leasehold.adapters.sqlite.query import NO_LIMITS, Limits, run
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import EXPRESSION, Column, CommitContext, Index
from leasehold.catalog.states import State
from leasehold.model.records.log import ChangeKind, LogPosition, RowChange
from leasehold.replica.queries import as_tuples
from leasehold.sql.planning.plan import Prepared, prepare
from leasehold.sql.system_catalog.system_relations import with_system
from leasehold.values.storage import to_storage
from leasehold.values.types import Type

FLIGHTS: Final = Descriptor(
    1,
    "flights",
    1,
    (
        Column(1, "id", Type("integer"), False),
        Column(2, "carrier", Type("text"), False),
        Column(3, "seats", Type("integer")),
        Column(4, "price", Type("numeric")),
        Column(5, "day", Type("date")),
        Column(6, "open", Type("boolean")),
        Column(7, "secret", Type("text"), state=State.WRITE_ONLY),
    ),
    (1,),
    (
        Index(11, "by_carrier", (2, 3)),
        Index(12, "by_day", (5,), included=(3,)),
        Index(13, "by_lower", (EXPRESSION,), expressions=("lower(carrier)",), mentioned=(2,)),
        Index(14, "cheap", (4,), predicate="seats > 10", mentioned=(3,)),
        Index(15, "coming", (6,), state=State.WRITE_ONLY),
    ),
    20,
    since_lsn=1,
)
BOOKINGS: Final = Descriptor(
    2,
    "bookings",
    1,
    (
        Column(1, "flight", Type("integer"), False),
        Column(2, "seat", Type("text"), False),
        Column(3, "name", Type("text")),
    ),
    (1, 2),
    (Index(11, "by_name", (3,), unique=True),),
    20,
    since_lsn=1,
)
ROWS: Final[dict[Descriptor, list[tuple[Any, ...]]]] = {
    FLIGHTS: [
        (1, "AA", 10, "99.50", "2024-01-31", True),
        (2, "aa", 20, "100", "2024-02-29", False),
        (3, "BA", None, None, None, None),
        (4, "LH", 0, "7.125", "2024-01-31", True),
        (5, "LH", 300, "-1", "1999-12-31", False),
    ],
    BOOKINGS: [(1, "1A", "Ann"), (1, "1B", None), (2, "9F", "Bob"), (9, "2C", "Eve")],
}


def filled(path: Path) -> SqliteStore:
    store = SqliteStore(path / "node.db", cache_mb=1)
    store.begin()
    lsn = 0
    for descriptor, rows in ROWS.items():
        store.prepare(descriptor)
        store.put_descriptor(descriptor.table_id, 1, descriptor.to_wire())
        for row in rows:
            lsn += 1
            columns = zip(descriptor.columns, row, strict=False)
            image = {c.element_id: to_storage(c.type)(v) for c, v in columns if v is not None}
            key = row[: len(descriptor.primary_key)]
            change = RowChange(ChangeKind.INSERT, descriptor.table_id, 1, key, image, {}, (0,))
            store.change(descriptor, change, lsn, 0, None)
    store.commit(LogPosition(3, lsn=lsn))
    return store


class Asked:
    """One snapshot of that store."""

    def __init__(self, store: SqliteStore) -> None:
        self.snapshot = store.open_snapshot()

    def prepared(self, text: str) -> Prepared:
        return prepare(text, self.snapshot.newest)

    def rows(
        self, text: str, parameters: Sequence[Any] = (), limits: Limits = NO_LIMITS
    ) -> list[tuple[Any, ...]]:
        prepared = self.prepared(text)
        stored = [to_storage(k)(v) for k, v in zip(prepared.parameters, parameters, strict=True)]
        context = with_system(CommitContext(1_700_000_000_000_000, b"seed"), self.snapshot.tables)
        rows = run(self.snapshot.connection, prepared, stored, context=context, limits=limits)
        return list(as_tuples(prepared, rows))

    def plan(self, text: str) -> str:
        return "\n".join(line for (line,) in self.rows(f"EXPLAIN {text}"))
