"""Foreign keys that are enforced, by the table that they refer to: a parent's writers know nothing
of their children. Kept as tables change, one table at a time, whatever the number of the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import ForeignKey


class Reference(NamedTuple):
    """A foreign key, and the version of its table that enforces it."""

    child: Descriptor
    key: ForeignKey


class References:
    """The foreign keys of all tables in use. `put` and `forget` are the only ways to change it."""

    def __init__(self) -> None:
        self._by_child: dict[int, tuple[Reference, ...]] = {}
        self._children: dict[int, tuple[int, ...]] = {}  # by parent, in order
        self._acting: set[int] = set()  # children
        self._found: dict[int, tuple[Reference, ...]] = {}  # by parent, as far as asked for

    def copy(self) -> References:
        made = References()
        made._by_child = dict(self._by_child)
        made._children = dict(self._children)
        made._acting = set(self._acting)
        return made

    @property
    def acts(self) -> bool:
        """Whether one of them does something with the rows that refer."""
        return bool(self._acting)

    def put(self, child_id: int, in_use: Iterable[Descriptor]) -> None:
        """Take a table's keys from its versions that may be in use, the newest of each last."""
        found: dict[tuple[int, int], Reference] = {}
        for child in in_use:
            if child.has_own_rows:
                for key in child.enforced_foreign_keys:
                    found[key.parent, key.element_id] = Reference(child, key)
        self.forget(child_id)
        if not found:
            return
        self._by_child[child_id] = tuple(found.values())
        for parent, _ in found:
            self._found.pop(parent, None)
            known = self._children.get(parent, ())
            if child_id not in known:
                self._children[parent] = tuple(sorted((*known, child_id)))
        if any(reference.key.acts for reference in found.values()):
            self._acting.add(child_id)

    def forget(self, child_id: int) -> None:
        self._acting.discard(child_id)
        for reference in self._by_child.pop(child_id, ()):
            parent = reference.key.parent
            self._found.pop(parent, None)
            left = tuple(c for c in self._children.get(parent, ()) if c != child_id)
            if left:
                self._children[parent] = left
            else:
                self._children.pop(parent, None)

    def to(self, parent_id: int) -> tuple[Reference, ...]:
        """Return those that refer to a table's rows, in order of their tables."""
        children = self._children.get(parent_id)
        if children is None:
            return ()
        found = self._found.get(parent_id)
        if found is None:
            found = self._found[parent_id] = tuple(
                reference
                for child in children
                for reference in self._by_child[child]
                if reference.key.parent == parent_id
            )
        return found
