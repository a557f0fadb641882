"""Arrays of constants in an expression that is to be kept, said in words that every release reads.

PostgreSQL writes a IN ('x', 'y') as a = ANY (ARRAY['x'::text, 'y'::text]), in catalogs and dumps.
Here the list is kept; an array that stands by itself becomes the constant that it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from leasehold.sql.functions.polymorphic import quote_literal
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.kept import expression_of, words_of
from leasehold.sql.syntax.marks import find_end
from leasehold.sql.syntax.scanning import Token

_LISTS: Final = {
    ("=", "any"): "IN",
    ("=", "some"): "IN",
    ("<>", "all"): "NOT IN",
    ("!=", "all"): "NOT IN",
}
_OPENING: Final = frozenset("([")
_CLOSING: Final = frozenset(")]")


class _Found(NamedTuple):
    """An array. `items`: their words; `casts`: the types of its elements to which it is cast, in
    turn; `end`: the number of the token behind it."""

    items: tuple[str, ...]
    casts: tuple[str, ...]
    end: int


def with_plain_arrays(text: str) -> str:
    """Return an expression with lists in the place of comparisons with an array's elements, and
    constants in that of arrays; as it is where elements are no constants. Raises what the scanner
    refuses."""
    if "array" not in text.lower():
        return text
    reader = _Reader(text)
    parts: list[bytes] = []
    at = index = 0
    while index < len(reader.tokens):
        put = reader.list_at(index) or reader.constant_at(index)
        if put is None:
            index += 1
            continue
        words, end = put
        parts += (reader.encoded[at : reader.tokens[index].begin], words.encode())
        at, index = reader.tokens[end - 1].end, end
    return b"".join((*parts, reader.encoded[at:])).decode()


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens: Sequence[Token] = words_of(text)
        self.encoded = text.encode()

    def list_at(self, index: int) -> tuple[str, int] | None:
        """Return the list that stands for a comparison whose sign is there, and its end."""
        words = _LISTS.get((self._word(index), self._word(index + 1)))
        if words is None or self._word(index + 2) != "(":
            return None
        found = self._array(index + 3)
        if found is None or not found.items or self._word(found.end) != ")":
            return None
        items = (_cast(item, found.casts) for item in found.items)
        return f"{words} ({', '.join(items)})", found.end + 1

    def constant_at(self, index: int) -> tuple[str, int] | None:
        """Return the constant that stands for an array that begins there, and its end."""
        if self._word(index) != "array":
            return None
        found = self._array(index)
        if found is None:
            return None
        kind = found.casts[-1] if found.casts else _kind_of(found.items)
        values = [_value_of(item) for item in found.items]
        if kind is None or any(value is None for value in values):
            return None
        listed = ",".join(value for value in values if value is not None)
        return f"{quote_literal('{' + listed + '}')}::{kind}[]", found.end

    def _array(self, index: int) -> _Found | None:
        """Return the array of constants that begins at a token, with its casts."""
        if self._word(index) == "(":
            inner = self._array(index + 1)
            if inner is None or self._word(inner.end) != ")":
                return None
            return self._with_casts(inner._replace(end=inner.end + 1))
        if self._word(index) != "array" or self._word(index + 1) != "[":
            return None
        items: list[str] = []
        begin = end = index + 2
        depth = 0
        while end < len(self.tokens):
            word = self._word(end)
            if depth == 0 and word in (",", "]"):
                if end > begin:
                    items.append(self._text(begin, end))
                begin = end + 1
                if word == "]":
                    break
            depth += (word in _OPENING) - (word in _CLOSING)
            end += 1
        nested = any(item.startswith("[") for item in items)
        if nested or not all(_is_constant(expression_of(item)) for item in items):
            return None
        return self._with_casts(_Found(tuple(items), (), end + 1))

    def _with_casts(self, found: _Found) -> _Found:
        """Return an array with the casts behind it, to types of arrays."""
        while self._word(found.end) == "::":
            begin = end = found.end + 1
            while self._word(end) not in ("[", "", ")", ",", "::"):
                end = find_end(self.tokens, end) if self._word(end) == "(" else end + 1
            if (self._word(end), self._word(end + 1)) != ("[", "]") or end == begin:
                break
            found = found._replace(casts=(*found.casts, self._text(begin, end)), end=end + 2)
        return found

    def _word(self, index: int) -> str:
        return self.tokens[index].word if index < len(self.tokens) else ""

    def _text(self, begin: int, end: int) -> str:
        return self.encoded[self.tokens[begin].begin : self.tokens[end - 1].end].decode()


def _cast(item: str, casts: Sequence[str]) -> str:
    for kind in casts:
        item = f"({item})::{kind}"
    return item


def _is_constant(node: tree.Node) -> bool:
    if isinstance(node, tree.Unary):
        return node.sign == "-" and _is_constant(node.operand)
    if isinstance(node, tree.Cast):
        return not node.target.array and _is_constant(node.operand)
    return isinstance(node, tree.Constant)


def _value_of(item: str) -> str | None:
    """Return a constant as an array's text has it; None: it is not told by itself, as a number that
    is cast to another type."""
    node, sign = expression_of(item), ""
    while isinstance(node, tree.Cast):
        if not isinstance(node.operand, tree.Constant | tree.Cast):
            return None
        node = node.operand
    if isinstance(node, tree.Unary):
        node, sign = node.operand, "-"
    if not isinstance(node, tree.Constant):
        return None
    match node.kind:
        case "null":
            return "NULL"
        case "string":
            escaped = node.text.replace("\\", "\\\\").replace('"', '\\"')
            return f'"{escaped}"'
        case "number":
            return f"{sign}{node.text}"
    return node.kind


def _kind_of(items: Sequence[str]) -> str | None:
    """Return the type of an array's elements, all of one kind; None: it is not known."""
    kinds = {_kind(expression_of(item)) for item in items} - {""}
    return kinds.pop() if len(kinds) == 1 else None


def _kind(node: tree.Node) -> str | None:
    """Return the type of a constant, "" of NULL."""
    match node:
        case tree.Cast(target=target):
            return None if target.modifiers else target.name
        case tree.Unary(operand=operand):
            return _kind(operand)
        case tree.Constant(kind="null"):
            return ""
        case tree.Constant(kind="string"):
            return "text"
        case tree.Constant(kind="number", text=text):
            return "numeric" if set(text) & set(".eE") or len(text) > 9 else "integer"
    return "boolean"
