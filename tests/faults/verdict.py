"""Brings what a round has left before the checkers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from tests.faults.checkers.activity import judge_activity
from tests.faults.checkers.appends import judge_appends
from tests.faults.checkers.bank import judge_bank
from tests.faults.checkers.changes import Shapes, judge_changes
from tests.faults.checkers.feed import Change, judge_end, judge_life
from tests.faults.checkers.kept import Cell, judge_kept
from tests.faults.checkers.looks import judge_looks
from tests.faults.checkers.members import judge_members
from tests.faults.checkers.moves import judge_moves
from tests.faults.checkers.outcomes import judge_outcomes
from tests.faults.checkers.registers import judge_registers
from tests.faults.checkers.stays import judge_stays
from tests.faults.checkers.turns import judge_turns
from tests.faults.checkers.versions import Use, judge_versions
from tests.faults.workload.history import Op, Told
from tests.faults.workload.tables import ACCOUNTS, BALANCE, RETRIED_ROW, Tables, items_of

LOOK_AGAIN_S: Final = 0.3
"""Each look goes over all that was fed, on processors that those who feed want."""
Rows = Sequence[tuple[Any, ...]]


class Counts(NamedTuple):
    """What the application that counts has told so far, and of the counter's table: its id, and
    whether each count is to be right (`judge_activity`)."""

    windows: Callable[[], Sequence[Mapping[str, Any]]]
    table_id: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a round has left. `nodes`: node → table → rows; `first`, `again`: answers by request;
    `counted`: LSNs of the counter's acknowledged writes; `fed`: life of a follower → its lines so
    far; `seconds`: how long the feed may take to have everything; `activity`: None where nobody
    counts."""

    ops: Sequence[Op]
    tables: Tables
    nodes: Mapping[str, Mapping[str, Rows]]
    first: Mapping[str, Sequence[Mapping[str, Any]]]
    again: Mapping[str, Mapping[str, Any]]
    counted: Sequence[int]
    fed: Callable[[], Mapping[str, Sequence[Mapping[str, Any]]]]
    seconds: float
    activity: Counts | None = None
    shapes: Callable[[], Shapes] = dict
    """Of the tables of the menu of schema changes, by their schemas."""
    menu_rows: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Node → schema of the menu → how many rows its table has."""
    kept: Mapping[str, Mapping[Cell, Any]] = field(default_factory=dict)
    """Node → what it shows of the values that one client alone has written."""


def judge(evidence: Evidence) -> list[str]:
    """Return everything that contradicts a promise, a sentence each."""
    tables, ops = evidence.tables, evidence.ops
    first, *others = evidence.nodes.values()
    wrong = [
        f"nodes: {table} differs between nodes"
        for other in others
        for table, rows in other.items()
        if sorted(rows) != sorted(first[table])
    ]
    lists = {number: tuple(items_of(text)) for number, text in first[tables.lists]}
    wrong += judge_appends(ops, lists)
    wrong += judge_looks(ops)
    wrong += judge_registers(ops)
    wrong += judge_moves(ops, dict(first[tables.registers]))
    initial = dict.fromkeys(range(ACCOUNTS), BALANCE)
    wrong += judge_bank(ops, initial, dict(first[tables.accounts]))
    members = {name: rows[tables.members] for name, rows in evidence.nodes.items()}
    wrong += judge_members(ops, members)
    wrong += judge_members(*_lingering(evidence))
    wrong += judge_members(*_pairs(evidence))
    wrong += judge_turns({name: rows[tables.turns] for name, rows in _of(evidence, tables.turns)})
    wrong += judge_stays(ops)
    wrong += judge_kept(ops, evidence.kept)
    wrong += judge_outcomes(evidence.first, evidence.again)
    counts: dict[int, int] = dict(first[tables.counter])
    if counts[0] != len(evidence.counted):
        words = f"{len(evidence.counted)} were acknowledged, each once, and it is {counts[0]}"
        wrong.append(f"counter: {words}")
    retried = sum(op.kind == "retried" and op.told is Told.YES for op in ops)
    if counts[RETRIED_ROW] != retried:
        words = f"{retried} were acknowledged, each once, and it is {counts[RETRIED_ROW]}"
        wrong.append(f"retried counter: {words}")
    wrong += _judge_changes(evidence)
    wrong += _judge_feed(evidence, first)
    if evidence.activity is not None:
        wrong += _judge_activity(evidence.activity, 1 + sum(counts.values()), evidence.seconds)
    return wrong


def _of(evidence: Evidence, table: str) -> list[tuple[str, Mapping[str, Rows]]]:
    """Return the nodes that were asked for a table."""
    return [(name, rows) for name, rows in evidence.nodes.items() if table in rows]


def _pairs(evidence: Evidence) -> tuple[list[Op], dict[str, Rows]]:
    """Return the rows of a table without a primary key as inserts into a set, and what nodes have
    of them."""
    table = evidence.tables.loose
    inserts = [
        op._replace(kind="insert", value={"tag": tag})
        for op in evidence.ops
        if op.kind == "pair"
        for tag in op.value["tags"]
    ]
    return inserts, {name: rows[table] for name, rows in _of(evidence, table)}


def _lingering(evidence: Evidence) -> tuple[list[Op], dict[str, list[tuple[int, str]]]]:
    """Return the rows of transactions that stayed open as inserts into a set, and what nodes have
    of them."""
    table = evidence.tables.late
    ops = [op for op in evidence.ops if op.kind == "linger"]
    there = {name: rows[table] for name, rows in _of(evidence, table)}
    return (
        [op._replace(kind="insert", value={"tag": str(op.value["id"])}) for op in ops],
        {name: [(number, str(number)) for number, _ in rows] for name, rows in there.items()},
    )


def _judge_activity(told: Counts, commits: int, seconds: float) -> list[str]:
    """Judge what was counted, once that is enough. `commits`: with the first rows'."""
    pause, give_up_s = threading.Event(), time.monotonic() + seconds
    while True:
        windows = told.windows()
        wrong = judge_activity(windows, told.table_id, commits, exact=told.exact)
        if not wrong or time.monotonic() > give_up_s:
            return wrong
        pause.wait(LOOK_AGAIN_S)


def _judge_changes(evidence: Evidence) -> list[str]:
    """Judge schema changes, once the last version events have been read."""
    pause, give_up_s = threading.Event(), time.monotonic() + evidence.seconds
    while True:
        wrong = judge_changes(evidence.ops, evidence.shapes(), evidence.menu_rows)
        if not wrong or time.monotonic() > give_up_s:
            return wrong
        pause.wait(LOOK_AGAIN_S)


def _judge_feed(evidence: Evidence, store: Mapping[str, Rows]) -> list[str]:
    tables, pause = evidence.tables, threading.Event()
    final = {
        tables.members: {(number,): {"tag": tag} for number, tag in store[tables.members]},
        tables.accounts: {(n,): {"balance": balance} for n, balance in store[tables.accounts]},
        tables.counter: {(n,): {"n": value} for n, value in store[tables.counter]},
    }
    give_up_s = time.monotonic() + evidence.seconds
    while True:
        lives = evidence.fed()
        changes = {name: _changes(lines) for name, lines in lives.items()}
        newest = max((name for name in changes if not name.startswith("h1")), key=_life, default="")
        wrong = ["feed: no follower has a life"]
        if newest:
            wrong = judge_end(changes[newest], final, {tables.counter: evidence.counted})
        if not wrong or time.monotonic() > give_up_s:
            break
        pause.wait(LOOK_AGAIN_S)
    for its in changes.values():
        wrong += judge_life(its)
    uses = [Use(*line["use"]) for lines in lives.values() for line in lines if "use" in line]
    return wrong + judge_versions(uses)


def _life(name: str) -> int:
    return int(name.rsplit("-", 1)[1])


def _changes(lines: Sequence[Mapping[str, Any]]) -> list[Change]:
    made = []
    for line in lines:
        if "change" in line:
            fields = line["change"]
            more = {"key": tuple(fields["key"]), "columns": tuple(fields["columns"])}
            made.append(Change(**{**fields, **more}))
    return made
