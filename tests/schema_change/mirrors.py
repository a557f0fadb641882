"""The model of a change of the primary key: rows that move, in two tables that follow each other.

What is real: plan and steps, `next_descriptors`, `job_moves`, `verify` and what it does to mirrors,
the store's key-value form, `accept_chunk` and `slice_chunk`, d ⊨ S. As in `model.py` whoever may
use a version does, with any operation at any time; a chunk of a run that has begun may come at any
later moment, again and again.

Rows: `id` and `k` from small domains, `v` to tell a row that was not followed. Genids are compared
after each operation and then forgotten, since only their being equal matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import ALL_ROWS, CommitContext
from leasehold.catalog.job import Job, Phase
from leasehold.catalog.states import State
from leasehold.model.errors import Refused, StaleVersion, StoreCorrupted, UnknownVersion
from leasehold.model.records.jobs import Chunk
from leasehold.model.records.log import Backfill, DescriptorWrite, JobWrite, MinVersion, RowChange
from leasehold.model.records.requests import ChangeRequest, Operation, OperationKind
from leasehold.replication.master import backfill
from leasehold.schema_change.coordinator.verification import as_if_public
from leasehold.schema_change.job import transitions as go
from leasehold.schema_change.job.chunk_acceptance import accept_chunk
from leasehold.schema_change.job.next_versions import find_moving, is_moving, next_descriptors
from leasehold.schema_change.plan.results import CreateTablePlan, JobPlan
from leasehold.transaction.mirror_table import key_in
from leasehold.transaction.verify import verify
from tests.models.mutants.transaction import VerifyRules
from tests.schema_change.changes import planned
from tests.support.memory_store.consistency import KeyValueData, violations
from tests.support.memory_store.contents import Contents
from tests.support.memory_store.store import MemoryStore

ID, K, V = 1, 2, 3
TABLE: Final = "CREATE TABLE t (id integer PRIMARY KEY, k integer, v integer)"
CHANGE: Final = "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (k)"
LSN: Final = 9
CONTEXT: Final = CommitContext(0, b"a request's")
FILLING: Final = CommitContext(0, b"a chunk's")
VERSIONS_MAX: Final = 3
IDS: Final = (1, 2)
KS: Final = (1, 2, None)


class Rows(NamedTuple):
    """What a store holds: rows (table, key, pairs) and entries, sorted."""

    rows: tuple[tuple[int, tuple[Any, ...], tuple[tuple[int, Any], ...]], ...] = ()
    entries: tuple[Any, ...] = ()


class World(NamedTuple):
    """`todo`: keys whose chunk of the running backfill is still to come; `at`: number of a
    position."""

    held: Rows
    at: int
    todo: frozenset[Any] = frozenset()
    harm: str = ""


@dataclass(frozen=True)
class Position:
    """`runs`: of fills that have begun: (run, element, version); `seen`: number of what writers see
    of it."""

    job: Job
    catalog: Catalog
    runs: tuple[tuple[int, int, int], ...] = ()
    seen: int = 0

    @property
    def words(self) -> str:
        return f"{self.job.status.value}, step {self.job.step} {self.job.phase.value}"


class Seen(NamedTuple):
    """What writers see of positions: versions, without a job; `tables` are those of the job."""

    catalog: Catalog
    tables: tuple[int, ...]


class Write(NamedTuple):
    """Who wrote what, and what is there then."""

    label: str
    held: Rows
    harm: str = ""


class _Unseen(dict[int, Job]):
    """Jobs that no write asks for. Else positions that differ in these alone were not the same."""

    def _asked(self, *_: object) -> Any:
        raise AssertionError("a write asks for a job")

    __getitem__ = __iter__ = __contains__ = __len__ = get = keys = values = items = _asked


@dataclass(frozen=True)
class Rules:
    """What is to be found when it is off."""

    verify: VerifyRules = VerifyRules()
    drain: bool = True
    fence_before_backfill: bool = True
    verified: bool = True


class Harmful(Exception):
    """What went wrong."""


def key_change(sql: str = CHANGE, table: str = TABLE) -> tuple[Catalog, Job]:
    catalog = Catalog()
    for number, text in enumerate(filter(None, table.split(";")), 1):
        made = planned(text, catalog)
        assert isinstance(made, CreateTablePlan)
        catalog.apply(DescriptorWrite(number, 1, made.descriptor.to_wire()), 0, 0)
    asked = planned(sql, catalog)
    assert isinstance(asked, JobPlan)
    return catalog, asked.job


@dataclass
class Mirrors:
    """`job` may be one on another way than the plan's. `left`: elements that a roll-back leaves
    behind. `by_range`: rows are copied by ranges of the new key, and not filled by chunks."""

    catalog: Catalog
    job: Job
    rules: Rules = Rules()
    cancel: bool = True
    reached: set[str] = field(default_factory=set)
    left: frozenset[int] = frozenset({4})
    by_range: bool = False

    def __post_init__(self) -> None:
        self.catalog.apply(JobWrite(self.job.job_id, self.job.to_wire()), 0, 0)
        self.all: list[Position] = []
        self.seen: list[Seen] = []
        self._seen_numbers: dict[Any, int] = {}
        self._numbers: dict[Any, int] = {}
        self._found: dict[Any, str] = {}
        self._known: dict[tuple[Rows, int], tuple[Write, ...]] = {}
        self._keep(Position(self.job, self.catalog))
        self._requests = {"id": _requests("id"), "k": _requests("k")}

    def starts(self) -> Iterator[tuple[str, World]]:
        """Each table of so many rows, the job in its first place."""
        for ks in product((*KS, "gone"), repeat=len(IDS)):
            rows = tuple(
                (1, (row,), _pairs({ID: row, K: k, V: 0}))
                for row, k in zip(IDS, ks, strict=True)
                if k != "gone"
            )
            yield f"{ks}", World(Rows(rows), 0)

    # ------------------------------------------------------------ invariant

    def invariant(self, world: World) -> str | None:
        position = self.all[world.at]
        self.reached.add(position.words)
        key = world.held, world.at
        if not world.harm and key not in self._found:
            self._found[key] = self._wrong(world.held, position)
        return world.harm or self._found[key] or None

    def _wrong(self, held: Rows, position: Position) -> str:
        catalog = position.catalog
        data = {t: _data(held, t) for t in position.job.tables if catalog.has(t)}
        shown = []
        for version in _in_use(catalog):
            descriptor = catalog.resolve("t", version)
            table = descriptor.table_id
            shown.append(_images(held, table))
            found = violations(data[table], descriptor, self.left)
            if found:
                return f"version {version}: {found[0].words} at {found[0].key}"
        if any(each != shown[0] for each in shown):
            return f"who reads the version before sees other rows: {shown}"
        return self._beside(held, catalog, data)

    def _beside(self, held: Rows, catalog: Catalog, data: dict[int, KeyValueData]) -> str:
        """The table that is not read has no row that the other has not."""
        versions = _in_use(catalog)
        named = catalog.resolve("t")
        other = next((t for t in data if t != named.table_id), None)
        if other is None or any(
            not _kept(catalog, other, v) or catalog.version(other, v).state is State.ABSENT
            for v in versions
        ):
            return ""
        beyond = _images(held, other) - _images(held, named.table_id)
        if beyond:
            return f"the table that follows has rows of its own: {sorted(map(repr, beyond))}"
        found = violations(data[other], catalog.newest(other), self.left)
        return f"the table that follows: {found[0].words}" if found else ""

    # ------------------------------------------------------------ transitions

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        if world.harm:
            return
        position = self.all[world.at]
        key = world.held, position.seen
        if key not in self._known:
            self._known[key] = tuple(self.writes(world.held, self.seen[position.seen]))
        for write in self._known[key]:
            yield write.label, self.kept(world._replace(held=write.held, harm=write.harm))
        yield from self._chunks(world, position)
        yield from self._ranges(world, position)
        yield from self._job(world, position)

    def writes(self, held: Rows, seen: Seen) -> Iterator[Write]:
        """By whoever may use a version. Of where the job stands only what is `seen` has to do with
        them, so they are worked out once for all positions that are alike in it."""
        for version in _in_use(seen.catalog):
            named = seen.catalog.resolve("t", version)
            for request in self.requests(held, named):
                label = f"{_words(request)} for version {version}"
                yield from self._written(label, held, seen, named, request)

    def requests(self, held: Rows, descriptor: Descriptor) -> Iterable[ChangeRequest]:
        """What writers at a version with this key may ask for."""
        return self._requests[descriptor.key_columns[0].name]

    def deserved(self, held: Rows, named: Descriptor, request: ChangeRequest) -> bool:
        """Only who writes under the new key may be told to come again: with a value that is another
        row's old key."""
        given = {operation.values.get("id") for operation in request.operations}
        rows = (dict(pairs) for pairs in _images(held, named.table_id))
        return bool(named.former) and any(row.get(ID) in given for row in rows)

    def may_fail(self, held: Rows) -> bool:
        """Is there a row, or two, that can't have the new key?"""
        values = [dict(pairs).get(K) for table, _, pairs in held.rows if table == 1]
        return None in values or len(set(values)) < len(values)

    def keys(self, world: World) -> Iterable[Any]:
        """Of rows that a chunk may name."""
        return IDS

    def kept(self, world: World) -> World:
        """What is to be told from others of it."""
        return world

    def _written(
        self, label: str, held: Rows, seen: Seen, named: Descriptor, request: ChangeRequest
    ) -> Iterator[Write]:
        """Nothing, where it is refused or changes nothing."""
        store = _store(held)
        operations = tuple(o._replace(schema_version=named.version) for o in request.operations)
        asked = request._replace(operations=operations)
        try:
            decided = verify(asked, seen.catalog, store.row, LSN, store.holders, CONTEXT)
        except StaleVersion as error:
            if not self.deserved(held, named, request):
                yield Write(label, held, f"refused for the change's sake: {error.message}")
        except Refused:
            pass
        else:
            if decided.changes:
                yield self._applied(label, seen, store, decided.changes)

    def _applied(
        self, label: str, seen: Seen, store: MemoryStore, changes: tuple[RowChange, ...]
    ) -> Write:
        for number, change in enumerate(changes):
            descriptor = seen.catalog.version(change.table_id, change.version)
            store.change(descriptor, change, LSN, number, None)
        return Write(label, _rows_of(store), self._genids_differ(store, seen))

    def _genids_differ(self, store: MemoryStore, seen: Seen) -> str:
        first, *others = seen.tables
        for other in others:
            if not is_moving(seen.catalog, other) or not is_moving(seen.catalog, first):
                continue
            mirror = seen.catalog.newest(other)
            if not mirror.mirror:
                continue
            for table, key in store._now.exists:
                row = store._now.row(table, key)
                if (
                    table != first
                    or row is None
                    or (in_mirror := key_in(mirror, row.values)) is None
                ):
                    continue
                same = store._now.row(other, in_mirror)
                if same is not None and same.values == row.values and same.genids != row.genids:
                    return f"the genids of a row differ: {row} and {same}"
        return ""

    def _chunks(self, world: World, position: Position) -> Iterator[tuple[str, World]]:
        for run, element_id, version in position.runs:
            for key in self.keys(world):
                chunk = Chunk(1, run, 1, version, element_id, ((key,),))
                if not accept_chunk(position.catalog, chunk):
                    continue
                store = _store(world.held)
                part = backfill.slice_chunk(chunk, 0, 1, position.catalog, store, FILLING)
                for backfilled in part.backfills:
                    store.backfill(position.catalog.version(1, backfilled.version), backfilled)
                now = run == position.job.run and position.job.phase is Phase.BACKFILLING
                todo = world.todo - {key} if now else world.todo
                label = f"chunk of run {run}, row {key}"
                write = self._applied(label, self.seen[position.seen], store, part.changes)
                after = world._replace(held=write.held, todo=todo, harm=write.harm)
                yield label, self.kept(after)

    def _ranges(self, world: World, position: Position) -> Iterator[tuple[str, World]]:
        """The next range of a copy, of as many rows as there may be."""
        job = position.job
        if not job.copies_rows or job.chunks_ended or job.phase is not Phase.BACKFILLING:
            return
        for count in range(1, len(IDS) + 2):
            yield self._copied(world, position, count)

    def _copied(self, world: World, position: Position, count: int) -> tuple[str, World]:
        job, store = position.job, _store(world.held)
        source = position.catalog.version(1, job.versions[1])
        target = position.catalog.version(source.mirror, job.versions[1])
        span, copied = store.read_copy(source, target, job.through, count)
        backfill = Backfill(target.table_id, target.version, ALL_ROWS, (), span=span, copied=copied)
        label = f"rows {span.after} to {span.through} are copied"
        try:
            self.copy(store, source, target, backfill)
        except StoreCorrupted as error:
            return label, world._replace(harm=f"a store stops: {error.message}")
        decided = job.counted(0, 0, end=not span.through, through=span.through)
        after = world._replace(held=_rows_of(store))
        harm = self._genids_differ(store, self.seen[position.seen])
        return label, self._go(after, decided)._replace(harm=harm)

    def copy(
        self, store: MemoryStore, source: Descriptor, target: Descriptor, backfill: Backfill
    ) -> None:
        store.copy_rows(source, target, backfill, LSN)

    def _job(self, world: World, position: Position) -> Iterator[tuple[str, World]]:
        job = position.job
        if self.cancel and go.can_turn_back(job):
            yield "cancel", self._go(world, go.turn_back(job, 0))
        match job.phase:
            case Phase.PUBLISHING:
                made = next_descriptors(job, position.catalog)
                writes = [DescriptorWrite(d.table_id, d.version, d.to_wire()) for d in made]
                after = self._go(world, go.record_published(job, 0), *writes)
                if not self.rules.fence_before_backfill and ALL_ROWS in job.current.backfills:
                    after = self._go(after, go.record_fenced(self.all[after.at].job, 0))
                yield f"published: {job.current.label}", after
            case Phase.DRAINING:
                tables = find_moving(job, position.catalog)
                fences = [MinVersion(t, job.versions[t]) for t in tables]
                ranged = (ALL_ROWS,) if self.by_range else ()
                fenced = go.record_fenced(job, 0, by_range=ranged)
                yield "drained", self._go(world, fenced, *fences)
            case Phase.BACKFILLING if self._is_filled(world, job):
                yield "filled", self._go(world, go.record_filled(job, 0))
            case Phase.VALIDATING:
                yield "Spark finds nothing", self._go(world, go.record_validated(job, 0))
            case Phase.VERIFYING:
                yield self._verified(world, position)

    def _is_filled(self, world: World, job: Job) -> bool:
        todo = not job.chunks_ended if job.copies_rows else bool(world.todo)
        return not (todo and _images(world.held, 1))

    def _verified(self, world: World, position: Position) -> tuple[str, World]:
        job = position.job
        words = self._check(world.held, position) if self.rules.verified else ""
        if not words:
            return "verified", self._go(world, go.record_verified(job, 0))
        if not self.may_fail(world.held):
            return "verification", world._replace(harm=f"refuted without a reason: {words}")
        return f"refuted: {words}", self._go(world, go.turn_back(job, 0, words))

    def _check(self, held: Rows, position: Position) -> str:
        elements, newest = position.job.current.verifies, position.catalog.newest(1)
        found = violations(_data(held, 1), as_if_public(newest, elements))
        wrong = [v.words for v in found if v.element_id in elements]
        if ALL_ROWS in elements and _images(held, 1) != _images(held, newest.mirror):
            wrong.append("the rows of the two tables differ")
        return wrong[0] if wrong else ""

    def _go(self, world: World, job: Job, *writes: Any) -> World:
        before = self.all[world.at]
        place = (
            job.step,
            job.phase,
            job.status,
            job.backfill,
            job.run,
            len(job.steps),
            job.error,
            job.through,
            job.chunks_ended,
            world.at,
        )
        if place not in self._numbers:
            catalog = before.catalog.copy()
            job = replace(job, marks=())
            if not self.rules.drain:
                writes = tuple(w for w in writes if not isinstance(w, MinVersion))
            for write in (*writes, JobWrite(job.job_id, job.to_wire())):
                catalog.apply(write, 0, 0)
            runs = before.runs
            if job.run != before.job.run and job.phase is Phase.BACKFILLING:
                runs = (*runs, (job.run, job.element_id, job.versions[1]))
            self._numbers[place] = self._keep(Position(job, catalog, runs))
        at = self._numbers[place]
        world = world._replace(held=_without_dead(world.held, self.all[at].catalog))
        todo = world.todo
        if job.phase is Phase.BACKFILLING and job.run != before.job.run:
            todo = frozenset(key[0] for table, key, _ in world.held.rows if table == 1)
        elif job.phase is not Phase.BACKFILLING:
            todo = frozenset()
        return self.kept(world._replace(at=at, todo=todo))

    def _keep(self, position: Position) -> int:
        """Its number, and of what writers see of it."""
        catalog = position.catalog.copy()
        catalog.jobs = _Unseen()
        versions = [
            (number, catalog.min_version(number), [d.to_wire() for d in catalog.versions(number)])
            for number in sorted(catalog._versions)
        ]
        key = position.job.tables, repr((versions, catalog._names))
        if key not in self._seen_numbers:
            self._seen_numbers[key] = len(self.seen)
            self.seen.append(Seen(catalog, position.job.tables))
        self.all.append(replace(position, seen=self._seen_numbers[key]))
        return len(self.all) - 1


# ------------------------------------------------------------------ parts


def _in_use(catalog: Catalog) -> tuple[int, ...]:
    """Versions under which table t may be named, the newest first."""
    newest = catalog.resolve("t").version
    found = []
    for version in range(newest, max(newest - VERSIONS_MAX, 0), -1):
        try:
            catalog.resolve("t", version)
        except (StaleVersion, UnknownVersion):
            break
        found.append(version)
    return tuple(found)


def _kept(catalog: Catalog, table: int, version: int) -> bool:
    return any(d.version == version for d in catalog.versions(table))


def _without_dead(held: Rows, catalog: Catalog) -> Rows:
    """What nobody can see any more is removed at once: whole tables, and indexes."""
    rows = tuple(row for row in held.rows if is_moving(catalog, row[0]))
    entries = (
        e for e in held.entries if is_moving(catalog, e[0]) and _indexed(catalog, e[0], e[1])
    )
    return Rows(rows, tuple(entries))


def _indexed(catalog: Catalog, table: int, index: int) -> bool:
    used = (d for d in catalog.versions(table) if d.version >= catalog.min_version(table))
    return any(i.element_id == index for d in used for i in d.indexes)


def _pairs(values: dict[int, Any]) -> tuple[tuple[int, Any], ...]:
    return tuple(sorted((e, v) for e, v in values.items() if v is not None))


def _images(held: Rows, table: int) -> set[Any]:
    return {pairs for t, _, pairs in held.rows if t == table}


def _store(held: Rows) -> MemoryStore:
    store = MemoryStore()
    now = Contents()
    for table, key, pairs in held.rows:
        now.exists[table, key] = ({0: 1}, 1)
        now.pairs[table, key] = dict(pairs)
    now.entries = set(held.entries)
    store._now = now
    return store


def _rows_of(store: MemoryStore) -> Rows:
    now = store._now
    rows = [(*row, _pairs(now.pairs.get(row, {}))) for row in now.exists]
    return Rows(tuple(sorted(rows, key=repr)), tuple(sorted(now.entries, key=repr)))


def _data(held: Rows, table: int) -> KeyValueData:
    rows = [(key, pairs) for t, key, pairs in held.rows if t == table]
    return KeyValueData(
        exists={key for key, _ in rows},
        columns={(key, e): v for key, pairs in rows for e, v in pairs},
        entries={(i, values, key) for t, i, values, key in held.entries if t == table},
    )


def _operation(kind: OperationKind, key: dict[str, Any], values: dict[str, Any]) -> Operation:
    return Operation(kind, "t", key, values)


def _requests(key: str) -> tuple[ChangeRequest, ...]:
    """All that a writer at a version with this key may ask for: single rows, and two that exchange
    what they hold in the column of the other key."""
    other, others = ("k", KS) if key == "id" else ("id", IDS)
    keys = [k for k in (IDS if key == "id" else KS) if k is not None]
    kinds = OperationKind
    single = [
        *(_operation(kinds.INSERT, {key: k}, {other: o, "v": 0}) for k in keys for o in others),
        *(_operation(kinds.UPDATE, {key: k}, {other: o}) for k in keys for o in others),
        *(_operation(kinds.UPDATE, {key: k}, {"v": 1}) for k in keys),
        *(_operation(kinds.DELETE, {key: k}, {}) for k in keys),
    ]
    exchanged = [
        (
            _operation(kinds.UPDATE, {key: 1}, {other: a}),
            _operation(kinds.UPDATE, {key: 2}, {other: b}),
        )
        for a, b in ((1, 2), (2, 1))
    ]
    replaced = [
        (
            _operation(kinds.DELETE, {key: 1}, {}),
            _operation(kinds.UPDATE, {key: 2}, {other: 1}),
        )
    ]
    groups = [*((each,) for each in single), *exchanged, *replaced]
    return tuple(ChangeRequest(b"", tuple(group)) for group in groups)


def _words(request: ChangeRequest) -> str:
    return "; ".join(f"{o.kind.name} {o.key} {dict(o.values)}" for o in request.operations)
