"""Goal: the folders of tests lie in memory only where that hurts nobody."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.memory_folder import FREE_BYTES_MIN, ROOT_NAME, choose_root

ENOUGH = f"MemTotal: 1 kB\nMemAvailable: {FREE_BYTES_MIN >> 10} kB\n"
TOO_LITTLE = f"MemAvailable: {(FREE_BYTES_MIN >> 10) - 1} kB\n"


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A folder with room, on a machine with memory."""
    found = SimpleNamespace(free=FREE_BYTES_MIN, flags=0, info=tmp_path / "meminfo")
    found.info.write_text(ENOUGH)
    usage = lambda _: SimpleNamespace(free=found.free)  # noqa: E731
    monkeypatch.setattr(shutil, "disk_usage", usage)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=found.flags))
    return found


def test_it_is_taken_where_there_is_room(room: SimpleNamespace, tmp_path: Path) -> None:
    assert choose_root({}, tmp_path, room.info) == tmp_path


def test_it_is_left_to_who_says_where(room: SimpleNamespace, tmp_path: Path) -> None:
    assert choose_root({ROOT_NAME: "/elsewhere"}, tmp_path, room.info) is None


@pytest.mark.parametrize("lacks", ["folder", "room", "memory", "what memory there is", "running"])
def test_it_is_not_taken_where_something_lacks(
    room: SimpleNamespace, tmp_path: Path, lacks: str
) -> None:
    folder = tmp_path
    match lacks:
        case "folder":
            folder = tmp_path / "none"
        case "room":
            room.free -= 1
        case "memory":
            room.info.write_text(TOO_LITTLE)
        case "what memory there is":
            room.info.unlink()
        case _:
            room.flags = os.ST_NOEXEC
    assert choose_root({}, folder, room.info) is None
