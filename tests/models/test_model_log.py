"""The log model: clean to exhaustion within its bounds; each rule turned off is found.

Two rules can stand in for each other (a Claim's incarnation and a record's): each alone is shown
to be covered by the other, and without both the harm is found.
"""

from __future__ import annotations

import pytest

from tests.models.explorer import Report, explore
from tests.models.log_world import Bounds, Rules, World
from tests.models.model_log import Model
from tests.models.mutants.replication import CoherencyRules, FastLogRules, LogRules, broken
from tests.models.summary import AddLine, ModelLine
from tests.models.switches import switches_off
from tests.support.every_third import every_third_row

STATES_MAX = 600_000
ONE_MASTER = Bounds(ticks=4, records=3, commits=1, acks=2)
TAKEOVER = Bounds(ticks=3, records=3, commits=1, acks=1, epochs=2)
TOLD = Bounds(ticks=3, records=3, commits=1, acks=1, tells=2, strangers=1)
RECORDS_TOLD = Bounds(ticks=2, records=4, commits=2, acks=1, telling=4, copies=1)
RECORDS_TOLD_TAKEOVER = Bounds(records=4, commits=1, acks=1, telling=4, epochs=2, errors=1)
TOLD_REBOOT = Bounds(ticks=3, records=2, commits=1, acks=1, tells=2, reboots=1)
REBOOT = Bounds(ticks=3, records=2, commits=1, acks=1, reboots=1)
ERRORS = Bounds(records=4, commits=2, epochs=2, errors=1)
RESTART = Bounds(ticks=1, records=3, commits=1, acks=1, epochs=2, crashes=1)
LEAVES = Bounds(ticks=2, records=3, commits=1, acks=2, leaves=1)
HANDOVER = Bounds(ticks=1, records=3, commits=1, acks=1, epochs=2, resigns=1)
LENGTHS = Bounds(ticks=2, records=3, commits=1, acks=2, lengths=2)
CRASH = Bounds(records=4, commits=2, epochs=2, crashes=1)


def explored(rules: Rules, bounds: Bounds) -> tuple[Model, Report[World]]:
    with broken(rules):
        model = Model(rules, bounds)
        report = explore(model.starts(), model.successors, model.invariant, states_max=STATES_MAX)
    return model, report


@pytest.mark.parametrize(
    ("subject", "bounds"),
    [
        pytest.param("L C: one master", ONE_MASTER, id="one_master"),
        pytest.param(
            "L C: takeover",
            TAKEOVER,
            id="takeover",
            marks=pytest.mark.long("as long as all others; terms are taken over below, too"),
        ),
        pytest.param("C6: restart, takeover", RESTART, id="restart"),
        pytest.param("C1: told by the fast way", TOLD, id="told"),
        pytest.param("C1 C3: told, reboot", TOLD_REBOOT, id="told_reboot"),
        pytest.param("L1 L2: records told", RECORDS_TOLD, id="records_told"),
        pytest.param(
            "L1 L2: records told, takeover", RECORDS_TOLD_TAKEOVER, id="records_told_takeover"
        ),
        pytest.param("C3: reboot", REBOOT, id="reboot"),
        pytest.param("C4: a replicant leaves", LEAVES, id="leaves"),
        pytest.param("L7 C6: a term is handed over", HANDOVER, id="handover"),
        pytest.param("C4: leases of two lengths", LENGTHS, id="lengths"),
        pytest.param("L1 L2 L4: errors", ERRORS, id="errors"),
        pytest.param("L1 L4: crash", CRASH, id="crash"),
    ],
)
def test_the_protocol_does_no_harm(subject: str, bounds: Bounds, model_line: AddLine) -> None:
    model, report = explored(Rules(), bounds)
    model_line(ModelLine.of(subject, "-", report, bounds.words()))
    assert report.violation is None, report.violation.words(model.show)
    assert report.exhausted


FIRST_MISSED = "C1 C2: a read at the replicant misses"
STOPS = "L1 L2: a reader stops"
WRONG = "L1 L2: the replicant has applied what does not stand in the log there"
NO_INCARNATION = LogRules(incarnation_counts=False)
BROKEN = [
    ("C1", "a repeat is answered at once", Rules(repeats_wait_too=False), ONE_MASTER, FIRST_MISSED),
    (
        "C1",
        "what is told counts for any incarnation of the node",
        Rules(coherency=CoherencyRules(told_by_incarnation=False)),
        TOLD,
        FIRST_MISSED,
    ),
    (
        "C3",
        "a grant needs no ask of this incarnation",
        Rules(coherency=CoherencyRules(grant_names_an_ask=False)),
        REBOOT,
        FIRST_MISSED,
    ),
    (
        "C4",
        "nobody is waited for",
        Rules(coherency=CoherencyRules(lost_node_waits=False)),
        ONE_MASTER,
        FIRST_MISSED,
    ),
    (
        "C4",
        "a lease is waited for until the newest one ends, though a longer one runs",
        Rules(coherency=CoherencyRules(longest_lease_waits=False)),
        LENGTHS,
        FIRST_MISSED,
    ),
    (
        "C4",
        "a lease is returned by who goes on serving",
        Rules(farewell_after_serving=False),
        LEAVES,
        FIRST_MISSED,
    ),
    (
        "C6",
        "a new master waits for nobody who has a lease",
        Rules(coherency=CoherencyRules(takeover_waits=False)),
        TAKEOVER,
        FIRST_MISSED,
    ),
    (
        "C6",
        "who is handed a term waits for nobody who has a lease",
        Rules(coherency=CoherencyRules(takeover_waits=False)),
        HANDOVER,
        FIRST_MISSED,
    ),
    (
        "C6",
        "a new master knows of no leases from before it started",
        Rules(coherency=CoherencyRules(earlier_grants_wait=False)),
        RESTART,
        FIRST_MISSED,
    ),
    ("L1", "an overtaken Claim is an error", Rules(claim_mismatch_skips=False), ERRORS, STOPS),
    (
        "L4",
        "the epoch goes on after an error",
        Rules(epoch_given_up_after_error=False),
        ERRORS,
        STOPS,
    ),
    (
        "L4",
        "answered before it is read back",
        Rules(own_record_read_back=False),
        CRASH,
        "L4: request",
    ),
    (
        "L4",
        "a record is told before it is read back",
        Rules(told_when_read=False),
        RECORDS_TOLD_TAKEOVER,
        WRONG,
    ),
    (
        "L1",
        "what is told is believed before this incarnation was granted a lease in the term",
        Rules(fast_log=FastLogRules(granted_first=False)),
        RECORDS_TOLD,
        WRONG,
    ),
    (
        "L2",
        "a told record is taken wherever it stands, and digests don't chain",
        Rules(fast_log=FastLogRules(in_order=False), log=LogRules(digests_chain=False)),
        RECORDS_TOLD,
        WRONG,
    ),
    (
        "L1 L4",
        "any incarnation of a node is the master",
        Rules(own_claim_by_incarnation=False, log=NO_INCARNATION),
        CRASH,
        STOPS,
    ),
]


@pytest.mark.parametrize(
    ("rule", "words", "rules", "bounds", "harm"),
    every_third_row(BROKEN, lambda row: f"{row[0]}_{row[1]}".replace(" ", "_")),
)
def test_broken_rule_is_found(
    rule: str, words: str, rules: Rules, bounds: Bounds, harm: str, model_line: AddLine
) -> None:
    model, report = explored(rules, bounds)
    model_line(ModelLine.of(rule, f"{switches_off(rules)} off: {words}", report))
    assert report.violation is not None, "the harm of this mutation was not found"
    print(report.violation.words(model.show))
    assert report.violation.harm.startswith(harm), report.violation.harm


@pytest.mark.parametrize(
    ("words", "rules", "bounds"),
    [
        ("a Claim of any incarnation", Rules(own_claim_by_incarnation=False), CRASH),
        ("a record of any incarnation", Rules(log=NO_INCARNATION), CRASH),
        ("a gap is jumped over", Rules(fast_log=FastLogRules(in_order=False)), RECORDS_TOLD),
        (
            "a Claim needs not name the digest",
            Rules(log=LogRules(claim_is_compare_and_set=False)),
            ERRORS,
        ),
    ],
    ids=["own_claim", "incarnation_counts", "in_order", "claim_is_compare_and_set"],
)
def test_rule_that_another_one_backs(
    words: str, rules: Rules, bounds: Bounds, model_line: AddLine
) -> None:
    """Turned off alone it does no harm in these bounds: a node that goes on under an old Claim is
    read by nobody; without such a node there are no foreign records to mix up; what is told behind
    a gap names a digest that its reader has not (a Barrier would not); and a candidate reads
    everything before its own Claim, whether that was a compare-and-set or not."""
    model, report = explored(rules, bounds)
    mutation = f"{switches_off(rules)} off: {words}"
    model_line(ModelLine.of("backed by another rule", mutation, report, bounds.words()))
    assert report.violation is None, report.violation.words(model.show)
    assert report.exhausted
