"""Write the files of alerts and boards from their declarations: `python -m infra.observe`.

With `--check` nothing is written: exit code 1 names what is out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from infra.observe.alerts import ALERTS_FILE, rules
from infra.observe.boards import BOARDS, FOLDER, board_json

CHART_FILES: Final = Path(__file__).resolve().parent.parent / "helm" / "leasehold" / "files"
"""A chart has what it installs in itself."""
FOLDERS: Final = (FOLDER, CHART_FILES / "boards")


def files() -> dict[Path, str]:
    """Return each file as it has to be."""
    boards = {f"{board.name}.json": board_json(board) for board in BOARDS}
    return {
        ALERTS_FILE: rules(),
        CHART_FILES / "alerts.json": rules(),
        **{folder / name: text for folder in FOLDERS for name, text in boards.items()},
    }


def main(arguments: list[str]) -> int:
    """Write or check; return the exit code."""
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    old = [path for path, text in files().items() if not _is(path, text)]
    for path in old:
        if arguments:
            print(f"{path.name}: out of date; run python -m infra.observe", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files()[path], "utf-8")
            print(f"{path.name}: written anew")
    return 1 if old and arguments else 0


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text("utf-8") == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
