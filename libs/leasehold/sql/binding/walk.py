"""Going through bound trees, queries inside them included."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Final

from leasehold.model.budget import charge
from leasehold.model.errors import TooComplex
from leasehold.sql.binding import bound_tree
from leasehold.sql.binding.bound_tree import Aggregate, Apply, Bound, BoundSource, Field, JoinSource
from leasehold.sql.binding.planning_work import NODE_WORK, WALK_WORK

_NODES_AT_ONCE: Final = 64
"""Nodes between two charges."""

_NODES: Final = frozenset(
    kind
    for kind in vars(bound_tree).values()
    if isinstance(kind, type)
    and dataclasses.is_dataclass(kind)
    and kind.__module__ == bound_tree.__name__
)

_FIELDS: Final[dict[type, tuple[str, ...]]] = {
    kind: tuple(f.name for f in dataclasses.fields(kind)) for kind in _NODES
}


def _fields(kind: type) -> tuple[str, ...]:
    return _FIELDS[kind]


def children(node: Any) -> Iterator[Any]:
    """The nodes right inside one."""
    for name in _fields(type(node)):
        yield from _nodes(getattr(node, name))


def _nodes(value: Any) -> Iterator[Any]:
    if type(value) in _NODES:
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)


def walk(node: Any, enter: Callable[[Any], bool] = lambda node: True) -> Iterator[Any]:
    """A node and all inside it; not inside those that `enter` is False for."""
    charge(WALK_WORK)
    stack, left = [node], _NODES_AT_ONCE
    while stack:
        found = stack.pop()
        left -= 1
        if not left:
            charge(_NODES_AT_ONCE * NODE_WORK)
            left = _NODES_AT_ONCE
        yield found
        if enter(found):
            stack.extend(children(found))


def mapped(node: Any, change: Callable[[Any], Any]) -> Any:
    """The tree with `change` made to every node, from the leaves up."""
    if type(node) is tuple:
        return tuple(mapped(item, change) for item in node)
    if type(node) not in _NODES:
        return node
    charge(NODE_WORK)
    changed = {}
    for name in _fields(type(node)):
        before = getattr(node, name)
        after = mapped(before, change)
        if after is not before and after != before:
            changed[name] = after
    return change(dataclasses.replace(node, **changed) if changed else node)


def replaced(node: Any, change: Callable[[Any, bool], Any | None], *, inside: bool = False) -> Any:
    """The tree with what `change` gives in the place of a node, from the root down: what it
    gave is not gone through. It is told whether the node is inside a query of the tree."""
    if type(node) is tuple:
        return tuple(replaced(item, change, inside=inside) for item in node)
    if type(node) not in _NODES:
        return node
    found = change(node, inside)
    if found is not None:
        return found
    charge(NODE_WORK)
    inside = inside or isinstance(node, bound_tree.BoundQuery)
    changed = {}
    for name in _fields(type(node)):
        before = getattr(node, name)
        after = replaced(before, change, inside=inside)
        if after is not before and after != before:
            changed[name] = after
    return dataclasses.replace(node, **changed) if changed else node


def leaves(source: BoundSource | None) -> Iterator[Any]:
    """What FROM is made of."""
    if isinstance(source, JoinSource):
        yield from leaves(source.left)
        yield from leaves(source.right)
    elif source is not None:
        yield source


def relations_in(node: Any) -> frozenset[int]:
    """Return the relations of the fields in a tree."""
    return frozenset(f.relation for f in walk(node) if isinstance(f, Field))


def has_aggregate(node: Bound) -> bool:
    """Return whether there is an aggregate of this level in it, window functions not counted."""
    return any(
        isinstance(found, Aggregate) and found.over is None for found in walk(node, own_level)
    )


def has_window(node: Bound) -> bool:
    return any(
        isinstance(found, Aggregate) and found.over is not None for found in walk(node, own_level)
    )


def own_level(node: Any) -> bool:
    """What `walk` enters to leave queries inside out."""
    return not isinstance(node, bound_tree.BoundQuery)


def conjuncts(node: Bound | None) -> tuple[Bound, ...]:
    """The parts of a condition that are joined by AND."""
    if node is None:
        return ()
    if isinstance(node, bound_tree.Native) and node.word == "and":
        return tuple(part for child in node.arguments for part in conjuncts(child))
    return (node,)


COPIES_MAX: Final = 50_000
"""Nodes that a part of an expression stands for, where SQLite's text says it more than once: twice
on each of 20 levels would be a million times."""


def refuse_copies(times: int, at: int, *parts: Any) -> None:
    """Raise TooComplex (54001) for parts that stand `times` times and are too large for that."""
    nodes = 0
    for part in parts if times > 1 else ():
        for _ in walk(part):
            nodes += times
            if nodes > COPIES_MAX:
                raise TooComplex(
                    "the expression is too complex: it asks several times of a part that asks"
                    " several times of others; compute that in a query in FROM",
                    position=at,
                )


def draws(*parts: Any) -> bool:
    """Return whether one of the parts comes to another value each time that it is computed."""
    return any(
        isinstance(node, Apply) and node.function.volatility == "volatile"
        for part in parts
        for node in walk(part)
    )
