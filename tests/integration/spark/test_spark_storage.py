"""Spark's folder on servers: HDFS, and an S3 server by S3A with each of the two ways to write a
checkpoint's file. A driver that is killed goes on, on another disk, from what stands there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from infra.local_cluster import SPARK_JARS, LocalCluster
from tests.support.cluster.spark_conflicts import publish, refused, request_of
from tests.support.cluster.spark_pipeline import (
    Pipeline,
    backfill_job,
    ended,
    keys_of,
    running_pipeline,
)
from tests.support.cluster.spark_validation import (
    UNIQUE,
    found,
    key,
    publish_row,
    publish_table,
    validation_job,
)
from tests.support.cluster.storage_servers import Storage, running_hdfs, running_s3

pytestmark = pytest.mark.long(
    "a driver on each of three kinds of storage takes some minutes; what it does there is tested on"
    " viewfs:, which has the same interface"
)

WAITS = 8
"""An attempt whose next one waits for seconds."""
ROWS = 40_000


def server_of(kind: str, servers: LocalCluster, folder: Path) -> AbstractContextManager[Storage]:
    if kind == "hdfs":
        return running_hdfs(servers, folder)
    return running_s3(servers, folder, abortable=kind == "s3a-abortable")


@pytest.fixture(scope="module", params=["hdfs", "s3a", "s3a-abortable"])
def pipeline(
    request: pytest.FixtureRequest, servers: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pipeline]:
    kind: str = request.param
    servers.start_kafka()
    with server_of(kind, servers, tmp_path_factory.mktemp(kind)) as storage:
        data = tmp_path_factory.mktemp("driver")
        environ = environment(storage, tmp_path_factory.mktemp("given"))
        with running_pipeline(servers, f"on-{kind}", data, environ) as made:
            yield made


def environment(storage: Storage, folder: Path) -> dict[str, str]:
    """What the driver is told, with what it needs in `folder`."""
    conf, jars = folder / "spark.conf", folder / "jars"
    conf.write_text("".join(f"{name} {value}\n" for name, value in storage.conf.items()))
    jars.mkdir()
    for path in [*SPARK_JARS.glob("*.jar"), *storage.jars]:
        (jars / path.name).symlink_to(path)
    return {
        "LEASEHOLD_SPARK_FOLDER": storage.url,
        "LEASEHOLD_SPARK_CONF_FILE": str(conf),
        "LEASEHOLD_SPARK_JARS": str(jars),
        "LEASEHOLD_BACKFILL_OFFSETS": "5000",
        "LEASEHOLD_BACKFILL_FEW": "500",
    }


def test_a_driver_goes_on_from_there_on_another_disk(pipeline: Pipeline, tmp_path: Path) -> None:
    """Goal: a backfill, a validation and a request that waits come through a driver that is killed
    and started with an empty disk, and nothing of what it goes on from stands on either disk."""
    pipeline.publish_images(1, range(ROWS))
    pipeline.publish_job(backfill_job(1, 1, rows_per_second=8_000))
    before = pipeline.records(
        pipeline.topics.backfill.name, lambda m: bool(m) and len(keys_of(m)) >= 15_000
    )
    publish(pipeline, waiting := refused(1, WAITS, genid=1))
    pipeline.flush()
    pipeline.kill()
    first, pipeline.data = pipeline.data, tmp_path
    pipeline.start()
    pipeline.publish_job(backfill_job(1, 1))
    after = pipeline.records(pipeline.topics.backfill.name, ended(1))
    sent_before, sent_after = keys_of(before), keys_of(after)
    assert sorted(set(sent_before + sent_after)) == list(range(ROWS))
    assert len(sent_after) < ROWS, "it went on from the checkpoint, not from the start"

    publish_table(pipeline, 2)
    pipeline.publish_images(2, range(ROWS))
    publish_row(pipeline, 2, ROWS - 1, {3: "user7@example.com", 4: 1})
    pipeline.flush()
    pipeline.publish_job(validation_job(2, (UNIQUE,)))
    record = found(pipeline, 2)
    assert set(record.found) == {(UNIQUE, key(7)), (UNIQUE, key(ROWS - 1))}

    def has_come(messages: list[Any]) -> bool:
        return any(message.key() == waiting.request_id for message in messages)

    asked = pipeline.records(pipeline.topics.requests.name, has_come)
    assert request_of(asked[-1]).attempt == WAITS + 1
    for disk in (first, tmp_path):
        own = next((disk / "spark").iterdir())
        assert [path.name for path in own.iterdir()] == ["scratch"]
    assert pipeline.stop() == 0
