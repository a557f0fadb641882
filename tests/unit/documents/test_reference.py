"""Goal: docs/reference says what the code says, and leaves no setting out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from infra.reference import settings

ROOT = Path(__file__).parents[3]
SOURCES = ("libs", "services", "spark_streaming", "infra")
ERRORS_LEAST = 100
VARIABLE = re.compile(r"\bLEASEHOLD_[A-Z][A-Z_]*[A-Z]\b")


def test_no_page_is_stale() -> None:
    """In a process of its own: what other tests import adds errors to the tree."""
    done = subprocess.run(
        [sys.executable, "-m", "infra.reference", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_variable_that_the_sources_name_is_told() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")
    files = [path for folder in SOURCES for path in (ROOT / folder).rglob("*.py")]
    files += [ROOT / "Makefile", *(ROOT / "infra").glob("*.sh")]
    named = {name for path in files for name in VARIABLE.findall(path.read_text("utf-8"))}
    told = set(VARIABLE.findall(page))
    # A word that only begins some of them (`LEASEHOLD_SQL`_TLS_CERT and _KEY) is no variable.
    parts = {name for name in named if any(other.startswith(f"{name}_") for other in told)}
    given = named - told - parts
    assert not {name for name in given if name.removesuffix("_FILE") not in told}
    assert settings.names() <= told


def test_every_error_says_when_it_comes() -> None:
    """A name alone does not tell a person who meets the code for the first time."""
    page = (ROOT / "docs" / "reference" / "errors.md").read_text("utf-8")
    table = page.partition("<!-- generated: errors -->")[2].partition("<!-- end -->")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > ERRORS_LEAST
    assert [(row[0], row[2]) for row in rows if not row[3].strip()] == []
