"""Many agents in one process, each with a session and a lease of its own: `python -m
tests.bench.agent_host table count`; names come from LEASEHOLD_NODE.

The agents are the real ones, each with its own connection to Redis. They share one Kafka consumer
and one producer: a consumer per agent would measure librdkafka's threads on a small machine.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Final

from leasehold.adapters.kafka.version_stream import KafkaVersionStream
from leasehold.client.agent import Agent
from leasehold.model.records.acks import AgentMessage
from leasehold.model.records.events import VersionEvent
from leasehold.settings.client import ClientSettings

READ_S: Final = 0.2
QUIET_S: Final = 5.0
"""Longest that an agent waits for an event. Five times a second, as where each reads for itself,
hundreds of threads would take a sixth of a processor to find nothing."""
LEASE_TIMEOUT_S: Final = 60.0
CLOSERS_MAX: Final = 16


class SharedRoad:
    """One agent's end of a road that several share."""

    def __init__(self, road: KafkaVersionStream, send_lock: threading.Lock) -> None:
        self.queue: SimpleQueue[VersionEvent | None] = SimpleQueue()
        self._ends = False
        self._road = road
        self._send_lock = send_lock

    def events(self, timeout_s: float) -> list[VersionEvent]:
        try:
            event = self.queue.get(timeout=timeout_s if self._ends else QUIET_S)
        except Empty:
            return []
        return [] if event is None else [event]

    def end(self) -> None:
        """Wait for nothing more for long: its agent is about to stop."""
        self._ends = True
        self.queue.put(None)

    def acknowledge(self, agent: str, record: AgentMessage) -> None:
        with self._send_lock:  # a TopicWriter is for one thread
            self._road.acknowledge(agent, record)

    def rewind(self) -> None:
        self._road.rewind()

    def close(self) -> None:
        """The road is closed by whoever shares it out."""


def _share_out(
    road: KafkaVersionStream, ends: Sequence[SharedRoad], stopping: threading.Event
) -> None:
    while not stopping.is_set():
        for event in road.events(READ_S):
            for end in ends:
                end.queue.put(event)


def main(table: str, count: int) -> None:
    settings = ClientSettings.read()
    topics = settings.topics
    road = KafkaVersionStream(
        settings.kafka, topics.versions.name, topics.notices.name, topics.acks.name
    )
    lock = threading.Lock()
    ends = [SharedRoad(road, lock) for _ in range(count)]
    stopping = threading.Event()
    reader = threading.Thread(target=_share_out, args=(road, ends, stopping), name="versions")
    agents = [
        Agent(
            replace(
                settings,
                cluster=replace(settings.cluster, node=f"{settings.cluster.node}-{number}"),
            ),
            source=end,
        )
        for number, end in enumerate(ends)
    ]
    reader.start()
    try:
        for agent in agents:
            with agent.lease(table, LEASE_TIMEOUT_S):
                pass  # an idle lease is kept until a newer version comes (D4)
        print("ready", flush=True)
        sys.stdin.read()
    finally:
        for end in ends:
            end.end()
        with ThreadPoolExecutor(CLOSERS_MAX) as pool:
            list(pool.map(Agent.close, agents))
        stopping.set()
        reader.join()
        road.close()
    print("{}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
