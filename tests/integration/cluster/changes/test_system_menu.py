"""The menu of schema changes on real Kafka, Redis and Spark, while writers write.

Each item walks its states and ends as foreseen; a constraint that rows break fails its job, names
them and leaves the table as it was; every node has d ⊨ S at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer, Replica, Subscriber
from leasehold.adapters.codec.records import MessagePackCodec, row_key
from leasehold.adapters.kafka.whole_topic import read_compacted
from leasehold.adapters.os.clock import boottime_ns
from leasehold.admin.watch import ClusterWatch
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.job import Job, Status
from leasehold.client.subscriber import News
from leasehold.events.rows import RowEvent, TruncationEvent, decode_row
from leasehold.model.errors import UnknownColumn, UnknownTable
from leasehold.model.records.events import RowImage
from leasehold.model.records.requests import ChangeRequest, JobControl, Outcome
from leasehold.model.topics import Topics
from leasehold.settings.client import ClientSettings
from tests.integration.cluster.changes import NODES
from tests.support.cluster.system_cluster import (
    assert_consistent,
    command,
    settings_of,
    until,
)
from tests.support.cluster.system_jobs import await_job, begin, ended
from tests.support.cluster.system_load import SELDOM_S, Load, made_tables, settled

KEYS = range(4)
CODEC = MessagePackCodec()
ROWS = 400


@pytest.fixture(scope="module", autouse=True)
def table(producer: ChangeProducer) -> None:
    sql = (
        "CREATE TABLE t (id bigint PRIMARY KEY, n int NOT NULL DEFAULT 0, city text, size int,"
        " tag text)"
    )
    rows = [row(key) for key in range(ROWS)]
    made_tables(producer, sql, rows)


def row(key: int) -> dict[str, Any]:
    values = {"city": f"city {key % 10}", "size": key, "tag": str(key)}
    return {"table": "t", "op": "insert", "key": {"id": key}, "values": values}


@pytest.fixture(scope="module")
def load(settings: ClientSettings) -> Iterator[Load]:
    """Writers that go on through every schema change of this module."""
    with Load(settings, "t", KEYS, pace_s=SELDOM_S) as made:
        made.more(20)
        yield made


def of_t(watch: ClusterWatch) -> Descriptor:
    tables = (each.descriptor for each in watch.view.tables.values())
    return next(each for each in tables if each.name == "t")


def changed(watch: ClusterWatch, producer: ChangeProducer, sql: str) -> Job:
    return ended(watch, begin(producer, sql))


def failed(watch: ClusterWatch, producer: ChangeProducer, sql: str) -> Job:
    before = of_t(watch)
    job = ended(watch, begin(producer, sql), Status.FAILED)
    after = watch.view.tables[job.table_id].descriptor
    assert (after.columns, after.indexes, after.checks) == (
        before.columns,
        before.indexes,
        before.checks,
    ), "a failed job leaves the descriptor as it was"
    return job


def put(producer: ChangeProducer, key: int, *, expect: int | None = None, **values: Any) -> Outcome:
    request: dict[str, Any] = {"table": "t", "op": "update", "key": {"id": key}, "values": values}
    if expect is not None:
        request["expect"] = expect
    return settled(producer.submit({**request, "on_conflict": "fail"}))


def applied(replica: Replica, outcome: Outcome) -> Outcome:
    assert outcome.lsn, outcome
    replica.wait_applied(outcome.lsn)
    replica.wait_coherent()  # on a busy machine its lease may have lapsed for a moment
    return outcome


def test_a_unique_index_over_duplicates_fails_and_names_them(
    watch: ClusterWatch, producer: ChangeProducer, load: Load
) -> None:
    """Scenario 70 and lesson 25: the rows and the value that they share are in the answer. The
    entries of the index have told them, on every node, and nobody has read the rows for it."""
    job = failed(watch, producer, "CREATE UNIQUE INDEX t_city ON t (city)")
    assert job.error.startswith(f"{ROWS} rows break index t_city: ")
    value = "unique index 't_city': (city) = (city 0) is in another row, too"
    assert {words for _, _, _, words in job.findings} == {value}
    assert all(key[0] % 10 == 0 for _, _, key, _ in job.findings)
    assert "validating" not in {phase for _, phase, _ in job.marks}
    load.more(20)
    changed(watch, producer, "CREATE INDEX t_city ON t (city)")


def test_unique_is_enforced_once_it_is_public(
    watch: ClusterWatch, producer: ChangeProducer, replica: Replica
) -> None:
    """Scenario 69: the write fails, the constraint stays; two rows may swap in one request."""
    changed(watch, producer, "ALTER TABLE t ADD CONSTRAINT t_size UNIQUE (size)")
    assert put(producer, 10, size=11).code == "23505"
    assert put(producer, 10, size=None).lsn
    swap = [
        {"table": "t", "op": "update", "key": {"id": a}, "values": {"size": b}}
        for a, b in ((20, 21), (21, 20))
    ]
    applied(replica, settled(producer.submit({"transaction": swap})))
    (found,) = replica.get_by("t_size", 20)
    assert found["id"] == 21


def test_a_default_that_may_be_there_once(
    watch: ClusterWatch, producer: ChangeProducer, load: Load
) -> None:
    """Scenario 58: all rows of before would share it, so the change fails; where there is none the
    insert of a second fails, once it is enforced."""
    failed(watch, producer, "ALTER TABLE t ADD COLUMN once int DEFAULT 5 UNIQUE")
    load.more(20)
    assert settled(producer.submit({"sql": "CREATE TABLE lone (id int PRIMARY KEY)"})).lsn
    insert = {"table": "lone", "op": "insert", "values": {}}
    changed(watch, producer, "ALTER TABLE lone ADD COLUMN once int DEFAULT 5 UNIQUE")
    assert settled(producer.submit({**insert, "key": {"id": 1}})).lsn
    assert settled(producer.submit({**insert, "key": {"id": 2}})).code == "23505"
    assert settled(producer.submit({**insert, "key": {"id": 2}, "values": {"once": 6}})).lsn
    changed(watch, producer, "DROP TABLE lone")


def test_checks_not_null_and_defaults(watch: ClusterWatch, producer: ChangeProducer) -> None:
    assert failed(watch, producer, "ALTER TABLE t ADD CHECK (size < 100)").findings
    assert failed(watch, producer, "ALTER TABLE t ALTER size SET NOT NULL").findings
    changed(watch, producer, "ALTER TABLE t ADD CONSTRAINT small CHECK (size < 100) NOT VALID")
    assert put(producer, 5, size=1_000).code == "23514"
    assert put(producer, 200, city="x").lsn, "another column of a row from before"
    assert ended(
        watch, begin(producer, "ALTER TABLE t VALIDATE CONSTRAINT small"), Status.FAILED
    ).findings
    changed(watch, producer, "ALTER TABLE t DROP CONSTRAINT small")
    changed(watch, producer, "ALTER TABLE t ADD CONSTRAINT big CHECK (size < 1000000)")
    changed(
        watch, producer, "ALTER TABLE t ALTER city SET DEFAULT 'nowhere', ALTER tag SET NOT NULL"
    )
    assert put(producer, 6, tag=None).code == "23502"
    changed(watch, producer, "ALTER TABLE t ALTER tag DROP NOT NULL")
    assert put(producer, 6, tag=None).lsn
    assert put(producer, 6, tag="6").lsn


def images(cluster: LocalCluster, table: int) -> dict[Any, RowImage]:
    """What the rows topic tells of each row, by its key."""
    topic = Topics(cluster.cluster_settings.database).rows(table).name
    told = read_compacted(cluster.kafka_settings, "leasehold-test-images", topic)
    found = [CODEC.decode_as(RowImage, data) for key, data in told.items() if key != row_key(())]
    return {image.key[0]: image for image in found}


def test_a_column_changes_its_type(
    cluster: LocalCluster,
    watch: ClusterWatch,
    producer: ChangeProducer,
    replica: Replica,
    load: Load,
) -> None:
    """Each node computes its rows, and a reader of the images there were computes the same: nobody
    is told of a row, and it is no write: who has read a row before may still write it. Then once
    more where a reader would not compute the same for good: there images tell."""
    table = of_t(watch).table_id
    before = images(cluster, table)
    changed(watch, producer, "ALTER TABLE t ALTER tag TYPE bigint USING CAST(tag AS bigint)")
    made = of_t(watch)
    after = images(cluster, table)
    assert after.keys() == before.keys() == set(range(ROWS))
    assert after[100] == before[100], "the very image"
    found = {key: decode_row(made, (key,), image) for key, image in after.items()}
    assert {key: (event.values or {}).get("tag") for key, event in found.items()} == {
        key: key for key in range(ROWS)
    }
    sql = "ALTER TABLE t ALTER tag TYPE bigint USING CAST(upper(CAST(tag AS text)) AS bigint)"
    changed(watch, producer, sql)
    (tag,) = (c for c in of_t(watch).columns if c.name == "tag")
    wanted = {key: key for key in range(ROWS)}

    def told() -> bool:
        found = images(cluster, table).items()
        return {key: image.values.get(tag.element_id) for key, image in found} == wanted

    until(told, "an image of each row with its new value")
    after = images(cluster, table)
    assert after[100].lsn > before[100].lsn
    assert after[100].genids == before[100].genids
    seen = max(before[100].genids.values())
    assert put(producer, 100, expect=seen, size=100).lsn
    assert put(producer, 100, expect=seen, size=100).code == "40001"
    load.more(20)
    replica.wait_coherent()
    assert [each["tag"] for each in replica.scan("t")] == list(range(ROWS))
    assert put(producer, 7, tag="seven").code == "22P02"
    changed(watch, producer, "ALTER TABLE t ADD COLUMN word text")
    applied(replica, put(producer, 7, word="seven"))
    sql = "ALTER TABLE t ALTER word TYPE int USING CAST(word AS int)"
    assert failed(watch, producer, sql).findings


RESTED = (
    "CREATE TABLE rested (id bigint PRIMARY KEY, n int NOT NULL DEFAULT 0, code int UNIQUE,"
    " city text, CONSTRAINT counted CHECK (code >= 0));"
    " CREATE INDEX rested_city ON rested (city) INCLUDE (code)"
)


def codes_of(key: int) -> list[tuple[int, int]]:
    """A new code, one that another row has, and one that the CHECK refuses."""
    return [(0, key), (1, 7), (2, -1)]


def test_a_type_changes_with_what_rests_on_it(
    settings: ClientSettings, watch: ClusterWatch, producer: ChangeProducer, replica: Replica
) -> None:
    """A UNIQUE, a CHECK and an index are made anew over the column with other values. Whoever
    writes meanwhile is held to them at any moment; what the new values break fails the change."""

    def rested(key: int, code: Any) -> dict[str, Any]:
        values = {"code": code, "city": f"city {key % 10}"}
        fields = {"table": "rested", "op": "insert", "key": {"id": key}, "values": values}
        return {**fields, "on_conflict": "fail"}

    made_tables(producer, RESTED, [rested(key, key) for key in range(ROWS)])
    keys = count(ROWS)

    def write_while(sql: str) -> int:
        job, turns = begin(producer, sql), 0
        while (known := watch.view.jobs.get(job)) is None or not known.job.status.ended:
            key = next(keys)
            asked = [producer.submit(rested(key + i * 100_000, c)) for i, c in codes_of(key)]
            assert [settled(each).code for each in asked] == ["", "23505", "23514"], turns
            turns += 1
        return turns if known.job.status is Status.SUCCEEDED else -turns

    with Load(settings, "rested", KEYS, pace_s=SELDOM_S) as counted:
        assert write_while("ALTER TABLE rested ALTER code TYPE numeric(12, 2)") > 3
        counted.more(20)
        sql = "ALTER TABLE rested ALTER code TYPE int USING CAST(code / 2 AS int)"
        assert write_while(sql) < 0, "two rows have one code then"
        assert write_while("ALTER TABLE rested ALTER code TYPE bigint") > 3
    counted.assert_exact(replica)
    rows = {row["id"]: row["code"] for row in replica.scan("rested", rows_max=1_000_000)}
    assert rows == {key: key for key in range(next(keys))}
    (found,) = replica.get_by("rested_code_key", ROWS)
    assert found["city"] == f"city {ROWS % 10}"
    assert len(list(replica.get_by("rested_city", "city 3", rows_max=1_000_000))) == sum(
        key % 10 == 3 for key in rows
    )
    changed(watch, producer, "DROP TABLE rested")


def test_names_change_and_both_resolve_meanwhile(
    watch: ClusterWatch, producer: ChangeProducer, replica: Replica
) -> None:
    changed(watch, producer, "ALTER TABLE t RENAME COLUMN tag TO label")
    replica.wait_coherent()
    assert replica.get("t", 8)["label"] == 8  # type: ignore[index]
    changed(watch, producer, "ALTER INDEX t_city RENAME TO by_city")
    replica.wait_coherent()
    assert sum(1 for _ in replica.get_by("by_city", "city 3"))
    assert put(producer, 8, tag=1).code == UnknownColumn.sqlstate


def test_several_actions_share_their_steps(
    watch: ClusterWatch, producer: ChangeProducer, replica: Replica, load: Load
) -> None:
    sql = (
        "ALTER TABLE t ADD COLUMN gate int NOT NULL DEFAULT 4, ADD CHECK (gate > 0),"
        " DROP COLUMN label"
    )
    job = changed(watch, producer, sql)
    assert len(job.steps) < 7
    load.more(20)
    replica.wait_coherent()
    found = replica.get("t", 9)
    assert found is not None
    assert found["gate"] == 4
    assert "label" not in found


def test_locks_let_writers_of_other_columns_pass(
    watch: ClusterWatch, producer: ChangeProducer, replica: Replica
) -> None:
    """Claim 8: both have read the row; each changes its own column."""
    changed(watch, producer, "ALTER TABLE t ADD LOCK where_ COVERING (city)")
    replica.wait_coherent()

    def both(change: Any) -> None:
        """The row is read, another writer changes its other column, then it is written."""
        change.get("t", 30, columns=["city"])
        applied(replica, put(producer, 30, size=100_000 + tries[0]))
        tries[0] += 1
        change.update("t", 30, {"city": "there"})

    tries = [0]
    replica.transact(both)
    assert tries == [1], "it collided with a writer of another column"

    def same(change: Any) -> None:
        change.get("t", 30, columns=["city"])
        if not tries[1]:
            applied(replica, put(producer, 30, city="elsewhere"))
        tries[1] += 1
        change.update("t", 30, {"city": "here"})

    tries.append(0)
    replica.transact(same)
    assert tries[1] == 2, "a write of the same column was lost"
    changed(watch, producer, "ALTER TABLE t DROP LOCK where_")


def test_a_foreign_key_is_validated_and_enforced_from_both_sides(
    watch: ClusterWatch, producer: ChangeProducer, replica: Replica, load: Load
) -> None:
    settled(producer.submit({"sql": "CREATE TABLE gates (id int PRIMARY KEY, name text)"}))
    gate = {"table": "gates", "op": "insert", "key": {"id": 4}, "values": {"name": "four"}}
    applied(replica, put(producer, 50, gate=5))
    assert settled(producer.submit(gate)).lsn
    sql = "ALTER TABLE t ADD CONSTRAINT t_gate FOREIGN KEY (gate) REFERENCES gates"
    assert [key for _, _, key, _ in failed(watch, producer, sql).findings] == [(50,)]
    assert put(producer, 50, gate=4).lsn
    changed(watch, producer, sql)
    load.more(20)
    assert put(producer, 50, gate=6).code == "23503"
    delete = {"table": "gates", "op": "delete", "key": {"id": 4}, "on_conflict": "fail"}
    assert settled(producer.submit(delete)).code == "23503"
    assert settled(producer.submit({"sql": "DROP TABLE gates"})).code == "2BP01"
    changed(watch, producer, "ALTER TABLE t DROP CONSTRAINT t_gate")
    changed(watch, producer, "DROP TABLE gates")


def test_explain_changes_nothing_and_a_postponed_job_waits(
    cluster: LocalCluster, watch: ClusterWatch, producer: ChangeProducer
) -> None:
    jobs = len(watch.view.jobs)
    said = command(cluster, "ddl", "--explain", "--json", "ALTER TABLE t ADD COLUMN later text")
    assert said.code == 0, said
    assert [step["point_of_no_return"] for step in said.json] == [False, True]
    assert len(watch.view.jobs) == jobs
    job = begin(producer, "ALTER TABLE t ADD COLUMN later text")
    asked = ChangeRequest(b"", control=JobControl(job, "set", {"postpone": 1}))
    outcome = settled(producer.submit(asked))
    if outcome.lsn:
        await_job(watch, job, lambda job: job.postponed, "its point")
        assert command(cluster, "jobs", "complete", str(job)).code == 0
    else:  # it was faster than the request to wait, which says so
        assert outcome.code == "55000", outcome
    ended(watch, job)


def test_tables_rows_and_their_index_are_one_commit_and_truncate_is_another(
    cluster: LocalCluster, producer: ChangeProducer, replica: Replica
) -> None:
    """DDL and rows in one request, whole or not at all; a follower learns that rows are gone from
    one record a partition, whatever their number."""
    sql = (
        "CREATE TABLE u (id int PRIMARY KEY, word text, CHECK (id < 100));"
        " CREATE INDEX u_word ON u (word)"
    )
    rows = [
        {"table": "u", "op": "insert", "key": {"id": key}, "values": {"word": f"w{key}"}}
        for key in range(50)
    ]
    wrong = {"table": "u", "op": "insert", "key": {"id": 100}, "values": {}}
    refused = settled(producer.submit({"sql": sql, "transaction": [*rows, wrong]}))
    assert refused.code == "23514"
    applied(replica, settled(producer.submit({"sql": sql, "transaction": rows})))
    assert [each["id"] for each in replica.get_by("u_word", "w7")] == [7]
    with Subscriber(settings_of(cluster, "follower"), ["u"]) as subscriber:
        news: list[News] = []

        def receive(met: Callable[[], bool], what: str) -> None:
            def polled() -> bool:
                news.extend(subscriber.poll(0.1))
                return met()

            until(polled, what)

        receive(lambda: len([n for n in news if isinstance(n, RowEvent)]) >= len(rows), "all rows")
        gone = applied(replica, settled(producer.submit({"sql": "TRUNCATE u"})))
        assert replica.get("u", 7) is None
        assert list(replica.get_by("u_word", "w7")) == []
        again = {"table": "u", "op": "insert", "key": {"id": 7}, "values": {"word": "again"}}
        back = applied(replica, settled(producer.submit(again)))

        def came() -> list[RowEvent]:
            return [n for n in news if isinstance(n, RowEvent) and n.lsn == back.lsn]

        receive(lambda: bool(came()), "the row that came after")
    (event,) = [each for each in news if isinstance(each, TruncationEvent)]
    assert event.lsn == gone.lsn
    (last,) = came()
    assert news.index(event) < news.index(last)
    assert last.values == {"id": 7, "word": "again"}


def test_a_generated_column_follows_its_row_and_a_default_is_decided_once(
    watch: ClusterWatch, producer: ChangeProducer, replica: Replica
) -> None:
    changed(
        watch, producer, "ALTER TABLE t ADD COLUMN twice int GENERATED ALWAYS AS (n * 2) STORED"
    )
    changed(watch, producer, "ALTER TABLE t ADD COLUMN at timestamptz DEFAULT now()")
    before = replica_row(replica, 14)
    assert before["twice"] == 2 * before["n"]
    assert before["at"] is not None, "the time of the ALTER, one for all"
    assert before["at"] == replica_row(replica, 15)["at"]
    applied(replica, put(producer, 14, n=21))
    after = replica_row(replica, 14)
    assert (after["twice"], after["at"]) == (42, before["at"])
    assert put(producer, 14, twice=1).code == "428C9"
    applied(replica, put(producer, 14, n=before["n"]))


def replica_row(replica: Replica, key: int) -> dict[str, Any]:
    replica.wait_coherent()
    found = replica.get("t", key)
    assert found is not None
    return found


def test_a_dropped_table_is_gone_and_its_name_free(
    watch: ClusterWatch, producer: ChangeProducer, replica: Replica
) -> None:
    """Scenarios 48 and 73."""
    for number in range(2):
        settled(producer.submit({"sql": "CREATE TABLE gone (id int PRIMARY KEY, a int)"}))
        row = {"table": "gone", "op": "insert", "key": {"id": 1}, "values": {"a": number}}
        applied(replica, settled(producer.submit(row)))
        assert replica.get("gone", 1) == {"id": 1, "a": number}
        changed(watch, producer, "DROP TABLE gone")
        assert settled(producer.submit(row)).code == UnknownTable.sqlstate
        replica.wait_coherent()
        with pytest.raises(UnknownTable):
            replica.get("gone", 1)


def test_a_subscriber_that_comes_late_reads_rows_as_they_are(
    cluster: LocalCluster, watch: ClusterWatch, producer: ChangeProducer, replica: Replica
) -> None:
    """Rows that nobody has written since a column was filled by key have images without it."""
    changed(watch, producer, "ALTER TABLE t ADD COLUMN late int NOT NULL DEFAULT 7")
    assert put(producer, 50, late=8).lsn
    changed(watch, producer, "ALTER TABLE t ALTER COLUMN late SET DEFAULT 9")
    replica.wait_coherent()
    kept = {row["id"]: row for row in replica.scan("t") if row["id"] not in KEYS}
    assert {row["late"] for row in kept.values()} == {7, 8}
    seen: dict[int, Any] = {}
    give_up_ns = boottime_ns() + 60_000_000_000
    with Subscriber(settings_of(cluster, "late"), ["t"]) as subscriber:
        while seen != kept and boottime_ns() < give_up_ns:
            for each in subscriber.poll(0.2):
                if isinstance(each, RowEvent) and each.key["id"] not in KEYS:
                    seen[each.key["id"]] = each.values
    assert seen == kept
    changed(watch, producer, "ALTER TABLE t DROP COLUMN late")


BESIDE = (
    "CREATE INDEX busy_n ON busy (n)",
    "ALTER TABLE busy ADD COLUMN made uuid NOT NULL DEFAULT gen_random_uuid()",
    "DROP INDEX busy_n",
)


def test_71_76_78_rows_come_and_go_beside_changes_and_truncate_waits(
    watch: ClusterWatch, producer: ChangeProducer, replica: Replica, load: Load
) -> None:
    """A row at a time is inserted or deleted while one change follows the other: each is taken. A
    TRUNCATE beside a change is refused, and one after it takes exactly what is there. What was
    made for a version of before is refused, or, to be retried, made again and taken."""
    sql = "CREATE TABLE busy (id bigint PRIMARY KEY, n int)"
    applied(replica, settled(producer.submit({"sql": sql})))
    before = next(table.version for table in replica.tables() if table.name == "busy")
    there: set[int] = set()
    turns = count()

    def turn() -> Outcome:
        key = next(turns) % 17
        fields = {"table": "busy", "op": "insert", "key": {"id": key}, "values": {"n": key % 3}}
        if key in there:
            fields = {"table": "busy", "op": "delete", "key": {"id": key}}
        outcome = settled(producer.submit(fields))
        assert outcome.lsn, (fields, outcome)
        there.symmetric_difference_update({key})
        return outcome

    def runs(job: int) -> bool:
        known = watch.view.jobs.get(job)
        return known is None or not known.job.status.ended

    for sql in BESIDE:
        for _ in range(20):
            turn()
        assert there, "what is empty is filled at once"
        job = begin(producer, sql)
        beside = settled(producer.submit({"sql": "TRUNCATE busy"}))
        taken = 0
        while runs(job):
            turn()
            taken += 1
        ended(watch, job)
        if "DROP" not in sql:  # that one is over in an instant
            assert (beside.code, taken > 5) == ("55006", True), (beside, taken)
        last = applied(replica, turn())
        assert {row["id"] for row in replica.scan("busy")} == there, last
        if sql is not BESIDE[-1]:
            applied(replica, settled(producer.submit({"sql": "TRUNCATE busy"})))
            assert list(replica.scan("busy")) == []
            there.clear()
    while not there:  # each 34th turn leaves nothing
        applied(replica, turn())
    load.more(20)
    rows = list(replica.scan("busy"))
    made = {row["made"] for row in rows}
    assert (len(made), None in made) == (len(rows), False)
    late = {"table": "busy", "op": "insert", "key": {"id": 99}, "schema_version": before}
    late["values"] = {"n": 1}
    assert settled(producer.submit({**late, "on_conflict": "fail"})).code == "40001"
    applied(replica, settled(producer.submit(late)))
    row = replica.get("busy", 99)
    assert row is not None
    assert (row["n"], row["made"] in {None, *made}) == (1, False)
    changed(watch, producer, "DROP TABLE busy")


def test_every_node_is_consistent(cluster: LocalCluster, replica: Replica, load: Load) -> None:
    load.stop()
    load.assert_exact(replica)
    assert_consistent(cluster, NODES)
