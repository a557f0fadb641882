"""Facts in files, read again without Spark: what was written, and how much of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leasehold.model.errors import BusUnavailable
from leasehold.pipeline.facts import Fact
from spark_streaming.fact_files import COLUMNS, FactFile, fact_count, facts_of

FIRST = [Fact(9, False, 0, b"a", 1, b"x"), Fact(9, True, 1, b"b", 2, None)]
SECOND = [Fact(9, False, 0, b"c", 3, b"x"), Fact(10, False, 0, b"c", 3, None)]


def folder(path: Path, *files: list[Fact]) -> str:
    """As Spark writes one, with what is no data beside the data."""
    path.mkdir()
    for number, facts in enumerate(files):
        columns = dict(zip(COLUMNS, zip(*facts, strict=True), strict=True))
        pq.write_table(pa.table(columns), path / f"part-{number}.snappy.parquet")
        (path / f".part-{number}.snappy.parquet.crc").write_bytes(b"crc")
    (path / "_SUCCESS").touch()
    (path / "_temporary").mkdir()
    return str(path)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    places = [folder(tmp_path / "0", FIRST, SECOND), folder(tmp_path / "1", FIRST)]
    assert sorted(facts_of(places), key=repr) == sorted([*FIRST, *SECOND, *FIRST], key=repr)
    assert fact_count(places) == 6


def test_nothing_is_nothing(tmp_path: Path) -> None:
    for places in ([], [folder(tmp_path / "0")]):
        assert list(facts_of(places)) == []
        assert fact_count(places) == 0


@pytest.mark.parametrize("rows_at_once", [1, 3, 50_000])
def test_a_file_has_all_that_was_added_and_takes_the_place_of_the_same_one(
    tmp_path: Path, rows_at_once: int
) -> None:
    for facts in (FIRST, [], [*SECOND, *FIRST]):
        with FactFile(str(tmp_path), 7, rows_at_once) as file:
            for fact in facts:
                file.add([fact])
        assert list(facts_of([str(tmp_path)])) == facts
        assert file.counts == Counter(fact[:2] for fact in facts)
    assert [path.name for path in tmp_path.iterdir()] == ["part-7.parquet"]


def test_a_file_that_was_not_ended_is_none(tmp_path: Path) -> None:
    def write_some() -> None:
        with FactFile(str(tmp_path), 0, rows_at_once=1) as file:
            file.add(FIRST)
            assert fact_count([str(tmp_path)]) == 0, "a file that is being written"
            raise BusUnavailable("Kafka is away")

    with pytest.raises(BusUnavailable, match="away"):
        write_some()
    assert list(tmp_path.iterdir()) == []
