"""`leasehold top`: what a frame says of a view, how it fits a terminal, and how it is left."""

from __future__ import annotations

import io
import json
import os
import pty
from typing import Any

import pytest
from rich.console import Console

from leasehold.admin.view import Event, TopicEnds, Unreachable
from leasehold.cli.main import main
from leasehold.cli.top import HotTables, frame_of, single_keys
from leasehold.cli.top_frame import make_frame
from leasehold.lease.replies import Holding
from tests.support.admin.view_events import NOW, ack, job, ledger, log, seen, version


def shown(told: dict[str, Any], width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(make_frame(told, width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr("leasehold.cli.top.unix_us", lambda: NOW)
    events: list[Event] = [
        *(log(7), ack("m1", "master"), ack("r1", coherent=False, offset=2), version(2), job()),
        ledger({1: (Holding(1, 2, 7, "app-1"),)}),
    ]
    rates = HotTables(seen(*events, TopicEnds({"rows/1": 10})))
    return frame_of(seen(*events, TopicEnds({"rows/1": 400})), rates, "main")


def test_a_frame_says_what_goes_on(told: dict[str, Any]) -> None:
    lines = "\n".join(shown(told, 120))
    for words in ("main ", "LSN 10", "commits/s", "m1", "incoherent", "flights", "rows changed/s"):
        assert words in lines
    json.dumps(told)


@pytest.mark.parametrize("width", [30, 50, 70, 120])
def test_no_line_is_wider_than_the_terminal(told: dict[str, Any], width: int) -> None:
    lines = shown(told, width)
    assert max(map(len, lines)) <= width
    assert any("r1" in line for line in lines)


def test_a_part_that_is_away_is_named_and_the_rest_is_shown(told: dict[str, Any]) -> None:
    view = seen(ack("m1", "master"), Unreachable("ledger", "no route"))
    lines = "\n".join(shown(frame_of(view, HotTables(view), "main"), 80))
    assert "ledger can't be reached: no route" in lines
    assert "m1" in lines
    assert "all is well" not in lines


def test_words_of_others_steer_no_terminal() -> None:
    view = seen(ack("m1\x1b[2J", "master"))
    assert "\x1b" not in "\n".join(shown(frame_of(view, HotTables(view), "main"), 80))


def test_q_is_read_at_once_and_the_terminal_is_as_before() -> None:
    master, slave = pty.openpty()
    try:
        with single_keys(slave) as keys:
            assert keys.wait(0.0) == ""
            os.write(master, b"q")  # no line ends
            assert keys.wait(30.0) == "q"
        os.write(master, b"x")
        with single_keys(slave) as keys:
            assert keys.wait(0.0) in ("", "x")
    finally:
        os.close(master)
        os.close(slave)


def test_one_frame_without_anybody_to_ask(
    nobody_listens: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["top", "--once", "--json", "--every", "0.01"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert {"kafka", "ledger"} <= told["unreachable"].keys()
