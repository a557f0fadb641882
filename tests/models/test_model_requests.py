"""The model of requests that are told: clean to exhaustion within its bounds, nothing is left
unanswered in any state where nothing more can happen; each rule turned off is found."""

from __future__ import annotations

import pytest

from tests.models.explorer import Report, explore
from tests.models.model_requests import Bounds, Model, World
from tests.models.mutants.replication import FastRequestRules, broken
from tests.models.summary import AddLine, ModelLine
from tests.models.switches import switches_off

STATES_MAX = 600_000
ONE_MASTER = Bounds(requests=3, losses=1, terms=1, again=1)
TAKEOVER = Bounds(requests=2, losses=2, terms=2, again=1)
THREE = Bounds(requests=3, losses=1, terms=2, again=0)
UNANSWERED = "no answer to"
OUT_OF_ORDER = "requests are decided in the order"


def explored(rules: FastRequestRules, bounds: Bounds) -> tuple[str | None, Report[World]]:
    """The harm, and the report."""
    model = Model(bounds)
    with broken(rules):
        report = explore(model.starts(), model.successors, model.invariant, states_max=STATES_MAX)
    if report.violation is not None:
        print(report.violation.words())
        return report.violation.harm, report
    assert report.ends, "nothing ever comes to an end"
    return next((w for end in report.ends if (w := model.unanswered(end))), None), report


@pytest.mark.parametrize(
    ("subject", "bounds"),
    [
        pytest.param(
            "L5 T5: requests told",
            ONE_MASTER,
            id="one_master",
            marks=pytest.mark.long("ten seconds; requests are told and taken over below"),
        ),
        pytest.param("L5 L7: requests told, takeover", TAKEOVER, id="takeover"),
        pytest.param(
            "L5 L7: three requests told",
            THREE,
            id="three",
            marks=pytest.mark.long("1,400,000 transitions; two of them are taken over above"),
        ),
    ],
)
def test_what_is_told_does_no_harm(subject: str, bounds: Bounds, model_line: AddLine) -> None:
    harm, report = explored(FastRequestRules(), bounds)
    model_line(ModelLine.of(subject, "-", report, bounds.words()))
    assert harm is None
    assert report.exhausted


BROKEN = [
    (
        "what is told is taken in any order",
        FastRequestRules(numbers_in_order=False),
        ONE_MASTER,
        OUT_OF_ORDER,
    ),
    (
        "one is told while Kafka carries another",
        FastRequestRules(one_way_at_a_time=False),
        ONE_MASTER,
        OUT_OF_ORDER,
    ),
    ("it is asked again once", FastRequestRules(asks_on=False), TAKEOVER, UNANSWERED),
]


@pytest.mark.parametrize(
    ("words", "rules", "bounds", "harm"),
    BROKEN,
    ids=[words.replace(" ", "_") for words, *_ in BROKEN],
)
def test_broken_rule_is_found(
    words: str, rules: FastRequestRules, bounds: Bounds, harm: str, model_line: AddLine
) -> None:
    found, report = explored(rules, bounds)
    line = ModelLine.of("L5 L7", f"{switches_off(rules)} off: {words}", report)
    model_line(line if report.violation else line._replace(result=f"harm found: {found}"))
    assert found is not None, "the harm of this mutation was not found"
    assert found.startswith(harm), found
