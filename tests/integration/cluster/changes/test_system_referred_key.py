"""A primary key that a foreign key refers to is changed, and dropped alone, and what keeps rows
unique goes with CASCADE: on real Kafka, Redis and Spark, while a writer writes both tables.

The writer makes a child for a row, moves the row, and takes it away with its child: whatever way
its tables are on, each statement does as before.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer, Replica
from leasehold.admin.watch import ClusterWatch
from leasehold.replica.write_set import WriteSet
from tests.integration.cluster.changes import NODES
from tests.support.cluster.system_cluster import assert_consistent, until
from tests.support.cluster.system_jobs import begin, ended
from tests.support.cluster.system_load import made_tables, settled

ROWS = 200
AGAIN = "ALTER TABLE p ADD PRIMARY KEY (k)"


@pytest.fixture(scope="module", autouse=True)
def tables(producer: ChangeProducer) -> None:
    sql = (
        "CREATE TABLE p (id bigint PRIMARY KEY, k bigint NOT NULL, tag text);"
        " CREATE TABLE c (id bigint PRIMARY KEY, p bigint"
        " CONSTRAINT cp REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE)"
    )
    rows = [_inserted("p", key, {"k": key, "tag": "old"}) for key in range(ROWS)]
    rows += [_inserted("c", key, {"p": key}) for key in range(ROWS)]
    made_tables(producer, sql, rows)


def _inserted(table: str, key: int, values: dict[str, Any]) -> dict[str, Any]:
    return {"table": table, "op": "insert", "key": {"id": key}, "values": values}


class Family(threading.Thread):
    """A parent with its child, which follows it to another number; then both go. Again and again,
    by what no change of a key touches."""

    def __init__(self, replica: Replica) -> None:
        super().__init__(name="family")
        self._replica = replica
        self._ending = threading.Event()
        self.turns = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._ending.wait(0.01):
                key = 10_000 + self.turns
                self._do("INSERT INTO p (id, k, tag) VALUES ($1, $1, 'new')", key)
                self._do("INSERT INTO c (id, p) VALUES ($1, $1)", key)
                self._do("UPDATE p SET id = 0 - $1 WHERE id = $1", key)
                (found,) = self._replica.query("SELECT p FROM c WHERE id = $1", [key])
                assert found == {"p": -key}, found
                self._do("DELETE FROM p WHERE id = 0 - $1", key)
                assert not self._replica.query("SELECT p FROM c WHERE id = $1", [key])
                self.turns += 1
        except BaseException as error:  # noqa: BLE001 - told by `stop`
            self.error = error

    def _do(self, sql: str, key: int) -> None:
        def work(tx: WriteSet) -> None:
            tx.execute(sql, [key])

        self._replica.transact(work, label="family")

    def goes_on(self) -> None:
        turns = self.turns
        until(lambda: self.turns > turns + 3 or self.error is not None, "the family's next turns")
        assert self.error is None, self.error

    def stop(self) -> None:
        self._ending.set()
        self.join()
        assert self.error is None, self.error


def code(producer: ChangeProducer, fields: dict[str, Any]) -> str:
    return settled(producer.submit({**fields, "on_conflict": "fail"})).code


def test_foreign_keys_go_over_and_back_and_away(
    cluster: LocalCluster, watch: ClusterWatch, producer: ChangeProducer, replica: Replica
) -> None:
    family = Family(replica)
    family.start()
    try:
        family.goes_on()
        change = "ALTER TABLE p DROP CONSTRAINT p_pkey"
        assert code(producer, {"sql": change}) == "2BP01"
        for way in (f"{change}, ADD PRIMARY KEY (k), ADD UNIQUE (id)", change, AGAIN):
            ended(watch, begin(producer, way))
            family.goes_on()
            assert code(producer, _inserted("c", 5_000, {"p": 4_999})) == "23503"
        assert _key(replica) == ["k"]
        (index,) = (i for i in _table(replica, "p").indexes if i.unique)
        assert index.name == "p_id_key", "what the foreign key refers to"
    finally:
        family.stop()
    drop = "ALTER TABLE p DROP CONSTRAINT p_id_key"
    assert code(producer, {"sql": drop}) == "2BP01"
    job = ended(watch, begin(producer, f"{drop} CASCADE"))
    assert len(job.tables) == 2
    assert not code(producer, _inserted("c", 5_000, {"p": 4_999}))
    replica.wait_coherent()
    assert not _table(replica, "c").foreign_keys
    assert len(list(replica.scan("p"))) == ROWS
    assert len(list(replica.scan("c"))) == ROWS + 1
    assert_consistent(cluster, NODES)


def _table(replica: Replica, name: str) -> Any:
    return next(t for t in replica.tables() if name in t.names)


def _key(replica: Replica) -> list[str]:
    return [c.name for c in _table(replica, "p").key_columns if not c.hidden]
