"""Wall clocks jump on the real parts: Redis's host's, the master's, a replicant's, an agent's; no
Spark.

Goal: leases, sessions, coherency and answers rest on boot-time clocks, and the log's time only
rises. Method: writers and a follower go on while clocks jump forth and back by minutes, and table
after table a schema change walks its steps, each of which drains the leases below it. What is
covered and what is not is said in `wall_clock.c`; Kafka's clock and Spark's stay the host's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import pytest

from leasehold import ChangeProducer, Replica
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.adapters.os.clock import new_request_id, unix_us
from leasehold.admin.view import SILENT_AFTER_US
from leasehold.admin.watch import ClusterWatch
from leasehold.model.records.log import Decisions, LogPosition
from leasehold.replication.log.admission import Verdict, admit
from leasehold.settings.client import ClientSettings
from tests.support.cluster.secure_suite import superuser_of_redis
from tests.support.cluster.system_clock import REDIS, ClockedCluster, clocked
from tests.support.cluster.system_cluster import (
    assert_consistent,
    command,
    seen,
    settings_of,
    until,
)
from tests.support.cluster.system_jobs import begin, ended
from tests.support.cluster.system_load import Load, made_counters, settled
from tests.support.cluster.system_subscriber import Following, following

pytestmark = pytest.mark.long(
    "sets clocks of running processes, and waits until time has passed by them"
)

NODES = ("m1", "m2", "r1")
SERVICES = (*NODES, "changefeed")
AGENT = "follower"
KEYS = range(6)
ENVIRON = {**os.environ, "LEASEHOLD_SESSION_TTL_MS": "3000"}
JUMPS_S = (600, -600, 0)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClockedCluster]:
    folder = tmp_path_factory.mktemp("clocks")
    with clocked(folder, SERVICES, (AGENT,), ENVIRON) as made:
        made_counters(settings_of(made, "setup"), KEYS)
        yield made


@pytest.fixture(scope="module")
def load(settings: ClientSettings, replica: Replica) -> Iterator[Load]:
    with Load(settings, "t", KEYS) as made:
        made.more(50)
        yield made


@pytest.fixture(scope="module")
def follower(
    cluster: ClockedCluster, load: Load, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Following]:
    """A service that decodes rows under leases, all the while."""
    with following(cluster, AGENT, "t", tmp_path_factory.mktemp("rows") / "rows") as made:
        until(lambda: bool(made.rows), "a row from the follower")
        yield made


def changed(watch: ClusterWatch, producer: ChangeProducer, name: str) -> None:
    """A column comes: every lease on the version before is renewed, moved and drained (D3, D4)."""
    ended(watch, begin(producer, f"ALTER TABLE t ADD COLUMN {name} text"))


def sessions(watch: ClusterWatch) -> dict[str, tuple[int, int]]:
    """Agent → (session, renewals), as the ledger has them."""
    ledger = watch.view.ledger
    assert ledger is not None
    return {each.agent: (each.session, each.counter) for each in ledger.report.sessions}


def renewed(watch: ClusterWatch, before: dict[str, tuple[int, int]]) -> bool:
    now = sessions(watch)
    return all(agent in now and now[agent][1] > count for agent, (_, count) in before.items())


def same_sessions(watch: ClusterWatch, before: dict[str, tuple[int, int]]) -> None:
    """D7: nobody was counted dead; everybody has renewed since."""
    seen(watch, lambda _: renewed(watch, before), "renewals by everybody")
    now = sessions(watch)
    assert {agent: now[agent][0] for agent in before} == {a: s for a, (s, _) in before.items()}


def has_more(follower: Following, than: int) -> bool:
    return len(follower.rows) > than


def test_d6_d7_redis_hosts_clock_jumps_and_every_session_lives_on(
    cluster: ClockedCluster,
    watch: ClusterWatch,
    producer: ChangeProducer,
    load: Load,
    follower: Following,
) -> None:
    """Redis's wall clock decides nothing: no session ends, no lease, and no ledger starts over."""
    seen(watch, lambda _: {"r1", AGENT} <= sessions(watch).keys(), "sessions of node and agent")
    before, ledger = sessions(watch), watch.view.ledger
    assert ledger is not None
    with superuser_of_redis(cluster) as client:
        for number, ahead_s in enumerate(JUMPS_S):
            cluster.clocks[REDIS].ahead(ahead_s)
            told_s, _ = client.time()
            assert abs(told_s - unix_us() // 1_000_000 - ahead_s) < 60, "it did jump"
            load.more(50)
            changed(watch, producer, f"r{number}")
            same_sessions(watch, before)
    after = watch.view.ledger
    assert after is not None
    assert after.report.run_id == ledger.report.run_id, "D6"


@pytest.mark.parametrize("who", ["master", "r1", AGENT])
def test_c3_d3_d7_l5_a_clock_jumps_and_nobody_notices(
    cluster: ClockedCluster,
    watch: ClusterWatch,
    producer: ChangeProducer,
    replica: Replica,
    load: Load,
    follower: Following,
    who: str,
) -> None:
    """Reads stay coherent, writers are answered, leases are renewed and drained; an id that was
    decided before the jumps gets its answer again after each of them."""
    seen(watch, lambda _: {"r1", AGENT} <= sessions(watch).keys(), "sessions of node and agent")
    before, name = sessions(watch), watch.view.log.master if who == "master" else who
    fields = {"table": "t", "op": "update", "key": {"id": 0}, "values": {"n": {"expr": "n + 0"}}}
    asked = {"id": new_request_id(), **fields}
    first = settled(producer.submit(asked))
    for number, ahead_s in enumerate(JUMPS_S):
        cluster.clocks[name].ahead(ahead_s)
        load.more(50)
        decoded = len(follower.rows)
        changed(watch, producer, f"{name}_{number}")
        assert settled(producer.submit(asked)) == first, "L5"
        replica.wait_coherent()
        assert replica.get("t", 0) is not None, "C3"
        until(partial(has_more, follower, decoded), "rows that the follower decodes")
        same_sessions(watch, before)
    for row in follower.rows:
        assert row["made_under"] <= row["version"] + 1, ("D2: two adjacent versions", row)


def test_l9_a_master_whose_clock_is_set_goes_by_the_time_that_passes(
    cluster: ClockedCluster, watch: ClusterWatch, load: Load
) -> None:
    master = watch.view.log.master
    cluster.clocks[master].ahead(300)
    load.more(50)
    assert abs(watch.view.log.commit_us - unix_us()) < 60_000_000, "the log's time did not follow"
    cluster.clocks[master].ahead(0)


def test_l9_a_master_that_is_ahead_is_followed_by_one_that_is_not(
    cluster: ClockedCluster, watch: ClusterWatch, producer: ChangeProducer, load: Load
) -> None:
    """Where it was so before its term, nothing tells it from idle hours. The log's time goes on
    rising, by microseconds, until the clock of now has caught up."""
    right = watch.view.log.master
    (ahead,) = {"m1", "m2"} - {right}
    cluster.clocks[ahead].ahead(300)
    cluster.kill(right)
    load.more(50)
    assert watch.view.log.master == ahead
    ahead_us = watch.view.log.commit_us
    assert ahead_us > unix_us() + 200_000_000, "the log's time went along"
    cluster.start(right)
    cluster.kill(ahead)
    load.more(50)
    assert watch.view.log.master == right
    assert ahead_us < watch.view.log.commit_us < ahead_us + 60_000_000
    cluster.clocks[ahead].ahead(0)
    cluster.start(ahead)
    changed(watch, producer, "after")


def test_whoever_looks_sees_who_lives_whatever_clocks_say(
    cluster: ClockedCluster, load: Load
) -> None:
    """A node whose clock is wrong is heard, and one that has died is not, though its last words are
    of a time that is still to come."""

    def coherency() -> str:
        told = command(cluster, "status", "--json").json["nodes"]
        (found,) = [node for node in told if node["node"] == "r1"]
        assert found["coherency"] == "silent" or found["age_ms"] <= SILENT_AFTER_US / 1_000
        return str(found["coherency"])

    for ahead_s in (-600, 600):
        cluster.clocks["r1"].ahead(ahead_s)
        load.more(50)
        assert coherency() == "coherent", ahead_s
    cluster.kill("r1")
    until(lambda: coherency() == "silent", "r1 is missed")
    cluster.clocks["r1"].ahead(0)
    cluster.start("r1")
    assert coherency() == "coherent"


def test_l3_l5_l6_l9_at_the_end_nothing_is_lost_double_or_out_of_order(
    cluster: ClockedCluster, settings: ClientSettings, replica: Replica, load: Load
) -> None:
    load.stop()
    load.assert_exact(replica)
    load.assert_same_answers(settings)
    times = commit_times(settings)
    assert len(times) > len(JUMPS_S) * 50
    assert all(earlier < later for earlier, later in pairwise(times)), "L9"
    assert_consistent(cluster, NODES)


def commit_times(settings: ClientSettings) -> list[int]:
    """Of every commit that counts, in the order of the log."""
    codec, position, times = MessagePackCodec(), LogPosition(), []
    log = settings.topics.log.name
    reader = TopicReader(settings.kafka, "clocks", read_committed=True, tell_ends=True)
    try:
        assert reader.first_offset(log, 0) == 0, "the log still has its beginning"
        reader.start(log, 0, 0)
        while not reader.ended:
            for each in reader.read(1_000, 0.5):
                assert each.value is not None
                record = codec.decode_log(each.value)
                verdict, position = admit(position, each.offset, record, codec.digest(each.value))
                if verdict is Verdict.APPLY and isinstance(record, Decisions):
                    times += [commit.commit_us for commit in record.commits]
    finally:
        reader.close()
    return times
