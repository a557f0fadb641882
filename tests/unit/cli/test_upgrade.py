"""What a person is shown of an upgrade, and asked before it is finalized."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from leasehold.admin.upgrade_report import upgrade_report
from leasehold.admin.view import ClusterView
from leasehold.cli import upgrade
from leasehold.cli.output import Output
from leasehold.lease.replies import SessionStatus
from leasehold.model.errors import ConfigurationError, UpgradeUnfinished
from leasehold.model.features import NEWEST, WITHOUT_LEVEL, Feature, incarnation_of
from leasehold.model.ids import INCARNATION_BYTES
from leasehold.model.records.acks import NodeReport, ProcessReport
from leasehold.model.records.requests import ChangeRequest, Outcome
from tests.support.admin.view_events import NOW, SECOND, ack, ledger, log, seen

RANDOM = bytes(INCARNATION_BYTES)
OLDER = RANDOM + bytes((WITHOUT_LEVEL,))
NEW = incarnation_of(RANDOM)


def node(name: str, incarnation: bytes, role: str = "replicant", **more: Any) -> Any:
    return ack(name, role, **more)._replace(incarnation=incarnation)


def report(name: str, release: str, level: int = 0) -> NodeReport:
    return NodeReport(name, release, "enough", 1, 2, 3, 4, 5, NOW, level)


def view_of(*, older: bool, level: int = 0) -> ClusterView:
    return seen(
        log(7),
        node("m1", NEW, "master"),
        node("r1", OLDER if older else NEW),
        node("changefeed", incarnation_of(b""), "changefeed"),
        report("m1", "0.2.0", level),
        report("r1", "0.1.0" if older else "0.2.0", level),
        report("changefeed", "0.2.0"),
    )


class Answering:
    """A database that answers requests as a master would."""

    def __init__(self, view: ClusterView) -> None:
        self.view = view
        self.asked: list[ChangeRequest] = []
        self.refusals = 0

    @contextmanager
    def looking(self, settings: object, output: object) -> Iterator[Any]:
        yield None, self.view

    def __call__(self, settings: object) -> Answering:
        return self

    def __enter__(self) -> Answering:
        return self

    def __exit__(self, *_: object) -> None: ...

    def submit(self, request: ChangeRequest) -> Answering:
        self.asked.append(request)
        return self

    def result(self, timeout_s: float) -> Outcome:
        if len(self.asked) <= self.refusals:
            return Outcome(1, 0, 0, NOW, True, UpgradeUnfinished.sqlstate, "one is there")
        was = upgrade_report(self.view, NOW)["level"]
        answer = {"level": NEWEST, "was": was, "finalized": was < NEWEST}
        return Outcome(1, 41, 0, NOW, True, answer=answer)


def run(
    view: ClusterView, *arguments: str, monkeypatch: pytest.MonkeyPatch, refusals: int = 0
) -> tuple[int, list[ChangeRequest]]:
    made = Answering(view)
    made.refusals = refusals
    monkeypatch.setattr(upgrade, "looking", made.looking)
    monkeypatch.setattr(upgrade, "ChangeProducer", made)
    monkeypatch.setattr(upgrade, "unix_us", lambda: NOW)
    parser = argparse.ArgumentParser()
    upgrade.register(parser.add_subparsers())
    args = parser.parse_args(["upgrade", *arguments])
    return args.run(args, None, Output(as_json=args.json)), made.asked


def test_it_shows_who_reads_what_and_who_holds_it_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, asked = run(view_of(older=True), monkeypatch=monkeypatch)
    told = capsys.readouterr().out
    assert (code, asked) == (1, [])
    for words in ("0.1.0", "feature level: none", "upgrade r1 next"):
        assert words in told
    assert f"finalizing enables {Feature.FEATURE_LEVEL.value}, feature level: the feature" in told
    code, _ = run(view_of(older=False), "status", monkeypatch=monkeypatch)
    assert (code, "leasehold upgrade finalize ends" in capsys.readouterr().out) == (1, True)
    code, _ = run(view_of(older=False, level=NEWEST), monkeypatch=monkeypatch)
    assert (code, "nothing is to be done" in capsys.readouterr().out) == (0, True)


def test_the_changefeed_is_named_with_its_release() -> None:
    told = upgrade_report(view_of(older=True), NOW)
    releases = {each["process"]: each["release"] for each in told["processes"]}
    assert releases == {"m1": "0.2.0", "r1": "0.1.0", "changefeed": "0.2.0"}
    feed = node("changefeed", incarnation_of(b""), "changefeed")
    ago = report("changefeed", "0.1.0")._replace(sent_us=NOW - 31 * SECOND)
    (told_now,) = upgrade_report(seen(log(7), feed, ago), NOW)["processes"]
    assert told_now["release"] == "", "what it said long ago may be of another one"


def test_one_of_before_is_named_and_nothing_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, asked = run(view_of(older=True), "finalize", "--yes", monkeypatch=monkeypatch)
    assert (code, asked) == (1, [])
    assert "nothing was done: r1 would stop" in capsys.readouterr().err
    code, asked = run(view_of(older=True), "finalize", "--json", monkeypatch=monkeypatch)
    assert json.loads(capsys.readouterr().out)["code"] == "55000"
    assert (code, asked) == (1, [])


def test_it_is_asked_for_once_agreed_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    view = view_of(older=False)
    with pytest.raises(ConfigurationError, match="nobody can be asked here"):
        run(view, "finalize", monkeypatch=monkeypatch)
    for answer, wanted in (("n", 1), ("y", 0)):
        monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
        monkeypatch.setattr(upgrade, "_is_agreed", lambda *_, said=answer: said == "y")
        code, asked = run(view, "finalize", monkeypatch=monkeypatch)
        assert (code, len(asked)) == (wanted, 1 - wanted)
    monkeypatch.undo()
    code, asked = run(view, "finalize", "--yes", monkeypatch=monkeypatch)
    assert (code, asked[0].feature_level) == (0, NEWEST)
    assert f"finalized at feature level {NEWEST} from LSN 41 on; it had none" in (
        capsys.readouterr().out
    )


def test_a_process_that_has_ended_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It said nothing, so the master counts it for some seconds; one that is there ends that."""
    monkeypatch.setattr(upgrade, "ASK_AGAIN_S", 0.0)
    view = view_of(older=False)
    code, asked = run(view, "finalize", "--yes", monkeypatch=monkeypatch, refusals=2)
    assert (code, len(asked)) == (0, 3)
    assert "asking again" in capsys.readouterr().err
    monkeypatch.setattr(upgrade, "FORGOTTEN_S", 0.0)
    code, asked = run(view, "finalize", "--yes", monkeypatch=monkeypatch, refusals=2)
    assert (code, len(asked)) == (1, 1)
    assert "55000: one is there" in capsys.readouterr().err


def test_once_it_is_finalized_it_need_not_be_agreed_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    view = view_of(older=False, level=NEWEST)
    code, asked = run(view, "finalize", monkeypatch=monkeypatch)
    assert (code, len(asked)) == (0, 1)
    assert "already: nothing was changed" in capsys.readouterr().out


def test_what_a_later_release_has_finalized_stays_so() -> None:
    """A command of this one asks for no less."""
    view = seen(log(7), node("m1", NEW, "master"), report("m1", "0.9.0", NEWEST + 2))
    told = upgrade_report(view, NOW)
    assert (told["level"], told["finalizes"]) == (NEWEST + 2, NEWEST + 2)
    assert told["waits"] == [f"feature {NEWEST + 1}", f"feature {NEWEST + 2}"]


def test_who_is_silent_holds_nobody_up() -> None:
    """One that has ended and not said so; the master counts it for some seconds more."""
    gone = node("r1", OLDER, sent_us=NOW - 9 * SECOND)
    feed = node("changefeed", b"", "changefeed", sent_us=NOW - 99 * SECOND)
    told = upgrade_report(seen(log(7), node("m1", NEW, "master"), gone, feed), NOW)
    assert (told["blockers"], [each["process"] for each in told["processes"]]) == ([], ["m1"])
    feed = node("changefeed", b"", "changefeed")
    told = upgrade_report(seen(log(7), node("m1", NEW, "master"), feed), NOW)
    assert told["blockers"] == ["changefeed"]


def spark(reads: int = NEWEST, **changes: Any) -> ProcessReport:
    return ProcessReport("spark host/7", "spark", "0.2.0", reads, NOW)._replace(**changes)


def test_processes_that_are_no_nodes_are_listed_and_hold_it_up() -> None:
    """Spark's driver, dashboards, intakes: they read versions, rows and jobs."""
    master = node("m1", NEW, "master")
    told = upgrade_report(seen(log(7), master, spark()), NOW)
    assert told["processes"][1] == {
        "process": "spark host/7",
        "role": "spark",
        "release": "0.2.0",
        "reads": NEWEST,
        "lacks": [],
    }
    older = spark(NEWEST - 1, release="0.1.5")
    assert upgrade_report(seen(log(7), master, older), NOW)["blockers"] == ["spark host/7"]
    late = upgrade_report(seen(log(7), master, older._replace(sent_us=NOW - 16 * SECOND)), NOW)
    assert late["blockers"] == [], "it was killed"


def test_a_process_that_ends_is_forgotten_until_it_says_something_again() -> None:
    """Whatever its clock says meanwhile."""
    ended = spark(sent_us=NOW + 600 * SECOND, ended=True)
    assert seen(spark(), ended).processes == {}
    again = spark(sent_us=NOW + 2)
    assert seen(spark(), ended, again).processes == {"spark host/7": again}


def test_agents_are_listed_and_hold_it_up_as_long_as_they_are_heard() -> None:
    """They say so less often than others; one without a word has a session with the ledger."""
    master = node("m1", NEW, "master")
    older = ProcessReport("agent pricing at host/7", "agent", "0.1.5", NEWEST - 1, NOW)
    late = older._replace(sent_us=NOW - 44 * SECOND)
    session = ledger({}, sessions=((4, 1, False),))
    told = upgrade_report(seen(log(7), master, late, session), NOW)
    assert (told["blockers"], told["unknown"]) == (["agent pricing at host/7"], [])
    gone = older._replace(sent_us=NOW - 46 * SECOND)
    told = upgrade_report(seen(log(7), master, gone, session), NOW)
    assert (told["blockers"], told["unknown"], told["unknown_count"]) == ([], ["pricing"], 1)


def test_who_says_nothing_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A node's own agent is not: the node has said what it reads."""
    view = replace(view_of(older=False, level=NEWEST), ledger=ledger({}, sessions=((4, 1, False),)))
    code, _ = run(view, monkeypatch=monkeypatch)
    told = " ".join(capsys.readouterr().out.split())
    assert code == 0
    assert "! pricing: agents that don't say what they read" in told
    assert upgrade_report(with_agents(view, "m1", "r1"), NOW)["unknown"] == []
    names = [f"agent{number:03}" for number in range(120)]
    report = upgrade_report(with_agents(view, *names), NOW)
    assert (report["unknown"], report["unknown_count"]) == (names[:100], 120)
    assert upgrade.unknown_words(report).startswith("! agent000, ")
    assert "agent009 and 110 more: agents" in upgrade.unknown_words(report)


def with_agents(view: ClusterView, *names: str) -> ClusterView:
    found = ledger({})
    sessions = tuple(SessionStatus(n, name, 1, 1, False) for n, name in enumerate(names))
    return replace(view, ledger=found._replace(report=found.report._replace(sessions=sessions)))
