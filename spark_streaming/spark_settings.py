"""The settings of Spark's driver, beside those of Kafka and of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from leasehold.model.errors import ConfigurationError
from leasehold.settings.environment import integer, setting
from leasehold.transaction.retry import ATTEMPTS_MAX

_MASTERS: Final = ("spark://", "k8s://")
SECRET_LENGTH_MIN: Final = 32


def master_url(text: str) -> str:
    """Check the name of a master as Spark takes it."""
    local = text == "local" or (text.startswith("local[") and text.endswith("]"))
    there = any(text.startswith(each) and len(text) > len(each) for each in _MASTERS)
    if not (local or there or text == "yarn"):
        raise ValueError("local[n], spark://host:port, k8s://https://host:port or yarn")
    return text


def folder_uri(text: str) -> str:
    """Check the name of a folder on a Hadoop file system."""
    parts = urlsplit(text)
    whole = bool(parts.scheme) and parts.path.startswith("/") and not (parts.query or "#" in text)
    if not whole or (parts.scheme == "file" and parts.netloc):
        raise ValueError("a folder with its scheme, such as hdfs://host:port/leasehold")
    return text.rstrip("/")


def shared_secret(text: str) -> str:
    """Check the secret of a Spark cluster."""
    if len(text) < SECRET_LENGTH_MIN or not (text.isascii() and text.isprintable()):
        raise ValueError(f"at least {SECRET_LENGTH_MIN} ASCII characters (`openssl rand -hex 32`)")
    return text


def spark_conf(text: str) -> dict[str, str]:
    """Return what a file like spark-defaults.conf says: a name and a value in each line, with
    blanks or = between them. Raises ValueError."""
    found: dict[str, str] = {}
    for line in map(str.strip, text.splitlines()):
        if not line or line.startswith(("#", "!")):
            continue
        name = line.replace("=", " ", 1).split(maxsplit=1)[0]
        value = line[len(name) :].strip().removeprefix("=").strip()
        if not name.startswith("spark.") or not value:
            raise ValueError(
                "in each line a name that begins with spark. and its value, as in"
                " spark-defaults.conf"
            )
        found[name] = value
    return found


def checked_conf(text: str) -> str:
    """Check lines of spark-defaults.conf; the text stays what it is."""
    conf = spark_conf(text)
    if "spark.master" in conf:
        raise ValueError("no spark.master in it: LEASEHOLD_SPARK_MASTER names it")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Settings of the driver beside those of Kafka and of the cluster."""

    jars: Path = setting(
        "LEASEHOLD_SPARK_JARS",
        "folder of the Kafka connector's jars; what else lies there, such as hadoop-aws, comes"
        " along",
        default=Path(".leasehold/jars/spark"),
        parse=Path,
    )
    master: str = setting(
        "LEASEHOLD_SPARK_MASTER",
        "where tasks run; not set: `local[n]` with n = `LEASEHOLD_SPARK_THREADS`",
        default="",
        parse=master_url,
    )
    folder: str | None = setting(
        "LEASEHOLD_SPARK_FOLDER",
        "folder on a Hadoop file system for checkpoints, facts and state, which the driver and all"
        " executors reach under this name; needed unless the master is local, where it is `spark`"
        " in `LEASEHOLD_DATA` if not set",
        default=None,
        parse=folder_uri,
    )
    conf: str | None = setting(
        "LEASEHOLD_SPARK_CONF",
        "what else Spark is to take, as lines of spark-defaults.conf; mostly as a file, by"
        " `LEASEHOLD_SPARK_CONF_FILE`",
        default=None,
        parse=checked_conf,
        secret=True,
    )
    secret: str | None = setting(
        "LEASEHOLD_SPARK_SECRET",
        "what a master spark://, its workers and this driver know each other by"
        " (spark.authenticate.secret); YARN and Kubernetes make their own",
        default=None,
        parse=shared_secret,
        secret=True,
    )
    memory_mb: int = setting(
        "LEASEHOLD_SPARK_MEMORY_MB",
        "heap of the driver's JVM",
        default=1024,
        parse=integer(512, 65_536, "MB"),
    )
    java_options: str = setting(
        "LEASEHOLD_SPARK_JAVA_OPTIONS",
        "more options of the driver's JVM, between blanks",
        default="",
    )
    threads: int = setting(
        "LEASEHOLD_SPARK_THREADS",
        "tasks that run side by side, where no master is set",
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

    def __post_init__(self) -> None:
        if not self.on_cluster:
            return
        if self.folder is None:
            raise ConfigurationError(
                f"LEASEHOLD_SPARK_MASTER is {self.master}, which needs LEASEHOLD_SPARK_FOLDER: a"
                " folder that the driver and all executors reach, such as hdfs://host:port/folder.",
                variable="LEASEHOLD_SPARK_FOLDER",
            )
        open_to_all = self.given.get("spark.authenticate") == "false"
        named = self.secret or "spark.authenticate.secret" in self.given
        if self.master.startswith("spark://") and not named and not open_to_all:
            raise ConfigurationError(
                f"LEASEHOLD_SPARK_MASTER is {self.master}, which needs LEASEHOLD_SPARK_SECRET (or"
                " LEASEHOLD_SPARK_SECRET_FILE): whoever reaches the driver would be given tasks,"
                " and Kafka's password with them. `spark.authenticate false` in"
                " LEASEHOLD_SPARK_CONF_FILE says that this is wanted.",
                variable="LEASEHOLD_SPARK_SECRET",
            )

    @property
    def given(self) -> Mapping[str, str]:
        """What the file says. It may hold secrets: never print it."""
        return spark_conf(self.conf or "")

    @property
    def master_or_local(self) -> str:
        return self.master or f"local[{self.threads}]"

    @property
    def on_cluster(self) -> bool:
        """Return whether tasks run in other processes than the driver's, on any machine."""
        return not self.master_or_local.startswith("local")
