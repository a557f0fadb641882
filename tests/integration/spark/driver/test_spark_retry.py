"""The retry stream on real Kafka and Spark: conflicts come back as next attempts, then give up."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from infra.local_cluster import LocalCluster
from infra.process_table import all_entries, has_in_environment
from leasehold.model.records.requests import (
    ANY_GENID,
)
from tests.integration.spark.driver import ATTEMPTS_MAX
from tests.support.cluster.spark_conflicts import publish, refused, request_of, retried
from tests.support.cluster.spark_pipeline import Pipeline
from tests.support.cluster.system_cluster import until

SLEEPS = "the query sleeps"


def test_conflicts_come_back_as_the_next_attempt(pipeline: Pipeline) -> None:
    """Goal: a thousand refused requests, each twice (a new master gives conflicts again): every
    one is on the requests topic under its id, with attempt 2 and the genid that refused it."""
    for number in range(1_000):
        publish(pipeline, refused(number, 1, genid=700 + number))
        publish(pipeline, refused(number, 1, genid=700 + number))
    pipeline.flush()
    started = time.monotonic()
    seen: set[bytes] = set()

    def all_seen(messages: list[Any]) -> bool:
        seen.update(m.key() for m in messages[-1:])
        return len(seen) == 1_000

    for message in pipeline.records(pipeline.topics.requests.name, all_seen):
        request = request_of(message)
        number = request.operations[0].key["id"]  # type: ignore[call-overload]
        assert request.id == message.key()
        assert (request.attempt, request.give_up, request.reply_to) == (2, False, 2)
        assert request.operations[0].expect == ANY_GENID
        assert message.partition() == 0
    print(f"a thousand conflicts came back in {time.monotonic() - started:.2f} s")


def test_back_off_holds_across_a_kill(pipeline: Pipeline) -> None:
    """Goal: attempts that wait in Spark's state survive SIGKILL, and the last one gives up."""
    publish(pipeline, refused(5_000, 2, genid=900))
    publish(pipeline, refused(5_001, ATTEMPTS_MAX, genid=901))
    pipeline.flush()
    pipeline.kill()
    pipeline.start()

    wanted = {refused(n, 1, 1).request_id for n in (5_000, 5_001)}

    def both(messages: list[Any]) -> bool:
        return wanted <= {m.key() for m in messages}

    messages = pipeline.records(pipeline.topics.requests.name, both)
    requests = {m.key(): request_of(m) for m in messages if m.key() in wanted}
    told = {r.operations[0].key["id"]: (r.attempt, r.give_up) for r in requests.values()}  # type: ignore[call-overload]
    assert told == {5_000: (3, False), 5_001: (ATTEMPTS_MAX + 1, True)}


def test_a_bad_record_does_not_stop_the_others(pipeline: Pipeline) -> None:
    pipeline.produce(pipeline.topics.conflicts.name, b"bad", b"\xc1 no record")
    assert retried(pipeline, refused(6_000, 1, genid=1)).attempt == 2


@pytest.mark.parametrize("number", [7_000, 7_001])
def test_a_query_that_sleeps_wakes_for_the_next_conflict(pipeline: Pipeline, number: int) -> None:
    """Twice: what woke it first must not wake it again, nor keep the next one from doing so."""
    slept = pipeline.log().count(SLEEPS)
    assert retried(pipeline, refused(number, 1, genid=1)).attempt == 2
    until(lambda: pipeline.log().count(SLEEPS) > slept, "the query to sleep")


def test_native_libraries_are_unpacked_in_each_service_s_own_folder(
    pipeline: Pipeline, servers: LocalCluster
) -> None:
    """Goal: a JVM that is killed leaves nothing outside of the folder that its cluster removes."""
    spark = [
        entry.identity.pid
        for entry in all_entries()
        if has_in_environment(entry.identity.pid, "LEASEHOLD_DATA", str(pipeline.data))
    ]
    kafka = [servers.brokers.pid(name) for name in servers.brokers.names]
    for folder, pids in ((pipeline.data, spark), (servers.data, kafka)):
        unpacked = {
            Path(line.split(maxsplit=5)[5])
            for pid in pids
            for line in Path(f"/proc/{pid}/maps").read_text().splitlines()
            if "/liblz4-java" in line
        }
        assert unpacked
        assert {path for path in unpacked if not path.is_relative_to(folder)} == set()
