"""Every coherent node looks at an element before it is relied on; who counts, and what follows."""

from __future__ import annotations

from leasehold.catalog.job import Phase, Status
from leasehold.schema_change.coordinator.effects import (
    CoherentNodes,
    Reported,
)
from tests.support.schema_change.job_story import (
    INDEX,
    reach,
    ready_world,
    same_but_for_ids,
)

INDEX_ID = 3


def test_findings_on_a_node_roll_the_job_back_and_stay_with_it() -> None:
    world = ready_world()
    before = world.table()
    assert before.next_element_id == INDEX_ID
    world.findings["r1"] = 5
    world.ddl(INDEX)
    world.settle()
    job = world.job()
    assert job.status is Status.FAILED
    assert "found 5 differences on node r1" in job.error
    assert [tuple(f)[:2] for f in job.findings] == [(4, INDEX_ID)] * 2
    walked = ["delete-only", "write-only", "delete-only", "absent"]
    assert [step.label for step in job.steps] == walked
    assert same_but_for_ids(before, world.table())
    assert world.table().next_element_id == before.next_element_id + 1
    (edit,) = world.ddl(INDEX).current.edits
    assert edit.element_id == INDEX_ID + 1, "an id is never used again"


def test_node_that_stops_being_coherent_is_no_longer_waited_for() -> None:
    world = ready_world()
    world.ddl(INDEX)
    reach(world, 1, Phase.VERIFYING)
    world.reports = [report for report in world.reports if report.node != "r2"]
    while world.calm():
        pass
    assert world.job().phase is Phase.VERIFYING
    assert world.coordinator.waiting_for(1) == "r2 to verify index i"
    world.coherent = frozenset({"m", "r1"})
    world.give(CoherentNodes(world.coherent))
    while world.calm():
        pass
    assert world.job().status is Status.SUCCEEDED
    assert [p for _, p, _ in world.job().marks].count("verifying") == 1, "waited out, not let go"


def test_without_coherent_nodes_the_masters_own_report_counts() -> None:
    world = ready_world()
    world.coherent = frozenset()
    world.give(CoherentNodes(frozenset()))
    world.ddl(INDEX)
    reach(world, 1, Phase.VERIFYING)
    while world.calm():
        pass
    assert (world.job().step, world.job().phase) != (1, Phase.VERIFYING)


def test_masters_own_report_is_always_waited_for() -> None:
    world = ready_world()
    world.coherent = frozenset({"r1", "r2"})  # a master that serves no reads asks for no lease
    world.give(CoherentNodes(world.coherent))
    world.ddl(INDEX)
    reach(world, 1, Phase.VERIFYING)
    world.reports = [report for report in world.reports if report.node != "m"]
    while world.calm():
        pass
    assert world.job().phase is Phase.VERIFYING


def test_nodes_that_are_clean_but_differ_fail_the_job() -> None:
    world = ready_world()
    world.ddl(INDEX)
    reach(world, 1, Phase.VERIFYING)
    world.reports = [r._replace(checksum=b"other") if r.node == "r1" else r for r in world.reports]
    world.settle()
    assert world.job().status is Status.FAILED
    assert "differ" in world.job().error


def test_report_of_an_earlier_verification_does_not_count() -> None:
    world = ready_world()
    world.ddl(INDEX)
    reach(world, 1, Phase.VERIFYING)
    old = list(world.reports)
    world.reports.clear()
    world.pass_time(1_001)  # nobody reports within the bound: asked again
    world.perform_write()
    world.reports.clear()
    for report in old:
        world.give(Reported(report))
    assert (world.job().step, world.job().phase) == (1, Phase.VERIFYING)
    assert not world.writes


def test_verification_nobody_reports_is_tried_again_then_given_up() -> None:
    world = ready_world()
    before = world.table()
    world.ddl(INDEX)
    reach(world, 1, Phase.VERIFYING)
    for _ in range(2_000):
        world.reports.clear()
        world.perform_call() or world.perform_write() or world.pass_time(50)
        if world.job().status.ended:
            break
    assert world.job().status is Status.FAILED
    assert "5 tries" in world.job().error
    assert same_but_for_ids(before, world.table())


def test_node_that_could_not_check_is_asked_again() -> None:
    world = ready_world()
    world.node_errors["r1"] = 2
    world.ddl(INDEX)
    reach(world, 2, Phase.DONE)
    assert world.job().status is Status.SUCCEEDED
    assert [p for _, p, _ in world.job().marks].count("verifying") == 3
