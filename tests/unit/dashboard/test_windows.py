"""Goal: what is counted in a window is right however often records are read, and bounded whatever
they hold.

Method: windows are folded from made-up records; a seeded run reads some of them again at random.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any, Final

import pytest

from leasehold.adapters.codec.log_activity import LogActivity
from leasehold.dashboard.activity import windows
from leasehold.dashboard.activity.windows import (
    LATENCY_BOUNDS_MS,
    OTHERS,
    Counted,
    Window,
    count_hot,
    fold_steps,
    fold_writes,
    new_phases,
    quantile,
    steps_event,
    writes_event,
)

NOTHING: Final = LogActivity(0, 0, 0, {}, {}, {}, (), (), {})
SEEDS: Final = range(5)


def counted(offset: int, at_ms: int = 5_000, **done: Any) -> Counted:
    return Counted(offset, at_ms, NOTHING._replace(**done))


def test_a_record_that_is_read_again_counts_once() -> None:
    first = fold_writes({}, {}, [counted(3, commits=2), counted(4, commits=5)])
    again = fold_writes(
        first, {}, [counted(3, commits=2), counted(4, commits=5), counted(5, commits=1)]
    )
    assert (again["commits"], again["through"]) == (8, 6)
    assert first["commits"] == 7, "what a table holds is not changed behind its back"


@pytest.mark.parametrize("seed", SEEDS)
def test_however_it_is_cut_off_everything_counts_once(seed: int) -> None:
    """Each round goes on from any place that was read before, as after a restart; a window's value
    is what a JSON changelog brings back."""
    print(f"seed {seed}")
    draws = random.Random(seed)
    records = [
        counted(
            offset,
            1_000 * (offset // 10),
            commits=draws.randrange(9),
            tables={draws.randrange(3): (1, 2)},
        )
        for offset in range(100)
    ]
    kept: dict[int, Window] = {}
    reached = 0
    while reached < len(records):
        begin = draws.randint(max(0, reached - 30), reached)
        end = draws.randint(begin, len(records))
        for record in records[begin:end]:
            window = record.at_ms // 1_000
            before = kept.get(window - 1, {})
            made = fold_writes(kept.get(window, {}), before, [record])
            kept[window] = json.loads(json.dumps(made))
        reached = max(reached, end)
    for window in range(10):
        of_window = records[10 * window : 10 * window + 10]
        assert kept[window]["commits"] == sum(each.activity.commits for each in of_window)
        assert sum(held[0] for held in kept[window]["tables"].values()) == 10


def test_who_was_coherent_before_is_so_until_the_lease_ends() -> None:
    first = fold_writes({}, {}, [counted(1, 5_100, granted={"r1": 500, "r2": 3_000})])
    assert writes_event(first, 5, 1)["coherent"] == ["r2"]
    second = fold_writes({}, first, [counted(2, 6_200, granted={"r1": 1_000})])
    assert writes_event(second, 6, 1)["coherent"] == ["r1", "r2"]
    assert second["through"] == 3


def test_the_event_of_a_window_says_what_was_counted() -> None:
    done: dict[str, Any] = {
        "commits": 3,
        "retried": 1,
        "rows": 4,
        "tables": {1: (2, 3), 2: (1, 1)},
        "refused": {"40001": 2},
        "dispositions": {"conflict": 2},
        "conflicts": (("t", "a/b"), ("t", "a/b"), ("u", "x")),
        "decided_ms": (3, 3, 3),
    }
    told = writes_event(fold_writes({}, {}, [counted(1, **done)]), 60, 60)
    assert told == {
        "what": "writes",
        "window_s": 60,
        "from_s": 60,
        "commits": 3,
        "retried": 1,
        "rows": 4,
        "tables": {"1": [2, 3], "2": [1, 1]},
        "refused": {"40001": 2},
        "dispositions": {"conflict": 2},
        "conflicts": [
            {"table": "t", "key": "a/b", "refusals": 2, "at_most_over": 0},
            {"table": "u", "key": "x", "refusals": 1, "at_most_over": 0},
        ],
        "decided_ms": {"p50": 2.5, "p95": 2.95, "p99": 2.99},
        "coherent": [],
    }


def test_whatever_comes_a_window_has_a_size_that_is_known() -> None:
    window: Window = {}
    for offset in range(300):
        window = fold_writes(
            window,
            {},
            [
                counted(
                    offset,
                    commits=1,
                    tables={offset: (1, 1)},
                    refused={f"X{offset}": 1},
                    conflicts=(("t", f"{offset:080d}"),),
                    granted={f"n{offset}": 9_999},
                )
            ],
        )
    assert len(window["tables"]) == windows.TABLES_MAX + 1
    assert window["tables"][OTHERS] == [300 - windows.TABLES_MAX] * 2
    assert sum(window["refused"].values()) == 300
    assert len(window["refused"]) == windows.CODES_MAX + 1
    assert len(window["conflicts"]) == windows.HOT_KEYS_MAX
    assert len(window["leases"]) == windows.LEASED_NODES_MAX
    assert len(json.dumps(writes_event(window, 5, 1))) < 20_000


@pytest.mark.parametrize("seed", SEEDS)
def test_the_most_frequent_keys_stay_and_their_error_is_bounded(seed: int) -> None:
    """The promise of space saving: a count is never too low, and too high by `over` at most."""
    print(f"seed {seed}")
    draws = random.Random(seed)
    held: dict[str, list[int]] = {}
    true: Counter[str] = Counter()
    for _ in range(5_000):
        key = (
            f"hot{draws.randrange(3)}" if draws.random() < 0.5 else f"cold{draws.randrange(2_000)}"
        )
        true[key] += 1
        count_hot(held, key, 40)
    for key, (count, over) in held.items():
        assert true[key] <= count <= true[key] + over
    ranked = sorted(held, key=lambda key: -held[key][0])
    assert set(ranked[:3]) == {"hot0", "hot1", "hot2"}


def test_quantiles_lie_within_their_buckets() -> None:
    none = [0] * (len(LATENCY_BOUNDS_MS) + 1)
    assert quantile(none, 0.5) is None
    one = [*none]
    one[3] = 10  # from 3 to 4 ms
    assert quantile(one, 0.5) == 3.5
    assert quantile(one, 1.0) == 4.0
    beyond = [*none]
    beyond[-1] = 1
    assert quantile(beyond, 0.5) == LATENCY_BOUNDS_MS[-1]


def test_each_phase_of_a_job_counts_once_when_it_ends() -> None:
    marks = [[0, "publishing", 1_000], [0, "draining", 4_000], [1, "publishing", 9_000]]
    assert new_phases(marks, None) == [], "what was before nobody saw is not counted"
    assert new_phases(marks[:1], None) == []
    assert new_phases(marks[:2], 1) == [("publishing", 3)]
    assert new_phases(marks, 1) == [("publishing", 3), ("draining", 5)]
    assert new_phases(marks, 3) == []
    window = fold_steps({}, 7, [("publishing", 3), ("draining", 5)])
    window = fold_steps(window, 8, [("publishing", 5)])
    assert fold_steps(window, 8, [("publishing", 5)]) == window
    assert steps_event(window, 60, 60)["phases"] == {
        "publishing": {"count": 2, "mean_ms": 4, "longest_ms": 5},
        "draining": {"count": 1, "mean_ms": 5, "longest_ms": 5},
    }
