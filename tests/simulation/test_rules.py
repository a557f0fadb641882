"""Each ⚠ rule of replication that has a switch, on the whole system: its interleaving does no harm,
and does it with the rule off.

Two rules that stand in for each other are turned off together, and each alone does no harm. The
lease's rules have their stories in `tests/unit/lease/test_rules.py`, a job's in
`tests/unit/schema/test_coordinator.py`, the log's also in `tests/models`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from leasehold.model.records import Chunk, ChunksEnd
from leasehold.replication.coherency import CoherencyRules
from leasehold.replication.election import ElectionRules
from leasehold.replication.log import LogRules
from leasehold.replication.rules import RULES, ReplicationRules
from leasehold.schema.job import Phase, Status
from leasehold.schema.job_rules import JobRules
from leasehold.transaction.verify import VerifyRules
from tests.models.summary import AddLine, ModelLine
from tests.simulation.harm import Harm, demand
from tests.simulation.simulation import MS
from tests.simulation.stage import Stage

Scenario = Callable[[ReplicationRules], None]
DAYS_MS = 11 * 24 * 3_600_000


def cut_off(stage: Stage, name: str, virtual_ms: int) -> None:
    stage.node(name).isolate(stage.scheduler.now_ns + virtual_ms * MS)


# ------------------------------------------------------------------ coherency


def a_write_while_a_coherent_node_is_cut_off(rules: ReplicationRules) -> None:
    """C4: its answer waits until the node's last lease is surely over."""
    stage = Stage(rules)
    cut_off(stage, "r1", 3_000)
    stage.settle(stage.update(1, 11))


def a_new_master_while_a_coherent_node_is_cut_off(rules: ReplicationRules) -> None:
    """C4: it knows nothing of its predecessor's grants but the longest duration."""
    stage = Stage(rules)
    cut_off(stage, "r1", 3_000)
    stage.scripted["m1"].fates = ["lost"]
    stage.settle(stage.update(1, 11))
    assert stage.reference.position.epoch == 2, "m1 gave its epoch up and claimed the next"


def a_grant_of_another_life(rules: ReplicationRules) -> None:
    """C3 (races 4): the machine reboots, the store is an older snapshot, the grant in the log
    echoes a send time that lies days ahead of the new clock."""
    stage = Stage(rules)
    stage.node("r1").crash()
    stage.node("r1").clock.boot_ns = DAYS_MS * MS
    stage.node("r1").start()
    stage.until(lambda: "r1" in stage.coherent(), "r1")
    snapshot = stage.stores.get("r1").copy()
    stage.passing(1_000)  # grants to r1 stand above the snapshot
    stage.node("r1").crash()
    stage.stores.put("r1", snapshot)
    stage.node("r1").clock.boot_ns = MS - stage.scheduler.now_ns
    stage.passing(1_000)
    stage.node("r1").start()
    stage.passing(20)
    cut_off(stage, "r1", 3_000)
    stage.passing(900)  # whatever lease it has asked for in this life is over
    stage.settle(stage.update(1, 11))


def a_repeat_while_a_coherent_node_is_behind(rules: ReplicationRules) -> None:
    """C1 (races 6): the first answer waits for r1; asking again must not get it sooner."""
    stage = Stage(rules)
    cut_off(stage, "r1", 3_000)
    fields = {**stage.update(1, 11), "id": stage.cluster.fresh_id()}
    stage.ask(fields)
    stage.passing(30)
    assert fields["id"] not in stage.results, "the first answer waits"
    stage.settle(fields)


# ------------------------------------------------------------------ answers, own records


def a_master_dies_before_it_answers(rules: ReplicationRules) -> None:
    """L7 (races 13): decided and read back; the answer waited for r1 when the master died."""
    stage = Stage(rules)
    cut_off(stage, "r1", 400)
    asked = stage.ask(stage.update(1, 11))
    stage.until(lambda: stage.row(1)[2] == 11, "the decision")
    stage.passing(20)
    assert asked not in stage.results, "C1"
    stage.node("m1").crash()
    stage.answer(asked)


def another_record_for_one_place(rules: ReplicationRules) -> None:
    """L4 (races 5b): an append's fate is unknown, and it lands after all."""
    stage = Stage(rules)
    stage.scripted["m1"].fates = ["unknown"]
    stage.scripted["m1"].late_ms = 6
    stage.ask(stage.update(1, 11))
    stage.until(lambda: not stage.scripted["m1"].fates, "the append")
    stage.scripted["m1"].produce_ms = 90  # so that the first lands while the next is on its way
    second = stage.ask(stage.update(2, 22))
    stage.passing(3)
    stage.scripted["m1"].produce_ms = 1
    stage.passing(10)  # it has landed and was read
    mine, true = stage.stores.get("m1").contents, stage.reference.store.contents
    same = mine.position != true.position or mine.exists == true.exists
    demand(same, "L6", f"m1 holds {mine.exists}, the log says {true.exists}")
    stage.answer(second)
    stage.passing(1_000)
    demand(stage.node("m1").up and stage.node("r1").up, "L2", "nodes stopped")


# ------------------------------------------------------------------ verification


def two_writers_saw_the_same_row(rules: ReplicationRules) -> None:
    """T1: the second one's genid is no longer the row's."""
    stage = Stage(rules)
    seen = stage.genid(1)
    first = stage.settle(stage.update(1, 11, expect=seen, on_conflict="fail"))
    second = stage.settle(stage.update(1, 12, expect=seen, on_conflict="fail"))
    demand(bool(first.lsn) and not second.lsn, "T1", "a lost update")


def stage_with_old_users(rules: ReplicationRules) -> Stage:
    """Column b is public in version 3 and not yet drained: somebody on r1 still uses version 2."""
    stage = Stage(rules)
    stage.cluster.backfill.crash()
    reader = stage.node("r1").node
    assert reader is not None, "r1 is up"
    assert reader.agent is not None, "r1 serves"
    leases = reader.agent.leases
    stage.until(lambda: leases.acquire(1) is not None, "a lease")
    lease = leases.newest[1]
    stage.settle({"sql": "alter table t add column b bigint"})
    stage.until(lambda: stage.reference.catalog.newest(1).version == 2, "version 2")
    stage.until(lambda: leases.newest[1].version == 2, "the lease on 2")
    assert leases.acquire(1) is not None, "it is held"
    leases.release(lease)
    stage.until(lambda: stage.reference.catalog.newest(1).version == 3, "version 3")
    stage.passing(200)
    assert stage.reference.catalog.min_version(1) == 2, "version 3 is not drained"
    return stage


def an_older_writer_updates_the_row(rules: ReplicationRules) -> None:
    """T0 (races 7): it can't see column b, and must not take it away."""
    stage = stage_with_old_users(rules)
    fields = {"table": "t", "op": "update", "key": {"id": 1}}
    stage.settle({**fields, "values": {"b": 5}, "schema_version": 3})
    stage.settle({**fields, "values": {"a": 11}, "schema_version": 2})
    b = stage.reference.catalog.newest(1).by_name["b"].element_id
    demand(stage.row(1).get(b) == 5, "T0", f"b is lost: {stage.row(1)}")


def a_write_from_before_the_fence(rules: ReplicationRules) -> None:
    """D5 (races 1): version 1 knows nothing of the index that is being filled."""
    stage = Stage(rules)
    stage.cluster.backfill.crash()
    stage.settle({"sql": "create index i on t (a)"})
    stage.until(lambda: stage.job(1).phase is Phase.BACKFILLING, "the backfill")
    row = {"table": "t", "op": "insert", "key": {"id": 3}, "values": {"a": 3}}
    outcome = stage.settle({**row, "schema_version": 1, "on_conflict": "fail"})
    assert not outcome.lsn, "it is refused"


# ------------------------------------------------------------------ mastership


def a_standby_that_lags_behind(rules: ReplicationRules) -> None:
    """Election, L1: its impression of the log is old (records come late); the master lives."""
    stage = Stage(rules)
    stage.scripted["m2"].deliver_ms = 1_500
    stage.passing(3_000)
    demand(stage.reference.position.epoch == 1, "L1", "a living master was deposed")


# ------------------------------------------------------------------ jobs


def a_backfill_that_skips_rows(rules: ReplicationRules) -> None:
    """An element goes public only after it was compared with the rows."""
    stage = Stage(rules)
    stage.cluster.backfill.crash()
    stage.settle({"sql": "create index i on t (a)"})
    stage.until(lambda: stage.job(1).phase is Phase.BACKFILLING, "the backfill")
    backfill = stage.cluster.topics.backfill.name
    chunk = Chunk(1, 1, 1, stage.job(1).versions[1], stage.job(1).element_id, (((1,), 2),))
    for record in (chunk, ChunksEnd(1, 1, 1, 1)):
        stage.cluster.bus.append(backfill, 0, b"", stage.codec.encode(record))
    stage.until(lambda: stage.job(1).status.ended, "the job's end")
    assert stage.job(1).status is Status.FAILED, "row 2 has no entry"


JOBS = JobRules(verify_before_public=False)
RE_APPENDS = replace(RULES, epoch_given_up_after_error=False)
OFF: list[tuple[str, str, Scenario, ReplicationRules]] = [
    (
        "lost_node_waits",
        "C1",
        a_write_while_a_coherent_node_is_cut_off,
        replace(RULES, coherency=CoherencyRules(lost_node_waits=False)),
    ),
    (
        "takeover_waits",
        "C1",
        a_new_master_while_a_coherent_node_is_cut_off,
        replace(RULES, coherency=CoherencyRules(takeover_waits=False)),
    ),
    (
        "grant_names_an_ask",
        "C1",
        a_grant_of_another_life,
        replace(RULES, coherency=CoherencyRules(grant_names_an_ask=False)),
    ),
    (
        "repeats_wait_too",
        "C1",
        a_repeat_while_a_coherent_node_is_behind,
        replace(RULES, repeats_wait_too=False),
    ),
    (
        "unanswered_given_again",
        "L7",
        a_master_dies_before_it_answers,
        replace(RULES, unanswered_given_again=False),
    ),
    ("epoch_given_up_after_error", "L2: m1 stops", another_record_for_one_place, RE_APPENDS),
    (
        "own_record_by_incarnation",
        "L6",
        another_record_for_one_place,
        replace(RE_APPENDS, own_record_by_incarnation=False),
    ),
    (
        "genids_are_verified",
        "T1",
        two_writers_saw_the_same_row,
        replace(RULES, verify=VerifyRules(genids_are_verified=False)),
    ),
    (
        "master_composes",
        "T0",
        an_older_writer_updates_the_row,
        replace(RULES, verify=VerifyRules(master_composes=False)),
    ),
    (
        "min_version_fences",
        "D5",
        a_write_from_before_the_fence,
        replace(RULES, verify=VerifyRules(min_version_fences=False)),
    ),
    (
        "reach_the_end_first and claim_is_compare_and_set",
        "L1",
        a_standby_that_lags_behind,
        replace(
            RULES,
            election=ElectionRules(reach_the_end_first=False),
            log=LogRules(claim_is_compare_and_set=False),
        ),
    ),
    ("verify_before_public", "d ⊨ S", a_backfill_that_skips_rows, replace(RULES, jobs=JOBS)),
]
SCENARIOS = list(dict.fromkeys(scenario for _, _, scenario, _ in OFF))


@pytest.mark.parametrize(
    "rules",
    [
        replace(RULES, election=ElectionRules(reach_the_end_first=False)),
        replace(RULES, log=LogRules(claim_is_compare_and_set=False)),
    ],
    ids=["reach_the_end_first", "claim_is_compare_and_set"],
)
def test_rule_that_another_one_backs(rules: ReplicationRules) -> None:
    a_standby_that_lags_behind(rules)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.__name__)
def test_no_harm_with_every_rule(scenario: Scenario) -> None:
    scenario(RULES)


@pytest.mark.parametrize(
    ("rule", "invariant", "scenario", "rules"), OFF, ids=[rule for rule, *_ in OFF]
)
def test_harm_with_the_rule_off(
    rule: str, invariant: str, scenario: Scenario, rules: ReplicationRules, model_line: AddLine
) -> None:
    with pytest.raises(Harm, match=f"^{invariant}") as harm:
        scenario(rules)
    # One written interleaving: its states are its events, and there is nothing to exhaust.
    words = f"simulation: harm shown, {str(harm.value)[:60]}"
    name = scenario.__name__.replace("_", " ")
    events = Stage.events_of_last
    model_line(ModelLine(invariant, f"{rule} off: {name}", events, events, False, words))
