"""Goal: a file that a comment, a docstring or a document names is there.

Method: what stands in backquotes and ends like a file, in all Python files and documents.
Lab notes and the CHANGELOG tell of the past, and name what was.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NAMED = re.compile(r"`([\w/]*\w+\.(?:py|md|lua))\b")
NOT_HERE = frozenset({"book.py", "utils.py"})
"""What a tutorial has its reader write, and what nobody is to write."""
FOLDERS = ("libs", "services", "spark_streaming", "infra", "tests", "docs")


def files() -> list[str]:
    """Paths from the top of the repository."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.*")]
    return [str(path.relative_to(ROOT)) for path in (*found, *ROOT.glob("*.md"))]


def test_files_that_are_named_are_there() -> None:
    paths = files()
    ends = {
        "/".join(parts[at:])
        for path in paths
        for parts in [path.split("/")]
        for at in range(len(parts))
    }
    missing = [
        f"{path}: {name}"
        for path in paths
        if path.endswith((".py", ".md")) and "lab-notes" not in path and path != "CHANGELOG.md"
        for name in NAMED.findall((ROOT / path).read_text("utf-8"))
        if name not in ends and name not in NOT_HERE
    ]
    assert not missing, "\n".join(missing)
