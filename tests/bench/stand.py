"""The real parts for one group: Kafka, Redis and services as processes on free ports."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from infra.local_cluster import LocalCluster
from infra.ports import Ports
from leasehold.client.agent import Agent
from leasehold.client.change_producer import ChangeProducer
from leasehold.model.records.requests import Outcome
from leasehold.settings.client import ClientSettings
from tests.bench.child import Child, start
from tests.bench.cpu import compiler_seconds
from tests.bench.jobs_reader import Ended, JobsReader

REQUEST_TIMEOUT_S: Final = 60.0
WARM_AFTER: Final = 4_000
"""Commits after which it may be warm."""
LOOK_EVERY: Final = 1_000
COMPILER_RESTS: Final = 0.1
"""Of a processor; a broker that has just started takes 0.4 for its compiler."""


class BenchFailure(Exception):
    """A measurement that could not be made, as a sentence."""


def say(words: str) -> None:
    """Progress: standard output carries the figures alone."""
    print(f"bench: {words}", file=sys.stderr, flush=True)


class Stand:
    """A running cluster with one producer; everything ends with the block that made it."""

    def __init__(self, cluster: LocalCluster, stack: ExitStack) -> None:
        self.cluster = cluster
        self.settings = ClientSettings.read(cluster.env("bench"))
        self._stack = stack
        self.producer = stack.enter_context(ChangeProducer(self.settings))
        self._jobs: JobsReader | None = None

    def named(self, name: str) -> ClientSettings:
        """Settings of another agent or replica in this process."""
        return replace(self.settings, cluster=replace(self.settings.cluster, node=name))

    def agent(self, name: str) -> Agent:
        return self._stack.enter_context(Agent(self.named(name)))

    def submit(self, request: dict[str, Any]) -> Outcome:
        """Raises BenchFailure for a refusal."""
        outcome = self.producer.submit(request).result(REQUEST_TIMEOUT_S)
        if not outcome.lsn:
            raise BenchFailure(f"{request} was refused: {outcome.message}")
        return outcome

    def change(self, sql: str, timeout_s: float) -> Ended:
        """Submit a schema change and follow it to its success. Raises BenchFailure otherwise."""
        if self._jobs is None:
            self._jobs = JobsReader(self.settings)
            self._stack.callback(self._jobs.close)
        begin_ns = time.monotonic_ns()
        number = self.submit({"sql": sql}).answer["job"]
        ended = self._jobs.wait_ended(number, begin_ns, timeout_s)
        if ended is None:
            raise BenchFailure(f"{sql}: job {number} did not end in {timeout_s:g} s")
        if ended.job.status.value != "succeeded":
            raise BenchFailure(f"{sql}: job {number} {ended.job.status.value}: {ended.job.error}")
        return ended

    def child(self, name: str, module: str, *arguments: object) -> Child:
        """Another process of the bench; killed with this stand unless it has ended."""
        return start(self._stack, self.cluster.env(name), name, module, *arguments)


@contextmanager
def stand(services: Sequence[str], warm_up: int) -> Iterator[Stand]:
    """With a broker that has been at work for a while, as in a cluster that stays up; one that has
    just started compiles itself beside its work for thousands of requests; so many commits are
    enough in any case. Raises ProcessFailure when a part does not start."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="leasehold-bench-"))
        cluster = stack.enter_context(LocalCluster(Path(folder), Ports.free(), lasting=True))
        say(f"starting Kafka, Redis, {', '.join(services)}")
        cluster.start_servers()
        cluster.create_topics()
        if "spark" in services:  # its JVM takes longest and needs Kafka only
            cluster.start("spark", wait=False)
        for name in services:
            cluster.start(name)
        where = Stand(cluster, stack)
        if warm_up:
            _warm_up(where, warm_up)
        yield where


def _warm_up(where: Stand, most: int) -> None:
    """Until the broker's compiler rests."""
    where.submit({"sql": "CREATE TABLE warm (id bigint PRIMARY KEY, n bigint)"})
    where.submit({"table": "warm", "op": "insert", "key": [1], "values": {"n": 0}})
    done = 0
    for commits in (*range(min(WARM_AFTER, most), most, LOOK_EVERY), most):
        begin, compiled_s = time.monotonic(), compiler_seconds(where.cluster)
        for number in range(done, commits):
            where.submit({"table": "warm", "op": "update", "key": [1], "values": {"n": number}})
        done, compiled_s = commits, compiler_seconds(where.cluster) - compiled_s
        share = compiled_s / (time.monotonic() - begin)
        if share < COMPILER_RESTS:
            break
    say(f"{done:,} commits to warm up; the broker's compiler takes {share:.0%}")


def replicants(count: int) -> list[str]:
    return [f"r{number}" for number in range(1, count + 1)]
