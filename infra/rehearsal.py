"""Do each kind of work once, on a cluster of its own: what its JVMs load for that goes into their
class archives (`class_archives.py`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from infra.class_archives import NotRehearsed, end_and_wait, writing_options
from infra.deployment import KAFKA, SPARK
from infra.local_cluster import SPARK_JAVA_OPTIONS, LocalCluster
from infra.ports import Ports
from infra.processes import ProcessFailure
from leasehold import connect
from leasehold.dbapi.errors import Error
from leasehold.settings.client import ClientSettings

NODES: Final = ("m1", "changefeed")
STATEMENTS: Final = (
    "CREATE TABLE p (id bigint PRIMARY KEY)",
    "CREATE TABLE c (id bigint PRIMARY KEY, p bigint, n integer, t text)",
    "INSERT INTO p VALUES (1), (2)",
    "INSERT INTO c VALUES (1, 1, 1, 'a'), (2, 2, 2, 'b')",
    "CREATE INDEX ON c (t)",
    "CREATE UNIQUE INDEX ON c (n)",
    "ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p",
    "ALTER TABLE c ADD CHECK (n > 0)",
)


def rehearse(folder: Path, archives: Mapping[str, Path]) -> None:
    """Run the rehearsal. `archives` says which file the JVM of Kafka, of Spark, is to write. Raises
    NotRehearsed."""
    environ = dict(os.environ)
    if SPARK.name in archives:
        environ[SPARK_JAVA_OPTIONS] = " ".join(writing_options(archives[SPARK.name]))
    options = writing_options(archives[KAFKA]) if KAFKA in archives else ()
    try:
        with LocalCluster(folder / "data", Ports.free(), environ, kafka_options=options) as cluster:
            cluster.start_servers()
            cluster.create_topics()
            cluster.start(SPARK.name, wait=False)
            for name in (*NODES, SPARK.name):
                cluster.start(name)
            _work(cluster)
            for name in (SPARK.name, KAFKA):
                record = cluster.processes.find(name)
                if name in archives and record is not None:
                    end_and_wait(archives[name], record.identity)
    except ProcessFailure as error:
        raise NotRehearsed(str(error)) from None
    except Error as error:
        raise NotRehearsed(f"{type(error).__name__}: {error}") from None


def _work(cluster: LocalCluster) -> None:
    settings = ClientSettings.read(cluster.env("rehearsal"))
    with connect(settings, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in STATEMENTS:
            cursor.execute(statement)
