"""Who is silent is told by the order of the topic and by what the watcher hears, whatever the clock
of who tells of himself says."""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.admin.fold import fold_all
from leasehold.admin.report import node_report, rates_report, report
from leasehold.admin.sender_clocks import CHANGEFEED, SPARK, SenderClocks, sender_of
from leasehold.admin.view import LOG_TIME, ClusterView, Event, Heard
from leasehold.model.records.acks import (
    AccessReport,
    CheckReport,
    HoldingReport,
    LeaseAck,
    ProcessReport,
)
from leasehold.model.records.jobs import ChangefeedReport, JobProgress, SparkReport
from leasehold.replication.coherency import GIVEN_UP
from leasehold.replication.log.truncation import CHANGEFEED_ROLE
from tests.support.admin.doctor_facts import node_report as told_of_node
from tests.support.admin.view_events import NOW, SECOND, ack, log

MINUTES = 5 * 60 * SECOND
SOON = SECOND // 5


class Watcher:
    """Reads what stood there, then what comes; `clocks` of senders are ahead of its own."""

    def __init__(self, **ahead_us: int) -> None:
        self.ahead_us = ahead_us
        self.clocks = SenderClocks()
        self.view = ClusterView()

    def _sent(self, name: str, at_us: int) -> Any:
        return ack(name, sent_us=at_us + self.ahead_us.get(name, 0))

    def stood(self, *words: tuple[str, int]) -> None:
        for name, ago_us in words:
            said = self._sent(name, NOW - ago_us)
            self.clocks.stand(said)
            self._fold(said)

    def stood_before(self, name: str, ago_us: int) -> None:
        said = self._sent(name, NOW - ago_us)
        self._fold(said, *self.clocks.stand_before(said))

    def heard(self, name: str, at_us: int = NOW) -> None:
        said = self._sent(name, at_us)
        self._fold(said, *self.clocks.hear(said, at_us))

    def _fold(self, *events: Any) -> None:
        self.view = fold_all(self.view, events, NOW)

    def ages_ms(self, at_us: int = NOW) -> dict[str, int]:
        return {
            name: node_report(self.view, node, at_us)["age_ms"]
            for name, node in self.view.nodes.items()
        }

    def silent(self, at_us: int = NOW) -> set[str]:
        nodes = self.view.nodes.items()
        return {name for name, node in nodes if self.view.is_silent(node, at_us)}


ALIVE = [(name, ago_us) for ago_us in range(10 * SECOND, 0, -SOON) for name in ("m1", "r1")]


@pytest.mark.parametrize("ahead_us", [-MINUTES, MINUTES])
def test_who_is_heard_is_not_silent_and_is_once_he_is_not(ahead_us: int) -> None:
    watcher = Watcher(r1=ahead_us)
    watcher.stood(*ALIVE)
    for name in ("m1", "r1"):
        watcher.heard(name)
    assert watcher.ages_ms() == {"m1": 0, "r1": 0}
    later = NOW + 4 * SECOND
    watcher.heard("m1", later)
    assert watcher.silent(later) == {"r1"}
    assert watcher.ages_ms(later) == {"m1": 0, "r1": 4_000}


@pytest.mark.parametrize("ahead_us", [-MINUTES, MINUTES])
def test_who_stood_there_is_dated_by_another_who_is_heard(ahead_us: int) -> None:
    """r1 lives, r2 has died eight seconds ago; both clocks are wrong, and neither is heard yet."""
    watcher = Watcher(r1=ahead_us, r2=ahead_us)
    words = [*ALIVE, ("r2", 9 * SECOND), ("r2", 8 * SECOND)]
    watcher.stood(*sorted(words, key=lambda word: -word[1]))
    assert watcher.clocks.in_doubt(NOW)
    watcher.heard("m1")
    assert not watcher.clocks.in_doubt(NOW)
    assert watcher.silent() == {"r2"}
    ages = watcher.ages_ms()
    assert ages["m1"] == 0
    assert ages["r1"] <= 400
    assert 7_600 <= ages["r2"] <= 8_000


def test_the_clock_of_who_is_heard_may_be_the_wrong_one() -> None:
    watcher = Watcher(m1=-MINUTES, r1=MINUTES)
    watcher.stood(*ALIVE)
    watcher.heard("m1")
    assert max(watcher.ages_ms().values()) <= 400


def test_who_fell_silent_in_a_gap_of_the_others_is_as_old_as_he_says() -> None:
    """All were stopped for an hour; m1 has begun again, r1 has not."""
    hour = 3_600 * SECOND
    before = [(name, hour + ago_us) for name, ago_us in ALIVE]
    watcher = Watcher()
    watcher.stood(*before, ("r1", hour), ("m1", 2 * SECOND), ("m1", SECOND))
    watcher.heard("m1")
    assert watcher.ages_ms() == {"m1": 0, "r1": 3_600_000}


def test_who_fell_silent_before_all_that_is_known_is_as_old_as_that_at_least() -> None:
    watcher = Watcher(r2=MINUTES, r3=MINUTES, r4=-MINUTES, r6=MINUTES)
    watcher.stood(("r2", 60 * SECOND), *ALIVE)
    watcher.stood_before("r3", 90 * SECOND)
    watcher.heard("m1")
    watcher.stood_before("r4", 90 * SECOND)
    watcher.stood_before("r5", 90 * SECOND)
    watcher.stood_before("r6", 90 * SECOND)
    ages = watcher.ages_ms()
    assert {ages[name] for name in ("r2", "r3", "r6")} == {10_000}
    assert (ages["r4"], ages["r5"]) == (390_000, 90_000)


def test_while_nobody_is_heard_clocks_are_believed() -> None:
    watcher = Watcher()
    watcher.stood(("m1", 600 * SECOND), ("r1", 599 * SECOND))
    assert watcher.clocks.in_doubt(NOW)
    assert watcher.ages_ms() == {"m1": 600_000, "r1": 599_000}
    watcher.heard("new")  # says nothing of who was there before
    assert watcher.clocks.in_doubt(NOW)
    assert watcher.ages_ms() == {"m1": 600_000, "r1": 599_000, "new": 0}


def test_nobody_waits_where_all_clocks_agree() -> None:
    watcher = Watcher()
    watcher.stood(*ALIVE)
    assert not watcher.clocks.in_doubt(NOW)


def test_nobody_waits_for_who_has_left_or_speaks_seldom() -> None:
    clocks = SenderClocks()
    old_us = NOW - 60 * SECOND
    left = ack("r1", sent_us=old_us)._replace(asked_ns=GIVEN_UP)
    seldom = ProcessReport("dashboard at host", "dashboard", "1", 1, old_us)
    for said in (
        ack("r1", sent_us=old_us),
        left,
        seldom,
        ack("f", CHANGEFEED_ROLE, sent_us=old_us),
    ):
        clocks.stand(said)
    assert not clocks.in_doubt(NOW)
    clocks.stand(ack("r2", sent_us=old_us))
    assert clocks.in_doubt(NOW)


def test_what_is_kept_is_bounded() -> None:
    clocks = SenderClocks()
    for number in range(10_000):
        clocks.stand(ack(f"n{number}"))
        list(clocks.hear(ack(f"l{number}"), NOW))
    assert len(clocks._stood) <= 4_000
    assert len(clocks._heard) <= 4_000
    view = fold_all(ClusterView(), (Heard(f"n{number}", 1) for number in range(4_100)), NOW)
    assert len(view.ahead_us) == 4_000
    assert view.ahead_us["n4099"] == 1


def test_each_report_has_its_sender() -> None:
    process = ProcessReport("spark at host", "spark", "1", 1, NOW)
    assert [
        sender_of(each)
        for each in (
            ack("r1"),
            ack("leasehold-changefeed", CHANGEFEED_ROLE),
            told_of_node("r1"),
            AccessReport("r1", "open", NOW),
            HoldingReport("agent", 1, 1, 1, 0, 0, 0, 0, (), NOW),
            process,
            process._replace(role="dashboard", process="dashboard at host"),
            SparkReport(NOW, ""),
            JobProgress(1, 1, 0, 0, 0.0, "", NOW),
            ChangefeedReport(NOW, 1, 1),
            LeaseAck("agent", 1, 1),
            log(1),
        )
    ] == [
        *("r1", CHANGEFEED, "r1", "r1", "agent"),
        *(SPARK, "dashboard at host", SPARK, SPARK, CHANGEFEED, "", ""),
    ]
    assert sender_of(CheckReport(b"", "r1", b"", 1, 1, 1, 1, 0, {}, b"", 0, (), 0)) == ""


def test_reports_are_as_old_as_they_are_heard_and_rates_are_by_the_logs_time() -> None:
    """Of a database of which every clock is behind."""
    sent_us = NOW - MINUTES
    events: list[Event] = [
        ack("m1", "master", sent_us=sent_us),
        told_of_node("m1", sent_us=sent_us),
        SparkReport(sent_us, ""),
        ChangefeedReport(sent_us, 1, 1),
        *(log(6 - n, commits=7, commit_us=sent_us - n * SECOND) for n in range(5, 0, -1)),
        *(Heard(name, -MINUTES) for name in ("m1", SPARK, CHANGEFEED, LOG_TIME)),
    ]
    view = fold_all(ClusterView(), events, NOW)
    told = report(view, NOW)
    assert (told["spark"]["silent"], told["changefeed"]["silent"]) == (False, False)
    assert (told["spark"]["heard_ms"], told["changefeed"]["heard_ms"]) == (0, 0)
    assert [disk["node"] for disk in told["disks"]] == ["m1"]
    assert rates_report(view, NOW)["committed_per_second"] > 0
    assert told["log"]["master_clock_us"] == sent_us, "what its clock says is shown as it is"
