"""Text → PostgreSQL's tree of each statement in it, by libpg_query.

The tree comes as JSON, which holds what was said and nothing else: of the two forms that
libpg_query has it is the faster one, and the other, protobuf, can't be read deeper than 100 levels.

⚠ libpg_query walks a tree by recursion in C and looks at no stack: a chain of 60,000 operators ends
the process. So a text that may hold one is measured before (`depth.py`).
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from postgast.native import lib

from leasehold.catalog.object_names import NAME_BYTES_MAX
from leasehold.model.errors import OutOfRange
from leasehold.sql.syntax.depth import (
    TOKENS_DEEP_MAX,
    may_be_copied,
    refuse_copies,
    refuse_depth,
    too_deep,
)
from leasehold.sql.syntax.failures import failure
from leasehold.sql.syntax.marks import Mark
from leasehold.sql.syntax.own_words import replace_own_words
from leasehold.sql.syntax.scanning import kinds_of, tokens_of
from leasehold.sql.syntax.source import TEXT_BYTES_MAX, Source

Body = dict[str, Any]
"""A node's fields by their names, as far as they are said."""

_MAY_BE_LONG: Final = re.compile(r"[\w$]{64}|\"[^\"]{32}")
_OTHERS_MAY_BE_LONG: Final = re.compile(r"[\w$]{16}|\"[^\"]{8}")
"""Of texts that are not ASCII: a character has up to four bytes. A quote in a name is two."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A statement that is parsed: the `kind` of its node, and its `body`. `begin` and `end` say
    where it stands in the source, in bytes from 0. `marks` are what was said in our own words, in
    order."""

    source: Source
    kind: str
    body: Body
    begin: int
    end: int
    marks: tuple[Mark, ...] = ()

    @property
    def text(self) -> str:
        return self.source.encoded[self.begin : self.end].decode()


def parse(text: str, bytes_max: int = TEXT_BYTES_MAX, before: str = "") -> tuple[Parsed, ...]:
    """The statements between semicolons, () for none. `before`: as of `Source`.

    Raises SyntaxInvalid and the others of `failures.py` with PostgreSQL's words and place;
    OutOfRange above `bytes_max` and for names above NAME_BYTES_MAX; TooComplex (54001) for what is
    nested deeper than can be read.
    """
    source = Source(text, bytes_max, before)
    if may_be_long(text):
        _refuse_long_names(source)
    is_long = len(source.encoded) > TOKENS_DEEP_MAX
    if is_long or may_be_copied(source):
        said = kinds_of(source)
        if is_long:
            refuse_depth(said, source)
        refuse_copies(said, source)
    written, marks = replace_own_words(source)
    found: list[Parsed] = []
    past = 0
    for raw in _tree(written, source)["stmts"]:
        begin = raw.get("stmt_location", 0)
        length = raw.get("stmt_len", 0)
        end = begin + length if length else len(written)
        ((kind, body),) = raw["stmt"].items()
        begin += _blanks(source.encoded, begin, end)
        end -= len(source.encoded[begin:end]) - len(source.encoded[begin:end].rstrip())
        first, past = past, bisect_left(marks, end, lo=past, key=attrgetter("begin"))
        own = marks[first:past]
        if own:
            begin = min(begin, own[0].begin)
        found.append(Parsed(source, kind, body, begin, end, own))
    return tuple(found)


def _blanks(written: bytes, begin: int, end: int) -> int:
    return len(written[begin:end]) - len(written[begin:end].lstrip())


def _tree(written: bytes, source: Source) -> Body:
    result = lib.pg_query_parse(written)
    try:
        if result.error:
            said = result.error.contents
            offset = source.of_character(said.cursorpos) if said.cursorpos > 0 else 0
            raise failure((said.message or b"").decode(errors="replace"), offset)
        tree: Body = json.loads(result.parse_tree)
    except RecursionError as error:
        raise too_deep() from error
    finally:
        lib.pg_query_free_parse_result(result)
    return tree


def may_be_long(text: str) -> bool:
    """Could a name in it have more than NAME_BYTES_MAX?"""
    pattern = _MAY_BE_LONG if text.isascii() else _OTHERS_MAY_BE_LONG
    return pattern.search(text) is not None


def _refuse_long_names(source: Source) -> None:
    """PostgreSQL cuts them and says so: whoever can say so has cut them (`long_names.py`)."""
    for token in tokens_of(source):
        if token.end - token.begin > NAME_BYTES_MAX and token.is_name:
            name, size = token.name, len(token.name.encode())
            if size > NAME_BYTES_MAX:
                raise OutOfRange(
                    f"name {name!r:.100} has {size} bytes; at most {NAME_BYTES_MAX} are allowed",
                    position=source.position(token.begin),
                )
