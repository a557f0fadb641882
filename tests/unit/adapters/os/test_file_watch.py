"""Goal: a file that is replaced, written, or reached by another link is read again.

Method: looks as fast as they can be.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from leasehold.adapters.os.file_watch import FileWatch
from leasehold.model.errors import ConfigurationError
from tests.unit.adapters.postgres.test_server import until_true


def test_what_changes_is_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a").write_text("first")
    (tmp_path / "b").write_text("third")
    link = tmp_path / "link"
    link.symlink_to("a")
    read: list[str] = []

    def read_again() -> None:
        read.append(link.read_text() if link.exists() else "")
        if read[-1] in ("", "broken"):
            raise ConfigurationError("it can't be used")

    watch = FileWatch([link], read_again, look_s=0.01)
    try:
        until_true(lambda: read == ["first"], "read at the start")
        (tmp_path / "new").write_text("second")
        (tmp_path / "new").replace(tmp_path / "a")
        until_true(lambda: read[-1] == "second", "it was replaced")
        (tmp_path / "other").symlink_to("b")
        (tmp_path / "other").replace(link)
        until_true(lambda: read[-1] == "third", "the link leads elsewhere")
        link.unlink()
        until_true(lambda: read[-1] == "", "it is gone")
        until_true(lambda: "it can't be used; what was read before" in caplog.text, "it was said")
        link.write_text("broken")
        until_true(lambda: read[-1] == "broken", "it is there, and broken")
        link.write_text("mended")
        until_true(lambda: read[-1] == "mended", "the watch goes on")
    finally:
        watch.close()


def test_a_defect_does_not_end_the_watch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file, calls = tmp_path / "a", []

    def read_again() -> None:
        calls.append(file.exists())
        if len(calls) == 1:
            raise ValueError("4711")

    watch = FileWatch([file], read_again, look_s=0.01)
    try:
        until_true(lambda: calls == [False], "the first look")
        file.write_text("x")
        until_true(lambda: calls == [False, True], "the next")
    finally:
        watch.close()
    assert "ValueError" in caplog.text
