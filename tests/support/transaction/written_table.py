"""One table in a store, written through `verify` as a master writes it, commit by commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.model.records.log import DescriptorWrite, LogPosition
from leasehold.model.records.requests import ChangeRequest, Operation, OperationKind
from leasehold.transaction.verify import Decided, verify
from tests.support.memory_store.store import MemoryStore

Store: TypeAlias = MemoryStore | SqliteStore
STORES: Final = ("memory", "sqlite")


@contextmanager
def opened(kind: str, folder: Path) -> Iterator[Store]:
    if kind == "memory":
        yield MemoryStore()
        return
    store = SqliteStore(folder / "node.db", cache_mb=1)
    try:
        yield store
    finally:
        store.close()


def insert(table: str, key: int, **values: Any) -> Operation:
    return Operation(OperationKind.INSERT, table, {"id": key}, values)


def update(table: str, key: int, **values: Any) -> Operation:
    return Operation(OperationKind.UPDATE, table, {"id": key}, values)


def upsert(table: str, key: int, **values: Any) -> Operation:
    return Operation(OperationKind.UPSERT, table, {"id": key}, values)


def delete(table: str, key: int) -> Operation:
    return Operation(OperationKind.DELETE, table, {"id": key}, {})


class WrittenTable:
    """`send` decides and applies a request; rows refused leave nothing behind."""

    def __init__(self, store: Store, *versions: Descriptor) -> None:
        self.store = store
        self.catalog = Catalog()
        self.lsn = 0
        for version in versions:
            self.publish(version)

    def publish(self, version: Descriptor) -> None:
        write = DescriptorWrite(version.table_id, version.version, version.to_wire())
        self.catalog.apply(write, 5, 1)
        self.store.begin()
        self.store.prepare(version)
        self.store.put_descriptor(*write)
        self._commit()

    def _commit(self) -> None:
        self.store.commit(LogPosition(self.store.position().offset + 1, lsn=self.lsn))

    def send(self, *operations: Operation) -> Decided:
        self.store.begin()
        try:
            decided = verify(
                ChangeRequest(b"r" * 16, operations),
                self.catalog,
                self.store.row,
                self.lsn + 1,
                holders=self.store.holders,
                absent=self.store.lacks,
            )
            self.lsn += 1
            for place, (change, row) in enumerate(
                zip(decided.changes, decided.before, strict=True)
            ):
                version = self.catalog.version(change.table_id, change.version)
                self.store.change(version, change, self.lsn, place, row)
        except BaseException:
            self.store.rollback()
            raise
        self._commit()
        return decided

    def row(self, table_id: int, key: int) -> Mapping[int, Any] | None:
        found = self.store.row(self.catalog.newest(table_id), (key,))
        return None if found is None else found.values
