"""Random list-append transactions on the in-memory system: several clients on different replicas,
statements interleaved, commits on their way side by side, a master now and then replaced."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

from leasehold.adapters.codec.request_encoding import encode_request
from leasehold.model.errors import DuplicateKey, NotCoherent, SnapshotTooOld, StaleVersion
from leasehold.model.records.requests import OnConflict, Outcome
from leasehold.replica.as_of import snapshot_lsn_of
from leasehold.replica.reads import Reads
from leasehold.replica.write_set import WriteSet
from leasehold.transaction.isolation import Isolation, isolation_of
from tests.isolation.cycles import Transaction, anomalies
from tests.simulation.stage import ASKER, Stage

LISTS: Final = 4
CLIENTS: Final = 5
TRANSACTIONS: Final = 60
ATTEMPTS_MAX: Final = 8
Step = tuple[str, int, int]  # append or read, list, value


@dataclass(slots=True)
class Running:
    """One client's transaction. `done`: steps of this attempt; `asked`: its request, once sent."""

    told: Transaction
    steps: list[Step]
    node: str
    id: bytes
    tx: WriteSet | None = None
    done: int = 0
    attempt: int = 1
    asked: bool = False


class ListAppend:
    """`run()`, then `anomalies()`. `faults`: how many to a step."""

    faults = 0.004

    def __init__(self, seed: int, level: str) -> None:
        self._rng = random.Random(f"{seed}/{level}")
        self.isolation: Isolation = isolation_of(level)
        self.stage = self._made_stage()
        self.stage.settle({"sql": "create table lists (id bigint primary key, items text)"})
        self.history: list[Transaction] = []
        self._running: list[Running] = []
        self._values = 0
        self._clock = 0

    def _made_stage(self) -> Stage:
        return Stage()

    # ------------------------------------------------------------ the run

    def run(self) -> None:
        rng = self._rng
        while len(self.history) < TRANSACTIONS or self._running:
            self._clock += 1
            if len(self._running) < CLIENTS and len(self.history) < TRANSACTIONS:
                self._running.append(self._new())
            self._step(rng.choice(self._running))
            if rng.random() < 0.5:
                self.stage.passing(rng.choice((1, 1, 2, 5)))
            if rng.random() < self.faults:
                self._fault()

    def _new(self) -> Running:
        told = Transaction(len(self.history), begun=self._clock)
        self.history.append(told)
        steps: list[Step] = []
        appended: set[int] = set()
        for _ in range(self._rng.randrange(2, 5)):
            number, value = self._rng.randrange(LISTS), 0
            what = self._rng.choice(("append", "read", "read"))
            # Who does not see his own writes would put a second append over the first.
            if what == "append" and (self.isolation.own_writes or number not in appended):
                appended.add(number)
                self._values += 1
                value = self._values
            steps.append(("append" if value else "read", number, value))
        node = self._rng.choice(("r1", "r2"))
        return Running(told, steps, node, self.stage.cluster.fresh_id())

    def _fault(self) -> None:
        master = self.stage.master
        if master is not None:
            name = master.settings.name
            self.stage.scripted[name].fates.append(self._rng.choice(("lost", "unknown")))

    # ------------------------------------------------------------ one step of one client

    def _step(self, client: Running) -> None:
        if client.asked:
            self._look(client)
            return
        try:
            if client.tx is None:
                client.tx = self._begun(client)
            elif client.done < len(client.steps):
                self._statement(client, client.tx, client.steps[client.done])
                client.done += 1
            else:
                self._commit(client, client.tx)
        except (NotCoherent, StaleVersion, SnapshotTooOld, DuplicateKey):
            self._again(client)
            self.stage.passing(20)

    def _begun(self, client: Running) -> WriteSet:
        node = self.stage.node(client.node)
        snapshot_lsn = snapshot_lsn_of(
            self.isolation,
            None,
            node.store,  # type: ignore[arg-type]
            node.reads,
            lambda: self._pass_barrier(client.node),
            self.stage.comes_true,
            node.now().wall_us,
        )
        reads = Reads(node.store, node.reads, None, lambda: None, snapshot_lsn=snapshot_lsn)  # type: ignore[arg-type]
        return WriteSet(reads, self.isolation)

    def _pass_barrier(self, name: str) -> None:
        self.stage.pass_barrier(self.stage.node(name))

    def _statement(self, client: Running, tx: WriteSet, step: Step) -> None:
        what, number, value = step
        row = tx.get("lists", number)
        seen = _items(row)
        if what == "read":
            own = {v for n, v in client.told.appends if n == number}
            if self.isolation.own_writes or not own:
                client.told.reads.append((number, seen))
            return
        items = ",".join(map(str, (*seen, value)))
        if row is None:
            tx.insert("lists", number, {"items": items})
        else:
            assert tx.update("lists", number, {"items": items}), "it was seen"
        client.told.appends.append((number, value))

    def _again(self, client: Running) -> None:
        """Another run of all its statements; what the last one saw, nobody has heard of."""
        client.tx, client.done, client.asked = None, 0, False
        client.told.appends, client.told.reads = [], []

    def _commit(self, client: Running, tx: WriteSet) -> None:
        on_conflict = OnConflict.REPLAY if self.isolation.replays else OnConflict.FAIL
        request = tx.request(client.id, client.attempt, on_conflict)
        if request is None:
            self._end(client, committed=True)
            return
        self.stage.cluster.put(*encode_request(request._replace(reply_to=ASKER)))
        client.asked = True

    def _look(self, client: Running) -> None:
        outcome = self._outcome(client)
        if outcome is None:
            self.stage.passing(1)
        elif outcome.lsn:
            self._end(client, committed=True)
        elif outcome.final or client.attempt >= ATTEMPTS_MAX:
            self._end(client, committed=False)
        else:
            client.attempt += 1
            self._again(client)

    def _outcome(self, client: Running) -> Outcome | None:
        given = self.stage.results.get(client.id, [])
        settled = (o for o in given if o.lsn or o.final or o.attempt == client.attempt)
        return next(settled, None)

    def _end(self, client: Running, *, committed: bool) -> None:
        client.told.committed = committed
        client.told.ended = self._clock
        self._running.remove(client)

    # ------------------------------------------------------------ what it shows

    def final(self) -> dict[int, tuple[int, ...]]:
        self.stage.passing(200)
        found = []
        for name in ("r1", "r2"):
            snapshot = self.stage.stores.get(name).open_snapshot()
            lists = snapshot.newest("lists")
            items = lists.column("items").element_id
            rows = snapshot.scan(lists, None, None, rows_max=LISTS)
            found.append({key[0]: _split(row.values.get(items)) for key, row in rows})
        assert found[0] == found[1], "replicas hold the same"
        return found[0]

    def anomalies(self, *, real_time: bool = False) -> set[str]:
        return anomalies(self.history, self.final(), real_time=real_time)


def _items(row: dict[str, Any] | None) -> tuple[int, ...]:
    return () if row is None else _split(row["items"])


def _split(text: str | None) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()
