"""Liveness of log, leases, and all parts together: from each state that faults lead to there is a
way to rest once they are over, so every fair run comes there; and none takes longer than is
said."""

from __future__ import annotations

from typing import Final
from unittest.mock import patch

import pytest

from leasehold.lease.master.session_watch import SessionWatch
from tests.models.coherency_part import CoherencyPart, Seen
from tests.models.explorer import Liveness, Report, explore, find_stuck
from tests.models.lease_liveness import LiveModel as LeaseModel
from tests.models.lease_world import Bounds as LeaseBounds
from tests.models.lease_world import World as LeaseWorld
from tests.models.log_candidate import CandidateSteps
from tests.models.log_liveness import FaultyModel
from tests.models.log_symmetry import Symmetry
from tests.models.log_world import Bounds, Rules, World
from tests.models.mutants import lease as lease_mutants
from tests.models.mutants.replication import broken
from tests.models.summary import AddLine, ModelLine
from tests.models.switches import switches_off
from tests.models.test_model_whole import STUCK
from tests.models.whole_liveness import LiveModel as WholeModel
from tests.models.whole_world import Bounds as WholeBounds
from tests.models.whole_world import Rules as WholeRules
from tests.models.whole_world import World as WholeWorld

STATES_MAX: Final = 400_000
TAKEOVER: Final = Bounds(records=1, acks=1, epochs=2)
ERRORS: Final = Bounds(records=2, commits=2, epochs=2, errors=1)
CRASH: Final = Bounds(records=2, commits=1, epochs=2, crashes=1)
REBOOT: Final = Bounds(records=1, acks=1, reboots=1)
READERS: Final = Bounds(records=1, acks=1, readers=2)
LEAVES: Final = Bounds(records=1, acks=1, leaves=1)
HANDOVER: Final = Bounds(records=2, acks=1, epochs=2, resigns=1)
MORE: Final = [
    Bounds(ticks=1, records=2, acks=1, reboots=1),
    Bounds(records=1, acks=1, epochs=2, readers=2),
    Bounds(records=3, commits=2, epochs=2, errors=1, crashes=1),
]
LONG: Final = pytest.mark.long("tens of thousands of states; shorter ones beside them")


def come_to_rest(bounds: Bounds) -> tuple[FaultyModel, Report[World], Liveness[World]]:
    model = FaultyModel(Rules(), bounds)
    symmetry = Symmetry(model.records)
    reached: list[World] = []

    def remember(world: World) -> None:
        reached.append(world)

    report = explore(
        model.starts(),
        model.successors,
        remember,
        states_max=STATES_MAX,
        canonical=symmetry.canonical,
    )
    calm = model.calm_down()
    found = find_stuck(
        reached,
        calm.successors,
        calm.goal,
        states_max=STATES_MAX,
        canonical=symmetry.canonical,
    )
    return model, report, found


@pytest.mark.parametrize(
    "bounds",
    [
        pytest.param(TAKEOVER, id="takeover"),
        pytest.param(ERRORS, id="errors"),
        pytest.param(CRASH, id="crash"),
        pytest.param(REBOOT, id="reboot"),
        pytest.param(READERS, id="readers"),
        pytest.param(LEAVES, id="leaves"),
        pytest.param(HANDOVER, id="handover"),
        *(pytest.param(bounds, id=bounds.words(), marks=LONG) for bounds in MORE),
    ],
)
def test_everybody_comes_to_rest(bounds: Bounds, model_line: AddLine) -> None:
    model, report, found = come_to_rest(bounds)
    words = f"at rest after {found.least} to {found.most} steps; {bounds.words()}"
    line = ModelLine.of("liveness: log, leases", "-", report, words)
    model_line(line._replace(states=found.states))
    assert report.exhausted
    assert found.exhausted
    assert found.stuck is None, model.show(found.stuck)
    assert found.most is not None, "a run goes in circles"


def test_a_claim_that_makes_nobody_master_is_found(model_line: AddLine) -> None:
    """L4: who finds his own Claim in the log takes office."""
    with patch.object(CandidateSteps, "_is_own_claim", lambda *_: False):
        _, report, found = come_to_rest(Bounds(records=2, epochs=2))
    assert found.exhausted
    assert found.stuck is not None
    line = ModelLine.of("L4: liveness", "nobody takes office", report)
    model_line(line._replace(result="harm found: nobody decides any more"))


def test_a_dead_incarnation_that_is_waited_for_for_ever_is_found(model_line: AddLine) -> None:
    """C4: a node's last lease is over some time."""
    kept = CoherencyPart.may_answer

    def waits(
        part: CoherencyPart, seen: tuple[Seen, ...], serve_ns: int, offset: int, _now: int
    ) -> bool:
        return kept(part, seen, serve_ns, offset, 0)

    with patch.object(CoherencyPart, "may_answer", waits):
        _, report, found = come_to_rest(REBOOT)
    assert found.exhausted
    assert found.stuck is not None
    line = ModelLine.of("C4: liveness", "leases never end for who waits", report)
    model_line(line._replace(result="harm found: an answer never comes"))


# ------------------------------------------------------------ descriptor leases, and all parts


def end_of_leases(bounds: LeaseBounds) -> tuple[Report[LeaseWorld], Liveness[LeaseWorld]]:
    model = LeaseModel(bounds)
    reached: list[LeaseWorld] = []
    report = explore(model.starts(), model.successors, reached.append, states_max=STATES_MAX)
    model.calm_down()
    return report, find_stuck(reached, model.successors, model.goal, states_max=STATES_MAX)


@pytest.mark.parametrize(
    "bounds",
    [
        pytest.param(LeaseBounds(ticks=1, steady=True), id="late"),
        pytest.param(LeaseBounds(ticks=1, takeovers=1, prompt=True, steady=True), id="takeover"),
        pytest.param(LeaseBounds(ticks=1, losses=1, prompt=True, steady=True), id="lost"),
        pytest.param(
            LeaseBounds(ticks=1, failovers=1, strays=True, prompt=True, steady=True), id="astray"
        ),
        pytest.param(LeaseBounds(ticks=2, aways=1, steady=True), id="away", marks=LONG),
        pytest.param(
            LeaseBounds(ticks=2, losses=1, flushes=1, prompt=True, steady=True),
            id="lost and emptied",
            marks=LONG,
        ),
    ],
)
def test_every_version_is_published_in_the_end(bounds: LeaseBounds, model_line: AddLine) -> None:
    report, found = end_of_leases(bounds)
    words = f"published after {found.least} to {found.most} steps; {bounds.words()}"
    model_line(ModelLine.of("liveness: descriptor leases", "-", report, words))
    assert report.exhausted
    assert found.exhausted
    assert found.stuck is None, found.stuck


def test_a_dead_session_that_nobody_ends_is_found(model_line: AddLine) -> None:
    """D7: or its leases would hold up every job."""
    bounds = LeaseBounds(ticks=1, prompt=True, steady=True)
    with patch.object(SessionWatch, "step", lambda *_: []):
        model = LeaseModel(bounds)
        reached: list[LeaseWorld] = []
        report = explore(model.starts(), model.successors, reached.append, states_max=STATES_MAX)
        model.calm_down()
        model.agent_is_dead = True
        found = find_stuck(reached, model.successors, model.goal, states_max=STATES_MAX)
    assert found.exhausted
    assert found.stuck is not None
    line = ModelLine.of("D7: liveness", "no session is ever dead", report)
    model_line(line._replace(result="harm found: the job never ends"))


def test_with_a_dead_agent_every_version_is_published_in_the_end() -> None:
    """D7, the other side of it."""
    model = LeaseModel(LeaseBounds(ticks=1, prompt=True, steady=True))
    reached: list[LeaseWorld] = []
    explore(model.starts(), model.successors, reached.append, states_max=STATES_MAX)
    model.calm_down()
    model.agent_is_dead = True
    found = find_stuck(reached, model.successors, model.goal, states_max=STATES_MAX)
    assert found.exhausted
    assert found.stuck is None


@pytest.mark.parametrize(
    "bounds",
    [
        pytest.param(
            WholeBounds(records=2, takeovers=1, writes=1, steady=True, mute=True), id="writes"
        ),
        pytest.param(
            WholeBounds(records=2, takeovers=1, acks=1, steady=True, mute=True), id="reads"
        ),
        pytest.param(
            WholeBounds(ticks=1, records=2, takeovers=1, acks=1, writes=1, steady=True, mute=True),
            id="all",
            marks=LONG,
        ),
    ],
)
def test_the_job_ends_and_all_is_coherent(bounds: WholeBounds, model_line: AddLine) -> None:
    model = WholeModel(WholeRules(), bounds)
    reached: list[WholeWorld] = []
    report = explore(model.starts(), model.successors, reached.append, states_max=STATES_MAX)
    model.calm_down()
    found = find_stuck(reached, model.successors, model.goal, states_max=STATES_MAX)
    words = f"ended after {found.least} to {found.most} steps; {bounds.words()}"
    model_line(ModelLine.of("liveness: all parts", "-", report, words))
    assert report.exhausted
    assert found.exhausted
    assert found.stuck is None, model.show(found.stuck)


def test_a_ledger_ahead_that_nobody_takes_over_is_found(model_line: AddLine) -> None:
    """D2: the next master's publish is known again by its intent, or its number is adopted."""
    bounds = WholeBounds(records=2, takeovers=1, steady=True, mute=True, prompt=True)
    with broken(STUCK.replication), lease_mutants.broken(STUCK.lease):
        model = WholeModel(STUCK, bounds)
        reached: list[WholeWorld] = []
        report = explore(model.starts(), model.successors, reached.append, states_max=STATES_MAX)
        model.calm_down()
        found = find_stuck(reached, model.successors, model.goal, states_max=STATES_MAX)
    assert found.exhausted
    assert found.stuck is not None
    line = ModelLine.of("D2: liveness", f"{switches_off(STUCK)} off", report)
    model_line(line._replace(result="harm found: the job never goes on"))
