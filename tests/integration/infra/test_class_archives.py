"""A JVM starts with the class archive that set-up has made of it.

Goal: neither another Java nor another class path makes it fall back in silence for good.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from infra.class_archives import ClassArchives
from infra.kafka.broker import Broker
from infra.local_cluster import KAFKA_JARS

pytestmark = pytest.mark.skipif(
    not ClassArchives().java_options("kafka"),
    reason="NOT TESTED: there is no class archive here (make setup says why)",
)


def test_the_broker_loads_its_classes_from_the_archive(tmp_path: Path) -> None:
    options = (*ClassArchives().java_options("kafka"), "-Xshare:on", "-Xlog:class+load")
    broker = Broker(tmp_path, KAFKA_JARS, 1, 2, 256, java_options=options)
    # Without its settings it ends at once; -Xshare:on makes it an error not to have the archive.
    ended = subprocess.run(
        broker.command(), capture_output=True, text=True, timeout=60, check=False
    )
    loaded = [line for line in ended.stdout.splitlines() if " kafka.Kafka" in line]
    assert any("shared objects file (top)" in line for line in loaded), (loaded, ended.stderr)


def test_who_formats_its_storage_loads_its_classes_from_there_too(tmp_path: Path) -> None:
    told = tmp_path / "classes"
    archive = ClassArchives().java_options("kafka")
    options = (*archive, "-Xshare:on", f"-Xlog:class+load:file={told}")
    Broker(tmp_path / "kafka", KAFKA_JARS, 1, 2, 256, format_options=options).prepare(os.environ)
    loaded = [line for line in told.read_text().splitlines() if "kafka.server.KafkaConfig " in line]
    assert any("shared objects file (top)" in line for line in loaded), loaded
