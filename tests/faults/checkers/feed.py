"""Judges what a subscriber was given: each change once, in order, readable, and the same as the
store in the end. PURE.

A subscriber that is started anew reads from the beginning: each of its lives is judged by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple


class Change(NamedTuple):
    """A row event. `values` None: deleted. `columns`: those of the version that it was read under,
    as its version event said them."""

    table: str
    key: tuple[Any, ...]
    values: Mapping[str, Any] | None
    lsn: int
    version: int
    made_under: int
    columns: tuple[str, ...]


Table = Mapping[tuple[Any, ...], Mapping[str, Any]]


def judge_life(changes: Sequence[Change]) -> list[str]:
    """Return what contradicts in one life of a subscriber, whatever it has come to."""
    newest: dict[tuple[str, tuple[Any, ...]], int] = {}
    found = []
    for change in changes:
        place = (change.table, change.key)
        before = newest.get(place, 0)
        if change.values is not None and change.lsn == before:
            found.append(f"{change.table} {change.key}: LSN {change.lsn} came twice")
        elif change.values is not None and change.lsn < before:
            found.append(f"{change.table} {change.key}: LSN {change.lsn} came after {before}")
        newest[place] = max(before, change.lsn)
        if change.values is not None and set(change.values) != set(change.columns):
            found.append(
                f"{change.table} {change.key}: has {sorted(change.values)}, version"
                f" {change.version} has {sorted(change.columns)}"
            )
        if change.made_under > change.version + 1:
            found.append(f"{change.table}: read under {change.version}, made {change.made_under}")
    return [f"feed: {words}" for words in found]


def judge_end(
    changes: Iterable[Change], final: Mapping[str, Table], answered: Mapping[str, Iterable[int]]
) -> list[str]:
    """Return what contradicts in a life that read all: the last change of each key is the row that
    the store has, and each LSN of `answered`, by table, came once."""
    rows: dict[str, dict[tuple[Any, ...], Mapping[str, Any]]] = {name: {} for name in final}
    lsns: dict[str, Counter[int]] = {name: Counter() for name in (*final, *answered)}
    for change in changes:
        if change.table not in rows and change.table not in answered:
            continue
        if change.values is None:
            rows[change.table].pop(change.key, None)
        else:
            rows.setdefault(change.table, {})[change.key] = change.values
            lsns[change.table][change.lsn] += 1
    found = []
    for table, wanted in final.items():
        for key in sorted(wanted.keys() | rows[table].keys()):
            have, want = rows[table].get(key), wanted.get(key)
            if have is None or want is None or not _agree(have, want):
                found.append(f"{table} {key}: the feed has {have}, the store {want}")
    for table, wanted_lsns in answered.items():
        missing = [lsn for lsn in wanted_lsns if not lsns[table][lsn]]
        if missing:
            found.append(f"{table}: acknowledged at LSN {missing[:5]}, never fed")
    return [f"feed: {words}" for words in found[:20]]


def _agree(fed: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Columns that came or went since the row was written are not in both."""
    return all(fed[name] == stored[name] for name in fed.keys() & stored.keys())
