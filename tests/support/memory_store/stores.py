"""The disks of a simulated cluster, each with a store in memory."""

from __future__ import annotations

from tests.support.memory_store.store import MemoryStore


class MemoryStores:
    """What the machines' disks hold: committed contents by node, also while a node is down."""

    def __init__(self) -> None:
        self._stores: dict[str, MemoryStore] = {}

    def open(self, name: str) -> MemoryStore:
        """Return the store of a node as it is found after whatever ended the process before."""
        before = self._stores.get(name)
        self._stores[name] = MemoryStore() if before is None else before.crash()
        return self._stores[name]

    def put(self, name: str, store: MemoryStore) -> None:
        self._stores[name] = store

    def get(self, name: str) -> MemoryStore:
        return self._stores[name]
