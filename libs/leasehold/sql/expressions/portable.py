"""Expressions that come to the same value wherever and whenever they are computed.

What a node derives from its own rows is compared with what the others derive before anybody sees
it. What a reader makes of an old image is compared by nobody, years later perhaps, with another
release of this library, of Python, of the C library and of the time zone database. So only what
rests on none of those is left to readers; all else is computed once, and told.
"""

from __future__ import annotations

from typing import Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.model.errors import Refused
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.kept import expression_of, nodes_of
from leasehold.values.types import Type, parse_type

PORTABLE_TYPES: Final = frozenset(
    {
        *("smallint", "integer", "bigint", "numeric", "double precision", "boolean"),
        *("text", "varchar", "char", "uuid", "date"),
    }
)
"""Types whose casts into each other rest on nothing but their values. A timestamp is rounded and
shown by rules of its own; jsonb and arrays hold more than one value."""
_SIGNS: Final = frozenset({"+", "-", "*", "/", "%", "||", "=", "<>", "!=", "<", "<=", ">", ">="})
_CALLS: Final = frozenset(
    {
        *("abs", "coalesce", "nullif", "mod", "div", "sign", "round", "trunc", "floor", "ceil"),
        *("length", "char_length", "octet_length", "substr", "substring", "left", "right"),
        *("reverse", "strpos", "position", "split_part", "starts_with"),
        *("btrim", "ltrim", "rtrim"),
    }
)
"""Functions that the library computes by itself: none of an approximation by the C library, of
letters' cases, which a later Unicode may have otherwise, or of a pattern. ⚠ And none that makes
long texts of short ones: nobody counts what nodes compute of a range, and users wait meanwhile."""
_SHAPES: Final = (
    *(tree.Constant, tree.Name, tree.Call, tree.Unary, tree.Binary, tree.Logic, tree.Test),
    *(tree.Distinct, tree.Between, tree.InList, tree.Case, tree.Cast),
)


def is_portable(text: str, descriptor: Descriptor, kind: Type) -> bool:
    """Say whether an expression over public columns of `descriptor` gives the same value of type
    `kind` for the same row for good, or the same refusal."""
    if kind.name not in PORTABLE_TYPES:
        return False
    try:
        return all(_is_portable(node, descriptor) for node in nodes_of(expression_of(text)))
    except Refused:
        return False


def _is_portable(node: object, descriptor: Descriptor) -> bool:
    match node:
        case tree.Name(parts=parts):
            return descriptor.column(parts[-1]).type.name in PORTABLE_TYPES
        case tree.Call(name=name, star=star, distinct=distinct, order=order):
            plain = not (star or distinct or order or node.filter or node.over)
            return plain and name in _CALLS
        case tree.Unary(sign=sign) | tree.Binary(sign=sign):
            return sign in _SIGNS
        case tree.TypeName(name=name, array=array):
            return not array and parse_type(name).name in PORTABLE_TYPES
    return isinstance(node, _SHAPES)
