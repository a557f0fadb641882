"""Spark's driver on a standalone cluster: what it goes on from is on a Hadoop file system that
nobody can open but by its API, and the code reaches workers that have none of it.
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from infra.local_cluster import LocalCluster
from infra.process_table import all_entries
from leasehold.model.records.jobs import ChunksEnd, JobProgress
from tests.support.cluster.spark_conflicts import publish, refused, request_of, retried
from tests.support.cluster.spark_pipeline import (
    CODEC,
    Pipeline,
    backfill_job,
    chunk_of,
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
from tests.support.cluster.system_cluster import until

pytestmark = pytest.mark.long(
    "a second Spark of four JVMs takes a minute and a half of two cores; what it runs is tested"
    " with Spark's local one, its settings and its folder without any"
)

DATABASE = "spark-cluster"
FOLDER = "viewfs://shared/leasehold"
REQUEST_KEY = "a-key-that-signs-requests-of-this-cluster-0123456789"
ROWS = 400_000
WAITS = 8
"""An attempt whose next one waits for seconds."""
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


def reached(job_id: int, rows: int) -> Callable[[list[Any]], bool]:
    """For `Pipeline.records`: a run has come that far."""

    def until(messages: list[Any]) -> bool:
        own = f"progress/{job_id}/1".encode()
        told = (CODEC.decode(m.value()) for m in messages if m.key() == own)
        return any(isinstance(p, JobProgress) and p.rows >= rows for p in told)

    return until


def test_backfill_validation_and_retry(cluster: OnCluster) -> None:
    """Goal: what comes of them is what comes of them on one machine, and what another driver would
    go on from is in the folder, nothing of it beside the driver."""
    pipeline, spark, behind = cluster
    pipeline.publish_images(1, range(20_000))
    pipeline.publish_job(backfill_job(1, 1))
    messages = pipeline.records(pipeline.topics.backfill.name, ended(1))
    assert sorted(keys_of(messages)) == list(range(20_000))

    pipeline.publish_images(2, range(20_000))
    publish_table(pipeline, 2)
    publish_row(pipeline, 2, 19_999, {3: "user7@example.com", 4: 1})
    pipeline.flush()
    pipeline.publish_job(validation_job(2, (UNIQUE,)))
    record = found(pipeline, 2)
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
    assert len(executors) >= 2, "an executor's two files"
    assert any(b"CoarseGrainedExecutorBackend" in told[name] for name in told)
    secrets = [SECRET, REQUEST_KEY, STORE_KEY]
    password = pipeline.environ.get("LEASEHOLD_KAFKA_PASSWORD_FILE")  # in secure mode
    if password is not None:
        secrets.append(Path(password).read_text().strip())
    for secret in secrets:
        assert [name for name, said in told.items() if secret.encode() in said] == []


def test_a_worker_s_machine_is_lost_in_the_middle(cluster: OnCluster) -> None:
    """Goal: a backfill, a validation and a request that waits for its next attempt come through
    when the machine of one of two workers is gone while they run, each time another one."""
    pipeline, spark, _ = cluster
    spark.start_worker(2)
    pipeline.publish_images(3, range(40_000))
    pipeline.publish_job(backfill_job(3, 3, rows_per_second=8_000))
    before = pipeline.records(
        pipeline.topics.backfill.name, lambda m: bool(m) and len(keys_of(m)) >= 8_000
    )
    spark.kill_worker(1)
    pipeline.publish_job(backfill_job(3, 3))
    after = pipeline.records(pipeline.topics.backfill.name, ended(3))
    assert sorted(set(keys_of(before) + keys_of(after))) == list(range(40_000))
    spark.start_worker(1)

    pipeline.publish_images(4, range(40_000))
    publish_table(pipeline, 4)
    publish_row(pipeline, 4, 39_999, {3: "user7@example.com", 4: 1})
    publish(pipeline, waiting := refused(2, WAITS, genid=1))
    pipeline.flush()
    pipeline.publish_job(validation_job(4, (UNIQUE,), rows_per_second=8_000))
    pipeline.records(pipeline.topics.jobs.name, reached(4, 8_000))
    spark.kill_worker(2)
    pipeline.publish_job(validation_job(4, (UNIQUE,)))
    record = found(pipeline, 4)
    assert set(record.found) == {(UNIQUE, key(7)), (UNIQUE, key(39_999))}
    assert (record.rows, record.total) == (40_001, 2)
    messages = pipeline.records(
        pipeline.topics.requests.name, lambda m: any(x.key() == waiting.request_id for x in m)
    )
    assert request_of(messages[-1]).attempt == WAITS + 1


def test_the_driver_is_killed_and_started_elsewhere(cluster: OnCluster, tmp_path: Path) -> None:
    """Goal: with nothing of its old disk it goes on from the checkpoint, forgets no request that
    waits, and starts no run again that has ended."""
    pipeline = cluster.pipeline
    pipeline.publish_images(5, range(50_000))
    pipeline.publish_job(backfill_job(5, 5, rows_per_second=10_000))
    before = pipeline.records(
        pipeline.topics.backfill.name, lambda m: bool(m) and len(keys_of(m)) >= 15_000
    )
    publish(pipeline, waiting := refused(3, WAITS, genid=1))
    pipeline.flush()
    pipeline.kill()
    pipeline.data = tmp_path
    pipeline.start()
    pipeline.publish_job(backfill_job(5, 5))
    after = pipeline.records(pipeline.topics.backfill.name, ended(5))
    sent_before, sent_after = keys_of(before), keys_of(after)
    assert sorted(set(sent_before + sent_after)) == list(range(50_000))
    assert len(sent_after) < 50_000, "it went on from the checkpoint, not from the start"
    others = [record for m in after if (record := chunk_of(m)).job_id != 5]
    assert all(isinstance(record, ChunksEnd) for record in others)
    messages = pipeline.records(
        pipeline.topics.requests.name, lambda m: any(x.key() == waiting.request_id for x in m)
    )
    assert request_of(messages[-1]).attempt == WAITS + 1


def test_one_executor_and_two(cluster: OnCluster) -> None:
    """Goal: the same backfill by one executor and by two sends the same keys; how many rows a
    second each does is printed."""
    pipeline, spark, _ = cluster
    pipeline.kill()
    spark.start_worker(1)
    spark.start_worker(2)
    spark.kill_worker(2)
    pipeline.start(LEASEHOLD_BACKFILL_OFFSETS="1000000")
    pipeline.publish_images(6, range(ROWS))
    for executors, job in ((1, 6), (2, 7)):
        if executors == 2:
            spark.start_worker(2)
            until(lambda: len(spark.busy_workers()) == 2, "an executor on the second worker")
        started = time.monotonic()
        pipeline.publish_job(backfill_job(job, 6))
        messages = pipeline.records(pipeline.topics.backfill.name, ended(job))
        rate = ROWS / (time.monotonic() - started)
        print(f"{executors} executor(s): {rate:,.0f} rows/s")
        assert sorted(set(keys_of(messages))) == list(range(ROWS))
