"""Spark's driver on a standalone cluster: what it goes on from is on a Hadoop file system that
nobody can open but by its API, and the code reaches workers that have none of it.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from infra.local_cluster import LocalCluster
from infra.process_table import all_entries
from tests.support.cluster.spark_conflicts import refused, retried
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
from tests.support.cluster.standalone_spark import SECRET, StandaloneSpark, running_standalone

DATABASE = "spark-cluster"
FOLDER = "viewfs://shared/leasehold"
REQUEST_KEY = "a-key-that-signs-requests-of-this-cluster-0123456789"
STORE_KEY = "a-key-of-an-object-store-of-this-cluster"


class OnCluster(NamedTuple):
    """The driver, the cluster that its tasks run on, and where the folder really is."""

    pipeline: Pipeline
    spark: StandaloneSpark
    behind: Path


def environment(spark: StandaloneSpark, behind: Path) -> Mapping[str, str]:
    conf = spark.folder / "driver.conf"
    conf.write_text(
        f"""# A scheme that Python's own functions for files know nothing of.
        spark.hadoop.fs.viewfs.mounttable.shared.link./leasehold file:{behind}
        spark.hadoop.fs.s3a.secret.key  {STORE_KEY}
        spark.executor.memory = 640m
        spark.executor.extraJavaOptions = -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
        """
    )
    request_key = spark.folder / "request-key"
    request_key.write_text(REQUEST_KEY)
    return {
        "LEASEHOLD_SPARK_MASTER": spark.url,
        "LEASEHOLD_SPARK_FOLDER": FOLDER,
        "LEASEHOLD_SPARK_CONF_FILE": str(conf),
        "LEASEHOLD_SPARK_SECRET_FILE": str(spark.secret_file),
        "LEASEHOLD_REQUEST_KEY_FILE": str(request_key),
        "LEASEHOLD_BACKFILL_OFFSETS": "5000",
        "LEASEHOLD_BACKFILL_FEW": "500",
    }


@pytest.fixture(scope="module")
def cluster(servers: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnCluster]:
    behind = tmp_path_factory.mktemp("behind")
    data = tmp_path_factory.mktemp(DATABASE)
    servers.start_kafka()
    with running_standalone(servers, tmp_path_factory.mktemp("standalone")) as spark:
        environ = environment(spark, behind)
        with running_pipeline(servers, DATABASE, data, environ) as pipeline:
            yield OnCluster(pipeline, spark, behind)


def test_backfill_validation_and_retry(cluster: OnCluster) -> None:
    """Goal: what comes of them is what comes of them on one machine, and what another driver would
    go on from is in the folder, nothing of it beside the driver."""
    pipeline, spark, behind = cluster
    pipeline.publish_images(1, range(20_000))
    pipeline.publish_job(backfill_job(1, 1))
    messages = pipeline.records(pipeline.topics.backfill.name, ended(1))
    assert sorted(keys_of(messages)) == list(range(20_000))

    publish_table(pipeline, 1)
    publish_row(pipeline, 1, 19_999, {3: "user7@example.com", 4: 1})
    pipeline.flush()
    pipeline.publish_job(validation_job(1, (UNIQUE,)))
    record = found(pipeline, 1)
    assert set(record.found) == {(UNIQUE, key(7)), (UNIQUE, key(19_999))}
    assert (record.rows, record.total) == (20_001, 2)

    assert retried(pipeline, refused(1, 1, genid=1)).attempt == 2
    assert {path.name for path in behind.iterdir()} == {DATABASE}
    assert list(behind.rglob("retry/state"))
    own = pipeline.data / "spark" / DATABASE
    assert [path.name for path in own.iterdir()] == ["scratch"]
    assert not [path for path in spark.folder.rglob("*") if path.name in ("checkpoint", "state")]


def test_secrets_stand_in_no_log_page_or_command_line(cluster: OnCluster) -> None:
    """Goal: who reads logs, pages of master and workers, or the list of processes finds none of
    the secrets that the driver was given and that travelled to workers with their tasks."""
    pipeline, spark, _ = cluster
    told = {str(path): path.read_bytes() for path in spark.logs()}
    told["driver"] = pipeline.log().encode()
    for name, page in spark.pages.items():
        with urllib.request.urlopen(page, timeout=30) as answer:
            told[name] = answer.read()
    for entry in all_entries():
        with suppress(OSError):  # it has ended meanwhile
            path = Path(f"/proc/{entry.identity.pid}/cmdline")
            told[str(path)] = path.read_bytes()
    executors = [name for name in told if "/app-" in name]
    assert len(executors) >= 4, "two executors, each with two files"
    assert any(b"CoarseGrainedExecutorBackend" in told[name] for name in told)
    for secret in (SECRET, REQUEST_KEY, STORE_KEY):
        assert [name for name, said in told.items() if secret.encode() in said] == []
