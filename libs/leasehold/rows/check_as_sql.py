"""A CHECK as a condition that SQLite computes by itself, for those of which it is known that it
comes to what the compiled expression does.

These are comparisons of whole numbers, booleans and texts with each other and with constants, IN,
BETWEEN, IS NULL, and AND, OR, NOT over them. Such values are stored as SQLite's own, in columns
without an affinity and under its plain order by bytes, which is that of letters' numbers; both know
three truth values; and none of it can fail on a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.kept import expression_of
from leasehold.values.types import INTEGER_BITS

_SIGNS: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})
_JOINED: Final = {"and": " AND ", "or": " OR "}
_DIGITS: Final = frozenset("0123456789")
_NUMBER, _BOOLEAN, _TEXT = "number", "boolean", "text"
_KINDS: Final = {
    **dict.fromkeys(INTEGER_BITS, _NUMBER),
    "boolean": _BOOLEAN,
    "text": _TEXT,
    "varchar": _TEXT,
}
_NUMBER_MAX: Final = (1 << 63) - 1


class _NotKnownError(Exception):
    """An expression has a part of which it is not known what SQLite makes of it."""


def write_condition(
    descriptor: Descriptor, check: Check, column_in_sql: Callable[[int], str]
) -> str | None:
    """Return SQL that is 1, 0 or NULL for a row as the check's condition is; None: it has to be
    computed by the compiled expression. `column_in_sql`: an element's column, "NULL" where there is
    none. Nothing of the check's text is in it but numbers."""
    shown = descriptor.showing(check.columns)
    try:
        return _Writer(shown, column_in_sql).condition(expression_of(check.expression))
    except _NotKnownError:
        return None


class _Writer:
    def __init__(self, descriptor: Descriptor, column_in_sql: Callable[[int], str]) -> None:
        self._descriptor = descriptor
        self._column_in_sql = column_in_sql

    def condition(self, node: tree.Node) -> str:
        match node:
            case tree.Logic(word="not", parts=(part,)):
                return f"(NOT {self.condition(part)})"
            case tree.Logic(word=word, parts=parts) if word in _JOINED:
                return f"({_JOINED[word].join(map(self.condition, parts))})"
            case tree.Test(operand=tree.Name() as name, what="null", negated=negated):
                _, column = self._column(name)
                return f"({column} IS {'NOT ' * negated}NULL)"
            case tree.Binary(sign=sign, left=left, right=right) if sign in _SIGNS:
                one, other = self._alike(left, right)
                return f"({one} {sign} {other})"
            case tree.Between(symmetric=False, negated=negated):
                value, least, most = self._alike(node.operand, node.low, node.high)
                return f"({value} {'NOT ' * negated}BETWEEN {least} AND {most})"
            case tree.InList(operand=operand, items=items, negated=negated):
                value, *among = self._alike(operand, *items)
                return f"({value} {'NOT ' * negated}IN ({', '.join(among)}))"
            case tree.Name():
                kind, column = self._column(node)
                if kind == _BOOLEAN:
                    return column
        raise _NotKnownError

    def _alike(self, *nodes: tree.Node) -> list[str]:
        """Return operands of one kind, the first of which is a column: that says what an open
        constant is read as."""
        found = [self._operand(node) for node in nodes]
        kind = found[0][0]
        if not isinstance(nodes[0], tree.Name) or any(other != kind for other, _ in found):
            raise _NotKnownError
        return [text for _, text in found]

    def _operand(self, node: tree.Node) -> tuple[str, str]:
        match node:
            case tree.Name():
                kind, column = self._column(node)
                if kind:
                    return kind, column
            case tree.Constant(kind="number", text=text):
                digits = text.removeprefix("-")
                if digits and _DIGITS.issuperset(digits) and int(digits) <= _NUMBER_MAX:
                    return _NUMBER, str(int(text))
            case tree.Constant(kind="string", text=text):
                return _TEXT, f"CAST(x'{text.encode().hex()}' AS TEXT)"
            case tree.Constant(kind=("true" | "false") as word):
                return _BOOLEAN, str(int(word == "true"))
        raise _NotKnownError

    def _column(self, node: tree.Name) -> tuple[str, str]:
        """Return the kind of a column's values, "" for one that is not known, and the column."""
        if len(node.parts) != 1:
            raise _NotKnownError
        column = self._descriptor.column(node.parts[0])
        return _KINDS.get(column.type.name, ""), self._column_in_sql(column.element_id)
