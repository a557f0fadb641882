"""Calls with words between their arguments: EXTRACT(year FROM day), TRIM(both FROM t)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from leasehold.model.errors import SyntaxInvalid
from leasehold.sql.precedence import MATCH
from leasehold.sql.query_lexer import NAME, STRING, WORD, Words
from leasehold.sql.syntax.tree import Call, Constant, Node


class Operands(Protocol):
    """Reads them; `lowest`: of operators that bind at least so strongly (precedence.py)."""

    words: Words

    def expression(self, lowest: int = ...) -> Node: ...

    def listed(self) -> tuple[Node, ...]: ...


def _extract(said: Operands) -> Node:
    words = said.words
    at = words.position
    words.expect("extract", "(")
    field = words.advance()
    if field.kind not in (WORD, NAME, STRING):
        raise SyntaxInvalid(f"syntax error at or near {field.source!r:.80}", position=field.at)
    words.expect("from")
    operand = said.expression()
    words.expect(")")
    return Call(at, "extract", (Constant(field.at, "string", field.text.lower()), operand))


def _substring(said: Operands) -> Node:
    words = said.words
    at = words.position
    words.advance()
    words.expect("(")
    operand = said.expression()
    if words.take(","):
        rest = said.listed()
        words.expect(")")
        return Call(at, "substring", (operand, *rest))
    if words.at("similar"):
        words.refuse("SUBSTRING … SIMILAR")
    start: Node | None = None
    length: Node | None = None
    while words.said() in ("from", "for"):
        if words.take("from") and start is None:
            start = said.expression()
        elif words.take("for") and length is None:
            length = said.expression()
        else:
            raise words.unexpected()
    words.expect(")")
    if start is None and length is None:
        return Call(at, "substring", (operand,))
    first = Constant(at, "number", "1") if start is None else start
    rest = (first,) if length is None else (first, length)
    return Call(at, "substring", (operand, *rest))


def _position(said: Operands) -> Node:
    words = said.words
    at = words.position
    words.expect("position", "(")
    sought = said.expression(MATCH + 1)
    words.expect("in")
    operand = said.expression(MATCH + 1)
    words.expect(")")
    return Call(at, "position", (operand, sought))


def _trim(said: Operands) -> Node:
    words = said.words
    at = words.position
    words.expect("trim", "(")
    names = {"both": "btrim", "leading": "ltrim", "trailing": "rtrim"}
    name = names[words.advance().text] if words.said() in names else "btrim"
    if words.take("from"):
        arguments = said.listed()
    else:
        arguments = said.listed()
        if words.take("from"):
            arguments = (*said.listed(), *arguments)
    words.expect(")")
    return Call(at, name, arguments)


def _overlay(said: Operands) -> Node:
    words = said.words
    at = words.position
    words.expect("overlay", "(")
    found = [said.expression()]
    for word in ("placing", "from"):
        words.expect(word)
        found.append(said.expression())
    if words.take("for"):
        found.append(said.expression())
    words.expect(")")
    return Call(at, "overlay", tuple(found))


WORDED: Final[dict[str, Callable[[Operands], Node]]] = {
    "extract": _extract,
    "substring": _substring,
    "position": _position,
    "trim": _trim,
    "overlay": _overlay,
}
