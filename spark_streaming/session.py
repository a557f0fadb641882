"""The one Spark session of the driver process, and the settings of this service."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import leasehold
from leasehold.model.errors import ConfigurationError
from leasehold.settings.environment import KafkaSettings, integer, setting
from leasehold.transaction.retry import ATTEMPTS_MAX

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAMING: Final = "org.apache.spark.sql.execution.streaming"
LOG_CONFIGURATION: Final = Path(__file__).with_name("log4j2.properties")
ARROW_ROWS_MAX: Final = 20_000
"""Rows of one Arrow batch between the JVM and a Python worker: a few MB of ordinary images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Settings of the driver beside those of Kafka and of the cluster."""

    jars: Path = setting(
        "LEASEHOLD_SPARK_JARS",
        "folder of the Kafka connector's jars",
        default=Path(".leasehold/jars/spark"),
        parse=Path,
    )
    memory_mb: int = setting(
        "LEASEHOLD_SPARK_MEMORY_MB",
        "heap of the JVM",
        default=1024,
        parse=integer(512, 65_536, "MB"),
    )
    java_options: str = setting(
        "LEASEHOLD_SPARK_JAVA_OPTIONS",
        "more options of the JVM, between blanks",
        default="",
    )
    threads: int = setting(
        "LEASEHOLD_SPARK_THREADS",
        "tasks that run side by side",
        default=2,
        parse=integer(1, 256),
    )
    offsets_per_batch: int = setting(
        "LEASEHOLD_BACKFILL_OFFSETS",
        "most offsets that one micro-batch of a backfill or a validation reads",
        default=1_000_000,
        parse=integer(100, 10_000_000),
    )
    few_offsets: int = setting(
        "LEASEHOLD_BACKFILL_FEW",
        "a table whose rows topic has no more offsets than this is read by the driver itself;"
        " 0: always by a query",
        default=50_000,
        parse=integer(0, 1_000_000),
    )
    backfills_max: int = setting(
        "LEASEHOLD_BACKFILLS",
        "most backfills that run side by side",
        default=4,
        parse=integer(1, 64),
    )
    attempts_max: int = setting(
        "LEASEHOLD_RETRY_ATTEMPTS",
        "attempts of a change request before it is given up",
        default=ATTEMPTS_MAX,
        parse=integer(1, 1_000),
    )
    trigger_ms: int = setting(
        "LEASEHOLD_RETRY_TRIGGER_MS",
        "shortest time between two micro-batches of the retry stream",
        default=2_000,
        parse=integer(0, 60_000, "ms"),
    )


def connector_jars(settings: SparkSettings) -> list[str]:
    """Return the paths of the Kafka connector's jars. Raises ConfigurationError where they are not
    there."""
    jars = sorted(str(path.absolute()) for path in settings.jars.glob("*.jar"))
    if not any("spark-sql-kafka" in jar for jar in jars):
        raise ConfigurationError(
            f"LEASEHOLD_SPARK_JARS is {str(settings.jars)!r}, which holds no spark-sql-kafka jar. "
            "Run `make setup`, or name the folder that has the jars.",
            variable="LEASEHOLD_SPARK_JARS",
        )
    return jars


def start_session(settings: SparkSettings, folder: Path) -> SparkSession:
    """Start the JVM (seconds). `folder` takes what Spark writes: state, shuffles, warehouse.
    Raises ConfigurationError as `connector_jars` does."""
    jars = connector_jars(settings)
    scratch = (folder / "scratch").absolute()
    shutil.rmtree(_unpacked(scratch), ignore_errors=True)  # by one that was killed
    _unpacked(scratch).mkdir(parents=True, exist_ok=True)
    _let_workers_import()
    from pyspark.sql import SparkSession  # only the process with the JVM pays for this import

    builder: Any = SparkSession.builder
    builder = builder.appName("leasehold").master(f"local[{settings.threads}]")
    for name, value in _configuration(settings, jars, scratch).items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    return session


def warm_up(session: SparkSession, kafka: KafkaSettings, topic: str) -> None:
    """Run one tiny job through the Kafka source and Python workers, so that the first backfill
    doesn't pay for classes and processes. Raises PySparkException if Kafka can't be read."""
    records = (
        session.read.format("kafka")
        .options(**kafka.spark_options())
        .option("subscribe", topic)
        .load()
        .select("key", "value")
    )
    numbers = session.range(64).selectExpr("encode(string(id), 'utf-8')", "null")
    rows = numbers.repartition(2).union(records)
    assert len(rows.mapInArrow(_as_they_are, "key binary, value binary").collect()) >= 64


def _as_they_are(batches: Iterable[Any]) -> Iterator[Any]:
    yield from batches


def _configuration(settings: SparkSettings, jars: list[str], scratch: Path) -> dict[str, str]:
    return {
        "spark.jars": ",".join(jars),
        "spark.driver.memory": f"{settings.memory_mb}m",
        # Loopback only: nothing outside this machine talks to this process.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Small micro-batches never repay the optimising compiler: without it the JVM starts with
        # 40 % less processor time, and a warm backfill takes no more.
        # Stopped inside a micro-batch, a query's thread looks through the error's text by a pattern
        # that takes 600 bytes of stack for each character.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Xss16m "
        f"-Dlog4j2.configurationFile=file:{LOG_CONFIGURATION} "
        f'"-Djava.io.tmpdir={_unpacked(scratch)}" {settings.java_options}',
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_ROWS_MAX),
        "spark.python.worker.reuse": "true",
        "spark.python.daemon.module": "spark_streaming.worker_daemon",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        # State is one small value per bucket: a map in memory and a file of changes per commit.
        "spark.sql.streaming.stateStore.providerClass": f"{STREAMING}.state"
        ".HDFSBackedStateStoreProvider",
        # Without Hadoop's native library the default ways to write a checkpoint file start about
        # ten processes each (readlink, chmod, with a JVM's helper for each); these start one. Both
        # write aside and rename, which is what a SIGKILL has to leave whole.
        "spark.sql.streaming.checkpointFileManagerClass": f"{STREAMING}"
        ".FileSystemBasedCheckpointFileManager",
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.sql.streaming.numRecentProgressUpdates": "10",
        # One run at a time per job is the driver's business, not the session's.
        "spark.sql.streaming.stopTimeout": "10000",
        "spark.scheduler.mode": "FAIR",
    }


def _unpacked(scratch: Path) -> Path:
    """Return where the JVM unpacks native libraries. It deletes them when it ends, unless it is
    killed."""
    return scratch / "tmp"


def _let_workers_import() -> None:
    """Let Python workers import us: they are started by the JVM, which hands on this process's
    environment."""
    homes = [str(Path(__file__).parent.parent), str(Path(leasehold.__file__).parent.parent)]
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*homes, *filter(None, known)]))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
