"""Goal: what is not right is told by the same sentences wherever a person looks."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from leasehold.admin.report import report
from leasehold.admin.troubles import BAD, WARN, find_troubles, troubles_of
from leasehold.admin.view import SILENT_AFTER_US, ClaimSeen, ClusterView, Event
from leasehold.dashboard import reading
from leasehold.dashboard.reading import Reports
from leasehold.model.records.jobs import ChangefeedReport, SparkReport
from tests.support.admin.doctor_facts import node_report
from tests.support.admin.view_events import NOW, ack, log, seen

MASTER: list[Event] = [ClaimSeen(3, 2, "m1"), log(4, epoch=2)]
BESIDE: list[Event] = [ack("r1"), SparkReport(NOW, "no rows"), ChangefeedReport(NOW, 40, 9)]


def tones(view: ClusterView, now_us: int = NOW) -> list[str]:
    return [each.tone for each in find_troubles(report(view, now_us))]


def test_the_dashboard_tells_what_status_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    late = NOW + SILENT_AFTER_US + 1_000
    monkeypatch.setattr(reading, "unix_us", lambda: late)
    view = seen(*MASTER, *BESIDE)
    told = json.loads(json.dumps(Reports(SimpleNamespace(view=view), "demo").newest()))
    words = [each["words"] for each in told["troubles"]]
    assert words == troubles_of(report(view, late))
    assert len(words) > 3
    assert [each["tone"] for each in told["troubles"]].count(BAD) == 1, "the master is silent"


def test_what_keeps_writers_waiting_is_grave() -> None:
    assert tones(seen()) == [BAD, WARN], "no master; no ledger"
    short = (ack("m1", "master"), node_report("m1", room="short"))
    assert tones(seen(*MASTER, *short)) == [BAD, WARN]
