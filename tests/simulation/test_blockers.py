"""A job that is held up: who holds it up says so by itself, and goes on saying it."""

from __future__ import annotations

import pytest

from leasehold.adapters.os.clock import unix_us
from leasehold.admin.fold import fold
from leasehold.admin.report import report
from leasehold.admin.view import ClusterView, LedgerSeen
from leasehold.lease.agent.held_leases import HeldLease, HeldLeases, Use
from leasehold.lease.commands import Holders, Snapshot
from leasehold.lease.replies import HolderList, SnapshotReport
from leasehold.model.records.acks import HoldingReport
from leasehold.model.records.jobs import JobEvent
from tests.simulation.stage import Stage


def told(stage: Stage) -> list[HoldingReport]:
    acks = stage.cluster.bus.read(stage.cluster.topics.acks.name, 0, 0)
    records = (stage.codec.decode(message.value or b"") for message in acks)
    return [record for record in records if isinstance(record, HoldingReport)]


def looked_at(stage: Stage) -> ClusterView:
    """As `leasehold jobs` sees it: acks, jobs and the ledger."""
    snapshot, holders = stage.cluster.ledger.call(Snapshot()), stage.cluster.ledger.call(Holders(1))
    assert isinstance(snapshot, SnapshotReport)
    assert isinstance(holders, HolderList)
    view = fold(ClusterView(), LedgerSeen(snapshot, {1: holders.holders}), unix_us())
    for record in told(stage):
        view = fold(view, record, unix_us())
    catalog = stage.reference.catalog
    for job in catalog.jobs.values():
        view = fold(view, JobEvent(job.job_id, 1, 1, job.to_wire()), unix_us())
    return view


def pinned(stage: Stage) -> tuple[HeldLeases, HeldLease, Use]:
    """The only table's first version, by a transaction on r1."""
    agent = stage.node("r1").node.agent  # type: ignore[union-attr]
    assert agent is not None
    use = Use("transaction book", "", stage.node("r1").clock.now(stage.scheduler).mono_ns)
    lease = agent.leases.acquire_named(1, use)
    assert lease is not None
    return agent.leases, lease, use


def test_d4_a_replicant_says_at_what_work_it_holds_a_job_up() -> None:
    stage = Stage()
    leases, lease, use = pinned(stage)
    assert lease.version == 1
    stage.settle({"sql": "create index i on t (a)"})
    stage.passing(3_200)
    reports = told(stage)
    assert len(reports) >= 3, "once a second while it lasts"
    ages = [said.old_ms for said in reports]
    assert ages == sorted(ages)
    newest = reports[-1]
    assert (newest.agent, newest.table_id, newest.version, newest.users) == ("r1", 1, 1, 1)
    assert newest.work[0][0] == "transaction book"
    shown = report(looked_at(stage), newest.sent_us)["jobs"][0]
    (blocker,) = shown["blockers"]
    assert (blocker["state"], blocker["agent"], blocker["session"]) == (
        "running",
        "r1",
        newest.session,
    )
    assert "transaction book" in shown["waits_for"][0]
    leases.release_named(lease, use)
    before = len(told(stage))
    stage.until(lambda: stage.reference.catalog.jobs[shown["job"]].status.ended, "the job to end")
    stage.passing(1_500)
    assert len(told(stage)) == before, "nobody is held up any more"


@pytest.mark.parametrize("said", ["", "pause", "cancel"])
def test_d4_who_holds_it_up_is_named_whatever_people_have_said_of_the_job(said: str) -> None:
    """Lesson 11: also of one that is paused, or rolling back, which waits for the same leases."""
    stage = Stage()
    leases, lease, use = pinned(stage)
    job = stage.settle({"sql": "create index i on t (a)"}).answer["job"]
    stage.passing(300)
    if said:
        assert stage.settle({"job": job, "action": said}).lsn
    stage.passing(3_200)
    now_us = told(stage)[-1].sent_us
    (shown,) = report(looked_at(stage), now_us)["jobs"]
    assert shown["phase"] == "draining"
    assert shown["status"] == {"": "running", "pause": "paused", "cancel": "rolling back"}[said]
    (blocker,) = shown["blockers"]
    assert (blocker["agent"], blocker["table"]) == ("r1", "t")
    assert blocker["work"][0]["label"] == "transaction book"
    assert blocker["old_ms"] > 1_000
    (words,) = shown["waits_for"]
    assert ("transaction book" in words) != (said == "pause")
    leases.release_named(lease, use)
    if said == "pause":
        assert stage.settle({"job": job, "action": "resume"}).lsn
    stage.until(lambda: stage.job(job).status.ended, "the job to end")
    assert stage.job(job).status.value == ("cancelled" if said == "cancel" else "succeeded")
