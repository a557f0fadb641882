"""An expression by itself, as descriptors keep it and requests say it: its tree, and its words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Final, cast

from leasehold.model.errors import SyntaxInvalid
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.accounting import location_of
from leasehold.sql.syntax.parsing import parse
from leasehold.sql.syntax.queries import Queries
from leasehold.sql.syntax.scanning import Token, offset_before, tokens_of
from leasehold.sql.syntax.source import TEXT_BYTES_MAX, Source

EXPRESSION_BYTES_MAX: Final = 4_096
_BEFORE: Final = "SELECT "
"""An expression stands by itself nowhere in PostgreSQL's grammar: it is read as what is
selected."""
_ALONE: Final = frozenset({"targetList", "limitOption", "op"})


@lru_cache(maxsize=1_024)
def expression_of(text: str) -> tree.Node:
    """The tree of an expression that is kept, or may be: what `read_expression` gives."""
    return read_expression(text, EXPRESSION_BYTES_MAX)


def read_expression(text: str, bytes_max: int) -> tree.Node:
    """The tree of an expression. Raises SyntaxInvalid, FeatureNotSupported and TooComplex with
    positions in the text, OutOfRange above `bytes_max`."""
    statements = parse(text, bytes_max, _BEFORE)
    if not statements or "targetList" not in statements[0].body:
        raise SyntaxInvalid("the text holds no expression", position=1)
    body = statements[0].body
    targets = [target["ResTarget"] for target in body["targetList"]]
    alone = len(statements) == len(targets) == 1 and body.keys() <= _ALONE
    if not alone or "name" in targets[0]:
        _refuse_more(text)
        second = location_of(body["targetList"][1:])
        source = statements[0].source
        offset = source.position(offset_before(source, second, ","))
        raise SyntaxInvalid('syntax error at or near ","', position=offset)
    return Queries(statements[0].source).expressions.expression(targets[0]["val"])


def _refuse_more(text: str) -> None:
    """Raises PostgreSQL's own error for what stands behind an expression, commas apart."""
    parse(f"{text}\n)", before=f"{_BEFORE}(")


def nodes_of(node: object) -> Iterator[tree.Node]:
    """A node and all that are within it, in the order of the text where operators stand between."""
    if isinstance(node, tuple):
        for part in node:
            yield from nodes_of(part)
    elif is_dataclass(node):
        if isinstance(node, tree.Located):
            yield cast(tree.Node, node)
        for one in fields(node):
            yield from nodes_of(getattr(node, one.name))


def begin_of(node: tree.Node) -> int:
    """Return where the first part of an expression stands: characters from 1."""
    return min(part.at for part in nodes_of(node))


def words_of(text: str) -> list[Token]:
    """The tokens of an expression. Raises what the scanner refuses."""
    return tokens_of(Source(text, TEXT_BYTES_MAX))
