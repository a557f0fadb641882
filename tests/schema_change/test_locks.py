"""Claim 8: columns that move between locks, every interleaving of readers and writers.

Real: the plan and its descriptors, `verify`, the genids that a change sets. The model adds who has
read what under which version. Two columns of one row: `a`, which moves from the default lock to
`l` (or back), and `b`, which stays. Each of two clients reads the row at any moment, and later
writes one column and names what it has seen of the locks over it: as of its reading, or worked out
at the time of writing from the image it has kept. The harm is a lost update: a write is accepted
though its column was written since its client has read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.job import Job, Step
from leasehold.model.errors import Refused
from leasehold.model.ids import genid
from leasehold.model.ports import Row
from leasehold.model.records.log import DescriptorWrite, MinVersion
from leasehold.model.records.requests import ChangeRequest, Operation, OperationKind
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.results import CreateTablePlan, JobPlan
from leasehold.sql.syntax.statements import (
    AddLock,
    AlterTable,
    Change,
    ColumnDefinition,
    CreateTable,
    DropLock,
)
from leasehold.transaction.locks import covering_locks, expected_of
from leasehold.transaction.verify import verify
from leasehold.values.types import Type
from tests.models.explorer import Report, explore
from tests.models.summary import AddLine, ModelLine
from tests.support.schema_change.next_descriptor import next_descriptor

WRITES_MAX: Final = 2
STATES_MAX: Final = 200_000
TABLE: Final = CreateTable(
    "t",
    tuple(ColumnDefinition(name, Type("integer"), name != "id") for name in ("id", "a", "b")),
    ("id",),
)
A, B = 2, 3
NAMES: Final = {A: "a", B: "b"}
ADD: Final = AlterTable("t", (AddLock("l", ("a",)),))
DROP: Final = AlterTable("t", (DropLock("l"),))


class Seen(NamedTuple):
    """What a client has read: under which version, genids by lock, each column's last write."""

    version: int
    genids: tuple[tuple[int, int], ...]
    written: tuple[int, ...]


class World(NamedTuple):
    """`versions` published since the begin, the newest `fenced` or not (D5) and at which LSN.
    `genids` are the row's; `written`: LSN of the last write of a and of b."""

    versions: int
    fenced: bool
    fence: int
    lsn: int
    genids: tuple[tuple[int, int], ...]
    written: tuple[int, ...]
    seen: tuple[Seen | None, ...]
    writes: int = 0
    harm: str = ""


def public_catalog(changes: tuple[Change, ...]) -> Catalog:
    """After `changes`, each of them run to its end."""
    catalog = Catalog()
    made = plan(TABLE, catalog)
    assert isinstance(made, CreateTablePlan)
    catalog.apply(DescriptorWrite(1, 1, made.descriptor.to_wire()), 1, 1)
    for change in changes:
        job = job_of(change, catalog)
        for number in range(len(job.steps)):
            published(catalog, replace(job, step=number), fence=1)
            catalog.apply(MinVersion(1, catalog.newest(1).version), 1, 1)
    return catalog


def job_of(change: Change, catalog: Catalog) -> Job:
    made = plan(change, catalog)
    assert isinstance(made, JobPlan)
    return made.job


def published(catalog: Catalog, job: Job, fence: int, *, takes_along: bool = True) -> None:
    descriptor = next_descriptor(replace(job, fence_lsn=fence), catalog)
    if not takes_along:
        descriptor = replace(descriptor, lock_moves=catalog.newest(1).lock_moves)
    catalog.apply(DescriptorWrite(1, descriptor.version, descriptor.to_wire()), 1, 1)


def at_once(job: Job) -> Job:
    """Without the dual state: both steps in one."""
    first, second = job.steps
    later = {(e.kind, e.element_id): e for e in second.edits}
    edits = [
        edit._replace(after=later.pop((edit.kind, edit.element_id), edit).after)
        for edit in first.edits
    ]
    return replace(job, steps=(Step((*edits, *later.values())),), point=0)


@dataclass
class Model:
    """`dual` off: without the state of both locks; `takes_along` off: the new lock knows nothing
    of the old one's writes; `carries` off: a write under the old lock forgets what it replaces."""

    change: Change
    before: tuple[Change, ...] = ()
    dual: bool = True
    takes_along: bool = True
    carries: bool = True
    writes_max: int = WRITES_MAX
    refusal: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._base = public_catalog(self.before)
        job = job_of(self.change, self._base)
        self.job = job if self.dual else at_once(job)
        self._catalogs: dict[tuple[int, bool, int], Catalog] = {}

    def catalog(self, world: World) -> Catalog:
        key = world.versions, world.fenced, world.fence
        found = self._catalogs.get(key)
        if found is None:
            found = self._catalogs[key] = public_catalog(self.before)
            for number in range(world.versions):
                job = replace(self.job, step=number)
                published(found, job, world.fence, takes_along=self.takes_along)
            low = found.newest(1).version - (0 if world.fenced else 1)
            found.apply(MinVersion(1, low), 1, 1)
        return found

    def starts(self) -> list[tuple[str, World]]:
        lsn = 2
        begin = World(0, True, 1, lsn, (), (lsn, lsn), (None, None))
        both = begin._replace(versions=1, fenced=False)
        return [
            ("a row", self._stamped(begin)),
            ("a row written while both locks cover a", self._stamped(both)),
        ]

    def _stamped(self, world: World) -> World:
        locks = self.catalog(world).newest(1).locks
        return world._replace(genids=tuple((lock, genid(world.lsn, 0)) for lock in locks))

    def invariant(self, world: World) -> str | None:
        return world.harm or None

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        if world.fenced and world.versions < len(self.job.steps):
            yield (
                f"version +{world.versions + 1} is published",
                world._replace(versions=world.versions + 1, fenced=False),
            )
        if not world.fenced:
            lsn = world.lsn + 1
            fence = lsn if world.versions < len(self.job.steps) else world.fence
            yield "it is drained and fenced", world._replace(fenced=True, fence=fence, lsn=lsn)
        for client in (0, 1):
            yield from self._reads(world, client)
            yield from self._writes(world, client)

    def _usable(self, world: World) -> tuple[int, ...]:
        catalog = self.catalog(world)
        return tuple(range(catalog.min_version(1), catalog.newest(1).version + 1))

    def _reads(self, world: World, client: int) -> Iterator[tuple[str, World]]:
        for version in self._usable(world):
            locks = self.catalog(world).version(1, version).locks
            genids = tuple((k, g) for k, g in world.genids if k in locks)
            seen = Seen(version, genids, world.written)
            if seen != world.seen[client]:
                both = tuple(seen if n == client else s for n, s in enumerate(world.seen))
                yield f"client {client} reads under version {version}", world._replace(seen=both)

    def _writes(self, world: World, client: int) -> Iterator[tuple[str, World]]:
        """Under the version it read with, or one it has learnt of since, or naming none."""
        seen = world.seen[client]
        if seen is None or world.writes >= self.writes_max:
            return
        catalog = self.catalog(world)
        newest = catalog.newest(1).version
        for column in (A, B):
            for version in sorted({seen.version, *self._usable(world)}):
                for named in {version, None} if version == newest else {version}:
                    for read_by in {seen.version, version}:
                        after = self._write(world, seen, column, named, read_by)
                        if after is not None:
                            words = f"client {client} writes {NAMES[column]}, version {named}"
                            yield f"{words}, naming locks as of {read_by}", after

    def _write(
        self, world: World, seen: Seen, column: int, named: int | None, read_by: int
    ) -> World | None:
        catalog = self.catalog(world)
        reader = catalog.version(1, read_by)
        expect = expected_of(reader, dict(seen.genids), covering_locks(reader, [column]))
        operation = Operation(OperationKind.UPDATE, "t", (1,), {NAMES[column]: 1}, expect, named)
        lsn = world.lsn + 1

        def row(descriptor: Any, _key: Any) -> Row:
            genids = {k: g for k, g in world.genids if k in descriptor.locks}
            return Row({1: 1, A: 0, B: 0}, genids, world.lsn)

        try:
            (change,) = verify(ChangeRequest(b"", (operation,)), catalog, row, lsn).changes
        except Refused as error:
            self.refusal.add(error.sqlstate)
            return None
        place = column - A
        lost = world.written[place] != seen.written[place]
        stamped = dict.fromkeys(change.locks, genid(lsn, 0))
        kept = change.carried if self.carries else {}
        genids = {**dict(world.genids), **kept, **stamped}
        return world._replace(
            lsn=lsn,
            genids=tuple(sorted(genids.items())),
            written=tuple(lsn if n == place else w for n, w in enumerate(world.written)),
            writes=world.writes + 1,
            harm=f"a write of {NAMES[column]} is lost" if lost else "",
        )


def explored(model: Model) -> Report[World]:
    return explore(model.starts(), model.successors, model.invariant, states_max=STATES_MAX)


CHANGES: Final = [
    pytest.param(ADD, (), id="add_lock"),
    pytest.param(DROP, (ADD,), id="drop_lock"),
    pytest.param(ADD, (ADD, DROP), id="add_again"),
]


@pytest.mark.parametrize(("change", "before"), CHANGES)
def test_claim_8_no_update_is_lost(
    change: Change, before: tuple[Change, ...], model_line: AddLine
) -> None:
    report = explored(Model(change, before))
    bounds = f"2 clients, {WRITES_MAX} writes"
    model_line(ModelLine.of("Claim 8: locks", "-", report, bounds))
    assert report.violation is None, report.violation.words()
    assert report.exhausted


OFF: Final = {
    "dual": "⚠ no state of both locks",
    "takes_along": "⚠ the new lock knows nothing of the old",
    "carries": "⚠ a write under the old lock keeps nothing",
}


WRITES_OFF: Final = {"dual": 2, "takes_along": 2, "carries": 3}
"""How many writes the harm takes."""


@pytest.mark.parametrize(("change", "before"), CHANGES[:2])
@pytest.mark.parametrize("switch", OFF)
def test_claim_8_broken_is_found(
    change: Change, before: tuple[Change, ...], switch: str, model_line: AddLine
) -> None:
    if switch == "carries" and change == DROP:
        pytest.skip("the old lock of a dropped one covers nothing else that could be written")
    model = Model(
        change,
        before,
        dual=switch != "dual",
        takes_along=switch != "takes_along",
        carries=switch != "carries",
        writes_max=WRITES_OFF[switch],
    )
    report = explored(model)
    model_line(ModelLine.of("Claim 8: locks", OFF[switch], report))
    assert report.violation is not None, "the harm of this mutation was not found"
    print(report.violation.words())


def test_writers_of_different_columns_collide_no_more() -> None:
    """Both have read the row; after the change the second one's write is accepted too."""
    for before, accepted in (((), False), ((ADD,), True), ((ADD, DROP), False)):
        model = Model(DROP if before == (ADD,) else ADD, before)
        (_, world), _ = model.starts()
        newest = model.catalog(world).newest(1).version
        seen = Seen(newest, world.genids, world.written)
        after = model._write(world, seen, A, newest, newest)
        assert after is not None
        assert (model._write(after, seen, B, newest, newest) is not None) is accepted
