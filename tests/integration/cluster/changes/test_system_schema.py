"""Schema changes on real Spark while writers write, with something killed in each.

Goal: every job ends as it should, whatever dies meanwhile; writers notice nothing but time; every
node has d ⊨ S at the end. Last of its package by its name: it alone kills processes of the cluster.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer, Replica, Subscriber, open_replica
from leasehold.adapters.os.clock import boottime_ns
from leasehold.admin.dead_letters import DeadLetters
from leasehold.admin.view import ClusterView
from leasehold.admin.watch import ClusterWatch
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.job import Status
from leasehold.client.subscriber import News, VersionNotice
from leasehold.events.rows import RowEvent
from leasehold.model.ids import genid
from leasehold.settings.client import ClientSettings
from tests.integration.cluster.changes import NODES, RETRY_ATTEMPTS
from tests.support.cluster.system_cluster import (
    SOON_S,
    SPARK,
    assert_consistent,
    await_coherent,
    command,
    logged,
    seen,
    settings_of,
    until,
)
from tests.support.cluster.system_jobs import (
    at_full_speed,
    await_job,
    begin,
    control,
    ended,
    in_backfill,
    slowly,
)
from tests.support.cluster.system_load import SELDOM_S, Load, made_tables, settled

KEYS = range(6)
ROWS = 3_000
SLOW = 400
"""Rows per second: a whole backfill would take several seconds."""


@pytest.fixture(scope="module", autouse=True)
def table(producer: ChangeProducer) -> None:
    sql = (
        "CREATE TABLE towns (id bigint PRIMARY KEY, city text, n int NOT NULL DEFAULT 0, note text)"
    )
    made_tables(producer, sql, [row(key) for key in range(ROWS)])


def towns(replica: Replica) -> Descriptor:
    return next(each for each in replica.tables() if each.name == "towns")


def row(key: int) -> dict[str, Any]:
    values = {"city": f"city {key % 10}"}
    return {"table": "towns", "op": "insert", "key": {"id": key}, "values": values}


@pytest.fixture(scope="module")
def load(settings: ClientSettings) -> Iterator[Load]:
    """Writers that go on through every schema change of this module."""
    with Load(settings, "towns", KEYS, pace_s=SELDOM_S) as made:
        made.more(20)
        yield made


def test_claims_4_6_three_changes_while_writers_write(
    watch: ClusterWatch, producer: ChangeProducer, replica: Replica, load: Load
) -> None:
    """Each in turn, nothing killed: what follows has a right beginning."""
    for sql in (
        "CREATE INDEX towns_city ON towns (city)",
        "ALTER TABLE towns ADD COLUMN gate text",
        "ALTER TABLE towns ADD COLUMN status text NOT NULL DEFAULT 'landed'",
    ):
        job = ended(watch, begin(producer, sql))
        load.more(20)
        assert not job.error
    replica.wait_coherent()
    found = {each["id"] for each in replica.get_by("towns_city", "city 3")}
    assert found == set(range(3, ROWS, 10))
    assert {each["status"] for each in replica.scan("towns")} == {"landed"}


def test_l3_d2_master_killed_in_a_backfill(
    cluster: LocalCluster,
    watch: ClusterWatch,
    producer: ChangeProducer,
    replica: Replica,
    load: Load,
) -> None:
    """Scenario 75: the next master goes on from the log; no row is lost or filled twice. Once while
    Spark reads, and once while nodes merge; who comes back meanwhile merges, too."""
    job = slowly(producer, "CREATE INDEX towns_n ON towns (n)", SLOW)
    in_backfill(watch, job)
    restart_master(cluster, watch)
    load.more(20)
    await_job(watch, job, lambda found: found.chunks_ended, "all ranges in the log")
    control(producer, job, "pause")  # nobody merges meanwhile
    back = restart_master(cluster, watch)
    seen(watch, lambda view: ranges_left(view, back) == 1, f"{back} with a range to merge")
    control(producer, job, "resume")
    at_full_speed(producer, job)
    ended(watch, job)
    replica.wait_coherent()
    entries = sum(1 for _ in replica.get_by("towns_n", ()))
    assert entries == ROWS


def restart_master(cluster: LocalCluster, watch: ClusterWatch) -> str:
    """Kill the master, and start it again as soon as there is another one; return its name."""
    killed = watch.view.log.master
    cluster.kill(killed)
    seen(watch, lambda view: view.log.master not in ("", killed), "another master")
    cluster.start(killed)
    return killed


def ranges_left(view: ClusterView, name: str) -> int | None:
    """Return how many ranges a node has left, None where the process of that name has not told."""
    node, told = view.nodes.get(name), view.merging.get(name)
    if node is None or told is None or told.incarnation != node.ack.incarnation:
        return None
    return told.waiting


@pytest.mark.long("a minute; tests/integration/spark kills it in each of its pipelines")
def test_spark_killed_in_a_backfill_and_started_again(
    cluster: LocalCluster,
    watch: ClusterWatch,
    producer: ChangeProducer,
    replica: Replica,
    load: Load,
) -> None:
    """The job waits, writers do not; the store ends as if nothing had happened."""
    sql = "ALTER TABLE towns ADD COLUMN weight uuid NOT NULL DEFAULT gen_random_uuid()"
    job = slowly(producer, sql, SLOW)
    in_backfill(watch, job)
    cluster.kill(SPARK)
    load.more(100)
    cluster.start(SPARK)
    at_full_speed(producer, job)
    ended(watch, job)
    replica.wait_coherent()
    assert len({each["weight"] for each in replica.scan("towns")}) == ROWS


def test_d4_d7_replicant_killed_during_a_step(
    cluster: LocalCluster, watch: ClusterWatch, producer: ChangeProducer, load: Load
) -> None:
    """Its session dies one TTL after it: until then the job waits and says for whom, then it goes
    on by itself (scenario 55)."""
    cluster.kill("r2")
    job = begin(producer, "ALTER TABLE towns ADD COLUMN tail text")
    until(lambda: waits_for(cluster, job, "r2"), "the name of who holds the job up")
    load.more(20)
    ended(watch, job)
    cluster.start("r2")
    await_coherent(watch, "r2", watch.view.log.lsn)


def waits_for(cluster: LocalCluster, job: int, name: str) -> bool:
    for each in command(cluster, "jobs", "list", "--json").json:
        if each["job"] == job and any(name in words for words in each["waits_for"]):
            return True
    return False


def test_job_cancelled_in_a_backfill_leaves_the_table_as_it_was(
    watch: ClusterWatch, producer: ChangeProducer, replica: Replica, load: Load
) -> None:
    """Scenarios 60 and 67. The name is free again, and no entry of it is left behind."""
    replica.wait_coherent()
    before = towns(replica)
    job = slowly(producer, "CREATE INDEX towns_note ON towns (note)", SLOW)
    in_backfill(watch, job)
    control(producer, job, "cancel")
    ended(watch, job, Status.CANCELLED)
    load.more(20)
    replica.wait_coherent()
    after = towns(replica)
    assert (after.columns, after.indexes) == (before.columns, before.indexes)
    ended(watch, begin(producer, "CREATE INDEX towns_note ON towns (note)"))


def test_a_row_that_has_no_new_value_ends_the_change_of_a_type(
    watch: ClusterWatch, producer: ChangeProducer, replica: Replica, load: Load
) -> None:
    """Where Spark's chunk meets it, with its key and PostgreSQL's code; nothing is left behind."""
    ended(watch, begin(producer, "ALTER TABLE towns ADD COLUMN grade int NOT NULL DEFAULT 3"))
    replica.wait_coherent()
    before = towns(replica)
    job = begin(producer, "ALTER TABLE towns ALTER grade TYPE bigint USING 1 / (grade - grade)")
    failed = ended(watch, job, Status.FAILED)
    assert (failed.code, len(failed.findings)) == ("22012", 1)
    assert "row (" in failed.error
    assert "verifying" not in {phase for _, phase, _ in failed.marks}
    load.more(20)
    replica.wait_coherent()
    assert towns(replica).columns == before.columns
    job = begin(producer, "ALTER TABLE towns ALTER grade TYPE bigint")
    assert not ended(watch, job).error
    replica.wait_coherent()
    assert [column.name for column in towns(replica).by_name.values()] == [*before.by_name]


def test_pause_and_resume_in_a_backfill(
    watch: ClusterWatch, producer: ChangeProducer, load: Load
) -> None:
    """Scenario 59."""
    job = slowly(producer, "ALTER TABLE towns ADD COLUMN size uuid DEFAULT gen_random_uuid()", SLOW)
    in_backfill(watch, job)
    control(producer, job, "pause")
    await_job(watch, job, lambda found: found.status is Status.PAUSED, "a pause")
    load.more(50)
    control(producer, job, "resume")
    at_full_speed(producer, job)
    ended(watch, job)


def test_r1_conflicts_retried_by_spark_end_in_one_final_result(
    producer: ChangeProducer, replica: Replica, load: Load
) -> None:
    """Twenty requests that expect the same genid: one commits at once, the others after Spark has
    sent them again; each counts once."""
    key = 50
    values = {"n": {"expr": "n + 1"}}
    update = {"table": "towns", "op": "update", "key": {"id": key}, "values": values}
    expect = genid(producer.submit(update).result(90).lsn, 0)
    pending = [producer.submit({**update, "expect": expect}) for _ in range(20)]
    outcomes = [settled(each) for each in pending]
    assert all(outcome.lsn for outcome in outcomes), outcomes
    assert len({outcome.lsn for outcome in outcomes}) == 20
    assert sum(outcome.attempt > 1 for outcome in outcomes) == 19
    again = [settled(each.ask_again()) for each in pending]
    assert again == outcomes
    replica.wait_coherent()
    found = replica.get("towns", key)
    assert found is not None
    assert found["n"] == 21


def test_r1_what_can_never_commit_is_given_up_and_kept_as_a_dead_letter(
    settings: ClientSettings, producer: ChangeProducer, replica: Replica, load: Load
) -> None:
    """A transaction with more stale rows than attempts, and an update of a row that is gone."""
    keys = range(60, 60 + RETRY_ATTEMPTS + 2)
    values = {"n": {"expr": "n + 99"}}
    stale = [
        {"table": "towns", "op": "update", "key": {"id": key}, "values": values, "expect": 1}
        for key in keys
    ]
    gone = {**stale[0], "key": {"id": 70}}
    deleted = {"table": "towns", "op": "delete", "key": {"id": 70}}
    assert producer.submit(deleted).result(90).lsn
    pending = [producer.submit({"transaction": stale}), producer.submit(gone)]
    outcomes = [settled(each) for each in pending]
    for outcome in outcomes:
        assert (outcome.lsn, outcome.code, outcome.final) == (0, "40001", True)
        assert outcome.dead_lettered
    assert outcomes[0].attempt == RETRY_ATTEMPTS + 1
    replica.wait_coherent()
    assert {replica.get("towns", key)["n"] for key in keys} == {0}  # type: ignore[index]
    wanted = {each.request_id for each in pending}

    def kept() -> bool:
        return wanted <= {letter.request_id for _, letter in DeadLetters(settings).read()}

    until(kept, "their dead letters")
    assert producer.submit(row(70)).result(90).lsn


def test_d3_d4_subscriber_decodes_rows_through_an_added_column(
    cluster: LocalCluster, watch: ClusterWatch, producer: ChangeProducer
) -> None:
    """A row written all along: each image it gets has the columns of the version it holds, the new
    one from the version on in which it is public; and none of the values is of another column."""
    sql = "CREATE TABLE s (id bigint PRIMARY KEY, a text, n int NOT NULL DEFAULT 0)"
    assert producer.submit({"sql": sql}).result(90).lsn
    made = {"table": "s", "op": "insert", "key": {"id": 1}, "values": {"a": "first"}}
    assert producer.submit(made).result(90).lsn
    stop = threading.Event()
    writers = threading.Thread(target=write_until, args=(producer, stop))
    with Subscriber(settings_of(cluster, "subscriber"), ["s"]) as subscriber:
        news: list[News] = []
        collect(subscriber, news, lambda: any(isinstance(each, RowEvent) for each in news))
        writers.start()
        try:
            job = begin(producer, "ALTER TABLE s ADD COLUMN b text")
            ended(watch, job)
            last = {"table": "s", "op": "update", "key": {"id": 1}, "values": {"b": "new"}}
            lsn = producer.submit(last).result(90).lsn
        finally:
            stop.set()
            writers.join()
        collect(subscriber, news, lambda: any(r.lsn >= lsn for r in rows_of(news)))
    heard = [each.event for each in news if isinstance(each, VersionNotice)]
    assert [event.version for event in heard if event.name == "s"] == [1, 2, 3]
    for each in rows_of(news):
        assert each.values is not None
        assert set(each.values) == {"id", "a", "n"} | ({"b"} if each.version >= 3 else set())
        assert each.values["a"] == "first"
        assert each.values.get("b") in (None, "new")
    assert rows_of(news)[-1].values["b"] == "new"  # type: ignore[index]
    counted = [each.values["n"] for each in rows_of(news)]  # type: ignore[index]
    assert counted == sorted(counted)


def rows_of(news: list[News]) -> list[RowEvent]:
    return [each for each in news if isinstance(each, RowEvent)]


def write_until(producer: ChangeProducer, stop: threading.Event) -> None:
    values = {"n": {"expr": "n + 1"}}
    while not stop.is_set():
        settled(producer.submit({"table": "s", "op": "update", "key": {"id": 1}, "values": values}))


def collect(subscriber: Subscriber, news: list[News], met: Any) -> None:
    give_up_ns = boottime_ns() + int(SOON_S * 1e9)
    while not met():
        assert boottime_ns() < give_up_ns, news[-5:]
        news += subscriber.poll(0.2)


def test_all_jobs_ended_all_nodes_are_consistent_and_every_sum_is_exact(
    cluster: LocalCluster, settings: ClientSettings, watch: ClusterWatch, load: Load
) -> None:
    load.stop()
    with open_replica(settings_of(cluster, "last")) as replica:
        load.assert_exact(replica)
    load.assert_same_answers(settings)
    statuses = {each.job.status for each in watch.view.jobs.values()}
    assert statuses == {Status.SUCCEEDED, Status.CANCELLED, Status.FAILED}
    assert_consistent(cluster, NODES)
    for name in (*NODES, "changefeed"):
        assert "Traceback" not in logged(cluster, name)
    assert "StackOverflowError" not in logged(cluster, SPARK), "queries stopped in a micro-batch"
