"""Class archives of JVMs: one that is whole is taken, one that is not, or of other jars, is not.

Method: files made by hand; what a JVM writes, and that it starts with it, is looked at in
tests/integration/infra/test_class_archives.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from infra import class_archives
from infra.class_archives import NAMES, ClassArchives, NotRehearsed, main, writing_options
from infra.deployment import KAFKA, SPARK
from infra.local_cluster import SPARK_JAVA_OPTIONS, LocalCluster, spark_java_options
from infra.ports import Ports

MADE_FROM = dict.fromkeys(NAMES, "these")


@pytest.fixture
def archives(tmp_path: Path) -> ClassArchives:
    made = ClassArchives(tmp_path / "classes")
    with made.exclusively():
        for name in NAMES:
            written = tmp_path / f"{name}.written"
            written.write_bytes(b"classes")
            made.keep(name, written, MADE_FROM[name])
    return made


def test_a_whole_one_is_taken(archives: ClassArchives) -> None:
    assert archives.missing(MADE_FROM) == []
    (option, _) = archives.java_options("kafka")
    assert option == f"-XX:SharedArchiveFile={archives.folder / 'kafka.jsa'}"


def test_without_one_there_are_no_options(tmp_path: Path) -> None:
    none = ClassArchives(tmp_path)
    assert none.java_options("kafka") == ()
    assert none.missing(MADE_FROM) == list(NAMES)


def test_one_that_was_cut_short_is_never_taken(archives: ClassArchives) -> None:
    """A JVM maps it without a look at its length, and dies where the file ends."""
    (archives.folder / "spark.jsa").write_bytes(b"class")
    assert archives.java_options("spark") == ()
    assert archives.missing(MADE_FROM) == ["spark"]


@pytest.mark.parametrize("note", ["", "[]", "{}", '{"made from": "these"}'])
def test_one_that_nothing_is_known_of_is_made_anew(archives: ClassArchives, note: str) -> None:
    (archives.folder / "kafka.json").write_text(note)
    assert archives.java_options("kafka") == ()
    assert archives.missing(MADE_FROM) == ["kafka"]


def test_one_of_other_jars_is_made_anew(archives: ClassArchives) -> None:
    assert archives.missing({**MADE_FROM, "spark": "those"}) == ["spark"]


def test_where_none_can_be_made_a_sentence_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def cannot(_: ClassArchives) -> None:
        raise NotRehearsed("there is no Java")

    monkeypatch.setattr(class_archives, "build", cannot)
    assert main(["build"]) == 0
    assert "seconds slower: there is no Java" in capsys.readouterr().out
    assert main([]) == 2


def test_options_of_ones_own_come_before_the_archive(
    monkeypatch: pytest.MonkeyPatch, archives: ClassArchives, tmp_path: Path
) -> None:
    monkeypatch.setattr(class_archives, "FOLDER", archives.folder)
    own = " ".join(writing_options(tmp_path / "new.jsa"))
    assert spark_java_options({SPARK_JAVA_OPTIONS: own}) == own
    cluster = LocalCluster(tmp_path, Ports.free(), {SPARK_JAVA_OPTIONS: own})
    assert cluster.env("spark")[SPARK_JAVA_OPTIONS] == own


def test_an_archive_is_of_the_options_that_its_jvm_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """With another collector's layout of objects a JVM starts without it, and nobody would know."""
    monkeypatch.setattr(class_archives, "java", lambda _: "true")  # it says nothing
    before = class_archives.made_from()
    monkeypatch.setattr(class_archives, "jvm_options", lambda: ("-XX:+UseZGC",))
    after = class_archives.made_from()
    assert after[KAFKA] != before[KAFKA]
    assert after[SPARK.name] == before[SPARK.name]
