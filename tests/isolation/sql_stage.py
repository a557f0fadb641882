"""SQL sessions on the in-memory system, in its virtual time, whose nodes keep their rows in SQLite,
as real ones do."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from leasehold.adapters.codec.request_encoding import encode_request
from leasehold.adapters.os.memory_pool import MemoryPool
from leasehold.adapters.os.temp_room import TempRoom
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.admin.view import ClusterView
from leasehold.catalog.access import Access
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.job import Job
from leasehold.client.pending import Pending
from leasehold.in_process.node import MemoryNode
from leasehold.lease.agent.held_leases import Use
from leasehold.lease.agent.session import HolderLimits
from leasehold.model.audit import AuditLog, NotAudited
from leasehold.model.records.requests import ChangeRequest, DeadLetter, Outcome
from leasehold.model.traces import NO_SPANS, SpanSink
from leasehold.replica.advisory_locks import NodeLocks
from leasehold.replica.as_of import snapshot_lsn_of
from leasehold.replica.notifications import NodeNotifications
from leasehold.replica.reads import Reads
from leasehold.replica.sequences.node_blocks import NodeSequenceValues
from leasehold.replica.sessions import Sessions
from leasehold.replication.node import Node
from leasehold.transaction.isolation import Isolation
from leasehold.values.dates import AsOf
from tests.isolation.sql_told import Answered, SqlTold
from tests.simulation.simulation import MS
from tests.simulation.stage import ASKER, Stage
from tests.support.memory_store.stores import MemoryStores
from tests.support.sql_session.sql_client import SqlClient

SQL_NODES = ("r1", "r2")


class _Stores(MemoryStores):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self.sqlite: dict[str, SqliteStore] = {}

    def open(self, name: str) -> Any:
        if name in self.sqlite:
            self.sqlite[name].close()
        self.sqlite[name] = SqliteStore(self._folder / name / "store.db", cache_mb=1)
        return self.sqlite[name]

    def get(self, name: str) -> Any:
        return self.sqlite[name]


class SqlStage(Stage):
    """`close` it: its stores are files in `folder`. `repeats`: how many of the requests of its
    sessions arrive twice."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self._folder = folder
        self.repeats = 0.0
        self.repeated = 0
        self._chance = random.Random(0)
        self.sequence_values: dict[str, NodeSequenceValues] = {}
        """Of each node's present life."""
        super().__init__(**options)

    def _made_stores(self) -> MemoryStores:
        self._stores = _Stores(self._folder)
        return self._stores

    def _committed(self, name: str) -> int:
        return self._stores.sqlite[name].position().offset

    def put(self, kind: str, body: bytes) -> None:
        """A request, and perhaps once more while it is decided, or when it has been answered."""
        self.cluster.put(kind, body)
        if self._chance.random() < self.repeats:
            self.repeated += 1

            def again() -> None:
                self.cluster.put(kind, body)

            self.scheduler.later(self._chance.choice((1, 5, 400)) * MS, again)

    def sql_node(self, name: str = "r1") -> StageNode:
        return StageNode(self, self.node(name))

    def ask_sql(self, node: str, text: str) -> list[Any]:
        """In a session of its own."""
        client = SqlClient(self, node)
        try:
            return client.ask(text)
        finally:
            client.session.close()

    def close(self) -> None:
        for store in self._stores.sqlite.values():
            store.close()


class StageNode:
    """A `SqlNode` of one thread: whoever waits lets virtual time pass."""

    def __init__(self, stage: SqlStage, node: MemoryNode) -> None:
        self._stage = stage
        self._node = node
        self._ids: dict[bytes, bytes] = {}
        self.sessions = Sessions()
        ledger, ids = stage.cluster.ledger, iter(range(1, 1_000))
        limits, end = HolderLimits(), self.sessions.end
        self.advisory_locks = NodeLocks(self.name, lambda: ledger, ids, limits, end, lambda: 0)
        self.notifications = NodeNotifications(self.name, self.sessions.tell, end)

    @property
    def name(self) -> str:
        return self._node.settings.name

    @property
    def sequence_values(self) -> NodeSequenceValues:
        made = NodeSequenceValues(self.submit, self.single_read)
        return self._stage.sequence_values.setdefault(self.name, made)

    @property
    def audit(self) -> AuditLog:
        return NotAudited()

    @property
    def spans(self) -> SpanSink:
        return NO_SPANS

    def cluster(self) -> ClusterView:
        raise AssertionError("no story asks for it")

    def dead_letters(self) -> list[tuple[int, DeadLetter]]:
        return []

    def uses(self) -> list[tuple[Use, int, int]]:
        agent = self._running.agent
        return [] if agent is None else agent.leases.named_uses()

    def tables(self) -> Sequence[Descriptor]:
        store = self._node.store
        assert isinstance(store, SqliteStore)
        with store.open_snapshot() as snapshot:
            return snapshot.tables()

    def described(self) -> Mapping[str, str]:
        return {"LEASEHOLD_NODE": self.name}

    @property
    def database(self) -> str:
        return self._stage.cluster.shape.database

    @property
    def temp(self) -> TempRoom:
        store = self._node.store
        assert isinstance(store, SqliteStore)
        return store.memory.temp

    @property
    def pool(self) -> MemoryPool:
        store = self._node.store
        assert isinstance(store, SqliteStore)
        return store.memory.pool

    @property
    def _running(self) -> Node:
        assert self._node.node is not None, "it is up"
        return self._node.node

    @property
    def coherent(self) -> bool:
        return self._node.reads()

    def reads(self, label: str, snapshot_lsn: int | None = None) -> Reads:
        agent = self._running.agent
        leases = agent.leases if agent else None
        left = self._node.users_left
        store: Any = self._node.store
        return Reads(store, self._node.reads, leases, left, label, snapshot_lsn)

    def single_read(self, *, snapshot_lsn: int | None = None) -> Reads:
        store: Any = self._node.store
        return Reads(store, self._node.reads, None, lambda: None, snapshot_lsn=snapshot_lsn)

    def snapshot_lsn(
        self, isolation: Isolation, as_of: AsOf | None, timeout_s: float
    ) -> int | None:
        def pass_barrier() -> None:
            self._stage.pass_barrier(self._node)

        store, now_us = self._node.store, self._node.now().wall_us
        wait, reads = self._stage.comes_true, self._node.reads
        return snapshot_lsn_of(isolation, as_of, store, reads, pass_barrier, wait, now_us)  # type: ignore[arg-type]

    def submit(
        self, request: ChangeRequest, timeout_s: float, stopped: Callable[[], bool] | None = None
    ) -> Outcome:
        stage = self._stage
        # Ids are of the system's time, which is not that of this process.
        known = self._ids.setdefault(request.id, stage.cluster.fresh_id())
        stage.put(*encode_request(request._replace(id=known, reply_to=ASKER)))

        def found() -> Outcome | None:
            given = stage.results.get(known, [])
            mine = (o for o in given if o.settles(request.attempt))
            return next(mine, None)

        stage.until(lambda: found() is not None, f"an answer to {known.hex()}", "L7")
        outcome = found()
        assert outcome is not None
        return outcome

    def send(self, request: ChangeRequest) -> Pending | None:
        return None

    def jobs(self) -> Mapping[int, Job]:
        return self._running.catalog.jobs

    @property
    def access(self) -> Access:
        return self._running.catalog.access

    def has_newer(self, descriptor: Descriptor) -> bool:
        return self._running.catalog.has_newer(descriptor)

    def is_settled(self) -> bool:
        return bool(self._node.store.position().lsn >= self._running.position.lsn)

    def sees_below(self, lsn: int) -> bool:
        return bool(self._running.sees_below(lsn))

    def wait(self, met: Callable[[], bool], timeout_s: float) -> bool:
        for _ in range(int(timeout_s * 1_000)):
            if met():
                break
            self._stage.passing(1)
        return met()

    def check_running(self) -> None:
        """Do nothing: no story asks for it."""

    def wake_waiters(self) -> None:
        """One thread: nobody waits."""


class SqlScene:
    """`Stands`: table test with (1, 10) and (2, 20); sessions at one level, on r1 and r2 in turn.
    `sessions_opened`: for those who look inside."""

    def __init__(
        self,
        folder: Path,
        level: str,
        *,
        verify_retry: bool = True,
    ) -> None:
        self.level = level
        self.stage = SqlStage(folder)
        self._verify_retry = verify_retry
        self.clients: list[SqlClient] = []
        make = "create table test (id bigint primary key, value bigint)"
        self.ask("r1", f"{make}; insert into test values (1, 10), (2, 20)")
        self.stage.until(self._holds_leases, "leases of the new table")

    def _holds_leases(self) -> bool:
        """Without one a transaction reads under D3, and no job waits for it."""
        tables = self.stage.reference.catalog.tables()
        nodes = [self.stage.node(name).node for name in SQL_NODES]
        agents = [node.agent for node in nodes if node is not None and node.agent is not None]
        return len(agents) == len(nodes) and all(
            table.table_id in agent.leases.newest for agent in agents for table in tables
        )

    def ask(self, node: str, text: str) -> list[Any]:
        return self.stage.ask_sql(node, text)

    def sessions(self, count: int) -> list[SqlTold]:
        return [self.session(f"r{1 + n % 2}").begin() for n in range(count)]

    def session(self, node: str) -> SqlTold:
        client = SqlClient(self.stage, node)
        self.clients.append(client)
        if not self._verify_retry:
            client.ask("set verifyretry off")

        def ask(text: str) -> Answered:
            rows = client.ask(text)
            return Answered(client.tags[-1], rows)

        return SqlTold(ask, self.level)

    def rows(self) -> dict[int, Any]:
        seen = [dict(self.ask(node, "select id, value from test")) for node in SQL_NODES]
        assert seen[0] == seen[1], seen
        return seen[0]

    def close(self) -> None:
        for client in self.clients:
            client.session.close()
        self.stage.close()
