"""Facts in files, read again without Spark: what was written, and how much of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from spark_streaming.facts import Fact
from spark_streaming.validation import COLUMNS, counts_of, facts_of

FIRST = [Fact(9, False, 0, b"a", 1, b"x"), Fact(9, True, 1, b"b", 2, None)]
SECOND = [Fact(9, False, 0, b"c", 3, b"x"), Fact(10, False, 0, b"c", 3, None)]


def folder(path: Path, *files: list[Fact]) -> str:
    """As Spark leaves one, with what is no data beside the data."""
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
    assert counts_of(places) == {(9, False): 3, (9, True): 2, (10, False): 1}


def test_nothing_is_nothing(tmp_path: Path) -> None:
    for places in ([], [folder(tmp_path / "0")]):
        assert list(facts_of(places)) == []
        assert not counts_of(places)
