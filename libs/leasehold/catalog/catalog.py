"""Catalog: every kept descriptor version, min versions, jobs and roles of a database, as of one
position.

Small, hence held in memory by every node; it changes only by catalog writes of the log, and is
loaded from the store after a restart. Rolling back a batch never touches it, because a node applies
catalog writes after the record that holds them was read back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Any

from leasehold.catalog.access import Access
from leasehold.catalog.change_order import ChangeOrder
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.history import Ended, ended_before
from leasehold.catalog.job import Job, job_from_wire
from leasehold.catalog.newer_release import as_written
from leasehold.catalog.references import Reference, References
from leasehold.catalog.running_jobs import RunningJobs
from leasehold.catalog.states import State
from leasehold.model.errors import StaleVersion, StoreCorrupted, UnknownTable, UnknownVersion
from leasehold.model.ids import SEQUENCES_FROM, is_sequence_id
from leasehold.model.ports import StoredCatalog
from leasehold.model.records.log import (
    AccessWrite,
    CatalogWrite,
    ChunkDecided,
    CommentWrite,
    DescriptorWrite,
    EnumWrite,
    FindingsDecided,
    JobForgotten,
    JobWrite,
    LedgerRun,
    MembershipWrite,
    MinVersion,
    NamespaceWrite,
    RoleOrAccessWrite,
    RoleWrite,
    TableForgotten,
    TableTruncated,
    ViewWrite,
)


class Catalog:
    """Versions by table id; `apply` is its only way to change. What is kept beside them for those
    who ask is kept table by table: a change of one costs nothing for the others."""

    def __init__(self) -> None:
        # Each table's are replaced, never changed, so that a copy may share them.
        self._versions: dict[int, Mapping[int, Descriptor]] = {}
        self._newest: dict[int, Descriptor] = {}
        self._names: dict[str, tuple[int, ...]] = {}
        self._named: dict[int, frozenset[str]] = {}  # the names of each table there
        self._index_names: dict[str, int] = {}  # of newest versions, with how many have it
        self._with_indexes: dict[int, frozenset[str]] = {}  # those of each table there
        self._min_versions: dict[int, int] = {}
        self.jobs: dict[int, Job] = {}
        self._running = RunningJobs()
        self.ledger_run = ""
        self.access = Access()
        self._references = References()
        self._ids_from = 1
        self._highest_ids = [0, 0]  # of tables and of sequences, those that a job has yet to make
        self._current: dict[str, Descriptor] = {}  # what a request without a version resolves
        self._with_past: set[int] = set()  # tables of which more than one version is kept
        self._table_changes = ChangeOrder()
        self._job_changes = ChangeOrder()

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
        catalog = cls.of_known(
            (as_written(body, from_wire) for body in descriptors),
            min_versions,
            (as_written(body, job_from_wire) for body in jobs),
            Access.load(access, next_role_id),
        )
        catalog.ledger_run = ledger_run
        return catalog

    @classmethod
    def of_store(cls, stored: StoredCatalog) -> Catalog:
        """Return what a store kept, as `load` makes it."""
        return cls.load(
            stored.descriptors,
            dict(stored.min_versions),
            stored.jobs,
            stored.ledger_run,
            stored.access,
            stored.next_role_id,
        )

    @classmethod
    def of_known(
        cls,
        descriptors: Iterable[Descriptor],
        min_versions: Mapping[int, int],
        jobs: Iterable[Job],
        access: Access,
    ) -> Catalog:
        """Make a catalog, which shares what it is given: every kept version of each table, the
        oldest first."""
        catalog = cls()
        catalog._min_versions = dict(min_versions)
        for descriptor in descriptors:
            catalog._put(descriptor)
        for job in jobs:
            catalog.put_job(job)
        catalog.access = access
        return catalog

    def copy(self) -> Catalog:
        made = Catalog()
        made._take_over(self)
        made._table_changes = self._table_changes.copy()
        made._job_changes = self._job_changes.copy()
        return made

    def followed_by(self, made: Iterable[Descriptor]) -> Catalog:
        """Return a copy with the next versions of tables, as the commit that is decided will leave
        it."""
        ahead = self.copy()
        ahead.put(made)
        return ahead

    def put(self, made: Iterable[Descriptor]) -> None:
        """Take the next versions of tables."""
        for table in made:
            self._put(table)

    def _take_over(self, catalog: Catalog) -> None:
        self._versions = dict(catalog._versions)
        self._newest = dict(catalog._newest)
        self._names = dict(catalog._names)
        self._named = dict(catalog._named)
        self._index_names = dict(catalog._index_names)
        self._with_indexes = dict(catalog._with_indexes)
        self._min_versions = dict(catalog._min_versions)
        self.jobs = dict(catalog.jobs)
        self._running = catalog._running.copy()
        self._references = catalog._references.copy()
        self._with_past = set(catalog._with_past)
        self._highest_ids = list(catalog._highest_ids)
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
                assert version <= self._newest[table_id].version, "D5"
                self._min_versions[table_id] = version
                self._name(table_id)
            case JobWrite(body=body):
                self.put_job(as_written(body, job_from_wire))
            case TableForgotten(table_id=table_id):
                self._forget_table(table_id)
            case JobForgotten(job_id=job_id):
                del self.jobs[job_id]
                self._running.remove(job_id)
                self._job_changes.note_gone(job_id)
            case (
                RoleWrite()
                | MembershipWrite()
                | AccessWrite()
                | ViewWrite()
                | CommentWrite()
                | EnumWrite()
                | NamespaceWrite()
            ):
                self.access = self.access.applied(write)
            case TableTruncated():
                pass  # rows, which a catalog knows nothing of
            case LedgerRun(run_id=run_id):
                self.ledger_run = run_id
            case ChunkDecided():
                job = self.jobs[write.job_id]
                if job.run == write.run:
                    self.put_job(job.counted(*write[2:]))
            case FindingsDecided():
                job = self.jobs[write.job_id]
                if job.run == write.run:
                    self.put_job(job.validated(write))

    def put_job(self, job: Job) -> None:
        """Keep a job as it is now."""
        self.jobs[job.job_id] = job
        self._running.put(job)
        self._job_changes.note(job.job_id)
        for table_id in job.tables:
            self._note_id(table_id)

    def _note_id(self, table_id: int) -> None:
        kind = is_sequence_id(table_id)
        self._highest_ids[kind] = max(self._highest_ids[kind], table_id)

    def _put(self, descriptor: Descriptor) -> None:
        table_id = descriptor.table_id
        versions = self._versions.get(table_id, {})
        newest = self._newest[table_id].version if versions else 0
        # D1, D2: versions of a table follow each other without a gap.
        if versions and descriptor.version != newest + 1:
            raise StoreCorrupted(
                f"version {descriptor.version} of table {descriptor.name!r} follows {newest}"
            )
        self._versions[table_id] = {**versions, descriptor.version: descriptor}
        if versions:
            self._with_past.add(table_id)
        self._newest[table_id] = descriptor
        self._name_indexes(table_id, descriptor)
        self._note_id(table_id)
        self._name(table_id)

    def _name(self, table_id: int) -> None:
        """Know a table by the names of every version that may be in use (D9). Only one that takes
        the place of another, or its name, has it while that one's last readers finish, and then
        under later numbers: name and version mean one table."""
        kept, lowest = self._versions[table_id], self.min_version(table_id)
        in_use = [kept[version] for version in range(max(lowest, min(kept)), max(kept) + 1)]
        known = frozenset(name for descriptor in in_use for name in descriptor.names)
        before = self._named.get(table_id, frozenset())
        for name in before - known:
            self._take_name(name, table_id)
        for name in known - before:
            others = self._names.get(name, ())
            assert all(self._mirrors(table_id, other) for other in others), (
                f"D9: two tables are named {name!r}"
            )
            self._names[name] = tuple(sorted((*others, table_id)))
        self._named[table_id] = known
        for name in before | known:
            self._current.pop(name, None)
        self._references.put(table_id, in_use)
        self._table_changes.note(table_id)

    def _take_name(self, name: str, table_id: int) -> None:
        left = tuple(other for other in self._names[name] if other != table_id)
        if left:
            self._names[name] = left
        else:
            del self._names[name]

    def _name_indexes(self, table_id: int, newest: Descriptor | None) -> None:
        """Know the names of a table's indexes as those of its newest version, None: it is gone."""
        there = newest is not None and newest.state is not State.ABSENT
        names = newest.index_names if newest is not None and there else frozenset()
        before = self._with_indexes.pop(table_id, frozenset())
        if names:
            self._with_indexes[table_id] = names
        for name in names - before:
            self._index_names[name] = self._index_names.get(name, 0) + 1
        for name in before - names:
            left = self._index_names.pop(name) - 1
            if left:
                self._index_names[name] = left

    def index_names(self) -> Set[str]:
        """Return the names of all indexes that users know of, with those of primary keys."""
        return self._index_names.keys()

    @property
    def changes(self) -> int:
        """How many changes of tables there have been; see `changed_since`."""
        return self._table_changes.count

    def changed_since(self, changes: int) -> list[int]:
        """Return the ids of tables that have changed since `changes` was that number, also of those
        that are not there any more."""
        return self._table_changes.since(changes)

    @property
    def job_changes(self) -> int:
        """How many changes of jobs there have been; see `jobs_changed_since`."""
        return self._job_changes.count

    def jobs_changed_since(self, changes: int) -> list[int]:
        """Return the ids of jobs that have changed since `job_changes` was that number, also of
        those that are forgotten."""
        return self._job_changes.since(changes)

    @property
    def running(self) -> Mapping[int, Job]:
        """The jobs that have not ended, by their ids."""
        return self._running.by_id

    def running_names(self) -> Iterable[frozenset[str]]:
        """Return the names of relations that each running job gives, or has yet to let go of."""
        return self._running.names.values()

    def running_at(self, table_id: int) -> tuple[Job, ...]:
        """Return the running jobs that change a table, or need it as it is."""
        return self._running.at(table_id)

    def find_copying(self) -> Job | None:
        """Return a job whose rows are to be copied under another key; None: there is none."""
        return next(iter(self._running.copying.values()), None)

    def _mirrors(self, one: int, other: int) -> bool:
        tables = self.newest(one), self.newest(other)
        return any(
            t.former == o.table_id or t.replaces == o.table_id for t, o in (tables, tables[::-1])
        )

    def tables(self) -> tuple[Descriptor, ...]:
        """Return the newest version of every table that is not absent, by table id."""
        newest = [self._newest[table_id] for table_id in sorted(self._newest)]
        return tuple([table for table in newest if table.state is not State.ABSENT])

    @property
    def has_actions(self) -> bool:
        """Whether a foreign key in use does something with the rows that refer."""
        return self._references.acts

    def references(self, table_id: int) -> tuple[Reference, ...]:
        """Return foreign keys that refer to a table's rows and are enforced in some version of
        theirs that may be in use, the newest of those."""
        return self._references.to(table_id)

    def leased_tables(self) -> tuple[Descriptor, ...]:
        """Return those, and absent ones that an older version of may still be in use (D5)."""
        return tuple([self._newest[table] for table in sorted(self._newest) if self.leases(table)])

    def leases(self, table_id: int) -> bool:
        """Say whether a version of the table may be in use."""
        newest = self._newest.get(table_id)
        return newest is not None and (
            newest.state is not State.ABSENT or self.min_version(table_id) < newest.version
        )

    def table_names(self) -> Set[str]:
        """Return every name that some version in use resolves."""
        return self._names.keys()

    def next_table_id(self) -> int:
        """Return the id of the next table, above those of all tables, also of those that a job has
        yet to make."""
        return max(self._highest_id(sequences=False) + 1, self._ids_from)

    def next_sequence_id(self) -> int:
        return max(self._highest_id(sequences=True) + 1, self._ids_from | SEQUENCES_FROM)

    def _highest_id(self, *, sequences: bool) -> int:
        return self._highest_ids[sequences]

    def has(self, table_id: int) -> bool:
        """Say whether a version of the table is kept."""
        return table_id in self._versions

    def has_ended(self, job_id: int) -> bool:
        """Say whether the job has come to its end, and perhaps been forgotten since."""
        job = self.jobs.get(job_id)
        return job is None or job.status.ended

    def is_gentle(self) -> bool:
        """Say whether a job that goes on is to be felt half as much by users."""
        return bool(self._running.gentle)

    def next_job_id(self) -> int:
        return max(self.jobs, default=0) + 1

    def newest(self, table_id: int) -> Descriptor:
        return self._newest[table_id]

    def has_newer(self, descriptor: Descriptor) -> bool:
        """Say whether there is a newer version; no for a table that is not known here (any
        more)."""
        newest = self._newest.get(descriptor.table_id, descriptor)
        return newest.version > descriptor.version

    def version(self, table_id: int, version: int) -> Descriptor:
        """Return a kept version; KeyError is a programmer's error (the log names what it wrote)."""
        return self._versions[table_id][version]

    def ended_before(self, before_us: int) -> list[Ended]:
        """Return versions that may be forgotten: unused (D5), and replaced in commits before that
        time."""
        return [
            ended
            for table_id in sorted(self._with_past)
            for ended in ended_before(
                self.versions(table_id), self.min_version(table_id), before_us
            )
        ]

    def forget(self, table_id: int, version: int) -> None:
        """Forget the oldest of a table's versions, one of `ended_before`."""
        kept = self._versions[table_id]
        assert version == min(kept) < self.min_version(table_id), "D5: it may be in use"
        self._versions[table_id] = {v: one for v, one in kept.items() if v != version}
        if len(kept) == 2:
            self._with_past.discard(table_id)

    def _forget_table(self, table_id: int) -> None:
        assert self.newest(table_id).state is State.ABSENT, "D9: somebody may name it"
        del self._versions[table_id]
        del self._newest[table_id]
        self._min_versions.pop(table_id, None)
        self.access = self.access.without_object(table_id)
        for name in self._named.pop(table_id):
            self._take_name(name, table_id)
            self._current.pop(name, None)
        self._with_past.discard(table_id)
        self._name_indexes(table_id, None)
        self._references.forget(table_id)
        self._table_changes.note_gone(table_id)

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
            asked = self._newest[table_id].version if version is None else version
            kept = self._versions[table_id].get(asked)
            if kept is not None and name in kept.names and asked >= self.min_version(table_id):
                return table_id
        return tables[-1]

    def _at(self, name: str, table_id: int, version: int | None) -> Descriptor:
        newest = self._newest[table_id].version
        if version is None or version == newest:
            return self._newest[table_id]
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
