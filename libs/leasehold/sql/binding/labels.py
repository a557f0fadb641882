"""The name of a result's column that the text gives no name to, as PostgreSQL chooses it."""

from __future__ import annotations

from typing import Final

from leasehold.catalog.definitions import PG_NAMES
from leasehold.sql.syntax import tree

UNNAMED: Final = "?column?"


def label_of(node: tree.Node) -> str:
    return _label(node)[0] or UNNAMED


def _label(node: tree.Node) -> tuple[str, int]:
    """Return a name and how good it is: 2 for a name of the text, 1 for that of a type or CASE, 0
    for none."""
    match node:
        case tree.Name():
            return node.parts[-1], 2
        case tree.Call():
            return node.name.rpartition(".")[2], 2
        case tree.Cast():
            name, strength = _label(node.operand)
            if strength > 1:
                return name, strength
            return PG_NAMES.get(node.target.name, node.target.name), 1
        case tree.Collated():
            return _label(node.operand)
        case tree.Case():
            name, strength = ("", 0) if node.default is None else _label(node.default)
            return (name, strength) if strength > 1 else ("case", 1)
        case tree.SubQuery(exists=True):
            return "exists", 2
        case tree.SubQuery():
            return _of_query(node.query), 2
        case tree.RowOf():
            return "row", 2
        case tree.ArrayOf() | tree.ArrayQuery():
            return "array", 2
        case tree.Subscript():
            return _label(node.array)
    return "", 0


def _of_query(query: tree.Query) -> str:
    body = query.body
    while isinstance(body, tree.SetOperation):
        body = body.left.body
    if isinstance(body, tree.Values):
        return "column1"
    target = body.targets[0] if body.targets else None
    if target is None:
        return UNNAMED
    return target.label or ("" if isinstance(target.node, tree.Star) else label_of(target.node))
