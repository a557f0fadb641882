"""What a person is shown of the log's time, and asked before it is set back."""

from __future__ import annotations

import argparse
from contextlib import contextmanager
from typing import Any

import pytest

from leasehold.admin.view import ClusterView, LogView, NodeView
from leasehold.cli import clock
from leasehold.cli.output import Output
from leasehold.model.records.acks import Ack
from tests.support.cli.json_output import check_printed

NOW_US = 1_750_000_000_000_000
HOUR_US = 3_600_000_000


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    clock.register(parser.add_subparsers())
    return parser.parse_args(["clock", *arguments])


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The log's view, to be changed by a test."""
    seen: dict[str, Any] = {
        "time_us": NOW_US,
        "id_horizon_us": NOW_US - 24 * HOUR_US,
        "master": "m1",
    }

    @contextmanager
    def looking(settings: object, output: object) -> Any:
        ack = Ack("m1", b"", "master", 1, 1, 1, 0, True, "", NOW_US)
        yield None, ClusterView(log=LogView(**seen), nodes={"m1": NodeView(ack, NOW_US)})

    monkeypatch.setattr(clock, "looking", looking)
    monkeypatch.setattr(clock, "unix_us", lambda: NOW_US + 2_000_000)
    return seen


def shown(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    args = parsed(*arguments)
    code = args.run(args, None, Output(as_json=args.json))
    told = capsys.readouterr()
    if args.json:
        check_printed(["clock", *arguments], told.out)
    return code, told.out + told.err


def test_it_shows_how_far_the_log_is_from_the_clock(
    looked_at: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = shown(capsys=capsys)
    assert code == 0
    assert "24 h behind" in told
    assert "2.0 s ahead" in told
    looked_at["time_us"] = looked_at["id_horizon_us"] = NOW_US + 49 * HOUR_US
    code, told = shown("show", capsys=capsys)
    assert code == 1
    assert told.count("2 d 1 h ahead") == 3
    assert "stamped that much too late" in told
    assert "for another 2 d 1 h, fresh ones too" in told


def test_without_yes_nothing_is_set_back(
    looked_at: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = shown("reset", capsys=capsys)
    assert code == 2
    assert "nothing was done" in told
    assert "may be\n    applied twice" in told


def test_json_says_the_same(looked_at: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    _, told = shown("--json", capsys=capsys)
    assert '"ahead_ms": 0' in told or '"ahead_ms":0' in told
    assert str(NOW_US - 24 * HOUR_US) in told


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"reset": False, "log_us": NOW_US, "clock_us": NOW_US + 5}, "nothing was set back"),
        ({"reset": True, "log_us": NOW_US + HOUR_US, "clock_us": NOW_US}, "LSN 1,234 on; it was"),
        ({"reset": True, "log_us": NOW_US, "clock_us": NOW_US}, "id horizon alone"),
    ],
)
def test_what_became_of_it_is_said(answer: dict[str, Any], words: str) -> None:
    assert words in clock.reset_words(answer, 1_234)
