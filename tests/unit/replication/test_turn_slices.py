"""A request of many rows, from its bytes to the store: in turns, between which heartbeats go out
and the log is read; and how long its expressions may compute in all. Time is that of a clock which
each piece of work moves."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any

import msgpack
import pytest

from leasehold.model import budget
from leasehold.model.budget import CALL_WORK_MAX
from leasehold.model.ids import format_request_id
from leasehold.model.records.jobs import ChunksEnd
from leasehold.model.records.log import Claim
from leasehold.model.records.requests import Queue
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.effects import AppendFailed, QueueRead
from leasehold.replication.log.apply import TOGETHER_MAX
from leasehold.replication.master.batch_limits import LARGE_OPERATIONS
from leasehold.replication.master.large_request import WORK_MS_MAX
from leasehold.replication.master.request_budget import REQUEST_WORK_MAX, ROW_WORK_MAX
from leasehold.transaction.decide import decide
from tests.support.memory_store.store import MemoryStore
from tests.support.replication.world import CODEC, TABLE, World, insert, update
from tests.unit.replication import test_backfill_queue
from tests.unit.replication.test_backfill_queue import CHUNK, ROWS, backfill, filled

queue = test_backfill_queue.queue
MANY = LARGE_OPERATIONS + 100
STEP_MS = 1
UNIQUE = "create table t (id bigint primary key, a integer unique, b text)"


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leasehold.replication.master.write_behind.MANY_CHANGES", LARGE_OPERATIONS)


def works(
    world: World, monkeypatch: pytest.MonkeyPatch, owner: object, method: str, each_ms: int
) -> None:
    real = getattr(owner, method)

    def working(*arguments: Any, **named: Any) -> Any:
        world.worked_ns += each_ms * NS_PER_MS
        return real(*arguments, **named)

    monkeypatch.setattr(owner, method, working)


def master_reads(world: World) -> None:
    """Hand the log to the candidate alone."""
    node, offset = world.node, -1
    while offset < node.position.offset < len(world.log):
        offset = node.position.offset
        world.perform(node.step(world.read(offset), world.now()))


def until(world: World, reached: Callable[[], bool], turns_max: int = 5_000) -> float:
    """Let turns pass; → the longest, in ms of work."""
    longest = 0
    for _ in range(turns_max):
        if reached():
            return longest / NS_PER_MS
        before = worked = world.worked_ns
        world.tick()
        longest, before = max(longest, world.worked_ns - before), world.worked_ns
        master_reads(world)
        longest = max(longest, world.worked_ns - before)
        world.ms += (world.worked_ns - worked) // NS_PER_MS
    raise AssertionError("waited in vain")


def packed(world: World, rows: list[dict[str, Any]]) -> bytes:
    """Queue a request behind zlib; → its id."""
    number = world.fresh_id()
    body = {"id": number, "reply_to": 1, "transaction": rows}
    data = zlib.compress(msgpack.packb(body))
    message = QueueRead(Queue.REQUESTS, next(world.offset), "application/msgpack+zlib", data)
    world.perform(world.node.step(message, world.now()))
    return number


@pytest.mark.parametrize(
    ("owner", "method"),
    [
        ("leasehold.adapters.codec.request_decoding._operation", ""),
        ("leasehold.transaction.verify.decide", ""),
        ("leasehold.transaction.uniqueness._key", ""),
        ("leasehold.replication.master.batch_limits.row_images", ""),
        (MemoryStore, "change"),
    ],
    ids=["read", "verified", "judged at its end", "measured", "put"],
)
def test_no_part_of_a_large_request_takes_longer_than_a_turn(
    monkeypatch: pytest.MonkeyPatch, owner: Any, method: str
) -> None:
    """Whatever takes long of it: heartbeats stand in the log between, and it is decided."""
    world = World()
    world.ask({"sql": UNIQUE if method == "" and "unique" in str(owner) else TABLE})
    monkeypatch.setattr(MemoryStore, "holders", lambda *_: ())  # it looks at each row
    if isinstance(owner, str):
        module, _, method = owner.rpartition(".")
        owner = __import__(module, fromlist=["_"])
    asked = packed(world, [insert(n, a=n, b="x" * 1_200) for n in range(MANY)])
    works(world, monkeypatch, owner, method, STEP_MS)
    begun = len(world.log)
    longest = until(world, lambda: bool(world.answers(asked)))
    assert world.answers(asked)[0].lsn
    # `_operation` is looked at in slices of 200, and inserts are put so many at a time.
    at_a_time = {"_operation": 200, "change": TOGETHER_MAX}.get(method, 2)
    assert longest <= WORK_MS_MAX + at_a_time * STEP_MS
    if method not in ("change", "row_images"):  # beside a record in flight; in a moment
        assert len(world.log) - begun > 3, "no heartbeat between"


def putting(world: World, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A large request in flight, its store told of a part, its record read."""
    world.ask({"sql": TABLE})
    works(world, monkeypatch, MemoryStore, "change", STEP_MS)
    asked = world.put({"transaction": [insert(n) for n in range(MANY)]})
    until(world, lambda: world.node.master is not None and world.node.master.is_putting)
    position = world.node.position
    master_reads(world)
    world.tick()
    assert world.node.position == position, "it counts when the store has all of it"
    assert len(world.log) > position.offset
    return asked


def test_l6_what_is_read_of_the_log_waits_for_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record in flight, and a barrier behind it, in their order."""
    world = World()
    asked = putting(world, monkeypatch)
    assert not world.answers(asked)
    until(world, lambda: bool(world.answers(asked)))
    assert world.row(world.node, MANY - 1) is not None
    assert world.ask(insert(MANY)).lsn


def test_l1_a_claim_behind_it_deposes_the_master_with_its_record_applied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    putting(world, monkeypatch)
    digest = CODEC.digest(world.log[-1])
    world.log.append(CODEC.encode(Claim(2, b"other", digest, "m2")))
    until(world, lambda: world.node.position.offset == len(world.log))
    assert world.node.master is None
    assert world.node.position.epoch == 2
    assert world.row(world.node, MANY - 1) is not None


def test_l4_a_term_that_ends_meanwhile_leaves_what_was_read_to_the_follower(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An append failed, and the record is in the log all the same: it is applied from there."""
    world = World()
    putting(world, monkeypatch)
    world.perform(world.node.step(AppendFailed("time-out"), world.now()))
    assert world.node.master is None
    until(world, lambda: world.node.position.offset == len(world.log))
    assert world.row(world.node, MANY - 1) is not None


# ------------------------------------------------------------------ work by count


def computes(monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    """Each operation computes so many of the longest calls that there may be."""

    def computing(*arguments: Any, **named: Any) -> Any:
        for _ in range(calls):
            budget.charge(CALL_WORK_MAX)
        return decide(*arguments, **named)

    monkeypatch.setattr("leasehold.transaction.verify.decide", computing)


ALLOWED = REQUEST_WORK_MAX // CALL_WORK_MAX
OF_A_ROW = ROW_WORK_MAX // CALL_WORK_MAX


@pytest.mark.parametrize(
    ("rows", "calls", "code"),
    [(1, OF_A_ROW, ""), (1, OF_A_ROW + 1, "54001"), (ALLOWED, 1, ""), (ALLOWED + 1, 1, "54001")],
)
def test_a_request_that_computes_too_long_is_refused_by_count(
    monkeypatch: pytest.MonkeyPatch, rows: int, calls: int, code: str
) -> None:
    """No term is lost over it, nothing of it is applied, and the next one has its own budget."""
    world = World()
    world.ask({"sql": TABLE})
    epoch = world.node.position.epoch
    computes(monkeypatch, calls)
    many = [insert(n) for n in range(rows)]
    asked = world.put(many[0] if rows == 1 else {"transaction": many})
    until(world, lambda: bool(world.answers(asked)))
    (outcome,) = world.answers(asked)
    assert (outcome.code, bool(outcome.lsn)) == (code, not code)
    assert world.node.position.epoch == epoch
    computes(monkeypatch, 1)
    for number in range(1_000, 1_000 + 2 * ALLOWED):
        assert world.ask(insert(number)).lsn


def test_what_every_node_computes_is_charged_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """⚠ Else an entry would be there on followers, and not on the master."""
    world = World()
    world.ask({"sql": TABLE})
    real = MemoryStore.change

    def charging(*arguments: Any) -> Any:
        budget.charge(CALL_WORK_MAX)
        return real(*arguments)

    monkeypatch.setattr(MemoryStore, "change", charging)
    rows = [insert(n) for n in range(3 * ALLOWED)]
    assert world.ask({"transaction": rows}).lsn


@pytest.mark.parametrize(("calls", "parts_max"), [(1, OF_A_ROW), (OF_A_ROW + 1, 0)])
def test_a_part_of_a_chunk_computes_no_longer_than_a_row_may(
    queue: World, monkeypatch: pytest.MonkeyPatch, calls: int, parts_max: int
) -> None:
    """Few rows at a time then; a row that alone computes longer ends its job."""
    real = __import__("leasehold.replication.master.backfill", fromlist=["_"]).compose

    def charging(*arguments: Any) -> Any:
        for _ in range(calls):
            budget.charge(CALL_WORK_MAX)
        return real(*arguments)

    monkeypatch.setattr("leasehold.replication.master.backfill.compose", charging)
    failed: list[int] = []
    assert queue.node.master is not None

    def failing(job_id: int, *_: object) -> tuple[()]:
        failed.append(job_id)
        return ()

    monkeypatch.setattr(queue.node.master.changes, "failing", failing)
    backfill(queue, CHUNK, ChunksEnd(1, 1, ROWS, 1))
    for _ in range(2 * ROWS):
        queue.tick()
        queue.pump()
    assert max(filled(queue), default=0) <= parts_max
    assert sum(filled(queue)) == (ROWS if parts_max else 0)
    assert failed == ([] if parts_max else [1])
    assert queue.ask(update(1, a=1)).lsn


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
@pytest.mark.parametrize("where", ["decode_request", "verify", "pack_commit"])
def test_what_a_request_runs_into_ends_no_master(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception], where: str
) -> None:
    """It is refused, and the next one decided."""
    world = World()
    world.ask({"sql": TABLE})

    def failing(*_: Any, **__: Any) -> Any:
        raise error

    with monkeypatch.context() as patched:
        if where == "verify":
            patched.setattr("leasehold.transaction.verify.decide", failing)
        else:
            patched.setattr(type(CODEC), where, failing)
        number = world.fresh_id()
        body = json.dumps({"id": format_request_id(number), "reply_to": 1, **insert(1)}).encode()
        world.raw(body)
        for _ in range(3):
            world.tick()
            world.pump()
    answers = world.answers(number)
    assert [a.code for a in answers] == (["XX000"] if where != "decode_request" else [])
    assert world.ask(insert(2)).lsn
