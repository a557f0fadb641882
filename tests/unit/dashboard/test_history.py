"""Goal: series keep the newest windows, whatever comes and however late."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leasehold.dashboard.activity.history import MINUTES_MAX, SECONDS_MAX, Series, hot_rows
from leasehold.dashboard.activity.windows import fold_writes, writes_event

EMPTY = fold_writes({}, {}, [])


def event(begin_s: int, length_s: int = 1, **more: Any) -> bytes:
    return json.dumps({**writes_event(EMPTY, begin_s, length_s), **more}).encode()


def test_the_newest_windows_are_kept_in_order() -> None:
    series = Series()
    for from_s in (5, 7, 6):
        series.take(event(from_s))
    series.take(event(6, commits=9))  # told again: it holds instead
    told = series.windows("writes", 1)
    assert [(one["from_s"], one["commits"]) for one in told] == [(5, 0), (6, 9), (7, 0)]
    assert [one["from_s"] for one in series.windows("writes", 1, after_s=6)] == [7]
    assert series.newest_s() == 7
    for from_s in range(2_000):
        series.take(event(from_s))
        series.take(event(60 * from_s, 60))
    assert len(series.windows("writes", 1)) == SECONDS_MAX
    assert len(series.windows("writes", 60)) == MINUTES_MAX
    assert series.newest_s() == 1_999


@pytest.mark.parametrize(
    "value",
    [
        *(None, b"", b"hello", b"[]", b"{}", b"\xff", b"[" * 10_000),
        *(event(1, what="else"), event(1, from_s="x"), event(1, window_s=7)),
        *(event(1, conflicts=[{}]), event(1, tables=[]), event(1, coherent=None)),
        event(1, refused={"x": "y"}),
        event(1, padding="x" * 100_000),
    ],
)
def test_what_is_no_window_of_ours_is_passed_over(value: bytes | None) -> None:
    series = Series()
    series.take(value)
    assert series.windows("writes", 1) == []


def test_hot_rows_are_added_up_over_windows() -> None:
    def row(key: str, refusals: int, over: int = 0) -> dict[str, Any]:
        return {"table": "t", "key": key, "refusals": refusals, "at_most_over": over}

    told = hot_rows(
        [{"conflicts": [row("a", 3), row("b/c", 2, 1)]}, {"conflicts": [row("b/c", 4)]}], 5
    )
    assert told == [row("b/c", 6, 1), row("a", 3)]
