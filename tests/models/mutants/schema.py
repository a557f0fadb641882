"""Each ⚠ rule of a job's way, and what breaks it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final

from leasehold.catalog.job import Job, Phase
from leasehold.lease.commands import Change, Publish
from leasehold.lease.replies import LedgerRefused, RefusalReason
from leasehold.model.ports import Now
from leasehold.replication.master import findings
from leasehold.schema_change.coordinator import sliced_verification, verification
from leasehold.schema_change.coordinator.coordinator import Coordinator
from leasehold.schema_change.coordinator.effects import Effect
from leasehold.schema_change.coordinator.sliced_verification import Step, VerificationWalk
from leasehold.schema_change.coordinator.step_work import StepWork
from leasehold.schema_change.job import chunk_acceptance
from leasehold.schema_change.job.transitions import record_verified
from tests.models.mutants.breaking import Breaks

BREAKS: Final = Breaks()


@dataclass(frozen=True, slots=True)
class JobRules:
    intent_before_publish: bool = True  # D2: after a crash nobody knows why the ledger is ahead
    publish_checks_holders: bool = True  # D2: three versions live at once
    ledger_ahead_is_adopted: bool = True  # D2: a number published for nobody blocks for ever
    drain_before_fence: bool = True  # D4, D5: users of v are cut off while they hold leases
    fence_before_next: bool = True  # D5: a write under v is accepted when v+2 is out
    chunk_names_run: bool = True  # a late chunk of an earlier run counts for this one
    findings_confirmed: bool = True  # a job fails for a row that was mended, or never was so
    verify_before_public: bool = True  # an element goes public with pairs missing
    slices_at_one_position: bool = True  # equal copies seem to differ, others to be equal
    reports_of_this_slice: bool = True  # what was said of another slice counts for this one
    every_slice_by_all: bool = True  # a node serves rows that it has never compared
    every_node_is_asked: bool = True  # … or whose rows nobody has looked at but the master's
    slices_join: bool = True  # rows between two slices are looked at by nobody
    rows_before_entries: bool = True  # a duplicate whose entry comes later is never seen


def broken(rules: JobRules) -> AbstractContextManager[None]:
    return BREAKS.broken_in(rules)


# -------------------------------------------------------------- publishing


@BREAKS("intent_before_publish", Coordinator, "_fence")
def _publish_the_next_one_unannounced(
    kept: Any, coordinator: Coordinator, job: Job, now: Now
) -> list[Effect]:
    version = job.versions[job.table_id]
    change = Change(job.table_id, version, version + 1)
    publish = Publish(coordinator._epoch, (change,), job.job_id)
    return [*coordinator._call(0, publish, now), *kept(coordinator, job, now)]


@BREAKS("publish_checks_holders", Coordinator, "_held_up")
def _publish_whoever_holds_a_lease(
    _kept: Any, coordinator: Coordinator, job: Job, now: Now, _holders: Any, _total: int
) -> list[Effect]:
    return coordinator._published(job, now)


@BREAKS("ledger_ahead_is_adopted", Coordinator, "_publish_answered")
def _refuse_a_ledger_that_is_ahead(
    kept: Any,
    coordinator: Coordinator,
    job: Job,
    memory: Any,
    command: Publish,
    reply: Any,
    now: Now,
) -> list[Effect]:
    if isinstance(reply, LedgerRefused) and reply.reason is RefusalReason.VERSION:
        told = (c for c in command.changes if c.table == reply.table)
        if reply.current == next(told, command.changes[0]).to_version:
            if job.phase is not Phase.DRAINING:
                coordinator._refused(job, memory, reply, now)
            return []
    effects: list[Effect] = kept(coordinator, job, memory, command, reply, now)
    return effects


# -------------------------------------------------------------- draining


@BREAKS("drain_before_fence", Coordinator, "_drain")
def _fence_at_once(
    _kept: Any, coordinator: Coordinator, job: Job, _memory: Any, now: Now
) -> list[Effect]:
    return coordinator._fence(job, now)


@BREAKS("fence_before_next", Coordinator, "_fences")
def _fence_nothing(_kept: Any, _coordinator: Coordinator, _job: Job) -> tuple[()]:
    return ()


@BREAKS("fence_before_next", Coordinator, "_assert_fenced")
def _publish_unfenced(_kept: Any, _coordinator: Coordinator, _table_id: int, _newest: int) -> None:
    pass


# -------------------------------------------------------------- filled, looked through


@BREAKS("chunk_names_run", chunk_acceptance, "_is_at_run")
def _take_any_run(_kept: Any, _job: Job, _run: int) -> bool:
    return True


@BREAKS("findings_confirmed", findings, "_confirmed")
def _believe_what_was_found(kept: Any, judge: Any, key: Any, row: Any) -> str:
    return kept(judge, key, row) or "an image was found to break it"


@BREAKS("verify_before_public", StepWork, "_backfill")
def _publish_unverified(kept: Any, work: StepWork, job: Job, memory: Any, now: Now) -> Job | None:
    after: Job | None = kept(work, job, memory, now)
    return after if after is None or job.verdict else record_verified(job, now.wall_us)


# -------------------------------------------------------------- slices


@BREAKS("slices_at_one_position", verification, "_are_at_one_position")
def _compare_at_any_position(_kept: Any, _reports: Any) -> bool:
    return True


@BREAKS("reports_of_this_slice", verification, "_is_of")
def _count_reports_of_others(_kept: Any, _report: Any, _lsn: int) -> bool:
    return True


@BREAKS("every_slice_by_all", VerificationWalk, "step")
def _miss_nobody(kept: Any, walk: VerificationWalk, job: Job, nodes: frozenset[str]) -> Step:
    step: Step = kept(walk, job, nodes)
    return step._replace(absent=frozenset())


@BREAKS("every_node_is_asked", StepWork, "_find_wanted")
def _ask_the_master_alone(_kept: Any, work: StepWork, _coherent: frozenset[str]) -> frozenset[str]:
    return frozenset({work._node})


@BREAKS("slices_join", sliced_verification, "next_slice")
def _leave_a_row_out(kept: Any, parts: Any, at: Any, until: Any, rows_max: int) -> Any:
    behind = None if until is None else (*until[:-1], until[-1] + 1)
    return kept(parts, at, behind, rows_max)


@BREAKS("rows_before_entries", VerificationWalk, "_parts")
def _begin_with_the_entries(kept: Any, walk: VerificationWalk, job: Job) -> tuple[int, ...]:
    rows, *entries = kept(walk, job)
    return (*entries, rows)
