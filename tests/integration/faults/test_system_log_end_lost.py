"""The end of the log is lost with the broker's page cache, after it was acknowledged and applied:
what an unclean election leaves, too, where a leader has less than was acknowledged.

Goal: whoever has applied what is gone ends and says what happened and what to do, nothing that was
answered is missing in the stores, and nobody answers writes in a log that went another way.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer, open_replica
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.model.errors import LeaseholdError, LogStopped
from leasehold.model.topics import Topics
from leasehold.replica.row_values import named as named_columns
from tests.support.cluster.system_cluster import command, logged, running, settings_of, until
from tests.support.cluster.system_disk import cut_end
from tests.support.cluster.system_load import ALONE, add_one, made_counters

pytestmark = pytest.mark.long("a broker loses the end of its log, and everybody ends")

NODES = ("m1", "m2", "r1")
SERVICES = (*NODES, "changefeed")
LOST_BYTES = 3_000
"""Some records: each of those that follow the others' is of some hundred."""
ONES = 30


@pytest.fixture(params=["fast ways", "Kafka alone"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalCluster]:
    ways = ("LEASEHOLD_FAST_LOG", "LEASEHOLD_FAST_ACKS", "LEASEHOLD_FAST_REQUESTS")
    off = dict.fromkeys(ways, "off") if request.param == "Kafka alone" else {}
    with running(tmp_path / "end", SERVICES, {**os.environ, **off}) as made:
        made_counters(settings_of(made, "setup"), (ALONE,))
        yield made


def lose_end(cluster: LocalCluster) -> None:
    """Kill the broker, take the end of the log's newest segment, and start it again."""
    log = Topics(cluster.cluster_settings.database).log.name
    (broker,) = cluster.brokers.names
    cluster.kill(broker)
    segments = sorted((cluster.brokers.by_name[broker].data / f"{log}-0").glob("*.log"))
    assert cut_end(segments[-1], LOST_BYTES) == LOST_BYTES
    cluster.start(broker)


def test_l2_who_has_applied_what_is_gone_ends_and_nothing_answered_is_missing(
    cluster: LocalCluster,
) -> None:
    with (
        ChangeProducer(settings_of(cluster, "writer")) as producer,
        open_replica(settings_of(cluster, "embedded")) as replica,
    ):
        last = max(add_one(producer) for _ in range(ONES))
        replica.wait_applied(last)
        lose_end(cluster)
        for name in SERVICES:
            until(lambda name=name: not cluster.is_running(name), f"{name} to end")  # type: ignore[misc]
            log = logged(cluster, name)
            assert "Traceback" not in log, log
            assert "docs/how-to/recover-a-lost-log.md" in log.strip().splitlines()[-1], log

        def refuses() -> bool:
            try:
                replica.get("t", ALONE)
            except LogStopped:
                return True
            except LeaseholdError:
                return False
            return False

        until(refuses, "the embedded replica's refusal")
    assert command(cluster, "status").code == 1
    for name in ("r1", "embedded"):  # those that were coherent (C1)
        store = SqliteStore(cluster.data / name / "store.db")
        try:
            with store.open_snapshot() as snapshot:
                table = snapshot.newest("t")
                row = snapshot.get(table, (ALONE,))
                assert row is not None
                assert named_columns(table, row)["n"] == ONES, name
        finally:
            store.close()
