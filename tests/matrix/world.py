"""A calm stage with one job on table m, which can be stopped at every place of it.

A place is entered when the record that says so is appended to the log. What is asked in that very
instant is decided before the job can move on, so the outcome of a write is foreseen exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.job import Job, Phase, Status
from leasehold.catalog.states import State
from leasehold.in_process.bus import Message
from leasehold.in_process.network import PipelineHops
from leasehold.lease.agent.session import HolderLimits
from leasehold.model.errors import FeatureNotSupported, MalformedRequest, UnknownColumn
from leasehold.schema_change.coordinator.ledger import LedgerSideSettings
from tests.matrix.definition import Definition, Write
from tests.matrix.shape import columns_of, content_of, others_of, shape_of
from tests.simulation.harm import Harm, demand
from tests.simulation.plan import SHAPE
from tests.simulation.simulation import MS
from tests.simulation.stage import Stage

STEP_MS: Final = 30_000
TTL_MS: Final = 450
QUICK: Final[Mapping[str, Any]] = {
    # Sessions and elections as short as they can be beside coherency leases of 500 ms.
    "election_timeout_ms": 300,
    "schema": replace(
        SHAPE.schema,
        coordinator=replace(
            SHAPE.schema.coordinator,
            ledger=LedgerSideSettings(session_ttl_ms=TTL_MS, look_ms=150, look_again_ms=50),
        ),
    ),
    "leases": HolderLimits(
        session_ttl_ns=TTL_MS * MS,
        renew_every_ns=TTL_MS * MS // 3,
        margin_ns=50 * MS,
        retry_after_ns=50 * MS,
    ),
}
OK: Final = "ok"
NAMED_OTHERWISE: Final = {MalformedRequest.sqlstate, FeatureNotSupported.sqlstate}
"""What a write without a pin may meet that named a row by the key of before."""


class Place(NamedTuple):
    """`some`: a part of the rows is filled; `back`: the job is rolling back."""

    step: int
    phase: Phase
    backfill: int = 0
    some: bool = False
    back: bool = False

    def __str__(self) -> str:
        backfill = f" of fill {self.backfill}" if self.backfill else ""
        some = ", half way" if self.some else ""
        return f"{'back, ' if self.back else ''}step {self.step} {self.phase.value}{backfill}{some}"


def place_of(job: Job) -> Place | None:
    """None: it has ended."""
    if job.status.ended:
        return None
    back = job.status is Status.ROLLING_BACK
    if job.phase is not Phase.BACKFILLING:
        return Place(job.step, job.phase, back=back)
    return Place(job.step, job.phase, job.backfill, job.rows_read > 0, back)


class CalmPipeline(PipelineHops):
    """A few rows in a micro-batch, so that a backfill has a middle."""

    def produce_ns(self) -> int:
        return MS

    def batch_ns(self) -> int:
        return 5 * MS

    def batch_offsets(self) -> int:
        return 5


class Asked(NamedTuple):
    """`foreseen`: SQLSTATEs or `ok`. `place`: where it must have been decided, None = anywhere."""

    words: str
    write: Write | None
    shift: int
    foreseen: frozenset[str]
    place: Place | None


class World(Stage):
    """`place`: where the job stands, as the log says; `foreseen`: how it is to end. `origin`
    is where its turns begin, `turn` counts places from there, `place_of_step` those of a step."""

    def __init__(self, definition: Definition, origin: int = 0, *, every: bool = False) -> None:
        self.definition = definition
        self.origin = self.turn = origin
        self.place_of_step = 0
        self.every = every
        self.place: Place | None = None
        self.job_id = 0
        self.asked: dict[bytes, Asked] = {}
        self.foreseen = definition.ends
        self._entered = False
        self._visited: set[Place] = set()
        self._stood: dict[int, Place | None] = {}  # by offset of the log: before that record
        super().__init__(**QUICK, older=("r2",) if definition.older else ())
        for part in (self.cluster.backfill, self.cluster.retry):
            part._hops = CalmPipeline()
        self._made()
        self.before = self.newest
        self.sequences = self._sequences()
        self.base = self.before.version

    def _made(self) -> None:
        self._accepted({"sql": self.definition.table})
        self.table_id = self.reference.catalog.resolve("m").table_id
        rows = self.definition.first_rows
        if rows:
            self._accepted({"transaction": rows})
        for sql in self.definition.setup:
            outcome = self._accepted({"sql": sql})
            if "job" not in outcome.answer:
                continue
            job_id = outcome.answer["job"]
            self.until(lambda: self.job(job_id).status.ended, "the setup")  # noqa: B023
            demand(self.job(job_id).status is Status.SUCCEEDED, "setup", self.job(job_id).error)

    def _accepted(self, fields: dict[str, Any]) -> Any:
        outcome = self.settle(fields)
        demand(bool(outcome.lsn), "setup", f"{fields}: {outcome}")
        return outcome

    # ------------------------------------------------------------ looking

    @property
    def the_job(self) -> Job:
        job: Job = self.job(self.job_id)
        return job

    @property
    def newest(self) -> Descriptor:
        """Of the table, or of the one that has taken its place."""
        catalog = self.reference.catalog
        others = (
            table
            for table in catalog.tables()
            if self.table_id in (table.former, table.replaces)
            and table.names
            and table.state is not State.WRITE_ONLY
        )
        return next(others, catalog.newest(self.table_id))

    def version_used(self, versions: Mapping[int, int]) -> int:
        """By what a commit says of its tables; one that takes another's place counts on."""
        used = {self.table_id, self.newest.table_id} & versions.keys()
        return next(versions[table_id] for table_id in used)

    def other(self, table: str) -> Descriptor | None:
        """A table that the item has beside its own, by its name; None: that is its own's, perhaps
        as it will be called."""
        named = (t for t in self.reference.catalog.tables() if table in t.names)
        own = {self.table_id, self.newest.table_id}
        return next((t for t in named if t.table_id not in own), None)

    def live(self, table: str) -> tuple[int, int]:
        """The versions of a table that may be in use."""
        newest = self.other(table) or self.newest
        return self.reference.catalog.min_version(newest.table_id), newest.version

    @property
    def min_version(self) -> int:
        return self.reference.catalog.min_version(self.newest.table_id)

    def content(self, version: int) -> int:
        """Which content a version of the table has; -1: one from before the job."""
        number, job = version - self.base, self.the_job
        if job.status in (Status.ROLLING_BACK, Status.FAILED, Status.CANCELLED):
            taken = len(job.steps) // 2
            number = number if number <= taken else 2 * taken - number
        return max(number, -1)

    # ------------------------------------------------------------ going

    def _appended(self, topic: str, partition: int, message: Message) -> None:
        log = topic == self.cluster.topics.log.name
        if log:
            self._stood[message.offset] = self.place
        super()._appended(topic, partition, message)
        job = self.reference.catalog.jobs.get(self.job_id) if log else None
        if job is not None and place_of(job) != self.place:
            self.place = place_of(job)
            self._entered = True

    def begin(self) -> None:
        self.job_id = self.reference.catalog.next_job_id()
        self.expect(self.definition.statement, self.definition.request, {OK})

    def next_place(self) -> Place | None:
        """On to a place where the job has not been yet; None: it has ended."""
        end_ns = self.scheduler.now_ns + STEP_MS * MS
        step = self.place.step if self.place is not None else -1
        while True:
            self._entered = False
            if not self.scheduler.run_until(end_ns, lambda: self._entered):
                raise Harm(f"liveness: the job stands still: {self._job_words()}")
            if self.place is None:
                return None
            if self.place not in self._visited:
                self._visited.add(self.place)
                self.turn += 1
                self.place_of_step = self.place_of_step + 1 if self.place.step == step else 0
                return self.place

    def until(
        self,
        reached: Callable[[], bool],
        words: str,
        invariant: str = "liveness",
        virtual_ms: int = 20_000,
    ) -> None:
        """As a stage's, looking after each event: cheaper where hardly anything happens."""
        end_ns = self.scheduler.now_ns + virtual_ms * MS
        met = reached() or self.scheduler.run_until(end_ns, reached)
        demand(met, invariant, f"waited in vain for {words}")

    # ------------------------------------------------------------ asking

    def expect(
        self,
        words: str,
        fields: Mapping[str, Any],
        foreseen: set[str],
        *,
        here: bool = False,
        write: Write | None = None,
        shift: int = 0,
    ) -> bytes:
        """`here`: it must be decided while the job stands where it stands now."""
        place = self.place if here else None
        request_id = self.ask(dict(fields))
        self.asked[request_id] = Asked(words, write, shift, frozenset(foreseen), place)
        return request_id

    def write(self, write: Write, shift: int, version: int | None) -> None:
        """One write under a live version (None: unpinned, hence the newest), in this instant."""
        newest = self.newest.version
        own = version is not None and not write.stale and self.other(write.table) is None
        content = self.content(version if own and version is not None else newest)
        foreseen = {write.foreseen(content)}
        pin = "unpinned" if version is None else f"for version {version}"
        fields = self.definition.fields(write, shift, version, content)
        words = f"{write.name} {fields} {pin} of {newest} at {self.place}"
        # One that is retried is decided again, later.
        here = write.on_conflict == "fail"
        if not here and self.definition.rekeyed is not None:
            foreseen |= {*NAMED_OTHERWISE, *write.outcome}
        self.expect(words, fields, foreseen, here=here, write=write, shift=shift)

    def write_sometime(self, write: Write) -> None:
        """One write that a fault may delay, so that what it meets depends."""
        words = f"{write.name} beside a fault at {self.place}"
        fields = self.definition.fields(write, 0, None, self.content(self.newest.version))
        rekeyed = self.definition.rekeyed
        named = set() if rekeyed is None else {*NAMED_OTHERWISE}
        if rekeyed is not None and rekeyed.new:
            named.add(UnknownColumn.sqlstate)
        self.expect(words, fields, {*write.outcome, *named}, write=write)

    def control(self, action: str, foreseen: str) -> bytes:
        words = f"{action} at {self.place}"
        here = action != "resume"
        return self.expect(words, {"job": self.job_id, "action": action}, {foreseen}, here=here)

    def decided(self, request_id: bytes) -> None:
        self.until(lambda: self.reference.outcome(request_id) is not None, "a decision")

    def stood_at(self, request_id: bytes) -> Place | None:
        """Where the job stood when the request was decided for good."""
        outcome = self.reference.outcome(request_id)
        assert outcome is not None, "it is decided"
        return self._stood[self.reference.decided_at[request_id, outcome.attempt]]

    # ------------------------------------------------------------ the plan itself

    def demand_plan(self) -> None:
        """The way is the one that the definition says (scenario 67)."""
        job, definition = self.the_job, self.definition
        states = tuple(step.label for step in job.steps)
        demand(states == definition.states, "plan", f"the steps are {states}")
        demand(job.point == definition.point, "plan", f"the point is step {job.point}")

    def demand_shown(self) -> None:
        """Scenario 64: who looks at the table sees what is there before or after, no more."""
        now = self.newest.by_name.keys() - self.newest.by_alias.keys()
        before = self.before.by_name.keys()
        after = columns_of(self.definition.after)
        demand(now <= before | after, "64", f"{now - before - after} shows at {self.place}")
        demand(now >= before & after, "64", f"{before & after - now} is hidden at {self.place}")
        shown, said = others_of(shape_of(self.newest)), others_of(self.definition.after)
        known = said | others_of(shape_of(self.before)) | {*self.definition.meanwhile}
        demand(shown <= known, "64", f"{shown - known} shows at {self.place}")

    @property
    def as_before(self) -> bool:
        """The table, and the sequences: none that was made for it is left. (A table that the same
        request makes has nothing to do with the job, and stays.)"""
        same = content_of(self.newest) == content_of(self.before)
        return same and self._sequences() == self.sequences

    def _sequences(self) -> set[str]:
        tables = self.reference.catalog.tables()
        return {table.name for table in tables if table.sequence is not None}
