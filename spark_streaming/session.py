"""The one Spark session of the driver process."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import leasehold
from leasehold.model.errors import ConfigurationError
from leasehold.settings.environment import KafkaSettings
from leasehold.settings.private_files import FILE_MODE, make_private_folder
from spark_streaming.code_archive import UNPACKED, write_archive
from spark_streaming.spark_settings import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAMING: Final = "org.apache.spark.sql.execution.streaming"
LOG_CONFIGURATION: Final = Path(__file__).with_name("log4j2.properties")
ARROW_ROWS_MAX: Final = 20_000
"""Rows of one Arrow batch between the JVM and a Python worker: a few MB of ordinary images."""
SECRETS: Final = (
    "(?i)secret|password|passphrase|token|credential|jaas|(access|account|keystore)[.]?key"
)
"""What Spark shows stars of, in its pages, events and logs, if it has such a name."""
_SUBMIT: Final = "PYSPARK_SUBMIT_ARGS"
_PYTHON: Final = "PYSPARK_PYTHON"


class DriverAddress(NamedTuple):
    """Names under which executors reach the driver (`host`), and which it binds (`bind`)."""

    host: str = "127.0.0.1"
    bind: str = "127.0.0.1"


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


def start_session(
    settings: SparkSettings, disk: Path, address: DriverAddress | None = None
) -> SparkSession:
    """Start the JVM (seconds). `disk` takes what is of this process alone: shuffles, warehouse,
    unpacked libraries. Raises ConfigurationError as `connector_jars` does."""
    jars = connector_jars(settings)
    scratch = (disk / "scratch").absolute()
    shutil.rmtree(_unpacked(scratch), ignore_errors=True)  # by one that was killed
    make_private_folder(scratch)
    _unpacked(scratch).mkdir(exist_ok=True)
    conf = configuration(settings, jars, scratch, address or DriverAddress())
    _let_workers_import(settings)
    from pyspark.sql import SparkSession  # only the process with the JVM pays for this import

    # By a file: what stands on its command line everybody on the machine reads. Where the JVM is
    # started it makes a folder `artifacts`, and no setting names another place: an image's own
    # folder can't be written to.
    with conf_file(scratch / "spark.conf", conf), chdir(scratch):
        session: SparkSession = SparkSession.builder.getOrCreate()
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


def configuration(
    settings: SparkSettings, jars: list[str], scratch: Path, address: DriverAddress
) -> dict[str, str]:
    """Return all that Spark is told: our defaults, over them what the file of the settings says,
    and what the two have in common."""
    given = settings.given
    conf = {**_defaults(scratch), **given, "spark.master": settings.master_or_local}
    conf["spark.jars"] = _joined(",", *jars, given.get("spark.jars"))
    conf["spark.driver.memory"] = f"{settings.memory_mb}m"
    # Small micro-batches never repay the optimising compiler: without it the JVM starts with
    # 40 % less processor time, and a warm backfill takes no more.
    # Stopped inside a micro-batch, a query's thread looks through the error's text by a pattern
    # that takes 600 bytes of stack for each character.
    conf["spark.driver.extraJavaOptions"] = _joined(
        " ",
        "-XX:TieredStopAtLevel=1 -Xss16m",
        f"-Dlog4j2.configurationFile=file:{LOG_CONFIGURATION}",
        f'"-Djava.io.tmpdir={_unpacked(scratch)}"',
        settings.java_options,
        given.get("spark.driver.extraJavaOptions"),
    )
    if settings.folder is None or settings.folder.startswith("file:"):
        # Without Hadoop's native library the default ways to write a checkpoint file start about
        # ten processes each (readlink, chmod, with a JVM's helper for each); these start one. Both
        # write aside and rename, which is what a SIGKILL has to leave whole.
        conf.setdefault(
            "spark.sql.streaming.checkpointFileManagerClass",
            f"{STREAMING}.FileSystemBasedCheckpointFileManager",
        )
        conf.setdefault("spark.hadoop.fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem")
    else:
        conf.setdefault("spark.hadoop.fs.permissions.umask-mode", "077")  # it holds rows
    if settings.on_cluster:
        conf.update(_cluster(settings, scratch, address))
    else:
        # Loopback only: nothing outside this machine talks to this process.
        conf.update({"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"})
    return conf


def _defaults(scratch: Path) -> dict[str, str]:
    return {
        "spark.app.name": "leasehold",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.redaction.regex": SECRETS,
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
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.sql.streaming.numRecentProgressUpdates": "10",
        # One run at a time per job is the driver's business, not the session's.
        "spark.sql.streaming.stopTimeout": "10000",
        "spark.scheduler.mode": "FAIR",
    }


def _cluster(settings: SparkSettings, scratch: Path, address: DriverAddress) -> dict[str, str]:
    """Return what executors on other machines need: the driver's address, the code, and a secret
    to know each other by. Tasks carry Kafka's password and the key of requests, so that what
    travels is encrypted as well."""
    given = settings.given
    archive = write_archive(scratch / "leasehold.zip")
    conf = {
        "spark.driver.host": given.get("spark.driver.host", address.host),
        "spark.driver.bindAddress": given.get("spark.driver.bindAddress", address.bind),
        "spark.archives": _joined(
            ",", f"{archive.as_uri()}#{UNPACKED}", given.get("spark.archives")
        ),
        "spark.executorEnv.PYTHONPATH": _joined(
            os.pathsep, f"./{UNPACKED}", given.get("spark.executorEnv.PYTHONPATH")
        ),
    }
    if given.get("spark.authenticate") != "false":
        conf["spark.authenticate"] = "true"
        if given.get("spark.ssl.rpc.enabled") != "true":
            conf["spark.network.crypto.enabled"] = "true"
        if settings.secret is not None:
            conf["spark.authenticate.secret"] = settings.secret
    return conf


def _joined(between: str, *parts: str | None) -> str:
    return between.join(filter(None, parts))


@contextmanager
def conf_file(path: Path, conf: Mapping[str, str]) -> Iterator[None]:
    """Tell the JVM that is started now of a file that says all that; it is gone afterwards."""
    lines = "".join(f"{name} {as_property(value)}\n" for name, value in conf.items())
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "w") as file:
        file.write(lines)
    before = os.environ.get(_SUBMIT)
    os.environ[_SUBMIT] = f"--properties-file {shlex.quote(str(path))} pyspark-shell"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SUBMIT]
        else:
            os.environ[_SUBMIT] = before
        path.unlink(missing_ok=True)


def as_property(value: str) -> str:
    """Return a value as Java's properties have it."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _unpacked(scratch: Path) -> Path:
    """Return where the JVM unpacks native libraries. It deletes them when it ends, unless it is
    killed."""
    return scratch / "tmp"


def _let_workers_import(settings: SparkSettings) -> None:
    """Let Python workers import us. Local ones are started by the JVM, which hands on this
    process's environment; those on a cluster have the archive, and the Python that is named."""
    if not settings.on_cluster:
        homes = [str(Path(__file__).parent.parent), str(Path(leasehold.__file__).parent.parent)]
        known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*homes, *filter(None, known)]))
    named = settings.given.get("spark.pyspark.python")
    if named is not None:
        os.environ[_PYTHON] = named
    os.environ.setdefault(_PYTHON, sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
