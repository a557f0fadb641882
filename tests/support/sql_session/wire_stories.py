"""What clients say to a whole session, and the answers: held to our sessions in `test_wire_stories`
and to a real PostgreSQL in `tests/integration/test_wire_and_postgres`.

A line that begins with | is of messages, with a Sync at their end; any other one is a simple Query.
Under it stands the answer in the words of `wire_words`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.support.pgwire.wire_words import SYNC, bind, close, describe, execute, parse, query
from tests.support.sql_session import wire_blocks, wire_cursors, wire_results

MADE: Final = (
    "drop table if exists t",
    "create table t (id int primary key, a int)",
    "insert into t values (1, 10), (2, 20), (3, 30)",
)
"""Before each story."""
_MESSAGE: Final = re.compile(r"(\w+)( \w+)?\((\w*)(?:, (\w+))?\) ?(.*)")


class Turn(NamedTuple):
    said: str
    answer: str

    @property
    def messages(self) -> list[bytes]:
        if not self.said.startswith("|"):
            return [query(self.said)]
        return [*map(_message, self.said[2:].split(" | ")), SYNC]


class Story(NamedTuple):
    name: str
    turns: tuple[Turn, ...]


def _message(said: str) -> bytes:
    """`parse(f) select 1`, `bind(p, f) 1 2`, `execute(p, 3)`, `describe portal(p)`."""
    found = _MESSAGE.fullmatch(" ".join(said.split()))
    assert found is not None, said
    verb, what, name, second, rest = found.groups()
    match verb:
        case "parse":
            return parse(rest, name)
        case "bind":
            return bind(*rest.split(), portal=name, name=second or "")
        case "execute":
            return execute(name, int(second or 0))
    made = {"describe": describe, "close": close}[verb]
    return made(name, portal=what == " portal")


def stories() -> Iterator[Story]:
    told = f"{wire_blocks.TOLD}{wire_cursors.TOLD}{wire_results.TOLD}"
    told = told.replace("{70}", "a" * 70).replace("{63}", "a" * 63)
    for text in told.removeprefix("# ").split("\n# "):
        name, *lines = text.strip().splitlines()
        pairs = zip(lines[::2], lines[1::2], strict=True)
        yield Story(name, tuple(Turn(said.strip(), " ".join(a.split())) for said, a in pairs))


STORIES: Final = (*stories(),)
