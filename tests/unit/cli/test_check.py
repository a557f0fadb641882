"""`leasehold check` where there is nothing to check, and where something is to be repaired."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import pytest

from leasehold.adapters.os.clock import unix_us
from leasehold.admin.fold import fold
from leasehold.admin.view import ClusterView, TableView
from leasehold.admin.watch import ClusterWatch
from leasehold.catalog.descriptor import Descriptor
from leasehold.cli import check
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output
from leasehold.model.records.acks import Ack, CheckReport
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.log import CheckSlice
from leasehold.settings.client import ClientSettings


@contextmanager
def _no_tables(_settings: ClientSettings, _output: Output) -> Iterator[tuple[Any, ClusterView]]:
    yield None, ClusterView()


def test_without_tables_a_program_gets_json_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "looking", _no_tables)
    args = argparse.Namespace(table=None, timeout=1.0, slice_rows=0, repair=False)
    settings = cast(ClientSettings, None)  # not looked at
    assert check.run(args, settings, Output(as_json=True)) == ExitCode.OK
    assert json.loads(capsys.readouterr().out) == {"reports": [], "troubles": []}


class Watch:
    """Answers each barrier at once: r1 lacks entries until it has repaired them."""

    def __init__(self, *, alike: bool) -> None:
        self.lacking = 3
        self.rows = {"r1": b"rows", "r2": b"rows" if alike else b"others"}
        self.asked: list[str] = []
        table = Descriptor(1, "t", 1, (), ())
        event = VersionEvent(1, "t", 1, 1, 1, table.to_wire(), 0, "")
        self.view = ClusterView(tables={1: TableView(event)})

    def ask_check(
        self, _settings: object, table: int, repair: str = "", part: CheckSlice | None = None
    ) -> bytes:
        self.asked.append(repair)
        repaired, subject = -1, bytes([len(self.asked)])
        if repair == "r1":
            repaired, self.lacking = self.lacking, 0
        reports = [
            CheckReport(
                subject, node, b"", 5, 5, table, 1, 9, {}, b"%d" % lacking, lacking,
                ((4, 9, (1,), "lacks"),) * lacking, 1, "", self.rows[node], repaired,
            )
            for node, lacking in (("r1", self.lacking), ("r2", 0))
        ]  # fmt: skip
        for report in reports:
            self.view = fold(self.view, report, 0)
        return subject

    def wait_for(self, wanted: Callable[[ClusterView], bool], _timeout_s: float) -> bool:
        return wanted(self.view)


def _run(
    monkeypatch: pytest.MonkeyPatch,
    watch: Watch,
    *,
    repair: bool,
    slice_rows: int = 0,
    live: Callable[..., tuple[list[str], list[str]]] = lambda *_: (["r1", "r2"], []),
    table: str | None = "t",
) -> int:
    @contextmanager
    def looking(_settings: ClientSettings, _output: Output) -> Iterator[tuple[Any, ClusterView]]:
        yield watch, watch.view

    monkeypatch.setattr(check, "looking", looking)
    monkeypatch.setattr(check, "ask_check", watch.ask_check)
    monkeypatch.setattr(check, "find_live", live)
    args = argparse.Namespace(table=table, timeout=1.0, slice_rows=slice_rows, repair=repair)
    return check.run(args, cast(ClientSettings, None), Output(as_json=True))


def test_a_check_repairs_only_when_told_and_looks_again_after_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = Watch(alike=True)
    assert _run(monkeypatch, watch, repair=False) == ExitCode.NOT_RIGHT
    assert watch.asked == [""]
    assert "repaired" not in json.loads(capsys.readouterr().out)
    assert _run(monkeypatch, watch, repair=True) == ExitCode.OK
    assert watch.asked == ["", "", "r1", ""]
    told = json.loads(capsys.readouterr().out)
    assert (told["repaired"], told["troubles"]) == ({"r1": 3}, [])


class AskedTwice(Watch):
    """A request that stands in the log twice: r2 has answered the later one when the first look is
    taken, r1 when the next one is."""

    def __init__(self) -> None:
        super().__init__(alike=True)
        self.lacking = 0

    def wait_for(self, wanted: Callable[[ClusterView], bool], _timeout_s: float) -> bool:
        said = self.view.checks[b"\x01"]
        self.view = fold(self.view, said["r2", 1]._replace(offset=6), 0)
        assert not wanted(self.view), "nothing was compared"
        self.view = fold(self.view, said["r1", 1]._replace(offset=6), 0)
        return wanted(self.view)


def test_l6_reports_on_several_log_positions_are_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(monkeypatch, AskedTwice(), repair=False) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["troubles"] == []


class DroppedMeanwhile(Watch):
    """Nodes report on `t`, and know that `u` is gone; the view learns it a moment later."""

    def __init__(self) -> None:
        super().__init__(alike=True)
        self.lacking = 0
        self.kept = self.view.tables[1]
        other = VersionEvent(2, "u", 1, 1, 1, Descriptor(2, "u", 1, (), ()).to_wire(), 0, "")
        self.view = replace(self.view, tables={1: self.kept, 2: TableView(other)})

    def ask_check(self, *given: Any, **more: Any) -> bytes:
        return super().ask_check(given[0], 1)

    def wait_for(self, wanted: Callable[[ClusterView], bool], _timeout_s: float) -> bool:
        assert not wanted(self.view)
        self.view = replace(self.view, tables={1: self.kept})
        return wanted(self.view)


def test_a_table_that_is_dropped_meanwhile_is_reported_on_by_nobody(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else the command waits for its whole time, and finds fault with every node."""
    assert _run(monkeypatch, DroppedMeanwhile(), repair=False, table=None) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["troubles"] == []


def heard(node: str, sent_us: int) -> Ack:
    return Ack(node, b"i", "replicant", 5, 1, 5, 0, True, "", sent_us)


class ReadLate(Watch):
    """What r2 says is read after the first look was taken, and its clock is a minute behind; r3
    says nothing."""

    def __init__(self) -> None:
        super().__init__(alike=True)
        self.lacking = 0
        self.listened_s: list[float] = []
        now_us = unix_us()
        for ack in (heard("r1", now_us), heard("r2", now_us - 60_000_000), heard("r3", 1)):
            self.view = fold(self.view, ack, now_us)

    def wait_for(self, wanted: Callable[[ClusterView], bool], timeout_s: float) -> bool:
        self.listened_s.append(timeout_s)
        now_us = unix_us()
        self.view = fold(self.view, heard("r2", now_us - 58_000_000), now_us)
        return wanted(self.view)


def test_who_is_silent_is_listened_to_before_he_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else a node's copy is compared with nobody's because its words were read late."""
    watch = ReadLate()
    assert _run(monkeypatch, watch, repair=False, live=check.find_live) == ExitCode.OK
    told = json.loads(capsys.readouterr().out)
    assert [report["node"] for report in told["reports"]] == ["r1", "r2"]
    assert told["troubles"] == []
    assert watch.listened_s[0] == 3.0
    assert check.find_live(cast(ClusterWatch, watch), watch.view)[1] == ["r3"]


def test_without_proof_nothing_is_repaired_and_the_check_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = Watch(alike=False)
    assert _run(monkeypatch, watch, repair=True) == ExitCode.NOT_RIGHT
    assert watch.asked == [""]
    told = json.loads(capsys.readouterr().out)
    assert told["repaired"] == {}
    assert any("its rows are not those of r2" in trouble for trouble in told["troubles"])


def test_a_check_in_slices_asks_slice_by_slice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = Watch(alike=True)
    watch.lacking = 0
    asked: list[CheckSlice | None] = []
    appended = watch.ask_check

    def append(*given: Any, part: CheckSlice | None = None) -> bytes:
        asked.append(part)
        subject = appended(*given)
        until = (len(asked),) if len(asked) < 3 else None
        for report in watch.view.checks[subject].values():
            watch.view = fold(watch.view, report._replace(until=until, checksum=b""), 0)
        return subject

    monkeypatch.setattr(watch, "ask_check", append)
    assert _run(monkeypatch, watch, repair=False, slice_rows=7) == ExitCode.OK
    assert asked == [CheckSlice(0, (), 7), CheckSlice(0, (1,), 7), CheckSlice(0, (2,), 7)]
    told = json.loads(capsys.readouterr().out)
    assert (told["slices"], told["troubles"]) == (3, [])
    assert [(node["node"], node["rows"]) for node in told["nodes"]] == [("r1", 27), ("r2", 27)]
