"""Log, claims, coherency and descriptor leases together: clean to exhaustion within the bounds
that each line names; each rule that keeps the parts from harming each other is found when off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.models.explorer import Report, explore
from tests.models.model_whole import Model
from tests.models.mutants import lease as lease_mutants
from tests.models.mutants.lease import Rules as LeaseRules
from tests.models.mutants.replication import RULES, CoherencyRules, broken
from tests.models.mutants.schema import JobRules
from tests.models.mutants.transaction import VerifyRules
from tests.models.summary import AddLine, ModelLine
from tests.models.switches import switches_off
from tests.models.whole_world import Bounds, Rules, World
from tests.support.every_third import every_third_row

STATES_MAX = 200_000
PAUSED = Bounds(takeovers=1, steady=True, mute=True)
"""A master is deposed at any moment, and the follower's agent is paused past its session."""
ONE_MASTER = Bounds(ticks=2, records=4, steady=True)
WRITES = replace(PAUSED, ticks=2, records=5, writes=1, prompt=True)
READS = replace(PAUSED, ticks=2, records=4, acks=1)
ANSWERS = replace(PAUSED, ticks=1, records=4, writes=1, acks=1)
LOSS = replace(PAUSED, ticks=2, records=5, losses=1, subscriber=True)
LOSS_AT_ONCE = replace(LOSS, ticks=1)
EVERYTHING = replace(PAUSED, records=2, writes=1, acks=1, losses=1)
AGENT = Bounds(ticks=1, records=5, writes=1, takeovers=1)
RECOVERED = "the next master has taken over a ledger that is ahead"
PUBLISHED = "both steps are published"


def explored(rules: Rules, bounds: Bounds) -> tuple[Model, Report[World]]:
    with broken(rules.replication), lease_mutants.broken(rules.lease):
        model = Model(rules, bounds)
        report = explore(model.starts(), model.successors, model.invariant, states_max=STATES_MAX)
    return model, report


@pytest.mark.parametrize(
    ("subject", "bounds", "reached"),
    [
        pytest.param("D2 D4: one master", ONE_MASTER, {PUBLISHED}, id="one_master"),
        pytest.param("D2 D5: a straggler's write", WRITES, {RECOVERED, PUBLISHED}, id="writes"),
        pytest.param("D3 C2: reads, agent paused", READS, {RECOVERED, PUBLISHED}, id="reads"),
        pytest.param("C1 C4 D5: answers", ANSWERS, {RECOVERED}, id="answers"),
        pytest.param(
            "D1 D6: ledger lost, takeover",
            LOSS,
            {RECOVERED, PUBLISHED},
            id="loss",
            marks=pytest.mark.long("ten seconds; the last one loses a ledger and a master, too"),
        ),
        pytest.param("all: agent and user go on", AGENT, {RECOVERED, PUBLISHED}, id="agent"),
        pytest.param("all: every fault", EVERYTHING, {RECOVERED}, id="everything"),
    ],
)
def test_all_parts_together_do_no_harm(
    subject: str, bounds: Bounds, reached: set[str], model_line: AddLine
) -> None:
    model, report = explored(Rules(), bounds)
    model_line(ModelLine.of(subject, "-", report, bounds.words()))
    assert report.violation is None, report.violation.words(model.show)
    assert report.exhausted
    assert model.reached == reached, "the model did not come where the rules matter"


def lease(**off: bool) -> Rules:
    return Rules(lease=LeaseRules(**off))


def jobs(**off: bool) -> Rules:
    return Rules(replace(RULES, jobs=JobRules(**off)))


def verify(**off: bool) -> Rules:
    return Rules(replace(RULES, verify=VerifyRules(**off)))


def coherency(**off: bool) -> Rules:
    return Rules(replace(RULES, coherency=CoherencyRules(**off)))


MISSED = "C1 C2: a read at the replicant misses the answered request"
D1 = "D1: version 1 is in use, 3 is published"
BROKEN = [
    ("D5", verify(min_version_fences=False), WRITES, "D5: a write under version 1 came after"),
    ("D3", verify(pinned_is_checked=False), READS, "D3: a statement under version 1 reads"),
    ("D2", lease(epoch_fence=False), WRITES, "D2: the ledger has obeyed the deposed master 0"),
    ("D2", jobs(intent_before_publish=False), WRITES, "D2: the ledger is at version 3, and no"),
    ("D2", jobs(publish_checks_holders=False), ONE_MASTER, "D2: version 3 is out, the ledger is"),
    ("D4", jobs(drain_before_fence=False), WRITES, "D4: version 2 is fenced, the ledger has"),
    ("D5", jobs(fence_before_next=False), WRITES, "D5: version 3 is out, fenced is 1"),
    ("C4", coherency(takeover_waits=False), ANSWERS, MISSED),
    ("C4", coherency(lost_node_waits=False), ANSWERS, MISSED),
    ("D6", lease(grace_in_log=False), LOSS_AT_ONCE, D1),
    ("D6", lease(grace_waits=False), LOSS_AT_ONCE, D1),
    ("D7", lease(death_by_own_clock=False), LOSS_AT_ONCE, D1),
]


@pytest.mark.parametrize(
    ("rule", "rules", "bounds", "harm"),
    every_third_row(BROKEN, lambda row: switches_off(row[1])),
)
def test_broken_rule_is_found(
    rule: str, rules: Rules, bounds: Bounds, harm: str, model_line: AddLine
) -> None:
    model, report = explored(rules, bounds)
    model_line(ModelLine.of(rule, f"{switches_off(rules)} off: all parts", report))
    assert report.violation is not None, "the harm of this mutation was not found"
    print(report.violation.words(model.show))
    assert report.violation.harm.startswith(harm), report.violation.harm


STUCK = replace(jobs(ledger_ahead_is_adopted=False), lease=LeaseRules(publish_is_idempotent=False))
BACKED: list[tuple[Rules, Callable[[set[str]], bool]]] = [
    (lease(publish_is_idempotent=False), lambda reached: RECOVERED in reached),
    (jobs(ledger_ahead_is_adopted=False), lambda reached: RECOVERED in reached),
    (STUCK, lambda reached: RECOVERED not in reached),
]


@pytest.mark.parametrize(
    ("rules", "holds"), BACKED, ids=[switches_off(rules) for rules, _ in BACKED]
)
def test_d2_a_ledger_that_is_ahead_blocks_nobody(
    rules: Rules, holds: Callable[[set[str]], bool], model_line: AddLine
) -> None:
    """The next master's publish is either known again by its intent, or its number is adopted.
    Without both the job waits for ever, which a search for the next descriptor shows."""
    model, report = explored(rules, WRITES)
    words = "the job goes on" if RECOVERED in model.reached else "harm found: it never goes on"
    line = ModelLine.of("D2: ledger ahead", f"{switches_off(rules)} off", report)
    model_line(line._replace(result=words))
    assert report.exhausted
    assert report.violation is None
    assert holds(model.reached)
