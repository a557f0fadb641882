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
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import redis

from infra.processes import ProcessFailure
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.model.topics import Topics
from tests.faults.cluster import FaultCluster
from tests.faults.links import Links
from tests.faults.parts import KAFKA, REDIS
from tests.faults.schedule import Event

FULL_FROM_BYTES: Final = 96 * 1024
"""Below it a process's files may grow: its log can still say what is wrong."""
BURN: Final = "while True: pass"
GARBAGE: Final = (b"", b"\xc1", b"{" * 500, b"\x93\x01\x63\x01", b'{"id": 7}', bytes(50_000))
STORE: Final = "store.db"
REDIS_FILES: Final = "appendonlydir"


class Injection:
    """Begins and mends faults on one cluster."""

    def __init__(self, cluster: FaultCluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._burners: list[subprocess.Popen[bytes]] = []
        self._begin: dict[str, Callable[[Event], None]] = {
            "kill": lambda e: self._kill(e.who),
            "pause": lambda e: self._signal(e.who, signal.SIGSTOP),
            "cut": lambda e: self._links.cut(e.who, e.detail["way"]),
            "delay": self._delay,
            "throttle": lambda e: self._links.throttle(
                e.who, e.detail["way"], e.detail["kb_per_s"]
            ),
            "reset": lambda e: self._links.reset(e.who),
            "refuse": lambda e: self._links.refuse(e.who),
            "older_disk": self._older_disk,
            "empty_disk": self._empty_disk,
            "full_disk": lambda e: self._limit(e.who, FULL_FROM_BYTES),
            "clock_jump": lambda e: cluster.clocks[e.who].ahead(e.detail["ahead_s"]),
            "clock_rate": lambda e: cluster.clocks[e.who].run_at(e.detail["ppm"]),
            "redis_kill": lambda _: self._kill(REDIS),
            "redis_pause": lambda _: self._signal(REDIS, signal.SIGSTOP),
            "redis_flush": lambda _: self._flush(),
            "redis_empty": lambda _: self._empty_redis(),
            "broker_pause": lambda _: self._signal(KAFKA, signal.SIGSTOP),
            "broker_kill": lambda _: self._kill(KAFKA),
            "busy": self._burn,
            "poison": self._poison,
        }
        self._mend: dict[str, Callable[[Event], None]] = {
            "pause": lambda e: self._signal(e.who, signal.SIGCONT),
            "full_disk": self._make_room,
            "clock_jump": lambda e: cluster.clocks[e.who].ahead(0),
            "clock_rate": lambda e: cluster.clocks[e.who].run_at(0),
            "redis_pause": lambda _: self._signal(REDIS, signal.SIGCONT),
            "redis_flush": lambda _: None,
            "broker_pause": lambda _: self._signal(KAFKA, signal.SIGCONT),
            "busy": lambda _: self._quench(),
            "poison": lambda _: None,
            "redis_kill": lambda _: cluster.start(REDIS, wait=False),
            "redis_empty": lambda _: cluster.start(REDIS, wait=False),
            "broker_kill": lambda _: cluster.start(KAFKA, wait=False),
            **dict.fromkeys(("cut", "delay", "throttle", "reset", "refuse"), self._mend_link),
            **dict.fromkeys(("kill", "older_disk", "empty_disk"), self._start),
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
        for clock in self._cluster.clocks.values():
            clock.ahead(0)
            clock.run_at(0)
        for name in (KAFKA, REDIS, *self._cluster.parts.processes):
            pid = self._cluster.pid(name)
            if pid is None:
                self._cluster.start(name, wait=False)
            else:
                self._signal(name, signal.SIGCONT)

    # ------------------------------------------------------------ processes

    def _kill(self, name: str) -> None:
        if self._cluster.is_running(name):
            self._cluster.kill(name)

    def _start(self, event: Event) -> None:
        self._cluster.start(event.who, wait=False)

    def _signal(self, name: str, number: signal.Signals) -> None:
        try:
            self._cluster.kill(name, number)
        except ProcessFailure:
            return  # it has ended meanwhile: who waits for recovery finds that out

    def _limit(self, name: str, limit: int) -> None:
        pid = self._cluster.pid(name)
        if pid is not None:
            _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, hard))

    def _make_room(self, event: Event) -> None:
        if self._cluster.is_running(event.who):
            self._limit(event.who, resource.RLIM_INFINITY)
        else:
            self._cluster.start(event.who, wait=False)

    # ------------------------------------------------------------ links

    def _delay(self, event: Event) -> None:
        detail = event.detail
        self._links.delay(event.who, detail["way"], detail["late_ms"], detail["jitter_ms"])

    def _mend_link(self, event: Event) -> None:
        self._links.mend(event.who)

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

    # ------------------------------------------------------------ Redis, processors, topics

    def _flush(self) -> None:
        with redis.Redis.from_url(self._cluster.redis_url) as client:
            try:
                client.flushall()
            except redis.RedisError:
                return  # another fault has it

    def _empty_redis(self) -> None:
        self._kill(REDIS)
        shutil.rmtree(self._cluster.data / REDIS / REDIS_FILES, ignore_errors=True)

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
