"""Where Spark's tasks run, and what Spark is told for it."""

from __future__ import annotations

import os
import shlex
import zipfile
from pathlib import Path

import pytest

from leasehold.model.errors import ConfigurationError
from leasehold.settings.environment import describe, from_environment
from spark_streaming.code_archive import write_archive
from spark_streaming.fact_store import path_of
from spark_streaming.session import DriverAddress, conf_file, configuration
from spark_streaming.spark_settings import SparkSettings, spark_conf

SECRET = "0123456789abcdef0123456789abcdef"
CLUSTER = {
    "LEASEHOLD_SPARK_MASTER": "spark://one:7077",
    "LEASEHOLD_SPARK_FOLDER": "hdfs://names:8020/leasehold/",
    "LEASEHOLD_SPARK_SECRET": SECRET,
}


def settings(**more: str) -> SparkSettings:
    return from_environment(SparkSettings, more)


def told(tmp_path: Path, **more: str) -> dict[str, str]:
    return configuration(settings(**more), ["a.jar"], tmp_path, DriverAddress("me", "10.0.0.1"))


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("spark.a.b  x y ", "x y"),
        ("spark.a.b=x=y", "x=y"),
        ("  spark.a.b = x", "x"),
        ("spark.a.b\tx", "x"),
        ("# spark.c x\n\n! no\nspark.a.b x\\y", "x\\y"),
        ("spark.a.b first\nspark.a.b x", "x"),
        ("spark.a.b x=1", "x=1"),
    ],
)
def test_a_file_of_spark_s_is_read_as_spark_reads_it(line: str, value: str) -> None:
    assert spark_conf(line) == {"spark.a.b": value}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"LEASEHOLD_SPARK_MASTER": "mesos://x"}, "spark://host:port"),
        ({"LEASEHOLD_SPARK_MASTER": "spark://"}, "spark://host:port"),
        ({"LEASEHOLD_SPARK_FOLDER": "/no/scheme"}, "with its scheme"),
        ({"LEASEHOLD_SPARK_FOLDER": "hdfs:relative"}, "with its scheme"),
        ({"LEASEHOLD_SPARK_FOLDER": "file://host/folder"}, "with its scheme"),
        ({"LEASEHOLD_SPARK_SECRET": "short"}, "at least 32"),
        ({"LEASEHOLD_SPARK_CONF": "hive.x 1"}, "begins with spark"),
        ({"LEASEHOLD_SPARK_CONF": "spark.x"}, "and its value"),
        ({"LEASEHOLD_SPARK_CONF": "spark.master yarn"}, "LEASEHOLD_SPARK_MASTER names it"),
        ({**CLUSTER, "LEASEHOLD_SPARK_FOLDER": ""}, "needs LEASEHOLD_SPARK_FOLDER"),
        ({**CLUSTER, "LEASEHOLD_SPARK_SECRET": ""}, "needs LEASEHOLD_SPARK_SECRET"),
    ],
)
def test_what_cannot_be_meant_is_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        settings(**given)


def test_on_one_machine_nothing_is_reached_from_outside(tmp_path: Path) -> None:
    conf = told(tmp_path, LEASEHOLD_SPARK_THREADS="3")
    assert conf["spark.master"] == "local[3]"
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "127.0.0.1"
    assert not conf.keys() & {"spark.archives", "spark.executorEnv.PYTHONPATH"}
    assert told(tmp_path, LEASEHOLD_SPARK_MASTER="local[*]")["spark.master"] == "local[*]"


def test_a_cluster_gets_address_code_and_secret(tmp_path: Path) -> None:
    conf = told(tmp_path, **CLUSTER)
    assert (conf["spark.driver.host"], conf["spark.driver.bindAddress"]) == ("me", "10.0.0.1")
    assert conf["spark.authenticate"] == conf["spark.network.crypto.enabled"] == "true"
    assert conf["spark.authenticate.secret"] == SECRET
    assert conf["spark.archives"] == f"{(tmp_path / 'leasehold.zip').as_uri()}#leasehold-code"
    assert conf["spark.executorEnv.PYTHONPATH"] == "./leasehold-code"
    # It is not a folder of this machine, so Hadoop's ways to it are Hadoop's own.
    assert "spark.hadoop.fs.file.impl" not in conf


def test_the_file_s_word_counts_and_lists_are_joined(tmp_path: Path) -> None:
    lines = (
        "spark.ui.enabled true",
        "spark.driver.host outside",
        "spark.jars more.jar",
        "spark.archives env.tar.gz#environment",
        "spark.driver.extraJavaOptions -Dmine=1",
        "spark.hadoop.fs.s3a.secret.key hush",
    )
    given = settings(**CLUSTER, LEASEHOLD_SPARK_CONF="\n".join(lines))
    conf = configuration(given, ["a.jar"], tmp_path, DriverAddress())
    assert conf["spark.ui.enabled"] == "true"
    assert conf["spark.driver.host"] == "outside"
    assert conf["spark.jars"] == "a.jar,more.jar"
    assert conf["spark.archives"].endswith("#leasehold-code,env.tar.gz#environment")
    assert conf["spark.driver.extraJavaOptions"].endswith(" -Dmine=1")
    assert conf["spark.hadoop.fs.s3a.secret.key"] == "hush"
    assert "hush" not in repr(given) + str(describe(given))
    assert SECRET not in repr(given) + str(describe(given))


def test_what_spark_is_told_stands_in_a_file_that_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: a secret is on no command line; its file is of this user alone, from its first byte on,
    and is gone when the JVM has read it."""
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "as before")
    path = tmp_path / "a b.conf"
    with conf_file(path, {"spark.x": f"{SECRET} C:\\d"}):
        assert path.read_text() == f"spark.x {SECRET} C:\\\\d\n"
        assert path.stat().st_mode & 0o777 == 0o600
        given = shlex.split(os.environ["PYSPARK_SUBMIT_ARGS"])
        assert given == ["--properties-file", str(path), "pyspark-shell"]
    assert not path.exists()
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == "as before"


def test_who_says_so_does_without_a_secret(tmp_path: Path) -> None:
    conf = told(
        tmp_path,
        **{**CLUSTER, "LEASEHOLD_SPARK_SECRET": ""},
        LEASEHOLD_SPARK_CONF="spark.authenticate false",
    )
    assert conf["spark.authenticate"] == "false"
    assert "spark.network.crypto.enabled" not in conf


def test_the_archive_has_the_code_and_is_the_same_each_time(tmp_path: Path) -> None:
    one, two = write_archive(tmp_path / "one.zip"), write_archive(tmp_path / "two.zip")
    assert one.read_bytes() == two.read_bytes()
    with zipfile.ZipFile(one) as archive:
        names = set(archive.namelist())
    assert {"spark_streaming/worker_daemon.py", "leasehold/pipeline/chunks.py"} <= names
    assert all(name.startswith(("spark_streaming/", "leasehold/")) for name in names)
    assert not [name for name in names if name.endswith((".pyc", ".so"))]


@pytest.mark.parametrize(
    ("place", "path"),
    [("file:/a b/c", "/a b/c"), ("file:///a/b", "/a/b"), ("hdfs://h/a", None), ("s3a://b/a", None)],
)
def test_files_of_this_machine_have_a_path(place: str, path: str | None) -> None:
    found = path_of(place)
    assert (None if found is None else str(found)) == path
