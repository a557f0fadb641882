"""Goal: Grafana finds in our boards what it knows, and all that it asks for.

Method: a program reads them by Grafana's own types, strictly (`infra/observe/board_check`); beside
them some that are spoiled, which it has to refuse.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from infra.local_cluster import ROOT
from infra.observe.boards import FOLDER

pytestmark = pytest.mark.long("a program built with Go; `make observe-tools`")

PROGRAM: Final = ROOT / ".leasehold" / "observe" / "board-check"
BOARDS: Final = sorted(FOLDER.glob("*.json"))
TIMEOUT_S: Final = 60.0


def check(*files: Path) -> subprocess.CompletedProcess[str]:
    assert PROGRAM.is_file(), "the reader of boards is not here: run `make observe-tools`"
    return subprocess.run(
        [str(PROGRAM), *map(str, files)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def test_each_board_is_as_grafana_has_them() -> None:
    assert len(BOARDS) == 4
    done = check(*BOARDS)
    assert (done.returncode, done.stderr) == (0, "")


def _rename(board: dict[str, Any]) -> None:
    board["panels"][0]["targets"][0]["query"] = board["panels"][0]["targets"][0].pop("expr")


def _misspell(board: dict[str, Any]) -> None:
    board["panels"][0]["gridPosition"] = board["panels"][0].pop("gridPos")


def _number(board: dict[str, Any]) -> None:
    board["title"] = 7


@pytest.mark.parametrize("spoil", [_rename, _misspell, _number], ids=lambda spoil: spoil.__name__)
def test_a_spoiled_one_is_refused(spoil: Callable[[dict[str, Any]], None], tmp_path: Path) -> None:
    board = json.loads(BOARDS[0].read_text("utf-8"))
    spoil(board)
    file = tmp_path / "board.json"
    file.write_text(json.dumps(board), "utf-8")
    done = check(file)
    assert done.returncode == 1
    assert str(file) in done.stderr
