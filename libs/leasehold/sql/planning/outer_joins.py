"""Tables of one FROM, and what is known of those of their rows that matter to what comes out.

A row *matters* if the result could be another one without it, or with another one in its place. Of
a table that a join leaves without a partner (filled with NULLs) a row matters also where it keeps
that from happening: so conditions on such a table itself say nothing of it unless they are the
join's own, or refuse NULLs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leasehold.sql.binding.bound_tree import Bound, BoundSource, JoinSource, TableSource
from leasehold.sql.binding.walk import conjuncts, leaves, relations_in, walk
from leasehold.sql.planning.indexes import refuses_nulls


@dataclass(frozen=True, slots=True)
class Seat:
    """A table of FROM. A row of it that matters meets `conditions`, with some rows of the other
    tables; and every row of the result that shows one of it (not NULLs) meets `joined`. `extended`:
    there may be rows that show NULLs."""

    source: TableSource
    conditions: tuple[Bound, ...]
    joined: tuple[Bound, ...]
    extended: bool


@dataclass(frozen=True, slots=True)
class JoinInputs:
    """The tables of one FROM. `holds` are conditions that every row of FROM meets that counts."""

    all: tuple[Seat, ...]
    holds: tuple[Bound, ...]


def join_inputs_of(source: BoundSource, where: Sequence[Bound]) -> JoinInputs:
    found: list[Seat] = []
    holds = list(where)
    _seat(source, tuple(where), (), found, holds, extended=False)
    return JoinInputs(tuple(found), tuple(holds))


def _seat(
    node: BoundSource,
    conditions: tuple[Bound, ...],
    joined: tuple[Bound, ...],
    found: list[Seat],
    holds: list[Bound],
    *,
    extended: bool,
) -> None:
    if isinstance(node, TableSource):
        found.append(Seat(node, conditions, joined, extended))
    if not isinstance(node, JoinSource):
        return
    on = conjuncts(node.condition)
    kind = _kind(node, conditions)
    if kind in ("inner", "cross"):
        if not extended:
            holds += on
        for side in (node.left, node.right):
            _seat(side, (*conditions, *on), (*joined, *on), found, holds, extended=extended)
    elif kind == "full":
        for side in (node.left, node.right):
            _seat(side, _apart(conditions, node), joined, found, holds, extended=True)
    else:
        kept, other = (node.left, node.right) if kind == "left" else (node.right, node.left)
        _seat(kept, conditions, joined, found, holds, extended=extended)
        within = (*_apart(conditions, other), *on)
        _seat(other, within, (*joined, *on), found, holds, extended=True)


def _kind(join: JoinSource, conditions: tuple[Bound, ...]) -> str:
    """What the join comes to where conditions refuse rows that it has filled with NULLs."""

    def needed(side: BoundSource) -> bool:
        relations = _relations(side)
        return any(refuses_nulls(condition, relations) for condition in conditions)

    left = join.kind in ("left", "inner", "cross") or needed(join.left)
    right = join.kind in ("right", "inner", "cross") or needed(join.right)
    if left and right:
        return "inner"
    return "left" if left else "right" if right else "full"


def _apart(conditions: tuple[Bound, ...], node: BoundSource) -> tuple[Bound, ...]:
    """Return the conditions that say nothing of what is in there."""
    relations = _relations(node)
    return tuple(c for c in conditions if not relations_in(c) & relations)


def _relations(source: BoundSource) -> frozenset[int]:
    return frozenset(leaf.relation for leaf in leaves(source))


def has_outer_join(source: BoundSource) -> bool:
    return any(
        isinstance(node, JoinSource) and node.kind not in ("inner", "cross")
        for node in walk(source)
    )
