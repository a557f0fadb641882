"""The privileges that a statement needs: gathered while its names are resolved, as PostgreSQL
does.

What counts is what the text names, whatever becomes of it: a column in EXISTS (SELECT c …) is read,
one that an UPDATE only keeps is not. A table of FROM needs SELECT on each of its columns that are
named, and where none is (`count(*)`) on any one; so do INSERT and UPDATE for those they write.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.privileges import Privilege
from leasehold.catalog.view import View
from leasehold.sql.binding.bound_tree import Bound, Field
from leasehold.sql.binding.walk import walk


class NeededPrivilege(NamedTuple):
    """A privilege that a statement needs on a table. `columns`: ids of those on which it suffices
    if it isn't held on the whole table; () = any one. What is drawn from sequences is looked at
    when it is drawn. `of_view`: its owner needs it, since its query does; 0: who asks."""

    table_id: int
    name: str
    privilege: Privilege
    columns: tuple[int, ...] = ()
    of_view: int = 0


class _Use:
    """A table where the statement names it. Privileges that are needed, with their columns."""

    def __init__(self, descriptor: Descriptor | View, depth: int, of_view: int) -> None:
        self.descriptor = descriptor
        self.depth = depth
        self.of_view = of_view
        self.needed: dict[Privilege, set[int]] = {}

    def add(self, privilege: Privilege, columns: Iterable[int] = ()) -> None:
        known = self.needed.setdefault(privilege, set())
        if isinstance(self.descriptor, Descriptor):  # of a view it is all or nothing
            known.update(columns)


class Needs:
    """What one statement needs. `depth` is how many queries are around what is bound now; `view`:
    in whose query that stands, 0: in the statement itself."""

    def __init__(self) -> None:
        self.depth = 0
        self.view = 0
        self._uses: list[_Use] = []
        self._by_relation: dict[int, _Use] = {}

    def read_table(self, relation: int, descriptor: Descriptor | View) -> None:
        """Note a table or a view of FROM."""
        self.write_table(relation, descriptor, Privilege.SELECT)

    def write_table(
        self, relation: int, descriptor: Descriptor | View, privilege: Privilege
    ) -> None:
        """Note the table that the statement writes."""
        use = _Use(descriptor, self.depth, self.view)
        use.add(privilege)
        self._uses.append(use)
        self._by_relation[relation] = use

    def rename(self, relation: int, known: int) -> None:
        """Note that the columns of `relation` are those of the table `known`: RETURNING's, those of
        `excluded`."""
        self._by_relation[relation] = self._by_relation[known]

    def add(self, relation: int, privilege: Privilege, columns: Iterable[int] = ()) -> None:
        """Note one more privilege on a table that was noted."""
        use = self._by_relation.get(relation)
        if use is not None:
            use.add(privilege, columns)

    def read(self, part: Bound) -> None:
        """Note that the text names a column, or what stands for one in a join."""
        for node in walk(part):
            if isinstance(node, Field) and node.origin is not None:
                self.add(node.relation, Privilege.SELECT, (node.origin.element_id,))

    def all(self) -> tuple[NeededPrivilege, ...]:
        """Return all, in the order in which PostgreSQL looks at them: what is outside first."""
        found: dict[NeededPrivilege, None] = {}
        for use in sorted(self._uses, key=lambda use: use.depth):
            table = use.descriptor
            for privilege, columns in use.needed.items():
                ids = tuple(sorted(columns))
                needed = NeededPrivilege(table.table_id, table.name, privilege, ids, use.of_view)
                found[needed] = None
        return tuple(found)
