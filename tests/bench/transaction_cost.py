"""Processor time that a transaction costs a master and a follower, without servers:
`python -m tests.bench.transaction_cost [UPDATES_A_RECORD [RECORDS]]`.

Both nodes are real, on a store each; the log between them is a list. Each record decides verified
updates of one small row each. What is printed is what a quarter of the records stayed below.
Beside other work it may be twice as much as on a quiet machine: compare versions by runs in turns.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, Final, TypeVar

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.os.clock import new_incarnation, new_request_id, now
from leasehold.adapters.os.garbage import collect_seldom
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.client.request_form import form
from leasehold.model.ids import genid
from leasehold.model.records.requests import Queue
from leasehold.replication.effects import (
    Append,
    AskLogEnd,
    Effect,
    LogEnd,
    LogRead,
    QueueRead,
    Send,
    Sent,
    Tick,
    Topic,
)
from leasehold.replication.node import Node
from leasehold.replication.node_settings import NodeSettings

UPDATES: Final = 150
"""About as many as there are in a record with a thousand in flight."""
RECORDS: Final = 60
ROWS: Final = 1_000
CODEC: Final = MessagePackCodec()
AnswerT = TypeVar("AnswerT")


class Pair:
    """A master and a follower; `spent`: ns of each record by what was done."""

    def __init__(self, folder: Path) -> None:
        self._stores: list[SqliteStore] = []
        self.master = self._node(folder / "m", candidate=True)
        self._follower = self._node(folder / "f", candidate=False)
        self.spent: defaultdict[str, list[int]] = defaultdict(list)
        self._log = 0
        self._requests = itertools.count()
        while self.master.master is None:
            self._perform(self.master.step(Tick(), now()))
            time.sleep(0.01)

    def _node(self, folder: Path, *, candidate: bool) -> Node:
        settings = NodeSettings(folder.name, candidate=candidate, serving=not candidate)
        store = SqliteStore(folder / "store.db")
        self._stores.append(store)
        return Node(settings, store, CODEC, new_incarnation(), itertools.count(1), now())

    def close(self) -> None:
        for store in self._stores:
            store.close()

    def _measured(self, what: str, call: Callable[[], AnswerT]) -> AnswerT:
        begin = time.thread_time_ns()
        answer = call()
        self.spent[what].append(time.thread_time_ns() - begin)
        return answer

    def _read(self, node: Node, data: bytes) -> list[Effect]:
        digest = CODEC.digest(data)
        record = node.own_record(digest) or CODEC.decode_log(data)
        return node.step(LogRead(self._log, record, digest), now())

    def _follow(self, data: bytes) -> list[Effect]:
        return self._read(self._follower, data) + self._follower.step(Tick(), now())

    def _append(self, data: bytes) -> list[Effect]:
        effects = self._measured("master: read back", lambda: self._read(self.master, data))
        self._measured("follower: apply", lambda: self._follow(data))
        self._log += 1
        return effects

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Append):
                self._perform(self._append(effect.data))
            elif isinstance(effect, AskLogEnd):
                self._perform(self.master.step(LogEnd(self._log), now()))
            elif isinstance(effect, Send) and effect.topic == Topic.RESULTS:
                self._measured("master: answer", lambda record=effect.record: CODEC.encode(record))  # type: ignore[misc]
                self.master.step(Sent(effect.token), now())

    def decide(self, requests: Iterable[dict[str, Any]]) -> int:
        """In as few records as may be; → the LSN of the first."""
        made = [form(request, 0, new_request_id) for request in requests]
        first = self.master.position.lsn + 1
        self._measured("master: take", lambda: self._take([each.body for each in made]))
        last = first + len(made) - 1
        while self.master.position.lsn < last:  # a record is under way, or gathers
            effects = self._measured("master: decide", lambda: self.master.step(Tick(), now()))
            self._perform(effects)
        self._perform(self.master.step(Tick(), now()))
        return first

    def _take(self, bodies: list[bytes]) -> None:
        for body in bodies:
            offset = next(self._requests)
            self.master.step(QueueRead(Queue.REQUESTS, offset, "application/msgpack", body), now())


def measure(updates: int, records: int) -> dict[str, float]:
    """µs of processor time per transaction, by what was done."""
    with tempfile.TemporaryDirectory() as folder, closing(Pair(Path(folder))) as pair:
        pair.decide([{"sql": "CREATE TABLE t (id bigint PRIMARY KEY, n bigint NOT NULL)"}])
        rows = [{"table": "t", "op": "insert", "key": [k], "values": {"n": 0}} for k in range(ROWS)]
        first = pair.decide(rows)
        genids = [genid(first + key, 0) for key in range(ROWS)]
        pair.spent.clear()
        turn = itertools.cycle(range(ROWS))
        for number in range(records):
            keys = list(itertools.islice(turn, updates))
            first = pair.decide(
                {
                    "table": "t",
                    "op": "update",
                    "key": [key],
                    "values": {"n": number},
                    "expect": genids[key],
                    "on_conflict": "fail",
                }
                for key in keys
            )
            for place, key in enumerate(keys):
                genids[key] = genid(first + place, 0)
        return {
            what: sorted(spent)[len(spent) // 4] * len(spent) / records / updates / 1e3
            for what, spent in pair.spent.items()
        }


def main() -> None:
    wanted = [int(text) for text in sys.argv[1:]]
    updates, records = (*wanted, *(UPDATES, RECORDS)[len(wanted) :])
    collect_seldom()
    found = measure(min(updates, ROWS), records)
    for who in ("master", "follower"):
        parts = {w.partition(": ")[2]: us for w, us in found.items() if w.startswith(who)}
        words = ", ".join(f"{what} {us:.1f}" for what, us in parts.items())
        sys.stdout.write(f"{who}: {sum(parts.values()):.1f} µs per transaction ({words})\n")


if __name__ == "__main__":
    main()
