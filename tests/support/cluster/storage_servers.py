"""HDFS and an S3 server on free ports, for long tests: what `make storage-tools` has brought.

Each is a process of the test's cluster, which ends all of them with the session, however that ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pyspark

from infra.child_environment import server_environment
from infra.java import java
from infra.local_cluster import ROOT, LocalCluster
from infra.ports import LOOPBACK, find_free_port, is_listening
from tests.support.cluster.system_cluster import until

TOOLS: Final = ROOT / ".leasehold" / "storage"
JARS: Final = TOOLS / "jars"
_S3_SERVER: Final = TOOLS / "bin" / "versitygw"
_HADOOP: Final = "org.apache.hadoop.hdfs.server"
_QUICK_START: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx192m")
_NOT_THERE: Final = "what HDFS and S3 run from is not here: run `make storage-tools`"


@dataclass(frozen=True, slots=True)
class Storage:
    """A place for folders. `url`: of a folder in it, without a `/` at the end. `conf`: what Spark
    is told of it. `jars`: those that Spark needs for it. `environ`: what other clients are told."""

    url: str
    conf: Mapping[str, str]
    jars: tuple[Path, ...]
    environ: Mapping[str, str]


@contextmanager
def running_hdfs(servers: LocalCluster, folder: Path) -> Iterator[Storage]:
    """A name node and one data node, whose disk is `folder`."""
    assert JARS.is_dir(), _NOT_THERE
    port = find_free_port()
    url = f"hdfs://{LOOPBACK}:{port}"
    _write_conf(folder / "core-site.xml", {"fs.defaultFS": url})
    _write_conf(
        folder / "hdfs-site.xml",
        {
            "dfs.namenode.name.dir": f"file:{folder}/names",
            "dfs.datanode.data.dir": f"file:{folder}/blocks",
            "dfs.replication": "1",
            "dfs.permissions.superusergroup": "leasehold",
            **dict.fromkeys(
                (
                    "dfs.namenode.http-address",
                    "dfs.datanode.address",
                    "dfs.datanode.http.address",
                    "dfs.datanode.ipc.address",
                ),
                f"{LOOPBACK}:0",
            ),
        },
    )
    names = f"{_HADOOP}.namenode.NameNode"
    processes = servers.processes
    try:
        _start_java(servers, "hdfs-format", folder, names, "-format", "-force")
        until(lambda: processes.find("hdfs-format") is None, "HDFS's folder to be made")
        _start_java(servers, "hdfs-names", folder, names)
        until(lambda: _answers(url), "HDFS's name node")
        _start_java(servers, "hdfs-blocks", folder, f"{_HADOOP}.datanode.DataNode")
        yield Storage(f"{url}/leasehold", {}, (), {})
    finally:
        for name in ("hdfs-blocks", "hdfs-names"):
            processes.stop(name)


@contextmanager
def running_s3(servers: LocalCluster, folder: Path, *, abortable: bool) -> Iterator[Storage]:
    """An S3 server with a bucket, whose objects are in `folder`; it takes signed requests only.
    `abortable`: Spark completes uploads in their places, by spark-hadoop-cloud."""
    assert _S3_SERVER.is_file(), _NOT_THERE
    (folder / "objects" / "bucket").mkdir(parents=True)
    (folder / "attributes").mkdir()
    url = f"http://{LOOPBACK}:{find_free_port()}"
    access, secret = "an-access-key", "a-secret-key-of-this-object-store"
    environ = {**server_environment(os.environ), "ROOT_ACCESS_KEY": access}
    environ["ROOT_SECRET_KEY"] = secret
    command = [str(_S3_SERVER), "--port", url.removeprefix("http://"), "--quiet", "posix"]
    command += ["--sidecar", str(folder / "attributes"), str(folder / "objects")]
    servers.processes.start("s3", command, environ, folder)
    hadoop = "spark.hadoop.fs.s3a"
    conf = {
        f"{hadoop}.endpoint": url,
        f"{hadoop}.endpoint.region": "us-east-1",
        f"{hadoop}.path.style.access": "true",
        f"{hadoop}.access.key": access,
        f"{hadoop}.secret.key": secret,
    }
    more: tuple[str, ...] = ("hadoop-aws", "bundle")
    if abortable:
        more = (*more, "spark-hadoop-cloud")
        conf["spark.sql.streaming.checkpointFileManagerClass"] = (
            "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
        )
    clients = {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": access,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": "us-east-1",
    }
    try:
        until(lambda: _answers(url), "an S3 server")
        jars = tuple(path for name in more for path in JARS.glob(f"{name}*.jar"))
        yield Storage("s3a://bucket/leasehold", conf, jars, clients)
    finally:
        servers.processes.stop("s3")


def _start_java(servers: LocalCluster, name: str, folder: Path, main: str, *more: str) -> None:
    spark = Path(pyspark.__file__).parent / "jars"
    jars = [*JARS.glob("hadoop-client-minicluster-*.jar")]
    for name_of in ("hadoop-client-*", "log4j-*", "slf4j-*", "jcl-*"):
        jars += sorted(spark.glob(f"{name_of}.jar"))
    paths = os.pathsep.join([str(folder), *map(str, jars)])
    environ = server_environment(os.environ)
    command = [java(environ), *_QUICK_START, "-cp", paths, main, *more]
    servers.processes.start(name, command, environ, folder)


def _answers(url: str) -> bool:
    at = urlsplit(url)
    return is_listening(at.hostname or "", at.port or 0, 1)


def _write_conf(path: Path, values: Mapping[str, str]) -> None:
    """Write a file of Hadoop's settings."""
    told = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>\n"
        for name, value in values.items()
    )
    path.write_text(f"<configuration>\n{told}</configuration>\n")
