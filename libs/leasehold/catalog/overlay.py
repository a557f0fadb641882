"""A catalog ahead of the log by what one request asks for: tables that it makes, and that it drops.

Nobody else can have used what is made here. What is dropped here is in use by others until they are
drained: it has no name for this request, and its foreign keys are enforced all the same.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Set

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import PROVISIONAL_FROM, Descriptor
from leasehold.model.errors import UnknownTable
from leasehold.model.ids import is_sequence_id


class CatalogAhead(Catalog):
    def __init__(self) -> None:
        super().__init__()
        self._made: dict[str, int] = {}
        self._gone: set[int] = set()

    @classmethod
    def of(
        cls, catalog: Catalog, *, provisional: bool = False, ids_from: int = PROVISIONAL_FROM
    ) -> CatalogAhead:
        """Return a copy of `catalog` that can go ahead of it. `provisional`: of what others decide
        later, or nobody, so that tables which are made in it have ids that no log gives, from
        `ids_from` on."""
        made = cls()
        made._take_over(catalog)
        if provisional:
            made._ids_from = ids_from
        return made

    def copy(self) -> CatalogAhead:
        made = CatalogAhead()
        made._take_over(self)
        made._made, made._gone = dict(self._made), set(self._gone)
        return made

    def make(self, table: Descriptor) -> None:
        """Add the only version of a table that is not in the log yet, at first or anew. Until then
        its name may be that of a table that goes."""
        self.unmake(table.table_id)
        self._versions[table.table_id] = {table.version: table}
        self._newest[table.table_id] = table
        self._made[table.name] = table.table_id
        self._name_indexes(table.table_id, table)
        self._references.put(table.table_id, (table,))

    def altered(self, tables: Iterable[Descriptor], jobs: Container[int]) -> CatalogAhead:
        """Return a copy in which tables that were there are as a request will leave them, and its
        own `jobs` keep nobody out: for the plan of what the request says next."""
        made = self.copy()
        made.keep_no_jobs(jobs)
        made.alter(tables)
        return made

    def keep_no_jobs(self, jobs: Container[int]) -> None:
        """Take these jobs for ended."""
        self._running.keep_without(jobs)

    def forget_job(self, job_id: int) -> None:
        """Forget a job that was planned in here, and is not asked for any more."""
        del self.jobs[job_id]
        self._running.remove(job_id)

    def alter(self, tables: Iterable[Descriptor]) -> None:
        """Let tables be as a request will leave them."""
        for table in tables:
            self._alter(table)

    def _alter(self, table: Descriptor) -> None:
        table_id, names = table.table_id, frozenset(table.names)
        before = self._named[table_id]
        self._versions[table_id] = {**self._versions[table_id], table.version: table}
        self._newest[table_id] = table
        for name in before - names:
            self._take_name(name, table_id)
        for name in names - before:
            self._names[name] = (*self._names.get(name, ()), table_id)
        self._named[table_id] = names
        self._name_indexes(table_id, table)
        self._references.put(table_id, (table,))
        self._current = {}

    def unmake(self, table_id: int) -> None:
        self._versions.pop(table_id, None)
        self._newest.pop(table_id, None)
        self._made = {name: made for name, made in self._made.items() if made != table_id}
        self._name_indexes(table_id, None)
        self._references.forget(table_id)
        self._current = {}

    def drop(self, table_id: int) -> None:
        """Take the name of a table that is in the log away here."""
        self._gone.add(table_id)
        self._name_indexes(table_id, None)
        self._current = {}

    def _highest_id(self, *, sequences: bool) -> int:
        made = (t for t in self._made.values() if is_sequence_id(t) == sequences)
        return max(super()._highest_id(sequences=sequences), max(made, default=0))

    def tables(self) -> tuple[Descriptor, ...]:
        """Return the tables without those that go."""
        return tuple([table for table in super().tables() if table.table_id not in self._gone])

    def table_names(self) -> Set[str]:
        gone = {
            name
            for table_id in self._gone
            for name in self._named[table_id]
            if self._gone.issuperset(self._names[name])
        }
        return (self._names.keys() - gone) | self._made.keys()

    def resolve(self, name: str, version: int | None = None) -> Descriptor:
        """Resolve a name. Without a version a table that is made here comes first, and one that
        goes is none. A version is that of a table that was there, if one had the name."""
        there = self._names.get(name)
        if name in self._made and (version is None or there is None):
            return self.newest(self._made[name])
        if version is None and there is not None and self._gone.issuperset(there):
            raise UnknownTable(f"table {name!r} does not exist", table=name)
        return super().resolve(name, version)
