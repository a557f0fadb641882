"""The list of scenarios in `tests/SCENARIOS.md` names files and tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"`([a-z_/]+\.(?:py|toml))(?:::(test_\w+))?`")


def test_every_named_test_is_there() -> None:
    text = (TESTS / "SCENARIOS.md").read_text()
    missing = []
    named = NAMED.findall(text)
    for file, test in named:
        path = TESTS / file
        if not path.is_file() or (test and f"def {test}(" not in path.read_text()):
            missing.append(f"{file}::{test}" if test else file)
    assert missing == []
    assert len(named) > 40
