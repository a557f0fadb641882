"""Carries out the faults of a schedule: each is begun, and mended again."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import redis

from infra.ports import LOOPBACK
from infra.processes import ProcessFailure
from infra.redis.server import MEMORY_MB_MAX
from leasehold.adapters.kafka.reader import Record
from leasehold.adapters.kafka.whole_topic import read_to_end
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.model.errors import BusUnavailable
from leasehold.model.topics import Topics
from tests.faults.cluster import FaultCluster
from tests.faults.kinds import (
    BROKER_FULL,
    CONTROLLER,
    COPIED_BADLY,
    DISK_LOST,
    LINK_KINDS,
    PEER_KINDS,
    SHORT_OF_MEMORY,
    SYNC_FAILS,
    TAIL_LOST,
    TWO_MASTERS,
    WRITE_FAILS,
)
from tests.faults.links import Links
from tests.faults.parts import COPIES, KAFKA
from tests.faults.schedule import Event
from tests.support.cluster.connections import connections_of
from tests.support.cluster.system_disk import cut_end, tear_wal
from tests.support.cluster.system_memory import take_memory

FULL_FROM_BYTES: Final = 96 * 1024
"""Below it a process's files may grow: its log can still say what is wrong."""
FULL_FOR_REDIS: Final = "1"
MEMORY_OF_REDIS: Final = f"{MEMORY_MB_MAX}mb"
BURN: Final = "while True: pass"
GARBAGE: Final = (b"", b"\xc1", b"{" * 500, b"\x93\x01\x63\x01", b'{"id": 7}', bytes(50_000))
STORE: Final = "store.db"
REDIS_FILES: Final = ("appendonlydir", "dump.rdb")
WRONG: Final = "nobody has this password"
"""A replica that says one to a master without any gets nothing from it."""
ASK_S: Final = 2.0
NOBODY_NEW: Final = 1
"""Connections that a server may have: those that are there stay, and no other one comes."""
MAX_CLIENTS: Final = "maxclients"
METADATA: Final = "__cluster_metadata"
BROKER_CLOCK: Final = "broker_clock"
CLOCK_JUMPS: Final = ("clock_jump", BROKER_CLOCK)
STANDS_STILL_S: Final = 60
"""A controller whose clock was set back by less goes on by itself within a round."""
FULL_DISKS: Final = ("full_disk", BROKER_FULL)
SLOW_DISKS: Final = ("slow_disk", "redis_slow_disk", "broker_slow_disk")


class Injection:
    """Begins and mends faults on one cluster."""

    def __init__(self, cluster: FaultCluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._burners: list[subprocess.Popen[bytes]] = []
        self._left: tuple[redis.Redis, str] | None = None  # a Redis that is alone; its maxclients
        self._was: dict[str, str] = {}  # what a name stood for when a fault befell it
        self._chunks: list[Record] = []
        self._befallen: dict[str, int] = {}  # calls that a disk's fault had befallen before
        self.effects: Counter[str] = Counter()
        """By the kind of fault: calls that were late or have failed, frames or bytes that are
        lost, records that came twice."""
        self._pause = threading.Event()  # never set: it paces
        self._begin: dict[str, Callable[[Event], None]] = {
            "kill": lambda e: self._kill(e.who),
            "stop": lambda e: self._signal(e.who, signal.SIGTERM),
            "pause": lambda e: self._signal(e.who, signal.SIGSTOP),
            **dict.fromkeys((*LINK_KINDS, *PEER_KINDS), self._disturb),
            COPIED_BADLY: self._copy_badly,
            "older_disk": self._older_disk,
            "empty_disk": self._empty_disk,
            **dict.fromkeys(FULL_DISKS, self._fill_disk),
            SHORT_OF_MEMORY: self._take_memory,
            "torn_pages": self._tear,
            **dict.fromkeys(SLOW_DISKS, lambda e: self._disturb_disk(e, **e.detail)),
            SYNC_FAILS: lambda e: self._disturb_disk(e, syncs_fail=True),
            "redis_sync_fails": lambda e: self._disturb_disk(e, syncs_fail=True),
            WRITE_FAILS: lambda e: self._disturb_disk(e, syncs_fail=True, writes_fail=True),
            **dict.fromkeys(
                CLOCK_JUMPS, lambda e: cluster.clocks[e.who].ahead(e.detail["ahead_s"])
            ),
            "clock_rate": lambda e: cluster.clocks[e.who].run_at(e.detail["ppm"]),
            "redis_kill": lambda e: self._kill(e.who),
            "redis_pause": lambda e: self._signal(e.who, signal.SIGSTOP),
            "redis_flush": lambda _: self._flush(),
            "redis_full": lambda e: self._let_redis_have(e.who, FULL_FOR_REDIS),
            "redis_empty": lambda e: self._empty_redis(e.who),
            "redis_failover": self._fail_over,
            TWO_MASTERS: self._leave_master,
            "broker_pause": lambda _: self._signal(KAFKA, signal.SIGSTOP),
            "broker_kill": lambda _: self._kill(KAFKA),
            "one_broker_kill": lambda e: self._kill(e.who),
            "one_broker_pause": lambda e: self._signal(e.who, signal.SIGSTOP),
            DISK_LOST: self._empty_broker,
            TAIL_LOST: self._cut_broker,
            "redis_tail": self._cut_redis,
            "controller_kill": lambda _: self._kill_controller(),
            "busy": self._burn,
            "poison": self._poison,
            "late_chunks": self._keep_chunks,
        }
        self._mend: dict[str, Callable[[Event], None]] = {
            "pause": lambda e: self._signal(e.who, signal.SIGCONT),
            **dict.fromkeys(FULL_DISKS, lambda e: self._unlimit(e.who, resource.RLIMIT_FSIZE)),
            SHORT_OF_MEMORY: lambda e: self._unlimit(e.who, resource.RLIMIT_AS),
            **dict.fromkeys(SLOW_DISKS, self._mend_disk),
            "redis_sync_fails": self._mend_and_start_anew,
            **dict.fromkeys((SYNC_FAILS, WRITE_FAILS), self._mend_and_start),
            "clock_jump": lambda e: cluster.clocks[e.who].ahead(0),
            BROKER_CLOCK: self._set_broker_right,
            "clock_rate": lambda e: cluster.clocks[e.who].run_at(0),
            "redis_flush": lambda _: None,
            TWO_MASTERS: lambda _: self._return_to_master(),
            "redis_full": lambda e: self._let_redis_have(e.who, MEMORY_OF_REDIS),
            "broker_pause": lambda _: self._signal(KAFKA, signal.SIGCONT),
            **dict.fromkeys(
                ("redis_pause", "one_broker_pause"),
                lambda e: self._signal(e.who, signal.SIGCONT),
            ),
            "busy": lambda _: self._quench(),
            "poison": lambda _: None,
            "late_chunks": self._send_again,
            "stop": self._stop_and_start,
            "broker_kill": lambda _: cluster.start(KAFKA, wait=False),
            **dict.fromkeys((*LINK_KINDS, *PEER_KINDS), self._mend_link),
            COPIED_BADLY: lambda e: self._mend_copies(),
            **dict.fromkeys(("kill", "older_disk", "empty_disk", "torn_pages"), self._start),
            **dict.fromkeys(("redis_kill", "redis_empty", "redis_failover"), self._start),
            **dict.fromkeys(("one_broker_kill", DISK_LOST, "controller_kill"), self._start),
            **dict.fromkeys((TAIL_LOST, "redis_tail"), self._start),
        }

    @property
    def _links(self) -> Links:
        return self._cluster.links

    def prepare(self, event: Event) -> None:
        """Do what has to be done before the round: keep a copy of a store for `older_disk`."""
        if event.kind == "older_disk":
            store = self._cluster.data / event.who / STORE
            copy = self._copy_of(event.who)
            copy.unlink(missing_ok=True)
            with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(copy)) as kept:
                source.backup(kept)

    def begin(self, event: Event) -> None:
        """Let the fault befall."""
        self._begin[event.kind](event)

    def mend(self, event: Event) -> None:
        """End it: what was killed is started, what was cut is whole."""
        self._mend[event.kind](event)

    def mend_all(self) -> None:
        """End whatever may be left of any fault."""
        self._quench()
        self._links.mend_all()
        self._return_to_master()
        for clock in self._cluster.clocks.values():
            clock.ahead(0)
            clock.run_at(0)
        for disk in self._cluster.disks.values():
            disk.mend()
        for name in (*self._cluster.server_names, *self._cluster.parts.processes):
            pid = self._cluster.pid(name)
            if pid is None:
                self._cluster.start(name, wait=False)
            else:
                self._signal(name, signal.SIGCONT)
        for name in self._cluster.redis.names:
            self._let_redis_have(name, MEMORY_OF_REDIS)

    # ------------------------------------------------------------ processes

    def _kill(self, name: str) -> None:
        if self._cluster.is_running(name):
            self._cluster.kill(name)

    def _start(self, event: Event) -> None:
        self._cluster.start(self._was.pop(event.who, event.who), wait=False)

    def _stop_and_start(self, event: Event) -> None:
        """Start it again once it has ended, as in a rolling restart."""
        self._cluster.stop(event.who)
        self._cluster.start(event.who, wait=False)

    def _signal(self, name: str, number: signal.Signals) -> None:
        try:
            self._cluster.kill(name, number)
        except ProcessFailure:
            return  # it has ended meanwhile: who waits for recovery finds that out

    def _limit(self, name: str, what: int, limit: int) -> None:
        pid = self._cluster.pid(name)
        if pid is not None:
            with suppress(ProcessLookupError):  # it has ended meanwhile
                _, hard = resource.prlimit(pid, what)
                resource.prlimit(pid, what, (limit, hard))

    def _unlimit(self, name: str, what: int) -> None:
        if self._cluster.is_running(name):
            self._limit(name, what, resource.RLIM_INFINITY)
        else:
            self._cluster.start(name, wait=False)

    def _fill_disk(self, event: Event) -> None:
        self._limit(event.who, resource.RLIMIT_FSIZE, FULL_FROM_BYTES)

    def _take_memory(self, event: Event) -> None:
        pid = self._cluster.pid(event.who)
        if pid is not None:
            take_memory(pid, event.detail["room_mb"] << 20)

    # ------------------------------------------------------------ links

    def _disturb(self, event: Event) -> None:
        """Disturb all links that the event's name stands for, alike."""
        disturb = getattr(self._links, PEER_KINDS.get(event.kind, event.kind))
        for link in self._cluster.parts.links_of(event.who):
            disturb(link, **event.detail)

    def _mend_link(self, event: Event) -> None:
        for link in self._cluster.parts.links_of(event.who):
            self._links.mend(link)

    def _copy_badly(self, event: Event) -> None:
        """Take somebody's disk and start it anew, whoever has a copy being hard to reach."""
        how = dict(event.detail)
        disturb = getattr(self._links, how.pop("how"))
        for name in self._cluster.parts.copied:
            disturb(f"{name}-{COPIES}", **how)
        self._empty_disk(event)
        self._cluster.start(event.who, wait=False)

    def _mend_copies(self) -> None:
        for name in self._cluster.parts.copied:
            self._links.mend(f"{name}-{COPIES}")

    # ------------------------------------------------------------ disks

    def _copy_of(self, name: str) -> Path:
        return self._folder / f"{name}.older.db"

    def _older_disk(self, event: Event) -> None:
        self._kill(event.who)
        folder = self._cluster.data / event.who
        for path in folder.glob(f"{STORE}*"):
            path.unlink()
        shutil.copy(self._copy_of(event.who), folder / STORE)

    def _empty_disk(self, event: Event) -> None:
        self._kill(event.who)
        shutil.rmtree(self._cluster.data / event.who, ignore_errors=True)

    def _tear(self, event: Event) -> None:
        self._kill(event.who)
        store = self._cluster.data / event.who / STORE
        self.effects[event.kind] += tear_wal(store, random.Random(event.detail["seed"]))

    def _disturb_disk(self, event: Event, **how: Any) -> None:
        disk = self._cluster.disks[event.who]
        self._befallen[event.who] = sum(disk.befallen)
        disk.be(**how)

    def _mend_disk(self, event: Event) -> None:
        disk = self._cluster.disks[event.who]
        disk.mend()
        self.effects[event.kind] += sum(disk.befallen) - self._befallen.pop(event.who)

    def _mend_and_start(self, event: Event) -> None:
        self._mend_disk(event)
        if not self._cluster.is_running(event.who):
            self._cluster.start(event.who, wait=False)

    # ------------------------------------------------------------ Redis

    def _mend_and_start_anew(self, event: Event) -> None:
        """⚠ A Redis of which a sync has failed refuses writes (MISCONF) until one succeeds, and
        tries none while there is nothing to write: somebody has to start it anew."""
        self._mend_disk(event)
        self._start_anew(event)

    def _start_anew(self, event: Event) -> None:
        self._kill(event.who)
        self._start(event)

    def _flush(self) -> None:
        master = self._cluster.redis.master()
        if master:
            with self._client(master) as client, suppress(redis.RedisError):
                client.flushall()  # else another fault has it

    def _let_redis_have(self, name: str, most: str) -> None:
        """Let a Redis that has more than that refuse whatever takes memory: it may forget nothing
        (its policy is noeviction). One that is started anew has what it always has."""
        with self._client(name) as client, suppress(redis.RedisError):
            client.config_set("maxmemory", most)

    def _empty_redis(self, name: str) -> None:
        self._kill(name)
        for file in REDIS_FILES:
            path = self._cluster.data / name / file
            shutil.rmtree(path, ignore_errors=True)
            path.unlink(missing_ok=True)

    def _cut_redis(self, event: Event) -> None:
        """Lose what was appended last, and not synced."""
        self._kill(event.who)
        for path in (self._cluster.data / event.who / REDIS_FILES[0]).glob("*.incr.aof"):
            self.effects[event.kind] += cut_end(path, event.detail["lost_bytes"])

    def _fail_over(self, event: Event) -> None:
        """Kill the master, whose replica has heard nothing of it for a while: what it has answered
        in that time is lost."""
        servers = self._cluster.redis
        master = servers.master() or servers.names[0]
        self._was[event.who] = master
        replica = next(name for name in servers.names if name != master)
        with self._client(replica) as client, suppress(redis.RedisError):
            client.config_set("masterauth", WRONG)
            with self._client(master) as other, suppress(redis.RedisError):
                other.execute_command("CLIENT", "KILL", "TYPE", "REPLICA")
            self._pause.wait(event.detail["lag_ms"] / 1e3)
            self._kill(master)
            client.config_set("masterauth", "")
        self._kill(master)

    def _leave_master(self, event: Event) -> None:
        """Take the master away from everybody but one process, Sentinels and the replica among
        them. It goes on, and another one is made: what is written to either, the other lacks."""
        servers, pid = self._cluster.redis, self._cluster.pid(event.who)
        master = servers.master() or servers.names[0]
        ports: set[int] = set()
        with suppress(OSError):  # it has ended meanwhile
            stays = connections_of(pid) if pid is not None else set()
            ports = {each.own for each in stays if each.other == servers.port_of[master]}
        # By one connection: there will be no second one.
        client = self._client(master, single_connection_client=True)
        try:
            before = str(client.config_get(MAX_CLIENTS)[MAX_CLIENTS])
            client.config_set(MAX_CLIENTS, NOBODY_NEW)
            self._left = (client, before)
            own = client.client_id()
            for each in client.client_list():
                if int(each["id"]) != own and int(each["addr"].rpartition(":")[2]) not in ports:
                    client.client_kill_filter(_id=each["id"])
        except redis.RedisError:
            pass  # another fault has it

    def _return_to_master(self) -> None:
        """Let it be reached again: Sentinels make it a replica, and it loses what it had taken."""
        if self._left is not None:
            (client, before), self._left = self._left, None
            with client, suppress(redis.RedisError):  # else it has ended, and is as it begins
                client.config_set(MAX_CLIENTS, before)

    def _client(self, name: str, **options: Any) -> redis.Redis:
        port = self._cluster.redis.port_of[name]
        return redis.Redis(
            LOOPBACK, port, socket_timeout=ASK_S, socket_connect_timeout=ASK_S, **options
        )

    # ------------------------------------------------------------ brokers

    def _empty_broker(self, event: Event) -> None:
        self._kill(event.who)
        self._cluster.brokers.empty(event.who)

    def _cut_broker(self, event: Event) -> None:
        """As a power cut that comes before the kernel has written: the end of each partition's
        newest segment. ⚠ Not of the metadata, which a broker syncs."""
        self._kill(event.who)
        data = self._cluster.brokers.by_name[event.who].data
        for partition in data.glob("*-[0-9]*"):
            segments = sorted(partition.glob("*.log"))
            if segments and not partition.name.startswith(METADATA):
                self.effects[event.kind] += cut_end(segments[-1], event.detail["lost_bytes"])

    def _set_broker_right(self, event: Event) -> None:
        """Set a broker's clock right, and start the broker anew where that was by much.

        ⚠ Kafka's controller gathers records until a time of the wall clock comes (4.2, its
        `BatchAccumulator`). Where that is set back by a day just then, it makes no topic and names
        no leader for a day, while those that lead go on. So an operator starts it again."""
        self._cluster.clocks[event.who].ahead(0)
        if event.detail["ahead_s"] >= STANDS_STILL_S:
            self._start_anew(event)

    def _kill_controller(self) -> None:
        """Kill the active controller, or any broker while none is known."""
        brokers = self._cluster.brokers
        name = brokers.active_controller() or brokers.names[0]
        self._was[CONTROLLER] = name
        self._kill(name)

    # ------------------------------------------------------------ processors, topics

    def _burn(self, event: Event) -> None:
        command = [sys.executable, "-c", BURN]
        for _ in range(event.detail["burners"]):
            self._burners.append(subprocess.Popen(command, env=dict(os.environ)))

    def _quench(self) -> None:
        for burner in self._burners:
            burner.kill()
            burner.wait()
        self._burners.clear()

    def _poison(self, event: Event) -> None:
        topics = Topics(self._cluster.cluster_settings.database)
        rng = random.Random(event.detail["seed"])
        writer = TopicWriter(self._cluster.kafka_settings, "poison")
        try:
            for _ in range(event.detail["records"]):
                data = rng.choice((*GARBAGE, rng.randbytes(rng.randrange(1, 200))))
                writer.send(getattr(topics, event.who).name, 0, rng.choice((None, b"k")), data)
        finally:
            writer.close(5.0)

    def _keep_chunks(self, event: Event) -> None:
        """Keep what Spark has sent lately: what is decided stays in its topic for some seconds."""
        topic = getattr(Topics(self._cluster.cluster_settings.database), event.who).name
        with suppress(BusUnavailable):  # else another fault has it
            self._chunks = list(read_to_end(self._cluster.kafka_settings, "late", topic, ASK_S))

    def _send_again(self, event: Event) -> None:
        """Send it once more, as a task that was taken for dead does."""
        self.effects[event.kind] += len(self._chunks)
        writer = TopicWriter(self._cluster.kafka_settings, "late")
        try:
            for each in self._chunks:
                writer.send(each.topic, each.partition, each.key, each.value)
        finally:
            writer.close(5.0)
        self._chunks = []
