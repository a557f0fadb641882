"""Goal: the file of fed rows is what rows topics say, and one that can't be used is made anew.

Method: the file on disk, closed and opened again; records as they stand on a rows topic.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leasehold.adapters.codec.records import MessagePackCodec, row_key
from leasehold.adapters.sqlite.fed_rows import CHUNK_BYTES_MAX, FedRows
from leasehold.model.errors import StoreUnwritable
from leasehold.model.records.events import RowImage, RowLeftOut, RowsTruncated

CODEC = MessagePackCodec()


def image(key: int, lsn: int = 1, text: str = "") -> RowImage:
    return RowImage(1, (key,), {}, lsn, 1, 5, {1: key, 2: text})


def record(each: RowImage | RowLeftOut) -> tuple[bytes, bytes]:
    return row_key(each.key), CODEC.encode(each)


def test_rows_are_there_again_at_the_place_they_are_of(tmp_path: Path) -> None:
    with FedRows(tmp_path / "rows") as rows:
        assert rows.place() == b""
        rows.put(image(1))
        rows.put(image(2))
        rows.commit(b"one")
        rows.put(image(2, 2, "new"))
        rows.remove(1, (1,))
        assert rows.get(1, (1,)) is None
    with FedRows(tmp_path / "rows") as rows:
        assert rows.place() == b"one", "what had no commit is undone"
        assert [rows.get(1, (key,)) for key in (1, 2, 3)] == [image(1), image(2), None]
        rows.keep_only((2,))
        assert rows.get(1, (1,)) is None


def test_a_rows_topic_is_loaded() -> None:
    """A tombstone, a truncation on each of two partitions that are read side by side, a row that
    was left out, and what is no record of a row."""
    left_out = RowLeftOut(1, (7,), {}, 9, 1, 5, 9_000_000)
    truncated = row_key(()), CODEC.encode(RowsTruncated(1, 5, 5))
    with FedRows(None) as rows:
        rows.put(image(99))
        count = rows.load(
            1,
            [
                record(image(1, 6)),
                record(image(2, 3)),
                truncated,
                record(image(3, 4)),
                record(image(4, 5)),
                record(image(5, 6)),
                (row_key((5,)), None),
                truncated,
                (None, b"x"),
                (row_key((6,)), b"no image"),
                (b"\xc1", b"no key"),
                (row_key((8,)), CODEC.encode(image(9))),
                record(left_out),
            ],
        )
        assert count == 13
        found = [each for _, each in rows.after(1, b"", 100)]
        assert sorted(found, key=lambda row: row.key) == [image(1, 6), image(4, 5), left_out]


def test_rows_come_in_chunks_that_are_bounded_in_bytes() -> None:
    with FedRows(None) as rows:
        for key in range(20):
            rows.put(image(key, 1, "x" * (CHUNK_BYTES_MAX // 5)))
        place, sizes, keys = b"", [], []
        while found := rows.after(1, place, 8):
            place = found[-1][0]
            sizes.append(len(found))
            keys += [each.key[0] for _, each in found]
        assert max(sizes) < 8
        assert keys == list(range(20))
        assert rows.bytes_moved > 2 * 20 * (CHUNK_BYTES_MAX // 5)


KEYS = st.integers(0, 5)
STEPS = st.one_of(
    st.tuples(st.just("put"), KEYS),
    st.tuples(st.just("remove"), KEYS),
    st.tuples(st.sampled_from(("commit", "clear", "read on", "open again")), st.just(0)),
)


@given(st.lists(STEPS, max_size=40))
@example([("put", 1), ("commit", 0), ("remove", 1), ("commit", 0), ("read on", 0)])
@example([("put", 1), ("remove", 1), ("put", 1), ("read on", 0), ("open again", 0)])
def test_rows_are_those_that_were_put_wherever_they_lie(steps: list[tuple[str, int]]) -> None:
    """In memory, in the open transaction of the file, or committed: what is read is the same, and
    what was not committed is gone when the file is opened again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        rows = FedRows(path)
        there: dict[int, RowImage] = {}
        kept = dict(there)
        for lsn, (what, key) in enumerate(steps):
            match what:
                case "put":
                    there[key] = image(key, lsn)
                    rows.put(there[key])
                case "remove":
                    there.pop(key, None)
                    rows.remove(1, (key,))
                case "commit":
                    rows.commit(b"%d" % lsn)
                    kept = dict(there)
                case "clear":
                    there.clear()
                    rows.clear(1)
                case "read on":
                    found = [each for _, each in rows.after(1, b"", 100)]
                    assert found == [there[each] for each in sorted(there)]
                case _:
                    rows.close()
                    rows, there = FedRows(path), dict(kept)
            assert [rows.get(1, (each,)) for each in range(6)] == [there.get(n) for n in range(6)]
        rows.close()


def test_what_is_read_of_rows_in_memory_counts_too() -> None:
    """Whoever follows commits by it, so that what waits is bounded."""
    with FedRows(None) as rows:
        rows.put(image(1, 1, "x" * 1_000))
        moved = rows.bytes_moved
        rows.get(1, (1,))
        assert rows.bytes_moved >= moved + 1_000


def test_a_file_that_takes_no_more_is_told(tmp_path: Path) -> None:
    with FedRows(tmp_path / "rows") as rows:
        rows.put(image(1))
        other = apsw.Connection(str(tmp_path / "rows"))
        other.execute("DROP TABLE rows")
        other.close()
        with pytest.raises(StoreUnwritable, match="LEASEHOLD_CHANGEFEED_ROWS"):
            rows.commit(b"one")


@pytest.mark.parametrize("content", [b"no file of SQLite at all" * 100, None])
def test_a_file_that_is_none_of_ours_is_made_anew(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "rows"
    if content is None:
        apsw.Connection(str(path)).pragma("user_version", 99)
    else:
        path.write_bytes(content)
    with FedRows(path) as rows:
        assert rows.place() == b""
        rows.put(image(1))
        rows.commit(b"one")
    with FedRows(path) as rows:
        assert rows.place() == b"one"


def test_a_file_that_can_not_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnwritable, match="LEASEHOLD_CHANGEFEED_ROWS"):
        FedRows(tmp_path / "file" / "rows")
