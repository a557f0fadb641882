"""`python -m tests.support.cluster.compiled_run FOLDER SEED…`: what a master and a follower make of
many requests, and the whole system in runs under seeds, as digests. For two processes to be
compared: everything that could differ by itself (time, ids, incarnations) is given."""

from __future__ import annotations

import itertools
import json
import random
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import apsw

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.codec.request_bytes import pack_fields
from leasehold.adapters.os.compiled import version_line
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.model.errors import MalformedRequest
from leasehold.model.ids import format_request_id, genid, request_id
from leasehold.model.ports import Now
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
)
from leasehold.replication.node import Node
from leasehold.replication.node_settings import NodeSettings
from tests.simulation.plan import plan_of
from tests.simulation.simulation import Simulation

CODEC: Final = MessagePackCodec()
REQUESTS: Final = 1_500
UNIX_MS: Final = 1_790_000_000_000
TABLES: Final = (
    """CREATE TABLE p (id bigint PRIMARY KEY, name varchar(5) UNIQUE, n integer NOT NULL DEFAULT 7,
       amount numeric(10, 2), at timestamp, CHECK (n >= 0))""",
    """CREATE TABLE c (a integer, b text, p bigint REFERENCES p ON DELETE CASCADE,
       PRIMARY KEY (a, b))""",
    "CREATE TABLE k (words text, data bytea, flag boolean)",
)
VALUES: Final[tuple[Any, ...]] = (
    *(0, 1, -1, 7, 2**31, 2**63, 2**70, 1.5, float("inf"), True, None, "", "abc", "abcdef", "é"),
    *("12.345", "2026-01-02 03:04:05", b"\x00", [], [1], {}, {"expr": "n - 1"}, {"expr": "n +"}),
    *({"expr": "n / 0"}, {"expr": "n - $1", "args": [2], "types": ["integer"]}, {"expr": 3}),
)
STRANGE: Final = (
    *(b"", b"{", b"[]", b"null", b"\xc1", b"\x80", b'{"table": "p"}', b'{"sql": 1}', b"\xff" * 40),
    *(b'{"table": "p", "op": "insert", "op": "delete"}', b'{"operations": [[], 1]}'),
    *(
        b'{"table": "p", "op": "delete", "key": ' + b"[" * n + b"]" * n + b"}"
        for n in (50, 300, 800)
    ),
)


class Pair:
    """A master and a follower on a store each, and a clock that each step moves on."""

    def __init__(self, folder: Path) -> None:
        self._steps = itertools.count(1)
        self.log: list[bytes] = []
        self.sent: list[bytes] = []
        self.stores: dict[str, SqliteStore] = {}
        self.master = self._node(folder, "m", candidate=True)
        self._follower = self._node(folder, "f", candidate=False)
        while self.master.master is None:
            self._perform(self.master.step(Tick(), self._now()))

    def _now(self) -> Now:
        step = next(self._steps)
        return Now(step * 20_000_000, UNIX_MS * 1_000 + step * 20_000)

    def _node(self, folder: Path, name: str, *, candidate: bool) -> Node:
        settings = NodeSettings(name, candidate=candidate, serving=not candidate)
        store = self.stores[name] = SqliteStore(folder / f"{name}.db")
        return Node(settings, store, CODEC, name.encode() * 8, itertools.count(1), self._now())

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Append):
                offset = len(self.log)
                self.log.append(effect.data)
                digest = CODEC.digest(effect.data)
                for node in (self.master, self._follower):
                    record = node.own_record(digest) or CODEC.decode_log(effect.data)
                    self._perform(node.step(LogRead(offset, record, digest), self._now()))
            elif isinstance(effect, AskLogEnd):
                self._perform(self.master.step(LogEnd(len(self.log)), self._now()))
            elif isinstance(effect, Send):
                self.sent.append(effect.topic.encode() + CODEC.encode(effect.record))
                if effect.token:
                    self.master.step(Sent(effect.token), self._now())

    def ask(self, offset: int, content_type: str, body: bytes) -> None:
        self.master.step(QueueRead(Queue.REQUESTS, offset, content_type, body), self._now())
        if offset % 7 == 0:
            for node in (self.master, self._follower, self.master):
                self._perform(node.step(Tick(), self._now()))


def requests(rng: random.Random) -> Iterator[tuple[str, bytes]]:
    """Good ones and such as strangers send, over few rows, so that they meet."""
    for number in range(REQUESTS):
        wanted = _request(rng) if number >= len(TABLES) else {"sql": TABLES[number]}
        fields = {
            **wanted,
            "id": request_id(UNIX_MS + number, rng.randbytes(10)),
            "on_conflict": rng.choice(("fail", "replay")),
            "reply_to": rng.choice((-1, 0, 0)),
        }
        try:
            content_type, body = pack_fields(fields)
        except MalformedRequest:  # only JSON has a form for it
            fields["id"] = format_request_id(fields["id"])
            content_type, body = "application/json", json.dumps(fields, default=str).encode()
        if rng.random() < 0.05:
            body = rng.choice((*STRANGE, body[:-1], body + b"\x00"))
            content_type = rng.choice(("application/json", content_type, "text/plain"))
        yield content_type, body


def _request(rng: random.Random) -> dict[str, Any]:
    operations = [_operation(rng) for _ in range(rng.choice((1, 1, 1, 2, 5)))]
    return operations[0] if len(operations) == 1 else {"transaction": operations}


def _operation(rng: random.Random) -> dict[str, Any]:
    table = rng.choice((*"pppppcck", "gone"))
    op = rng.choice((*("insert", "upsert", "update", "delete") * 5, "merge"))
    small = rng.randrange(12)
    made: dict[str, Any] = {"table": table, "op": op}
    plain: dict[str, Any] = {}
    if table == "c":
        made["key"] = rng.choice(([small, "x"], {"a": small, "b": "y"}, [small]))
        plain = {"p": rng.randrange(12)}
    elif table == "p":
        made["key"] = rng.choice(([small], {"id": small}, [str(small)]))
        plain = {"n": rng.randrange(-1, 9), "name": rng.choice("abcdef") + str(small % 3)}
    if rng.random() < 0.3:
        plain[rng.choice(("n", "amount", "at", "name", "p", "words", "none"))] = rng.choice(VALUES)
    if op != "delete" or rng.random() < 0.1:
        made["values"] = plain
    if rng.random() < 0.3:
        made["expect"] = rng.choice((0, genid(rng.randrange(400), 0), {"main": 1}, -1, "x"))
    return made


def _contents(store: SqliteStore, path: Path) -> str:
    """Everything that is in the file, by table."""
    store.close()
    summed = blake2b(digest_size=16)
    with apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY) as connection:
        found = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'")
        for name, sql in sorted((str(name), str(sql)) for name, sql in found):
            rows = sorted(map(repr, connection.execute(f'SELECT * FROM "{name}"')))
            summed.update("\n".join((name, sql, *rows)).encode())
    return summed.hexdigest()


def _digest(parts: Iterable[bytes]) -> str:
    return blake2b(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).hexdigest()[:32]


def main(folder: Path, seeds: Iterable[int]) -> None:
    pair = Pair(folder)
    for offset, (content_type, body) in enumerate(requests(random.Random(1))):
        pair.ask(offset, content_type, body)
    found: dict[str, Any] = {
        "records": len(pair.log),
        "lsn": pair.master.position.lsn,
        "log": _digest(pair.log),
        "sent": _digest(pair.sent),
        "failed inside": sum(b"failed inside" in part for part in pair.log),
        **{name: _contents(store, folder / f"{name}.db") for name, store in pair.stores.items()},
    }
    for seed in seeds:
        # What work costs is counted by wrapping its pieces, which compiled code calls by itself.
        simulation = Simulation(seed, replace(plan_of(seed), work_factor=0))
        simulation.run()
        position = simulation.reference.position
        found[f"seed {seed}"] = [position.lsn, position.digest.hex(), list(simulation.history)]
    sys.stdout.write(json.dumps({"version": version_line(), "found": found}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), map(int, sys.argv[2:]))
