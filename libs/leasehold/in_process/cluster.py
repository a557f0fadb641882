"""A whole database in this process: nodes, ledger, changefeed, pipeline, subscribers on one bus.

Real time makes it `leasehold dev`, virtual time with a seed the simulation; the code that decides
anything is the services' own. All randomness comes from the `random.Random` given.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from leasehold.adapters.codec.request_bytes import pack_fields
from leasehold.in_process.backfill import MemoryBackfill
from leasehold.in_process.bus import MemoryBus, Scheduler
from leasehold.in_process.changefeed import MemoryChangefeed
from leasehold.in_process.ledger import MemoryLedger
from leasehold.in_process.network import Hops, PipelineHops
from leasehold.in_process.node import MemoryNode
from leasehold.in_process.pubsub import MemoryPubSub
from leasehold.in_process.retry import MemoryRetry
from leasehold.in_process.subscriber import MemorySubscriber
from leasehold.lease.agent.session import HolderLimits
from leasehold.model.features import incarnation_of
from leasehold.model.ids import INCARNATION_BYTES, request_id
from leasehold.model.ports import StoreWriter
from leasehold.model.records.requests import Queue
from leasehold.model.signatures import NO_KEYS, RequestKeys, Verifier, signer
from leasehold.model.topics import Topics
from leasehold.replication.election import ElectionSettings
from leasehold.replication.fast_path.log import FastLogSettings
from leasehold.replication.fast_path.own_appends import OwnAppendsSettings
from leasehold.replication.fast_path.requests import FastRequestSettings
from leasehold.replication.master.schema_changes import SchemaSettings
from leasehold.replication.master.settings import MasterSettings
from leasehold.replication.node_settings import NodeSettings

SESSION_IDS: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class ClusterShape:
    """How many of each; settings are the services' own, so what holds here holds there."""

    database: str = "dev"
    candidates: int = 2
    replicants: int = 2
    subscribers: int = 0
    election_timeout_ms: int = 2_000
    master: MasterSettings = field(default_factory=MasterSettings)
    schema: SchemaSettings = field(default_factory=SchemaSettings)
    leases: HolderLimits = field(default_factory=HolderLimits)
    fast_log: FastLogSettings = field(default_factory=lambda: FastLogSettings(on=False))
    fast_requests: FastRequestSettings = field(
        default_factory=lambda: FastRequestSettings(on=False)
    )
    own_appends: OwnAppendsSettings = field(default_factory=lambda: OwnAppendsSettings(on=False))
    """Off: in one process reading costs no more than being told."""
    keys: RequestKeys = NO_KEYS
    unsigned_role: str | None = None
    older: tuple[str, ...] = ()
    """Nodes that say they know no more than an earlier release."""
    disk_reserve_bytes: int = 0


class MemoryCluster:
    """The whole database. `open_store` opens the committed state of a node by its name (again after
    a crash), `hops_of` gives its delays and losses."""

    def __init__(
        self,
        scheduler: Scheduler,
        rng: random.Random,
        shape: ClusterShape | None = None,
        *,
        open_store: Callable[[str], StoreWriter],
        bus_delay_ns: Callable[[], int] = lambda: 0,
        hops_of: Callable[[str], Hops] = lambda _: Hops(),
        pipeline_hops: PipelineHops | None = None,
        changefeed_linger_ns: Callable[[], int] = lambda: 0,
    ) -> None:
        self.scheduler = scheduler
        self.shape = shape or ClusterShape()
        self._rng = rng
        self.topics = Topics(self.shape.database)
        self.bus = MemoryBus(scheduler, bus_delay_ns)
        self.ledger = MemoryLedger()
        self.pubsub = MemoryPubSub()
        self._open_store = open_store
        self.nodes: dict[str, MemoryNode] = {}
        for number in range(1, self.shape.candidates + 1):
            self._add_node(f"m{number}", number - 1, hops_of)
        for number in range(1, self.shape.replicants + 1):
            self._add_node(f"r{number}", None, hops_of)
        bus, topics = self.bus, self.topics
        self.changefeed = MemoryChangefeed(topics, scheduler, bus, changefeed_linger_ns)
        keys = self.shape.keys
        self.sign = signer(keys, topics.database)
        self.backfill = MemoryBackfill(topics, scheduler, bus, pipeline_hops, keys)
        self.retry = MemoryRetry(topics, scheduler, bus, pipeline_hops, keys)
        self.subscribers = {
            name: MemorySubscriber(
                name,
                topics,
                scheduler,
                bus,
                self.ledger,
                self._session_ids(),
                self.shape.leases,
                hops_of(name),
            )
            for name in (f"s{number}" for number in range(1, self.shape.subscribers + 1))
        }

    def _add_node(self, name: str, rank: int | None, hops_of: Callable[[str], Hops]) -> None:
        shape = self.shape
        verifier = Verifier(shape.database, shape.keys.master, shape.unsigned_role)
        settings = NodeSettings(
            name,
            candidate=rank is not None,
            serving=rank is None,
            master=replace(shape.master, verifier=verifier),
            election=ElectionSettings(timeout_ms=shape.election_timeout_ms, rank=rank or 0),
            schema=shape.schema,
            leases=shape.leases,
            fast_log=shape.fast_log,
            fast_requests=shape.fast_requests,
            own_appends=shape.own_appends,
            disk_reserve_bytes=shape.disk_reserve_bytes,
        )
        self.nodes[name] = MemoryNode(
            settings,
            self.topics,
            self.scheduler,
            self.bus,
            self.ledger,
            lambda: self._open_store(name),
            partial(self._incarnation, name),
            self._session_ids(),
            hops_of(name),
            self.pubsub,
        )

    def _incarnation(self, name: str) -> bytes:
        random = self._rng.randbytes(INCARNATION_BYTES)
        return random if name in self.shape.older else incarnation_of(random)

    def _session_ids(self) -> Iterator[int]:
        while True:
            yield self._rng.randrange(1, SESSION_IDS)

    def start(self) -> None:
        for node in self.nodes.values():
            node.start()
        self.changefeed.start()
        self.backfill.start()
        self.retry.start()
        for subscriber in self.subscribers.values():
            subscriber.start()

    def replicants(self) -> list[MemoryNode]:
        return [node for node in self.nodes.values() if node.settings.serving]

    def master(self) -> MemoryNode | None:
        """The node of the newest epoch that holds itself for master, if any."""
        masters = [
            node for node in self.nodes.values() if node.node is not None and node.node.master
        ]
        return max(masters, key=lambda n: n.node.position.epoch if n.node else 0, default=None)

    def fresh_id(self) -> bytes:
        return request_id(self.scheduler.now().wall_us // 1_000, self._rng.randbytes(10))

    def submit(self, fields: Mapping[str, Any], principal: str = "") -> bytes:
        """Put a change request of that role's on the queue now; return its id, a fresh one unless
        it brings one. Raises what `pack_fields` raises."""
        sent = dict(fields)
        sent.setdefault("id", self.fresh_id())
        media_type, body = pack_fields(sent)
        self.put(self.sign(Queue.REQUESTS, principal, media_type, body), body)
        chosen: bytes = sent["id"]
        return chosen

    def put(self, content_type: str, body: bytes) -> int:
        """Put the bytes of a request on the queue as they came in; return their offset."""
        headers = {"content-type": content_type}
        return self.bus.append(self.topics.requests.name, 0, b"", body, headers)
