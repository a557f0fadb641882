"""Catalog: every kept descriptor version, min versions, jobs and roles of a database, as of one
position.

Small, hence held in memory by every node; it changes only by catalog writes of the log, and is
loaded from the store after a restart. Rolling back a batch never touches it, because a node applies
catalog writes after the record that holds them was read back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import replace
from typing import Any, NamedTuple

from leasehold.catalog.access import Access
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.elements import ForeignKey
from leasehold.catalog.history import Ended, ended_before
from leasehold.catalog.job import Job, job_from_wire
from leasehold.catalog.newer_release import as_written
from leasehold.catalog.states import State
from leasehold.model.errors import StaleVersion, StoreCorrupted, UnknownTable, UnknownVersion
from leasehold.model.ids import SEQUENCES_FROM, is_sequence_id
from leasehold.model.records.log import (
    AccessWrite,
    CatalogWrite,
    ChunkDecided,
    DescriptorWrite,
    FindingsDecided,
    JobForgotten,
    JobWrite,
    LedgerRun,
    MembershipWrite,
    MinVersion,
    RoleOrAccessWrite,
    RoleWrite,
    TableForgotten,
    TableTruncated,
)


class Reference(NamedTuple):
    """A foreign key, and the version of its table that enforces it."""

    child: Descriptor
    key: ForeignKey


class Catalog:
    """Versions by table id; `apply` is its only way to change."""

    def __init__(self) -> None:
        self._versions: dict[int, dict[int, Descriptor]] = {}
        self._newest: dict[int, int] = {}
        self._names: dict[str, tuple[int, ...]] = {}
        self._min_versions: dict[int, int] = {}
        self.jobs: dict[int, Job] = {}
        self.ledger_run = ""
        self.access = Access()
        self._references: dict[int, tuple[Reference, ...]] | None = None
        self._has_actions = False
        self._ids_from = 1
        self._current: dict[str, Descriptor] = {}  # what a request without a version resolves

    @classmethod
    def load(
        cls,
        descriptors: Iterable[Any],
        min_versions: dict[int, int],
        jobs: Iterable[Any],
        ledger_run: str,
        access: Iterable[RoleOrAccessWrite] = (),
        next_role_id: int = 0,
    ) -> Catalog:
        """Make a catalog from what a store kept. Raises LogStopped for what a newer release
        wrote."""
        catalog = cls()
        catalog._min_versions = dict(min_versions)
        for body in descriptors:
            catalog._put(as_written(body, from_wire))
        found = (as_written(body, job_from_wire) for body in jobs)
        catalog.jobs = {job.job_id: job for job in found}
        catalog.ledger_run = ledger_run
        catalog.access = Access.load(access, next_role_id)
        return catalog

    def copy(self) -> Catalog:
        made = Catalog()
        made._take_over(self)
        return made

    def _take_over(self, catalog: Catalog) -> None:
        self._versions = {table: dict(kept) for table, kept in catalog._versions.items()}
        self._newest = dict(catalog._newest)
        self._names = dict(catalog._names)
        self._min_versions = dict(catalog._min_versions)
        self.jobs = dict(catalog.jobs)
        self.ledger_run = catalog.ledger_run
        self.access = catalog.access
        self._ids_from = catalog._ids_from

    def apply(self, write: CatalogWrite, commit_us: int, lsn: int) -> None:
        """Take one catalog write of the commit `lsn`. Raises LogStopped for what a newer release
        wrote."""
        match write:
            case DescriptorWrite(body=body):
                made = as_written(body, from_wire)
                if made.former and made.table_id not in self._versions:
                    # The same rows under another key: who may do what with them stays.
                    self.access = self.access.with_copy(made.former, made.table_id)
                self._put(replace(made, modified_us=commit_us, since_lsn=lsn))
            case MinVersion(table_id=table_id, version=version):
                # D5: the fence only ever rises, and never past the newest version.
                assert version >= self._min_versions.get(table_id, 0), "D5"
                assert version <= self._newest[table_id], "D5"
                self._min_versions[table_id] = version
                self._name(table_id)
            case JobWrite(body=body):
                job = as_written(body, job_from_wire)
                self.jobs[job.job_id] = job
            case TableForgotten(table_id=table_id):
                self._forget_table(table_id)
            case JobForgotten(job_id=job_id):
                del self.jobs[job_id]
            case RoleWrite() | MembershipWrite() | AccessWrite():
                self.access = self.access.applied(write)
            case TableTruncated():
                pass  # rows, which a catalog knows nothing of
            case LedgerRun(run_id=run_id):
                self.ledger_run = run_id
            case ChunkDecided():
                job = self.jobs[write.job_id]
                if job.run == write.run:
                    self.jobs[write.job_id] = job.counted(*write[2:])
            case FindingsDecided():
                job = self.jobs[write.job_id]
                if job.run == write.run:
                    self.jobs[write.job_id] = job.validated(write)

    def _put(self, descriptor: Descriptor) -> None:
        versions = self._versions.setdefault(descriptor.table_id, {})
        newest = self._newest.get(descriptor.table_id, 0)
        # D1, D2: versions of a table follow each other without a gap.
        if versions and descriptor.version != newest + 1:
            raise StoreCorrupted(
                f"version {descriptor.version} of table {descriptor.name!r} follows {newest}"
            )
        versions[descriptor.version] = descriptor
        self._newest[descriptor.table_id] = descriptor.version
        self._name(descriptor.table_id)

    def _name(self, table_id: int) -> None:
        """Know a table by the names of every version that may be in use (D9). Only one that takes
        the place of another, or its name, has it while that one's last readers finish, and then
        under later numbers: name and version mean one table."""
        self._references = None
        self._current = {}
        known = {
            name
            for version, descriptor in self._versions[table_id].items()
            if version >= self.min_version(table_id)
            for name in descriptor.names
        }
        named = {n: tuple(t for t in ts if t != table_id) for n, ts in self._names.items()}
        for name in known:
            others = named.get(name, ())
            assert all(self._mirrors(table_id, other) for other in others), (
                f"D9: two tables are named {name!r}"
            )
            named[name] = tuple(sorted((*others, table_id)))
        self._names = {name: tables for name, tables in named.items() if tables}

    def _mirrors(self, one: int, other: int) -> bool:
        tables = self.newest(one), self.newest(other)
        return any(
            t.former == o.table_id or t.replaces == o.table_id for t, o in (tables, tables[::-1])
        )

    def tables(self) -> tuple[Descriptor, ...]:
        """Return the newest version of every table that is not absent, by table id."""
        newest = (self.newest(table_id) for table_id in sorted(self._versions))
        return tuple(table for table in newest if table.state is not State.ABSENT)

    @property
    def has_actions(self) -> bool:
        """Whether a foreign key in use does something with the rows that refer."""
        if self._references is None:
            self.references(0)
        return self._has_actions

    def references(self, table_id: int) -> tuple[Reference, ...]:
        """Return foreign keys that refer to a table's rows and are enforced in some version of
        theirs that may be in use, the newest of those: a parent's writers know nothing of their
        children."""
        if self._references is None:
            found: dict[int, dict[tuple[int, int], Reference]] = {}
            for child_id, versions in self._versions.items():
                for version, child in versions.items():
                    if version >= self.min_version(child_id) and child.has_own_rows:
                        for key in child.enforced_foreign_keys:
                            by_key = found.setdefault(key.parent, {})
                            by_key[child_id, key.element_id] = Reference(child, key)
            self._references = {parent: tuple(keys.values()) for parent, keys in found.items()}
            self._has_actions = any(
                r.key.acts for known in self._references.values() for r in known
            )
        return self._references.get(table_id, ())

    def leased_tables(self) -> tuple[Descriptor, ...]:
        """Return those, and absent ones that an older version of may still be in use (D5)."""
        newest = (self.newest(table_id) for table_id in sorted(self._versions))
        return tuple(
            table
            for table in newest
            if table.state is not State.ABSENT or self.min_version(table.table_id) < table.version
        )

    def table_names(self) -> Set[str]:
        """Return every name that some version in use resolves."""
        return self._names.keys()

    def next_table_id(self) -> int:
        """Return the id of the next table, above those of all tables, also of those that a job has
        yet to make."""
        known = (table for table in self._known_ids() if not is_sequence_id(table))
        return max(max(known, default=0) + 1, self._ids_from)

    def next_sequence_id(self) -> int:
        known = (table for table in self._known_ids() if is_sequence_id(table))
        return max(max(known, default=0) + 1, self._ids_from | SEQUENCES_FROM)

    def _known_ids(self) -> Iterator[int]:
        yield from self._versions
        for job in self.jobs.values():
            yield from job.tables

    def has(self, table_id: int) -> bool:
        """Say whether a version of the table is kept."""
        return table_id in self._versions

    def has_ended(self, job_id: int) -> bool:
        """Say whether the job has come to its end, and perhaps been forgotten since."""
        job = self.jobs.get(job_id)
        return job is None or job.status.ended

    def next_job_id(self) -> int:
        return max(self.jobs, default=0) + 1

    def newest(self, table_id: int) -> Descriptor:
        return self._versions[table_id][self._newest[table_id]]

    def has_newer(self, descriptor: Descriptor) -> bool:
        """Say whether there is a newer version; no for a table that is not known here (any
        more)."""
        newest = self._newest.get(descriptor.table_id, descriptor.version)
        return newest > descriptor.version

    def version(self, table_id: int, version: int) -> Descriptor:
        """Return a kept version; KeyError is a programmer's error (the log names what it wrote)."""
        return self._versions[table_id][version]

    def ended_before(self, before_us: int) -> list[Ended]:
        """Return versions that may be forgotten: unused (D5), and replaced in commits before that
        time."""
        return [
            ended
            for table_id in sorted(self._versions)
            for ended in ended_before(
                self.versions(table_id), self.min_version(table_id), before_us
            )
        ]

    def forget(self, table_id: int, version: int) -> None:
        """Forget the oldest of a table's versions, one of `ended_before`."""
        kept = self._versions[table_id]
        assert version == min(kept) < self.min_version(table_id), "D5: it may be in use"
        del kept[version]

    def _forget_table(self, table_id: int) -> None:
        assert self.newest(table_id).state is State.ABSENT, "D9: somebody may name it"
        del self._versions[table_id]
        del self._newest[table_id]
        self._min_versions.pop(table_id, None)
        self.access = self.access.without_object(table_id)
        self._references = None
        self._current = {}

    def table_ids(self) -> list[int]:
        """Return the ids of all that a version is kept of, absent ones and sequences included."""
        return sorted(self._versions)

    def versions(self, table_id: int) -> tuple[Descriptor, ...]:
        kept = self._versions[table_id]
        return tuple(kept[number] for number in sorted(kept))

    def min_version(self, table_id: int) -> int:
        return self._min_versions.get(table_id, 1)

    def resolve(self, name: str, version: int | None = None) -> Descriptor:
        """Return the descriptor under which a request runs (D5).

        Without a version the newest. Raises UnknownTable; UnknownVersion above the newest or below
        1; StaleVersion below `min_version`.
        """
        if version is None and name in self._current:
            return self._current[name]
        tables = self._names.get(name)
        if tables is None:
            raise _unknown(name)
        found = self._at(name, self._meant(name, tables, version), version)
        if name not in found.names:
            raise _unknown(name)
        if version is None:
            self._current[name] = found
        return found

    def _meant(self, name: str, tables: tuple[int, ...], version: int | None) -> int:
        """Return, of several tables that have the name, the one that has it at this version; the
        last one where none has, which says what is wrong with the number."""
        for table_id in tables[:-1]:
            asked = self._newest[table_id] if version is None else version
            kept = self._versions[table_id].get(asked)
            if kept is not None and name in kept.names and asked >= self.min_version(table_id):
                return table_id
        return tables[-1]

    def _at(self, name: str, table_id: int, version: int | None) -> Descriptor:
        newest = self._newest[table_id]
        if version is None or version == newest:
            return self._versions[table_id][newest]
        if not 1 <= version < newest:
            raise UnknownVersion(
                f"table {name!r} has no version {version}; the newest is {newest}",
                table=name,
                version=version,
                newest=newest,
            )
        self._check_fence(name, table_id, version)
        return self._versions[table_id][version]

    def _check_fence(self, name: str, table_id: int, version: int) -> None:
        """Raise StaleVersion for a version below `min_version` (D5)."""
        lowest = self.min_version(table_id)
        if version < lowest:
            raise StaleVersion(
                f"version {version} of table {name!r} is no longer in use; lowest is {lowest}",
                table=name,
                version=version,
                min_version=lowest,
            )


def _unknown(name: str) -> UnknownTable:
    return UnknownTable(f"table {name!r} does not exist", table=name)
