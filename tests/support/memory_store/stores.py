"""The disks of a simulated cluster, each with a store in memory."""

from __future__ import annotations

from collections.abc import Mapping

from leasehold.catalog.part import WHOLE, Part
from tests.support.memory_store.store import MemoryStore


class MemoryStores:
    """What the machines' disks hold: committed contents by node, also while a node is down."""

    def __init__(self, parts: Mapping[str, Part] | None = None) -> None:
        """Let those nodes that are named in `parts` hold them, all others everything."""
        self._parts = dict(parts or {})
        self._stores: dict[str, MemoryStore] = {}

    def open(self, name: str) -> MemoryStore:
        """Return the store of a node as it is found after whatever ended the process before."""
        before = self._stores.get(name)
        empty = MemoryStore(part=self.part_of(name))
        self._stores[name] = empty if before is None else before.crash()
        return self._stores[name]

    def part_of(self, name: str) -> Part:
        """Return what the node is to hold."""
        return self._parts.get(name, WHOLE)

    def choose_part(self, name: str, part: Part) -> None:
        """Have the node hold that from the next store on that it is given."""
        self._parts[name] = part

    def put(self, name: str, store: MemoryStore) -> None:
        self._stores[name] = store

    def get(self, name: str) -> MemoryStore:
        return self._stores[name]
