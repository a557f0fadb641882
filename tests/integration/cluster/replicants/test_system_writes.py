"""Writes and coherent reads on real processes: master, two replicants, changefeed, no Spark.

Goal: what a producer is told is what is there, once, on every node, whatever it sends.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest
from prometheus_client import CollectorRegistry

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer, Replica, open_replica
from leasehold.adapters.os.clock import new_request_id
from leasehold.admin.dead_letters import DeadLetters
from leasehold.model.errors import NotCoherent, OutcomeUnknown
from leasehold.model.ids import format_request_id, genid, request_id
from leasehold.model.records.requests import DeadLetter, Outcome
from leasehold.replica.write_set import WriteSet
from tests.integration.cluster.replicants import NODES
from tests.support.cluster.system_cluster import (
    Asker,
    assert_consistent,
    logged,
    settings_of,
    until,
)

TABLES = (
    "CREATE TABLE stock (id bigint PRIMARY KEY, name varchar(20), n int NOT NULL DEFAULT 3)",
    "CREATE TABLE legs (day date, flight int, seat text, PRIMARY KEY (day, flight))",
)


@pytest.fixture(scope="module", autouse=True)
def tables(cluster: LocalCluster) -> None:
    with ChangeProducer(settings_of(cluster, "setup")) as producer:
        for sql in TABLES:
            assert producer.submit({"sql": sql}).result().lsn


@pytest.fixture(scope="module")
def requester(cluster: LocalCluster) -> Iterator[Asker]:
    made = Asker(settings_of(cluster, "requester"))
    yield made
    made.close()


def insert(key: int, **values: Any) -> dict[str, Any]:
    return {"table": "stock", "op": "insert", "key": {"id": key}, "values": values}


def increment(key: int, **more: Any) -> dict[str, Any]:
    values = {"n": {"expr": "n + 1"}}
    return {"table": "stock", "op": "update", "key": {"id": key}, "values": values, **more}


# ---------------------------------------------------------------- what is asked is done


def test_a_program_with_a_replica_gives_prometheus_what_it_measures(replica: Replica) -> None:
    registry = CollectorRegistry()
    registry.register(replica.collector())

    def committed() -> float:
        return registry.get_sample_value("leasehold_requests_total", {"outcome": "committed"}) or 0

    before = committed()
    replica.transact(lambda tx: tx.insert("stock", 9_001, {"name": "measured"}))
    assert committed() == before + 1
    assert registry.get_sample_value("leasehold_request_seconds_count") == before + 1
    assert registry.get_sample_value("leasehold_coherent") == 1


@pytest.mark.parametrize("content_type", ["application/json", "application/msgpack"])
def test_one_and_many_rows_per_request_in_either_format(
    requester: Asker, replica: Replica, content_type: str
) -> None:
    """Raw bytes as any producer would write them; composite keys by name and in key order."""
    first = 100 if content_type.endswith("json") else 200
    one, many = new_request_id(), new_request_id()
    leg: dict[str, Any] = {"table": "legs", "op": "insert", "values": {"seat": "4A"}}
    requests: list[tuple[bytes, dict[str, Any]]] = [
        (one, {"key": {"day": "2013-01-01", "flight": first}, **leg}),
        (
            many,
            {
                "transaction": [
                    {"key": ["2013-01-02", first], **leg},
                    insert(first, name="a"),
                    insert(first + 1, name="b", n=9),
                ]
            },
        ),
    ]
    for request, fields in requests:
        whole = {"id": format_request_id(request), "reply_to": Asker.REPLY_TO, **fields}
        packed = content_type.endswith("msgpack")
        requester.send(msgpack.packb(whole) if packed else json.dumps(whole).encode(), content_type)
    (outcome,) = requester.answers(one)
    assert (outcome.code, outcome.rows_affected) == ("", 1)
    (outcome,) = requester.answers(many)
    assert (outcome.code, outcome.rows_affected) == ("", 3)
    for day in ("2013-01-01", "2013-01-02"):
        leg_row = replica.get("legs", (day, first))
        assert leg_row is not None
        assert (leg_row["day"].isoformat(), leg_row["seat"]) == (day, "4A")
    assert replica.get("stock", first) == {"id": first, "name": "a", "n": 3}
    assert replica.get("stock", first + 1) == {"id": first + 1, "name": "b", "n": 9}


def test_update_upsert_and_delete_say_what_they_did(
    producer: ChangeProducer, replica: Replica
) -> None:
    def done(op: str, key: int, **values: Any) -> Outcome:
        return producer.submit(
            {"table": "stock", "op": op, "key": {"id": key}, "values": values}
            if values
            else {"table": "stock", "op": op, "key": {"id": key}}
        ).result()

    assert done("upsert", 300, name="x").rows_affected == 1
    assert done("upsert", 300, name="y").rows_affected == 1
    assert replica.get("stock", 300) == {"id": 300, "name": "y", "n": 3}
    assert done("delete", 300).rows_affected == 1
    assert replica.get("stock", 300) is None
    again = done("delete", 300)
    assert (bool(again.lsn), again.rows_affected) == (True, 0)


# ---------------------------------------------------------------- L5: once


def test_l5_same_id_same_answer_and_one_row_change(
    producer: ChangeProducer, replica: Replica
) -> None:
    """Scenarios 23 and 24: asked again after others have changed the row, the answer is the one
    that was given then, row count included."""
    producer.submit(insert(400, n=0)).result()
    request = {"id": new_request_id(), **increment(400)}
    first = producer.submit(request).result()
    producer.submit({"table": "stock", "op": "delete", "key": {"id": 400}}).result()
    producer.submit(insert(400, n=50)).result()
    again = producer.submit(request).result()
    assert again == first
    assert again.rows_affected == 1
    assert replica.get("stock", 400) == {"id": 400, "name": None, "n": 50}


def test_l5_many_askers_of_one_id_change_it_once(cluster: LocalCluster, replica: Replica) -> None:
    """Two producers ask the same twenty ids in turn: each counts once."""
    with (
        ChangeProducer(settings_of(cluster, "one")) as one,
        ChangeProducer(settings_of(cluster, "two")) as two,
    ):
        one.submit(insert(410, n=0)).result()
        requests = [{"id": new_request_id(), **increment(410)} for _ in range(20)]
        asked = [each.submit(request) for request in requests for each in (one, two)]
        lsns = [pending.result().lsn for pending in asked]
    assert lsns[::2] == lsns[1::2]
    assert len(set(lsns)) == 20
    row = replica.get("stock", 410)
    assert row is not None
    assert row["n"] == 20


def test_l5_refusals_are_remembered_too(producer: ChangeProducer) -> None:
    """A duplicate key stays refused under its id, also once the row is gone."""
    producer.submit(insert(420)).result()
    request = {"id": new_request_id(), **insert(420), "on_conflict": "fail"}
    first = producer.submit(request).result()
    assert first.code == "23505"
    producer.submit({"table": "stock", "op": "delete", "key": {"id": 420}}).result()
    assert producer.submit(request).result() == first


def test_l5_memory_of_outcomes_survives_a_restart_of_the_master(
    cluster: LocalCluster, producer: ChangeProducer, replica: Replica
) -> None:
    """Scenario 25."""
    producer.submit(insert(430, n=0)).result()
    request = {"id": new_request_id(), **increment(430)}
    first = producer.submit(request).result()
    cluster.restart("m1")
    assert producer.submit(request).result(90) == first
    replica.wait_coherent()
    assert replica.get("stock", 430) == {"id": 430, "name": None, "n": 1}


def test_l5_an_id_too_old_or_from_the_future_is_refused_with_its_own_code(
    producer: ChangeProducer,
) -> None:
    old = producer.submit({"id": request_id(1_000_000_000_000, bytes(10)), **insert(440)})
    assert old.result().code == "LH001"
    ahead = producer.submit({"id": request_id(4_000_000_000_000, bytes(10)), **insert(440)})
    assert ahead.result().code == "LH002"


# ---------------------------------------------------------------- T1: verified


def test_t1_expect_of_an_older_genid_is_refused_and_changes_nothing(
    producer: ChangeProducer, replica: Replica
) -> None:
    lsn = producer.submit(insert(500, n=0)).result().lsn
    seen = genid(lsn, 0)
    assert producer.submit(increment(500, expect=seen, on_conflict="fail")).result().lsn
    stale = producer.submit(increment(500, expect=seen, on_conflict="fail")).result()
    assert (stale.lsn, stale.code, stale.final) == (0, "40001", True)
    assert stale.message
    assert replica.get("stock", 500) == {"id": 500, "name": None, "n": 1}


def test_t1_what_was_computed_from_a_read_is_not_written_over_a_newer_row(
    producer: ChangeProducer, replica: Replica
) -> None:
    """Another one's write falls between the read and the update of one run: it is replayed, and
    so is one that read the row by a scan."""
    producer.submit(insert(505, n=0)).result()

    def between() -> None:
        replica.wait_applied(producer.submit(increment(505)).result(90).lsn)

    for by_scan in (False, True):
        runs: list[int] = []

        def work(tx: WriteSet, runs: list[int] = runs, by_scan: bool = by_scan) -> None:
            row = next(tx.scan("stock", 505, 506)) if by_scan else tx.get("stock", 505)
            assert row is not None
            runs.append(row["n"])
            if len(runs) == 1:
                between()
            tx.update("stock", 505, {"n": row["n"] + 10})

        assert replica.transact(work, timeout_s=90).attempts == 2
        assert runs[1] == runs[0] + 1
    row = replica.get("stock", 505)
    assert row is not None
    assert row["n"] == 22


@pytest.mark.parametrize("writes", [True, False])
def test_t1_a_function_that_locks_a_row_runs_again_behind_another_that_has(
    producer: ChangeProducer, replica: Replica, writes: bool
) -> None:
    """Neither changes the row, and one that only reads has read one moment."""
    first = 520 if writes else 530
    for key in (first, first + 1, first + 2):
        producer.submit(insert(key, n=0)).result()
    lock = "select id from stock where id = $1 for update"
    read = "select n from stock where id = $1"

    def other(tx: WriteSet) -> None:
        assert tx.execute(lock, (first,)).rows == [(first,)]
        tx.execute("update stock set n = 7 where id in ($1, $2)", (first + 1, first + 2))

    runs: list[tuple[int, int]] = []

    def work(tx: WriteSet) -> None:
        tx.execute(lock, (first,))
        before = tx.execute(read, (first + 1,)).rows[0][0]
        if not runs:
            assert replica.transact(other).attempts == 1
        runs.append((before, tx.execute(read, (first + 2,)).rows[0][0]))
        if writes:
            tx.insert("stock", first + 3, {"n": before})

    assert replica.transact(work, timeout_s=90).attempts == 2
    assert runs == [(0, 7), (7, 7)]


def test_t1_transact_under_contention_loses_no_increment(
    cluster: LocalCluster, producer: ChangeProducer, replica: Replica
) -> None:
    """Six threads on two replicas read, add one and write back: the sum is exact."""
    keys = (510, 511)
    for key in keys:
        producer.submit(insert(key, n=0)).result()
    rounds = 15
    replayed: list[int] = []

    def add(where: Replica, key: int) -> None:
        def work(tx: WriteSet) -> None:
            row = tx.get("stock", key)
            assert row is not None
            tx.update("stock", key, {"n": row["n"] + 1})

        replayed.extend(where.transact(work, timeout_s=90).attempts - 1 for _ in range(rounds))

    with open_replica(settings_of(cluster, "other")) as other:
        threads = [
            threading.Thread(target=add, args=(where, key))
            for where in (replica, other)
            for key in (*keys, keys[0])
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for where in (replica, other):
            where.wait_coherent()
            rows = {row["id"]: row["n"] for row in where.scan("stock", 510, 512)}
            assert rows == {510: 4 * rounds, 511: 2 * rounds}
    assert len(replayed) == 6 * rounds
    assert sum(replayed) > 0, "nobody met a verify error: the test shows nothing"


# ---------------------------------------------------------------- C1, C2: coherent


def test_c1_an_answered_write_is_read_on_another_replica_at_once(
    cluster: LocalCluster, producer: ChangeProducer, replica: Replica
) -> None:
    """Scenario 22: each answer is followed by a read on both replicas, with no wait between."""
    with open_replica(settings_of(cluster, "another")) as another:
        producer.submit(insert(600, n=0)).result()
        for number in range(1, 60):
            producer.submit(increment(600)).result()
            for where in (replica, another):
                row = _coherent_get(where, 600)
                assert row["n"] == number


def _coherent_get(replica: Replica, key: int) -> dict[str, Any]:
    """A replica on a busy machine may lose its lease for a moment; then it says so (C2), and what
    it says next must be right again."""
    while True:
        try:
            row = replica.get("stock", key)
        except NotCoherent:
            replica.wait_coherent()
            continue
        assert row is not None
        return row


# ---------------------------------------------------------------- bad input


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "unknown-table": ({**insert(1), "table": "stok"}, "42P01", "stok"),
    "unknown-column": (insert(1, nam="x"), "42703", "nam"),
    "wrong-type": (insert(1, n="many"), "22P02", "n"),
    "no-value": (insert(1, n=[1]), "22P02", "n"),
    "out-of-range": (insert(1, n=1 << 40), "22003", "n"),
    "too-long": (insert(1, name="x" * 21), "22001", "name"),
    "not-null": (insert(1, n=None), "23502", "n"),
    "missing-key": ({"table": "stock", "op": "insert", "values": {}}, "08P01", "key"),
    "partial-key": (
        {"table": "legs", "op": "insert", "key": {"flight": 1}, "values": {}},
        "08P01",
        "day",
    ),
    "null-key": ({**insert(1), "key": {"id": None}}, "23502", "id"),
    "wrong-kind": (insert(1, n=True), "42804", "n"),
    "unknown-version": ({**insert(1), "schema_version": 99}, "22023", "99"),
    "unknown-field": ({**insert(1), "tabel": "x"}, "08P01", "tabel"),
    "unknown-operation": ({**insert(1), "op": "replace"}, "08P01", "op"),
    "nothing-to-do": ({}, "08P01", "table"),
    "duplicate-key": (insert(700), "23505", "stock_pkey"),
    "no-sql": ({"sql": "CREATE TABLE (("}, "42601", ""),
    "unknown-ddl": ({"sql": "CRATE TABLE x"}, "42601", "CRATE"),
    "unknown-job": ({"job": 99, "action": "cancel"}, "42704", "99"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_request_gets_code_and_sentence_and_the_next_is_decided(
    cluster: LocalCluster, requester: Asker, producer: ChangeProducer, case: str
) -> None:
    """Refused with its code and words that name what is wrong, kept as a dead letter, and what
    stands behind it is decided in the same breath."""
    fields, code, names = BAD[case]
    if case == "duplicate-key":
        producer.submit(insert(700)).result()
    bad, good = new_request_id(), new_request_id()
    for request, body in ((bad, fields), (good, {**insert(0), "op": "upsert"})):
        whole = {"id": format_request_id(request), "reply_to": Asker.REPLY_TO, **body}
        requester.send(json.dumps(whole).encode())
    (outcome,) = requester.answers(bad)
    assert (outcome.code, outcome.lsn, outcome.final) == (code, 0, True), outcome.message
    assert outcome.dead_lettered
    assert names in outcome.message
    assert " " in outcome.message, "a sentence, no bare word"
    (next_one,) = requester.answers(good)
    assert next_one.lsn
    letter = letter_of(cluster, bad)
    assert (letter.code, letter.message) == (outcome.code, outcome.message)
    assert letter.body is not None
    assert json.loads(letter.body)["id"] == format_request_id(bad)


def letter_of(cluster: LocalCluster, request: bytes) -> DeadLetter:
    """The dead letter of this request, once the changefeed has put it there."""
    letters = DeadLetters(settings_of(cluster, "letters"))
    found: list[DeadLetter] = []

    def there() -> bool:
        found.extend(letter for _, letter in letters.read() if letter.request_id == request)
        return bool(found)

    until(there, f"a dead letter of {request.hex()}")
    return found[0]


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b'{"table": "stock", '),
        ("application/json", b"\xff\xfe\x00garbage"),
        ("application/json", b""),
        ("application/json", b"[1, 2]"),
        ("application/json", b"[" * 50_000),
        ("application/msgpack", b"\xdf\xff\xff\xff\xff"),
        ("application/msgpack", b"\xc1"),
        ("text/csv", b"id,name\n1,x\n"),
    ],
    ids=["cut", "no-text", "empty", "no-object", "nested", "huge-map", "no-code", "other-type"],
)
def test_bytes_that_are_no_request_are_kept_and_delay_nobody(
    cluster: LocalCluster,
    requester: Asker,
    producer: ChangeProducer,
    content_type: str,
    body: bytes,
) -> None:
    """Scenario 29. No id can be found in them, so nobody is answered; people can read why."""
    before = len(DeadLetters(settings_of(cluster, "letters")).read())
    requester.send(body, content_type)
    assert producer.submit({**insert(0), "op": "upsert"}).result().lsn
    found: list[DeadLetter] = []

    def there() -> bool:
        letters = DeadLetters(settings_of(cluster, "letters")).read()[before:]
        found[:] = [letter for _, letter in letters if letter.body == body]
        return bool(found)

    until(there, "its dead letter")
    assert found[0].code == "08P01"
    assert " " in found[0].message


def test_l8_a_request_that_can_never_fit_is_refused_with_54000(
    cluster: LocalCluster, requester: Asker, producer: ChangeProducer
) -> None:
    """The broker takes larger messages than a request may be."""
    bad = new_request_id()
    head = {"table": "stock", "op": "insert", "columns": ["id"]}
    many = [
        {**head, "rows": [[key] for key in range(first, first + 10_000)]}
        for first in range(1_000, 251_000, 10_000)
    ]
    whole = {
        "id": format_request_id(bad),
        "reply_to": Asker.REPLY_TO,
        "transaction": [*many, insert(800)],
    }
    requester.send(json.dumps(whole).encode())
    (outcome,) = requester.answers(bad)
    assert (outcome.code, outcome.final, outcome.dead_lettered) == ("54000", True, True)
    assert "expected 1 to 250000" in outcome.message
    assert producer.submit({**insert(0), "op": "upsert"}).result().lsn
    assert letter_of(cluster, bad).code == "54000"


def test_l5_bytes_under_a_used_id_change_nothing_about_its_answer(
    cluster: LocalCluster, requester: Asker, producer: ChangeProducer
) -> None:
    """They are a dead letter of their own; the id keeps the outcome it has, on every node."""
    request = {"id": new_request_id(), **insert(810)}
    first = producer.submit(request).result()
    bad = {"id": format_request_id(request["id"]), "reply_to": Asker.REPLY_TO, "op": "insert"}
    requester.send(json.dumps(bad).encode())
    assert requester.answers(request["id"])[-1] == first
    assert producer.submit(request).result() == first


def test_d5_a_stale_schema_version_is_refused(
    cluster: LocalCluster, producer: ChangeProducer
) -> None:
    """After a change of the table its first version is fenced off, its newest two are not."""
    assert producer.submit({"sql": "CREATE TABLE d5 (id int PRIMARY KEY)"}).result().lsn
    row = {"table": "d5", "op": "insert", "values": {}}
    assert producer.submit({"key": [1], "schema_version": 1, **row}).result().lsn
    job = producer.submit({"sql": "ALTER TABLE d5 ADD COLUMN x text"}).result().answer["job"]

    def ended() -> bool:
        said = command_jobs(cluster)
        return any(each["job"] == job and each["status"] == "succeeded" for each in said)

    until(ended, f"the end of job {job}")
    stale = producer.submit(
        {"key": [2], "schema_version": 1, "on_conflict": "fail", **row}
    ).result()
    assert (stale.lsn, stale.code) == (0, "40001")
    assert "version" in stale.message
    assert producer.submit({"key": [2], "schema_version": 3, **row}).result().lsn


def command_jobs(cluster: LocalCluster) -> list[dict[str, Any]]:
    from tests.support.cluster.system_cluster import command

    jobs: list[dict[str, Any]] = command(cluster, "jobs", "list", "--json").json
    return jobs


# ---------------------------------------------------------------- the end


def test_l6_every_node_has_the_same_consistent_tables(cluster: LocalCluster) -> None:
    assert_consistent(cluster, NODES)


def test_no_process_has_met_an_error_of_its_own(cluster: LocalCluster) -> None:
    for name in (*NODES, "changefeed"):
        assert "Traceback" not in logged(cluster, name)


def test_c2_without_a_master_reads_are_refused_and_writes_are_unknown(
    cluster: LocalCluster, producer: ChangeProducer, replica: Replica
) -> None:
    """T5: what nobody decides is unknown, not refused; asked again it gets its outcome."""
    producer.submit(insert(900)).result()
    cluster.kill("m1")
    until(lambda: not replica.coherent, "the end of the coherency lease")
    with pytest.raises(NotCoherent):
        replica.get("stock", 900)
    pending = producer.submit(increment(900))
    with pytest.raises(OutcomeUnknown):
        pending.result(0.5)
    cluster.start("m1")
    assert pending.ask_again().result(90).lsn
    replica.wait_coherent()
    assert replica.get("stock", 900) == {"id": 900, "name": None, "n": 4}
