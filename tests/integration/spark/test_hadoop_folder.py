"""A folder on a Hadoop file system, by the JVM that Spark has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

CALLS: Final[tuple[tuple[Any, tuple[Any, ...]], ...]] = (
    ([], ("names", "")),
    (None, ("read", "none")),
    (False, ("exists", "none")),
    (None, ("make", "runs/1-1")),
    (True, ("exists", "runs/1-1")),
    (None, ("write", "runs/1-1/totals.json", "first, and longer")),
    (None, ("write", "runs/1-1/totals.json", "second")),
    ("second", ("read", "runs/1-1/totals.json")),
    (None, ("write", "made/on/the/way", "")),
    ("", ("read", "made/on/the/way")),
    (["made", "runs"], ("names", "")),
    (["totals.json"], ("names", "runs/1-1")),
    ([], ("names", "none")),
    (None, ("remove", "runs")),
    (None, ("remove", "none")),
    (False, ("exists", "runs/1-1/totals.json")),
    (["made"], ("names", "")),
)
"""What is to come of each call, in their order."""
DEADLINE_S = 240


def test_a_folder_does_the_same_on_every_file_system(tmp_path: Path) -> None:
    """Goal: a whole file in the place of an earlier one, nothing for what is not there, folders
    with all that is in them; on `file:`, and on one that nobody reaches but by Hadoop's API. A file
    system that is not there is told of in words."""
    (tmp_path / "behind").mkdir()
    places = (f"file:{tmp_path}/a b", "viewfs://shared/leasehold/x", "viewfs://nowhere/leasehold")
    calls = [[place, *call] for place in places[:2] for _, call in CALLS]
    calls.append([places[2], "names", ""])
    ended = subprocess.run(
        [sys.executable, "-m", "tests.support.cluster.folder_talk", str(tmp_path)],
        input="".join(json.dumps(call) + "\n" for call in calls),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    *answers, last = map(json.loads, ended.stdout.splitlines())
    for call, answer, (wanted, _) in zip(calls, answers, CALLS * 2, strict=False):
        assert answer == wanted, call
    assert len(answers) == 2 * len(CALLS)
    assert last.startswith("SparkUnavailable: viewfs://nowhere/leasehold could not be used: ")
    assert (tmp_path / "a b" / "made" / "on" / "the" / "way").is_file()
    assert (tmp_path / "behind" / "x" / "made" / "on" / "the" / "way").is_file()
