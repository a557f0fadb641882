"""Goal: who watches the database tells Prometheus of it as `leasehold status` would.

Method: views folded from events by hand.
"""

from __future__ import annotations

from leasehold.admin.view import ClusterView, Reachable, TopicEnds, Unreachable
from leasehold.admin.watch_samples import view_samples
from leasehold.catalog.job import Phase
from tests.support.admin import view_events as events


def told(view: ClusterView, now_us: int = events.NOW) -> dict[tuple[str, ...], object]:
    return {
        (sample.metric.name, *sample.labels): sample.value for sample in view_samples(view, now_us)
    }


def test_nodes_are_counted_by_role_and_state() -> None:
    view = events.seen(
        events.ack("m1", "master", coherent=False),
        events.ack("r1"),
        events.ack("r2", coherent=False),
    )
    found = told(view)
    assert found["leasehold_cluster_nodes", "replicant", "coherent"] == 1
    assert found["leasehold_cluster_nodes", "replicant", "incoherent"] == 1
    late = told(view, events.NOW + 60 * events.SECOND)
    assert late["leasehold_cluster_nodes", "replicant", "silent"] == 2


def test_what_is_not_known_is_absent() -> None:
    assert told(ClusterView()) == {}


def test_a_ledger_that_is_away_is_not_ready() -> None:
    view = events.seen(Unreachable("ledger", "no connection"))
    assert told(view)["leasehold_cluster_ledger_ready",] == 0
    assert ("leasehold_cluster_ledger_ready",) not in told(events.seen(Reachable("kafka")))


def test_silence_of_the_master_and_dead_letters_are_told() -> None:
    view = events.seen(events.log(5), TopicEnds({"dead-letter": 3}))
    found = told(view, events.NOW + 7 * events.SECOND)
    assert found["leasehold_cluster_master_silent_seconds",] == 7
    assert found["leasehold_dead_letters",] == 3


def test_a_job_of_which_nobody_knows_how_long_it_takes_has_no_time_left() -> None:
    view = events.seen(events.job(phase=Phase.BACKFILLING))
    assert not [key for key in told(view) if key[0] == "leasehold_job_left_seconds"]
