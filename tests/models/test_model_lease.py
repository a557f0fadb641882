"""The lease model: D1 holds within its bounds; rules turned off are found.

Every switch of the lease rules also has its own story in `tests/unit/lease/test_rules.py`; here
the harm is found without being told the way.
"""

from __future__ import annotations

import pytest

from tests.models.explorer import Report, explore
from tests.models.lease_world import Bounds, World
from tests.models.model_lease import Model
from tests.models.mutants.lease import Rules, broken
from tests.models.summary import AddLine, ModelLine
from tests.models.switches import switches_off
from tests.support.every_third import every_third_row

STATES_MAX = 40_000
PLAIN = Bounds(ticks=3, steady=True)
HASTY = Bounds(ticks=3, prompt=True, steady=True, hasty=True)
LOSS = Bounds(ticks=4, losses=1, prompt=True, steady=True)
GOING = Bounds(ticks=3, prompt=True, hasty=True)
HASTY_LOSS = Bounds(ticks=3, losses=1, prompt=True, steady=True, hasty=True)
FAILOVER = Bounds(ticks=3, failovers=1, prompt=True, steady=True, hasty=True)
ASTRAY = Bounds(ticks=4, failovers=1, strays=True, prompt=True, steady=True, hasty=True)
BACK = Bounds(ticks=3, failovers=1, returns=1, prompt=True, steady=True, hasty=True)
TAKEOVER = Bounds(ticks=3, takeovers=1, prompt=True, steady=True)


def explored(rules: Rules, bounds: Bounds) -> tuple[Model, Report[World]]:
    with broken(rules):
        model = Model(bounds)
        report = explore(model.starts(), model.successors, model.invariant, states_max=STATES_MAX)
    return model, report


@pytest.mark.parametrize(
    ("subject", "bounds"),
    [
        pytest.param("D1 D3: late answers", PLAIN, id="late_answers"),
        pytest.param("D1 D2: the ledger alone", HASTY, id="hasty"),
        pytest.param("D1 D4: users come and go", GOING, id="users_go"),
        pytest.param("D1 D6: the ledger alone, state lost", HASTY_LOSS, id="hasty_loss"),
        pytest.param("D1 D2 D7: takeover", TAKEOVER, id="takeover"),
        pytest.param("D1 D6: failover", FAILOVER, id="failover"),
        pytest.param("D1 D11: astray", ASTRAY, id="astray"),
        pytest.param("D1 D11: back again", BACK, id="back"),
    ],
)
def test_the_leases_do_no_harm(subject: str, bounds: Bounds, model_line: AddLine) -> None:
    model, report = explored(Rules(), bounds)
    model_line(ModelLine.of(subject, "-", report, bounds.words()))
    assert report.violation is None, report.violation.words(model.show)
    assert report.exhausted


D1 = "D1: version 1 is in use, 3 is published"
BROKEN = [
    ("D2", Rules(publish_checks_holders=False), HASTY, D1),
    ("D2", Rules(epoch_fence=False), TAKEOVER, "D2: a deposed master has published"),
    ("D3", Rules(expiry_from_send_time=False), Bounds(ticks=4, steady=True), D1),
    ("D6", Rules(ready_gate=False), HASTY_LOSS, D1),
    ("D6", Rules(register_two_newest=False), HASTY_LOSS, D1),
    ("D6", Rules(grace_waits=False), LOSS, D1),
    ("D7", Rules(death_by_own_clock=False), TAKEOVER, D1),
    ("D11", Rules(extend_when_vouched=False), ASTRAY, D1),
]


@pytest.mark.parametrize(
    ("rule", "rules", "bounds", "harm"),
    every_third_row(BROKEN, lambda row: switches_off(row[1])),
)
def test_broken_rule_is_found(
    rule: str, rules: Rules, bounds: Bounds, harm: str, model_line: AddLine
) -> None:
    model, report = explored(rules, bounds)
    model_line(ModelLine.of(rule, f"{switches_off(rules)} off", report))
    assert report.violation is not None, "the harm of this mutation was not found"
    print(report.violation.words(model.show))
    assert report.violation.harm == harm
