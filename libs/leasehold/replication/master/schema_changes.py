"""The master's side of DDL: requests become plans, jobs are driven by the coordinator, late chunks
are turned away. This is the seam between replication (when and where something is written) and
schema (what and why)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from leasehold.catalog.access import check_group
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.elements import CommitContext
from leasehold.catalog.job import Hold, Job
from leasehold.catalog.newer_types import find_newer_type, has_equal_nulls, says_field
from leasehold.catalog.roles import BOOTSTRAP_ROLE, STEER_JOBS
from leasehold.catalog.sequence_ownership import set_operation
from leasehold.model.errors import (
    FeatureNotSupported,
    InsufficientPrivilege,
    Refused,
    WrongJobState,
)
from leasehold.model.features import Feature, FeatureGate
from leasehold.model.keys import Key
from leasehold.model.ports import Now
from leasehold.model.records.acks import CheckReport, LeaseAck
from leasehold.model.records.jobs import BackfillBorder, Chunk, ChunksEnd, Findings
from leasehold.model.records.log import (
    AccessWrite,
    Backfill,
    CatalogWrite,
    ChunkDecided,
    DescriptorWrite,
    FindingsDecided,
    JobWrite,
    KeySpan,
    NamespaceWrite,
    RoleWrite,
)
from leasehold.model.records.requests import ChangeRequest, Operation
from leasehold.replication.effects import CallLedger, Effect
from leasehold.replication.effects import Wake as WakeNode
from leasehold.replication.master.findings import Reader, confirm
from leasehold.replication.master.infinite_times import check_bodies
from leasehold.schema_change.coordinator import effects as wanted
from leasehold.schema_change.coordinator.coordinator import Coordinator, CoordinatorSettings
from leasehold.schema_change.job.chunk_acceptance import (
    accept_border,
    accept_chunk,
    accept_end,
    accept_findings,
)
from leasehold.schema_change.job.estimate import measure_pace
from leasehold.schema_change.job.next_versions import next_descriptors
from leasehold.schema_change.job.transitions import can_turn_back, release, turn_back
from leasehold.schema_change.plan.answers import answers_for, join_answers
from leasehold.schema_change.plan.enums import enum_names
from leasehold.schema_change.plan.explain import explain
from leasehold.schema_change.plan.foreign_keys import (
    alters_constraint,
    has_deferrable_key,
    has_deferrable_unique,
    has_numeric_reference,
)
from leasehold.schema_change.plan.joined_alterations import join_alterations
from leasehold.schema_change.plan.plan import NO_CONTEXT, plan
from leasehold.schema_change.plan.reader_changes import reader_changes, tables_after
from leasehold.schema_change.plan.results import JobPlan, Plan, refuse_lacking
from leasehold.schema_change.plan.statement_batch import StatementBatch
from leasehold.schema_change.plan.transaction_job import find_demanded_columns, find_made_sequences
from leasehold.schema_change.plan.views import has_later_form
from leasehold.sql.ddl.schema_statements import Said, parse_statements
from leasehold.sql.expressions.arrays import uses_arrays
from leasehold.sql.expressions.default import draws_number
from leasehold.sql.syntax.object_statements import (
    CreateEnum,
    CreateView,
)
from leasehold.sql.syntax.statements import (
    CreateSequence,
    Explain,
)

SEED_BYTES: Final = 16
LATER_FIELDS: Final = {"key_included": Feature.INCLUDING_KEYS}
"""Fields of a table, and of what it has, that earlier releases pass over."""


@dataclass(frozen=True, slots=True)
class SchemaSettings:
    """The settings of schema changes. `columns_by_images`: a column that follows others is told by
    an image of each row, for readers of images who can't compute it."""

    coordinator: CoordinatorSettings = field(default_factory=CoordinatorSettings)
    columns_by_images: bool = False


class Decision(NamedTuple):
    """What a DDL or job-control request writes, and what its result carries. Its rows, if it has
    any, are decided under `catalog`, where the tables `empty` have none yet; `opening` stand before
    them, and are of sequences. In `demanded` columns, (table id, element id), no row may be without
    a value then."""

    writes: tuple[CatalogWrite, ...]
    answer: Mapping[str, Any]
    catalog: Catalog
    empty: frozenset[int] = frozenset()
    opening: tuple[Operation, ...] = ()
    demanded: tuple[tuple[int, int], ...] = ()


class _Failure(NamedTuple):
    """A job is to be turned back for that reason, which nothing else tells it: unlike a write of
    its coordinator it counts however far the job has come meanwhile."""

    job_id: int
    error: Refused
    now: Now

    def holds(self, catalog: Catalog) -> bool:
        job = catalog.jobs.get(self.job_id)
        return job is not None and can_turn_back(job)


class SchemaChanges:
    """The schema changes of one mastership; everything it remembers may be lost with it."""

    def __init__(
        self,
        settings: SchemaSettings,
        node: str,
        catalog: Catalog,
        epoch: int,
        rows_about: Callable[[int], int] = lambda table_id: -1,
        secret: bytes = b"",
        is_empty: Callable[[int], bool] = lambda table_id: False,
        users: Callable[[], bool] = lambda: False,
    ) -> None:
        """Make what goes into a job from `epoch` and `secret`, never the secret itself (see
        `Node`). `rows_about` gives how many rows a table has, for estimates; -1 = not known.
        `is_empty` and `users`: see `Coordinator`."""
        self._settings = settings
        self._rows_about = rows_about
        self._secret = secret + epoch.to_bytes(8, "big")
        self._catalog = catalog
        self._is_empty = is_empty
        self._coherent: frozenset[str] | None = None
        self.features = FeatureGate()
        """What may be written by now."""
        self.check_room: Callable[[tuple[Said, ...]], None] = lambda said: None
        """Raises DiskNearlyFull for statements that need more room than there is."""
        self._writes: deque[wanted.Write | _Failure] = deque()
        self.coordinator = Coordinator(
            catalog, epoch, node, settings.coordinator, is_empty, rows_about, users
        )

    # ------------------------------------------------------------ requests

    def decide(self, request: ChangeRequest, now: Now, actor: int = BOOTSTRAP_ROLE) -> Decision:
        """Plan DDL or apply job control, as the role `actor` may. Raises Refused."""
        if request.control is not None:
            self._check_steers(request.control.job, actor)
            effects = self.coordinator.step(wanted.Controlled(request.control), now)
            (write,) = (effect for effect in effects if isinstance(effect, wanted.Write))
            return Decision(write.writes, {"job": request.control.job}, self._catalog)
        if request.releases:
            return self._release(request, now, actor)
        assert request.sql is not None
        said = parse_statements(request.sql, request.time_zones, enum_names(self._catalog))
        self.check_room(said)
        if any(isinstance(each.statement, Explain) for each in said):
            return self._explain(said, request, now)
        if any(isinstance(each.statement, CreateView) for each in said):
            self._check_know_views(now)
        if any(isinstance(each.statement, CreateEnum) for each in said):
            self._check_know_enums(now)
        in_place = self.features.is_written(Feature.CHANGES_IN_PLACE, now.mono_ns)
        if request.held and not self.features.is_written(Feature.TRANSACTION_JOBS, now.mono_ns):
            raise FeatureNotSupported(
                "processes of an earlier release are there, so a table that was there can't be"
                " changed in a transaction yet",
                hint="Send the change outside of BEGIN, or when all processes are of this release.",
            )
        script = StatementBatch.on(
            self._catalog,
            actor=actor,
            in_place=in_place,
            computed=self._is_computed(now),
            whole=request.held,
            demands=request.demands,
        )
        script.trusted = request.held
        script.narrows = self.features.is_written(Feature.NARROWED_TYPES, now.mono_ns)
        script.keeps_deferred = self.features.is_written(Feature.DEFERRED_KEYS, now.mono_ns)
        script.keeps_texts = self.features.is_written(Feature.DEFAULT_TEXTS, now.mono_ns)
        script.comments = self.features.is_written(Feature.VIEWS, now.mono_ns)
        answer = self._plan(script, said, request, now)
        script.refuse_dropped(request.operations)
        writes = _asked_by(script.writes, request.principal)
        if not self.features.is_written(Feature.COLUMN_TYPES, now.mono_ns):
            _refuse_newer_types(writes)
        if not self.features.is_written(Feature.EQUAL_NULLS, now.mono_ns):
            _refuse_equal_nulls(writes)
        if any(map(_is_of_schemas, writes)):
            self.features.check_written(Feature.NAMESPACES, now.mono_ns)
        left = (*script.made.values(), *script.altered.values())
        if any(map(has_numeric_reference, left)):
            self.features.check_written(Feature.NUMERIC_REFERENCES, now.mono_ns)
        if any(draws_number(c.default_expression) for table in left for c in table.columns):
            self.features.check_written(Feature.RANDOM_DEFAULTS, now.mono_ns)
        if any(map(uses_arrays, left)):
            self.features.check_written(Feature.ROW_ARRAYS, now.mono_ns)
        if any(map(has_deferrable_unique, left)):
            self.features.check_written(Feature.DEFERRABLE_UNIQUES, now.mono_ns)
        alters = any(alters_constraint(each.statement) for each in said)
        if alters or any(map(has_deferrable_key, left)):
            self.features.check_written(Feature.DEFERRABLE_KEYS, now.mono_ns)
        if has_later_form(script.catalog.access, self._catalog.access):
            self.features.check_written(Feature.VIEW_FORMS, now.mono_ns)
        written = (write for write in writes if isinstance(write, DescriptorWrite | JobWrite))
        bodies = [write.body for write in written]
        check_bodies(bodies, self.features, now.mono_ns)
        for name, feature in LATER_FIELDS.items():
            if any(says_field(body, name) for body in bodies):
                self.features.check_written(feature, now.mono_ns)
        if request.held:
            (job_id,) = (write.job_id for write in writes if isinstance(write, JobWrite))
            return Decision(writes, {"job": job_id}, self._catalog)
        return Decision(writes, answer, script.catalog, script.empty, script.opening)

    def _check_know_views(self, now: Now) -> None:
        if not self.features.is_written(Feature.VIEWS, now.mono_ns):
            raise FeatureNotSupported(
                "processes of an earlier release are there, which know no views",
                hint="Make views when all nodes, replicas and the changefeed are of this release.",
            )

    def _check_know_enums(self, now: Now) -> None:
        if not self.features.is_written(Feature.ENUMS, now.mono_ns):
            raise FeatureNotSupported(
                "processes of an earlier release are there, which know no enum types",
                hint="Make types when all nodes, replicas and the changefeed are of this release.",
            )

    def _plan(
        self, script: StatementBatch, said: tuple[Said, ...], request: ChangeRequest, now: Now
    ) -> Mapping[str, Any]:
        """Plan statements of a request, and return what is answered of them."""
        context = self._context(request.id, now)
        answers: list[Mapping[str, Any]] = []
        # ⚠ A transaction has planned each by itself, and element ids are to be the same.
        joined = [(each, 1) for each in said] if script.whole else join_alterations(said)
        for (statement, sql), count in joined:
            assert not isinstance(statement, Explain), "looked at before"
            text = request.sql or "" if len(said) == 1 else sql
            said_of_it = script.take(statement, text, request.id, context, self._rows_about)
            answers += answers_for(said_of_it, count)
        for job in script.jobs.values():
            if job.table_id not in script.empty and not self._is_empty(job.table_id):
                refuse_lacking(job)
        # What a later statement takes back has begun no job.
        begun = {write.job_id for write in script.writes if isinstance(write, JobWrite)}
        return join_answers(
            tuple(
                {name: value for name, value in each.items() if name != "job" or value in begun}
                | ({"jobs": tuple(j for j in each["jobs"] if j in begun)} if "jobs" in each else {})
                for each in answers
            )
        )

    def _release(self, request: ChangeRequest, now: Now, actor: int) -> Decision:
        """Let a transaction's job pass its point of no return: the versions that it publishes are
        written with the rows, which are decided under them. Raises WrongJobState (55000)."""
        jobs = (job for job in self._catalog.jobs.values() if job.request_id == request.releases)
        job = next(jobs, None)
        if job is None or job.hold is not Hold.READY or not job.held:
            stands = "not there" if job is None else job.error or job.status.value
            raise WrongJobState(f"the job of this transaction does not wait for its rows: {stands}")
        if job.principal != request.principal:
            raise InsufficientPrivilege(f"must be who has begun job {job.job_id}")
        # Who takes another's place is told of first: the name is a table's all the time.
        made = next_descriptors(job, self._catalog)[::-1]
        ahead = self._catalog.followed_by(made)
        after = release(job, now.wall_us)
        writes: tuple[CatalogWrite, ...] = (
            *(DescriptorWrite(d.table_id, d.version, d.to_wire()) for d in made),
            JobWrite(after.job_id, after.to_wire()),
        )
        answer: Mapping[str, Any] = {"job": job.job_id}
        demanded = find_demanded_columns(job)
        begun = tuple(
            set_operation(table, table.sequence.start, called=False)
            for table in made
            if table.sequence is not None and table.table_id in find_made_sequences(job)
        )
        if request.sql is None:
            return Decision(writes, answer, ahead, opening=begun, demanded=demanded)
        script = StatementBatch.on(ahead, actor=actor)
        said = parse_statements(request.sql, request.time_zones, enum_names(ahead))
        self._plan(script, said, request, now)
        if script.made or script.jobs or script.drops_something:
            raise FeatureNotSupported("beside the rows of a transaction no more tables change")
        writes += script.writes
        opening = (*begun, *script.opening)
        return Decision(writes, answer, script.catalog, script.empty, opening, demanded)

    def _check_steers(self, job_id: int, actor: int) -> None:
        """Check that `actor` may steer a job: one of a table that it owns, or any. Raises
        InsufficientPrivilege (42501)."""
        access = self._catalog.access
        job = self._catalog.jobs.get(job_id)
        if job is None or all(access.is_owner(actor, table) for table in job.tables):
            return
        check_group(access, actor, STEER_JOBS, f"steer job {job_id} on table {job.table!r}")

    def _explain(self, said: tuple[Said, ...], request: ChangeRequest, now: Now) -> Decision:
        statement = said[0].statement
        if len(said) > 1 or request.operations or not isinstance(statement, Explain):
            raise FeatureNotSupported(
                "EXPLAIN changes nothing, so it stands alone in its request: without other"
                " statements and without rows"
            )
        in_place = self.features.is_written(Feature.CHANGES_IN_PLACE, now.mono_ns)
        made = plan(
            statement.change,
            self._catalog,
            in_place=in_place,
            computed=self._is_computed(now),
            narrows=self.features.is_written(Feature.NARROWED_TYPES, now.mono_ns),
        )
        return Decision((), self._explained(statement, made), self._catalog)

    def _is_computed(self, now: Now) -> bool:
        """Say whether nodes and readers of images compute columns that follow others."""
        told = self._settings.columns_by_images
        return not told and self.features.is_written(Feature.COMPUTED_BACKFILLS, now.mono_ns)

    def _explained(self, statement: Explain, made: Plan) -> dict[str, Any]:
        planned: list[Plan] = [made]
        if isinstance(statement.change, CreateSequence):
            # With OWNED BY it is made at once, and a job of its owner's table follows.
            script = StatementBatch.on(self._catalog)
            script.take(statement.change, "", b"", NO_CONTEXT, self._rows_about)
            planned += map(JobPlan, script.jobs.values())
        pace = measure_pace(self._catalog.jobs.values())
        steps: list[dict[str, Any]] = []
        readers: list[dict[str, Any]] = []
        tables: list[Any] = []
        for each in planned:
            rows = -1
            if isinstance(each, JobPlan):
                rows = self._rows_about(each.job.table_id)
                readers += (c.to_wire() for c in reader_changes(each.job, self._catalog))
                tables += (t.to_wire() for t in tables_after(each.job, self._catalog))
            steps += (step.to_wire() for step in explain(each, rows, pace))
        return {"plan": steps, "readers": readers, "tables": tables}

    def _context(self, request_id: bytes, now: Now) -> CommitContext:
        """Return as of when rows that are there get a default that changes from call to call."""
        seed = blake2b(request_id, key=self._secret, digest_size=SEED_BYTES).digest()
        return CommitContext(now.wall_us, seed)

    # ------------------------------------------------------------ the backfill queue

    def accepts(self, chunk: Chunk) -> bool:
        return accept_chunk(self._catalog, chunk)

    def accepts_border(self, border: BackfillBorder) -> bool:
        return accept_border(self._catalog, border)

    def next_range(self, border: BackfillBorder) -> tuple[ChunkDecided, Backfill]:
        """Return what the log says of the range that an accepted border ends: each begins where the
        one before ended, so that no key lies between two."""
        job = self._catalog.jobs[border.job_id]
        rows, through = max(0, border.rows), border.through
        decided = ChunkDecided(job.job_id, border.run, rows, rows, False, through)
        return decided, _range_of(job, through)

    def accepts_end(self, end: ChunksEnd) -> bool:
        return accept_end(self._catalog, end)

    def last_range(self, end: ChunksEnd) -> tuple[ChunkDecided, tuple[Backfill, ...]]:
        """Return what the log says of an accepted end marker, and of the last range, which ends
        nowhere: whatever Spark has read, no row is without a range."""
        job = self._catalog.jobs[end.job_id]
        if not job.by_range:
            return ChunkDecided(job.job_id, end.run, 0, 0, True), ()
        left = max(0, end.rows - job.rows_read)
        return ChunkDecided(job.job_id, end.run, left, left, True), (_range_of(job, ()),)

    def confirmed(self, findings: Findings, store: Reader) -> FindingsDecided | None:
        """Return what becomes of findings, by the master's rows; None: they come late."""
        if not accept_findings(self._catalog, findings):
            return None
        return confirm(findings, self._catalog, store)

    def job_of(self, record: object) -> int | None:
        """Return the job that waits for that record of the backfill queue; None: none does."""
        match record:
            case Chunk():
                waits = self.accepts(record)
            case BackfillBorder():
                waits = self.accepts_border(record)
            case ChunksEnd():
                waits = self.accepts_end(record)
            case Findings():
                waits = accept_findings(self._catalog, record)
            case _:
                return None
        return record.job_id if waits else None

    def failing(self, job_id: int, error: Refused, now: Now) -> tuple[CatalogWrite, ...]:
        """Return the write that turns a job back whose rows can't be filled, with the reason; ()
        past its point of no return."""
        job = self._catalog.jobs[job_id]
        if not can_turn_back(job):
            return ()
        turned = turn_back(job, now.wall_us, error.message, code=error.sqlstate)
        return (JobWrite(job_id, turned.to_wire()),)

    def fail_soon(self, job_id: int, error: Refused, now: Now) -> None:
        """Turn the job back in a record to come, whatever it does until then."""
        if not any(isinstance(each, _Failure) and each.job_id == job_id for each in self._writes):
            self._writes.append(_Failure(job_id, error, now))

    # ------------------------------------------------------------ writes for the log

    def has_write(self) -> bool:
        return bool(self._writes)

    def next_write(self, lsn: int) -> tuple[CatalogWrite, ...] | None:
        """Return the next writes, as they stand in commit `lsn`; taken when `appended` is
        called."""
        while self._writes and not self._writes[0].holds(self._catalog):
            # Somebody changed the job first; the coordinator thinks again when it reads that.
            self._writes.popleft()
        if not self._writes:
            return None
        write = self._writes[0]
        if isinstance(write, _Failure):
            return self.failing(*write)
        return write.at(lsn, self._catalog.access)

    def appended(self) -> None:
        self._writes.popleft()

    # ------------------------------------------------------------ events

    def catalog_changed(self, lsn: int, now: Now) -> list[Effect]:
        return self._step(wanted.CatalogChanged(lsn), now)

    def mastership_confirmed(self, since_ns: int, now: Now) -> list[Effect]:
        """Take that this node was master by the log at `since_ns`."""
        if not self.coordinator.ledger.awaits_confirmation:
            return []
        return self._step(wanted.Confirmed(since_ns), now)

    def lease_acked(self, ack: LeaseAck, now: Now) -> list[Effect]:
        return self._step(wanted.LeaseAcked(ack.table_id, ack.version), now)

    def reported(self, report: CheckReport, now: Now) -> list[Effect]:
        return self._step(wanted.Reported(report), now)

    def ledger_replied(self, token: object, reply: Any, now: Now) -> list[Effect]:
        assert isinstance(token, int)
        return self._step(wanted.LedgerReplied(token, reply), now)

    def tick(self, coherent: frozenset[str] | None, now: Now) -> list[Effect]:
        """Drive the jobs. `coherent`: who may be serving reads now; None while that is not
        known."""
        if coherent is not None and coherent != self._coherent:
            self._coherent = coherent
            return self._step(wanted.CoherentNodes(coherent), now)
        return self._step(wanted.Tick(), now)

    def _step(self, event: wanted.Event, now: Now) -> list[Effect]:
        effects: list[Effect] = []
        for effect in self.coordinator.step(event, now):
            match effect:
                case wanted.Write():
                    self._writes.append(effect)
                case wanted.Call(token, command):
                    effects.append(CallLedger(token, command))
                case wanted.Wake(at_ns):
                    effects.append(WakeNode(at_ns))
        return effects


def _range_of(job: Job, through: Key) -> Backfill:
    span = KeySpan(job.through, through)
    version = job.versions[job.table_id]
    return Backfill(job.table_id, version, job.element_id, (), span=span)


def _refuse_newer_types(writes: tuple[CatalogWrite, ...]) -> None:
    """Raises FeatureNotSupported for a type that processes of an earlier release don't know."""
    bodies = (write.body for write in writes if isinstance(write, DescriptorWrite | JobWrite))
    name = find_newer_type(bodies, Feature.COLUMN_TYPES - 1)
    if name:
        raise FeatureNotSupported(
            f"processes of an earlier release are there, which don't know type {name}",
            hint="Send the change again when all processes are of this release.",
        )


def _refuse_equal_nulls(writes: tuple[CatalogWrite, ...]) -> None:
    """Raises FeatureNotSupported for a unique index to which NULLs are equal: a process of an
    earlier release would let duplicates in."""
    bodies = (write.body for write in writes if isinstance(write, DescriptorWrite | JobWrite))
    if any(map(has_equal_nulls, bodies)):
        raise FeatureNotSupported(
            "processes of an earlier release are there, or the database is not finalized, so NULLS"
            " NOT DISTINCT can't be kept yet",
            hint="Send it again when all processes are of this release: leasehold upgrade status.",
        )


def _asked_by(writes: tuple[CatalogWrite, ...], principal: str) -> tuple[CatalogWrite, ...]:
    """Return writes whose new jobs tell who has asked for them."""
    if not principal:
        return writes
    return tuple(
        write._replace(body={**write.body, "principal": principal})
        if isinstance(write, JobWrite)
        else write
        for write in writes
    )


def _is_of_schemas(write: CatalogWrite) -> bool:
    """Return whether a write is one that releases without schemas can't read, or pass over."""
    if isinstance(write, JobWrite):
        return bool(write.body.get("renames"))
    if isinstance(write, RoleWrite | AccessWrite):
        return "search_path" in (write.body or {})
    return isinstance(write, NamespaceWrite)
