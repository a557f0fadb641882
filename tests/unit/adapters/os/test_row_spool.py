"""Rows that are put aside come back as they were, from memory and from a file, within a bound."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from leasehold.adapters.os import row_spool
from leasehold.adapters.os.row_spool import RowSpool, SpoolFull, SpoolRoom
from leasehold.adapters.os.temp_room import TempRoom

VALUES: tuple[Any, ...] = (None, -1, 1 << 62, 1.5, "ö" * 40, b"\0\xff", "")


def filled(rows: list[tuple[Any, ...]], room: SpoolRoom, portion: int) -> RowSpool:
    spool = RowSpool(room)
    for first in range(0, len(rows), portion):
        spool.add(rows[first : first + portion])
    spool.end()
    return spool


def read(spool: RowSpool, first: int, count: int) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    while part := spool.rows(first + len(found), count - len(found)):
        found += part
    return found


@pytest.mark.parametrize("seed", range(20))
def test_any_part_can_be_read_in_any_order(seed: int) -> None:
    random = Random(seed)
    count = random.choice((0, 1, 255, 256, 257, 5_000))
    rows = [(n, *random.choices(VALUES, k=4)) for n in range(count)]
    spool = filled(rows, SpoolRoom(), random.randint(1, 700))
    assert spool.count == count
    for _ in range(30):
        first, wanted = random.randint(0, count + 2), random.randint(1, 600)
        assert read(spool, first, wanted) == rows[first : first + wanted]
    spool.close()


def test_large_rows_are_batches_of_their_own() -> None:
    """Else as many of them as make a batch would be in memory at once."""
    rows = [(n, "x" * row_spool.SPOOL_BATCH_BYTES) for n in range(5)]
    spool = filled(rows, SpoolRoom(), 5)
    assert [len(spool.rows(n, 5)) for n in range(5)] == [1] * 5
    assert read(spool, 0, 9) == rows
    spool.close()


def test_the_room_is_of_all_spools_and_is_given_back() -> None:
    room = SpoolRoom(bytes_max=100_000)
    rows = [(n, f"{n:100}") for n in range(700)]
    one = filled(rows, room, 256)
    taken = room.bytes_taken
    assert 70_000 < taken <= 100_000
    other = RowSpool(room)
    with pytest.raises(SpoolFull):
        other.add(rows)
    assert read(other, 0, 700) == rows[: other.count], "what had room is there"
    other.close()
    assert room.bytes_taken == taken
    one.close()
    one.close()
    assert room.bytes_taken == 0
    again = filled(rows, room, 1)
    assert read(again, 699, 5) == rows[699:]
    again.close()


def test_the_spools_of_a_node_share_one_room(tmp_path: Path) -> None:
    """Goal: a hundred sessions can't take a hundred times what one may."""
    node = TempRoom(300_000, tmp_path / "temp", "LEASEHOLD_SQL_TEMP_MB")
    rows = [(number, f"{number:100}") for number in range(2_000)]
    first = filled(rows, SpoolRoom(node), 256)
    assert node.kept > 200_000
    other = RowSpool(SpoolRoom(node))
    with pytest.raises(SpoolFull, match="LEASEHOLD_SQL_TEMP_MB"):
        other.add(rows)
    other.close()
    first.close()
    filled(rows, SpoolRoom(node), 256).close()
