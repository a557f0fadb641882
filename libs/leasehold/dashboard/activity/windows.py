"""What was counted in a window of time: folded from log records, and told to subscribers. PURE.

A window is plain data, as a Faust table keeps it and its changelog brings it back. It says through
which offset it has counted, so that a record that is read again, after a restart, counts once.

Everything in it has a limit: tables, codes and nodes beyond it are counted together, and of the
rows that refuse requests those are kept that do so most (space saving, Metwally et al. 2005).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

from leasehold.adapters.codec.log_activity import LogActivity

Window = dict[str, Any]

SECOND_S: Final = 1
MINUTE_S: Final = 60
TABLES_MAX: Final = 50
CODES_MAX: Final = 30
LEASED_NODES_MAX: Final = 100
HOT_KEYS_MAX: Final = 40
HOT_KEYS_SENT: Final = 10
OTHERS: Final = "others"
BETWEEN: Final = "\x1f"
"""Between a table's name and a row's key: the unit separator, which neither has."""
LATENCY_BOUNDS_MS: Final = (
    *(1, 2, 3, 4, 5, 7, 10, 14, 20, 30, 50, 70, 100, 140, 200, 300, 500, 700),
    *(1_000, 2_000, 5_000, 10_000, 30_000),
)
"""Upper bounds of the buckets; what is longer is in one more."""


class Counted(NamedTuple):
    """A record of the log at its offset, by the time of its message."""

    offset: int
    at_ms: int
    activity: LogActivity


def fold_writes(window: Window, before: Window, records: Iterable[Counted]) -> Window:
    """Return a window that counts these records of its time, in their order, too. `window` is {}
    for one that begins; who was coherent in the one `before` ({} = none is known) is so on."""
    made = _copied(window) if window else _begun(before)
    for offset, at_ms, activity in records:
        if offset < made["through"]:
            continue
        made["through"] = offset + 1
        made["commits"] += activity.commits
        made["retried"] += activity.retried
        made["rows"] += activity.rows
        for table, (commits, rows) in activity.tables.items():
            held = made["tables"].setdefault(
                _bounded(made["tables"], str(table), TABLES_MAX), [0, 0]
            )
            held[0] += commits
            held[1] += rows
        for code, number in activity.refused.items():
            _add(made["refused"], code, number, CODES_MAX)
        for name, number in activity.dispositions.items():
            _add(made["dispositions"], name, number, CODES_MAX)
        for name, key in activity.conflicts:
            count_hot(made["conflicts"], f"{name}{BETWEEN}{key}", HOT_KEYS_MAX)
        for took_ms in activity.decided_ms:
            made["decided"][bisect_left(LATENCY_BOUNDS_MS, took_ms)] += 1
        for node, duration_ms in activity.granted.items():
            if node in made["leases"] or len(made["leases"]) < LEASED_NODES_MAX:
                made["leases"][node] = at_ms + duration_ms
    return made


def _begun(before: Window) -> Window:
    return {
        "through": before.get("through", 0),
        "commits": 0,
        "retried": 0,
        "rows": 0,
        "tables": {},
        "refused": {},
        "dispositions": {},
        "conflicts": {},
        "decided": [0] * (len(LATENCY_BOUNDS_MS) + 1),
        "leases": dict(before.get("leases", {})),
    }


def _copied(window: Window) -> Window:
    made = dict(window)
    for name in ("refused", "dispositions", "leases"):
        made[name] = dict(window[name])
    for name in ("tables", "conflicts"):
        made[name] = {key: list(held) for key, held in window[name].items()}
    made["decided"] = list(window["decided"])
    return made


def _bounded(counted: Mapping[str, Any], name: str, most: int) -> str:
    return name if name in counted or len(counted) < most else OTHERS


def _add(counted: dict[str, int], name: str, number: int, most: int) -> None:
    name = _bounded(counted, name, most)
    counted[name] = counted.get(name, 0) + number


def count_hot(counted: dict[str, list[int]], key: str, most: int, number: int = 1) -> None:
    """Count a key among the most frequent ones. Each has its count and by how much that may be too
    high: one that comes anew takes the place, and the count, of the least frequent."""
    held = counted.get(key)
    if held is not None:
        held[0] += number
    elif len(counted) < most:
        counted[key] = [number, 0]
    else:
        least = min(counted, key=lambda each: counted[each][0])
        floor = counted.pop(least)[0]
        counted[key] = [floor + number, floor]


def writes_event(window: Window, from_s: int, length_s: int) -> dict[str, Any]:
    """Return what subscribers are told of a window of writes that began at `from_s` (unix time)."""
    until_ms = 1_000 * (from_s + length_s)
    hot = sorted(window["conflicts"].items(), key=lambda held: (-held[1][0], held[0]))
    return {
        "what": "writes",
        "window_s": length_s,
        "from_s": from_s,
        "commits": window["commits"],
        "retried": window["retried"],
        "rows": window["rows"],
        "tables": {name: list(held) for name, held in window["tables"].items()},
        "refused": dict(window["refused"]),
        "dispositions": dict(window["dispositions"]),
        "conflicts": [
            {**_row_of(name), "refusals": count, "at_most_over": over}
            for name, (count, over) in hot[:HOT_KEYS_SENT]
        ],
        "decided_ms": {
            name: quantile(window["decided"], share)
            for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
        },
        "coherent": sorted(node for node, end in window["leases"].items() if end >= until_ms),
    }


def _row_of(name: str) -> dict[str, Any]:
    table, _, key = name.partition(BETWEEN)
    return {"table": table, "key": key}


def quantile(buckets: list[int], share: float) -> float | None:
    """Return the time below which that share of all counted ones lies, None where none is: within
    a bucket they are taken to lie evenly; what is beyond the last bound counts as that bound."""
    total = sum(buckets)
    if not total:
        return None
    wanted = share * total
    seen = 0
    for (low, high), number in zip(
        pairwise((0, *LATENCY_BOUNDS_MS, LATENCY_BOUNDS_MS[-1])), buckets, strict=True
    ):
        if number and seen + number >= wanted:
            return round(low + (high - low) * (wanted - seen) / number, 2)
        seen += number
    return float(LATENCY_BOUNDS_MS[-1])


# ------------------------------------------------------------ steps of jobs


def new_phases(marks: list[Any], known: int | None) -> list[tuple[str, int]]:
    """Return the phases that a job has ended since `known` of its marks were counted, each with
    how long it took in ms. Of a job that is seen for the first time only what ends from now on."""
    counted = len(marks) if known is None else known
    return [
        (str(phase), max(0, ended_us - begun_us) // 1_000)
        for (_, phase, begun_us), (_, _, ended_us) in pairwise(marks[max(0, counted - 1) :])
    ]


def fold_steps(window: Window, offset: int, phases: Iterable[tuple[str, int]]) -> Window:
    """Return a window that counts these phases, which the record at that offset has ended, too."""
    made = {
        "through": window.get("through", 0),
        "phases": {name: list(held) for name, held in window.get("phases", {}).items()},
    }
    if offset < made["through"]:
        return made
    made["through"] = offset + 1
    for phase, took_ms in phases:
        held = made["phases"].setdefault(_bounded(made["phases"], phase, CODES_MAX), [0, 0, 0])
        held[0] += 1
        held[1] += took_ms
        held[2] = max(held[2], took_ms)
    return made


def steps_event(window: Window, from_s: int, length_s: int) -> dict[str, Any]:
    """Return what subscribers are told of the phases of jobs that ended in a window."""
    return {
        "what": "steps",
        "window_s": length_s,
        "from_s": from_s,
        "phases": {
            name: {"count": count, "mean_ms": total // count, "longest_ms": longest}
            for name, (count, total, longest) in window["phases"].items()
        },
    }
