"""The warm-up of a broker that was started a moment ago: what each write asks of it, again and
again until its compiler rests.

A JVM compiles for good only what was called often. Until then a request takes a broker two to four
times the processor time, and its optimising compiler up to a processor beside it, while users wait
for both (docs/performance/lab-notes/2026-11-28-cost-of-a-write.md). So who starts a broker that
stays pays for that at its start, beside other processes that start.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from infra.process_table import PROC, stat_of
from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.model.errors import BusUnavailable
from leasehold.model.topics import Topic
from leasehold.settings.environment import KafkaSettings

TOPIC: Final = "leasehold-warm-up"
"""For as long as it lasts; no database has a topic of such a name."""
COMPILED_EARLY: Final = "-XX:CompileThresholdScaling=0.2"
"""Of a broker's JVM: it compiles the same, after a fifth of the calls."""
ROUND: Final = 500
"""Records between two looks at the compiler, each a request of its own and a fetch."""
ROUNDS_MIN: Final = 8
"""What is called seldom is compiled late."""
RESTS: Final = 0.2
"""Of the broker's processor time; of one that has just started the compiler takes half and more.
(Not of a processor: where those are short, a compiler that waits for one would seem to rest.)"""
LONGEST_S: Final = 30.0
COMPILER: Final = "C2 Compiler"
"""The first letters of its threads' names, of which Linux keeps fifteen."""
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
UNDER_WAY: Final = 5
RECORD: Final = b"x" * 300
POLL_S: Final = 0.001


def compiler_seconds(pid: int) -> float:
    """Return the processor time so far of a JVM's optimising compiler."""
    return _looked(pid).compiler_s


class _Look(NamedTuple):
    compiler_s: float
    all_s: float


def _looked(pid: int) -> _Look:
    compiler = whole = 0
    for thread in (PROC / str(pid) / "task").glob("*"):
        with suppress(OSError):  # it ended
            name, words = stat_of(thread)
            ticks = sum(map(int, words[11:13]))
            whole += ticks
            compiler += ticks if COMPILER in name else 0
    return _Look(compiler / TICKS_PER_S, whole / TICKS_PER_S)


def _looked_at(pids: Sequence[int]) -> _Look:
    looks = [_looked(pid) for pid in pids]
    return _Look(sum(each.compiler_s for each in looks), sum(each.all_s for each in looks))


def warm_up(
    kafka: KafkaSettings,
    pids: Sequence[int],
    longest_s: float = LONGEST_S,
    rounds_min: int = ROUNDS_MIN,
) -> int:
    """Produce and fetch records until the compilers of the brokers, the processes `pids`, rest, for
    at most `longest_s`; return how many. Each of them leads and follows. Raises BusUnavailable."""
    admin = TopicAdmin(kafka, TOPIC)
    admin.create((Topic(TOPIC, len(pids), {"retention.ms": "60000"}),), len(pids))
    try:
        return _send(kafka, pids, rounds_min, time.monotonic() + longest_s)
    except KafkaException as error:
        raise BusUnavailable(f"the broker could not be warmed up: {error}") from error
    finally:
        admin.delete(TOPIC)


def _send(kafka: KafkaSettings, pids: Sequence[int], rounds_min: int, end_s: float) -> int:
    options: dict[str, Any] = {**kafka.librdkafka(), "log_level": 0}
    producer = Producer(
        {
            **options,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 0,
            "batch.num.messages": 1,
            "max.in.flight.requests.per.connection": UNDER_WAY,
        }
    )
    consumer = Consumer(
        {
            **options,
            "group.id": "leasehold-none",  # librdkafka wants one; it is never joined
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
        }
    )
    sent, before = 0, _looked_at(pids)
    try:
        consumer.assign([TopicPartition(TOPIC, each, 0) for each in range(len(pids))])
        while time.monotonic() < end_s:
            if len(producer) >= UNDER_WAY:
                producer.poll(POLL_S)
                continue
            producer.produce(TOPIC, RECORD, b"", sent % len(pids))
            producer.poll(0)
            consumer.consume(UNDER_WAY, 0)
            sent += 1
            if sent % ROUND == 0:
                after = _looked_at(pids)
                compiled_s = after.compiler_s - before.compiler_s
                rests = compiled_s <= RESTS * (after.all_s - before.all_s)
                if rests and sent >= rounds_min * ROUND:
                    break
                before = after
        return sent
    finally:
        producer.purge()
        producer.flush(1.0)
        consumer.close()


class WarmUp(threading.Thread):
    """A warm-up that somebody does beside other things. `trouble`: why there was none."""

    def __init__(self, kafka: KafkaSettings, pids: Sequence[int]) -> None:
        super().__init__(name="warm-up", daemon=True)
        self.trouble = ""
        self._kafka = kafka
        self._pids = pids

    def run(self) -> None:
        try:
            warm_up(self._kafka, self._pids)
        except BusUnavailable as error:
            self.trouble = error.message
