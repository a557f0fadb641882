"""Goal: words that this project once used in a sense of its own do not come back.

Method: the words of all identifiers of the library, of the services and of their tests. What is
public keeps its name (keys of JSON, columns, settings, topics) and so does what the log encodes by
name; each of those that is an identifier, too, is an exception below, with its reason.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
FOLDERS: Final = ("libs", "services", "infra", "spark_streaming")
WORDS: Final[Mapping[str, str]] = {
    "lane": "queue (of the master), chunk producer (of Spark)",
    "lanes": "queues",
    "twin": "mirror (the table with the same rows under another key)",
    "twins": "mirrors",
    "fill": "backfill",
    "fills": "backfills",
    "moment": "context (CommitContext), snapshot_lsn, timestamp",
    "moments": "timestamps",
    "standing": "status, state",
    "standings": "statuses, states",
    "hasten": "a verb that says what is done",
    "whoever": "a noun",
}
ALLOWED: Final[Mapping[str, str]] = {
    "text.py: fill": "PostgreSQL's name of the argument of lpad",
    "node_blocks.py: fill": "takes values: it is no backfill",
    "session_values.py: fill": "takes values: it is no backfill",
    "verdict.py: fill": "text behind a line",
    "*: InvalidMoment": "an error of docs/reference/errors.md",
    "*: MomentOutOfRange": "an error of docs/reference/errors.md",
    "*: moment": "Column.moment, a key in the log",
    "*: moment_zone": "Column.moment_zone, a key in the log",
    "aggregates.py: _Moments": "of statistics",
    "aggregates.py: _more_moments": "of statistics",
    "json_forms_of_actions.py: lane": "a key of what is printed of a dead letter",
    "json_forms_of_actions.py: lane_offset": "a key of what is printed of a dead letter",
    "*: STANDING": "of a client that has not read for long: nothing moves",
}
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[a-z0-9]+")


def parts_of(name: str) -> set[str]:
    return {part.lower() for part in _PART.findall(name)}


def private_words(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, identifier and word for each identifier of `text` that has one of `WORDS` in it."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            for word in sorted(parts_of(token.string) & WORDS.keys()):
                yield token.start[0], token.string, word


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_identifier_has_a_private_word(folder: str) -> None:
    found = [
        f"{where}:{line}: {name}: write {WORDS[word]}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for where in [path.relative_to(ROOT).as_posix()]
        for line, name, word in private_words(path.read_text("utf-8"))
        if not {f"{path.name}: {name}", f"*: {name}"} & ALLOWED.keys()
    ]
    assert found == []


def test_a_word_is_found_in_whatever_case_it_is_written() -> None:
    text = "class BackfillLane:\n    LANE_MAX = _lane(airplane)\n"
    assert [(line, name) for line, name, _ in private_words(text)] == [
        (1, "BackfillLane"),
        (2, "LANE_MAX"),
        (2, "_lane"),
    ]


def test_no_exception_is_left_of_what_is_gone() -> None:
    text = {
        path: path.read_text("utf-8")
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
    }
    for allowed in ALLOWED:
        where, name = allowed.split(": ")
        files = [t for p, t in text.items() if where in ("*", p.name)]
        assert any(re.search(rf"\b{name}\b", each) for each in files), allowed
