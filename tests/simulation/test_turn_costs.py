"""Turns take time: no message, whatever it takes to decide it, loses a term or holds up the next
request for longer than a moment."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import msgpack
import pytest

from leasehold.model import budget
from leasehold.model.budget import CALL_WORK_MAX
from leasehold.model.records.acks import Ack
from leasehold.model.records.jobs import Chunk, ChunksEnd, Findings
from leasehold.replication.master.attempts import BUSY_MS_MAX
from leasehold.replication.master.batch_limits import LARGE_OPERATIONS
from leasehold.replication.master.large_request import OversizedRequest
from leasehold.replication.master.request_budget import RequestBudget
from leasehold.replication.master.request_queue import RequestQueue
from leasehold.replication.master.write_behind import WriteBehind
from leasehold.replication.node import Node
from leasehold.transaction import verify
from leasehold.transaction.decide import decide
from tests.simulation.harm import Harm
from tests.simulation.simulation import MS
from tests.simulation.stage import Stage
from tests.simulation.work_costs import work_takes_time

ANSWERED_MS = 1_500
"""The next good request, on a machine that is busy with the bad one."""
SLOW = 20
HARD = 12_345
MANY = LARGE_OPERATIONS + 500


def epoch(stage: Stage) -> int:
    return stage.reference.position.epoch


def rows(first: int, count: int = MANY) -> list[dict[str, Any]]:
    keys = range(first, first + count)
    return [{"table": "t", "op": "insert", "key": {"id": n}, "values": {"a": n}} for n in keys]


def put(stage: Stage, topic: str, value: bytes, content_type: str = "") -> None:
    headers = {"content-type": content_type} if content_type else {}
    stage.cluster.bus.append(topic, 0, b"", value, headers)


def many_rows(stage: Stage) -> None:
    stage.ask({"transaction": rows(10)})


def many_refused_rows(stage: Stage) -> None:
    for turn in range(3):
        last = {"table": "t", "op": "insert", "key": {"id": 1}, "values": {"a": 1}}
        many = [*rows(10 + turn * MANY), last]
        stage.ask({"transaction": many, "on_conflict": "fail"})


def computes_long(stage: Stage) -> None:
    """As long as a call may, for each of many rows."""
    values = {"a": HARD}
    many = [{"table": "t", "op": "upsert", "key": {"id": n}, "values": values} for n in range(200)]
    stage.ask({"transaction": many})


def computes_long_in_a_row(stage: Stage) -> None:
    stage.ask(stage.update(1, HARD + 1))


def packed_rows(stage: Stage) -> None:
    body = {"id": stage.cluster.fresh_id(), "transaction": rows(10, 3 * MANY)}
    data = zlib.compress(msgpack.packb(body))
    put(stage, stage.cluster.topics.requests.name, data, "application/msgpack+zlib")


def long_ddl(stage: Stage) -> None:
    columns = ", ".join(f"c{n} bigint check (c{n} > {n})" for n in range(300))
    for turn in range(5):
        stage.ask({"sql": f"create table w{turn} (id bigint primary key, {columns}, z nosuch)"})


def garbage(stage: Stage) -> None:
    topics = stage.cluster.topics
    for topic in (topics.requests.name, topics.backfill.name, topics.acks.name):
        for value in (b"", b"\xc1", b"{" * 5_000, b"\x93\x01\x63\x01", bytes(100_000)):
            put(stage, topic, value)


def odd_records(stage: Stage) -> None:
    """Of kinds that a master takes, about what is not there; a position that nobody can have."""
    topics, codec = stage.cluster.topics, stage.codec
    key = (2**63, b"", None)
    for record in (
        Chunk(99, 1, 1, 1, 7, (key, ())),
        ChunksEnd(99, 1, -1, -1),
        Findings(99, 1, 1, 1, 1, 1, ((1, key),)),
    ):
        put(stage, topics.backfill.name, codec.encode(record))
    ack = Ack("r1", b"x", "replicant", 10**18, 10**6, 10**18, 10**18, True, "", -1)
    put(stage, topics.acks.name, codec.encode(ack))


POISON: dict[str, Callable[[Stage], None]] = {
    each.__name__: each
    for each in (
        many_rows,
        many_refused_rows,
        computes_long,
        computes_long_in_a_row,
        packed_rows,
        long_ddl,
        garbage,
        odd_records,
    )
}


@pytest.fixture
def computing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a row computes that is written with a certain number: as long as a call may, or several
    of them."""

    def charging(operation: Any, *arguments: Any, **named: Any) -> Any:
        if operation.values.get("a") == HARD:
            budget.charge(CALL_WORK_MAX)
        elif operation.values.get("a") == HARD + 1:
            for _ in range(50):
                budget.charge(CALL_WORK_MAX)
        return decide(operation, *arguments, **named)

    monkeypatch.setattr(verify, "decide", charging)


def demand_steady(kind: str) -> None:
    """Raise AssertionError or Harm where that message loses a term, or holds up the next one."""
    stage = Stage()
    # A call can't be interrupted, nor can DDL be planned in parts.
    factor = 1 if kind.startswith("computes") else 5 if kind == "long_ddl" else SLOW
    with work_takes_time(stage.cluster, factor) as meter:
        stage.passing(1_000)
        before = epoch(stage)
        POISON[kind](stage)
        stage.passing(20)
        good = stage.ask(stage.update(2, 7))
        if kind in ("garbage", "odd_records", "computes_long_in_a_row"):
            within_ms = ANSWERED_MS
        else:  # behind rows that are taken, or looked at up to the end, one after the other
            within_ms = 30_000
        stage.until(lambda: good in stage.results, "the next answer", "turn", within_ms)
        assert stage.answer(good).lsn
        stage.passing(3_000)
        assert epoch(stage) == before, "a term was lost"
        assert meter.longest_ns < BUSY_MS_MAX * MS, (meter.longest_of, meter.longest_ns / MS)
        assert len(stage.coherent()) == 2
    assert stage.row(2)[2] == 7


@pytest.mark.parametrize("kind", POISON)
@pytest.mark.usefixtures("computing")
def test_no_term_is_lost_and_the_next_request_is_answered(kind: str) -> None:
    """Of a master that is alone with it for as long as it takes, on slow machines."""
    demand_steady(kind)


def _all_at_once(large: OversizedRequest, *_: Any) -> bool:
    while _goes_on(large, lambda: 0, 1):
        pass
    return False


_goes_on = OversizedRequest.goes_on
BROKEN: dict[str, tuple[str, type, str, Any]] = {
    "verified at once": ("many_refused_rows", OversizedRequest, "goes_on", _all_at_once),
    "put at once": ("many_rows", WriteBehind, "settle_until", lambda late, _: late.settle()),
    "read at once": ("packed_rows", RequestQueue, "read_first", lambda *_: True),
    "computed without a limit": (
        *("computes_long_in_a_row", RequestBudget, "charge"),
        lambda _, work: budget.check_call(work),
    ),
    "one that stumbles over an acknowledgement ends": (
        *("odd_records", Node, "_take_told"),
        lambda node, event, now: node.master.take_acknowledgement(event.record.node.nothing, now),
    ),
}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.usefixtures("computing")
def test_that_can_fail(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    kind, owner, method, broken = BROKEN[how]
    monkeypatch.setattr(owner, method, broken)
    with pytest.raises((AssertionError, AttributeError, Harm)):
        demand_steady(kind)
