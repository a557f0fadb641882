"""The binder of (begin, end) OVERLAPS (begin, end), whose ends may be lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from leasehold.model.errors import FeatureNotSupported, UnknownFunction
from leasehold.sql.binding.bound_tree import OPEN, Apply, Bound
from leasehold.sql.binding.walk import draws
from leasehold.sql.functions.function import (
    BOOLEAN,
    DATE,
    INTERVAL,
    TIMESTAMP,
    TIMESTAMPTZ,
    Function,
)
from leasehold.sql.syntax import tree

if TYPE_CHECKING:
    from leasehold.sql.binding.expressions import Expressions

NAME: Final = "overlaps"
_DATETIMES: Final = frozenset({DATE, TIMESTAMP, TIMESTAMPTZ})


def _ordered(begin: int | None, end: int | None) -> tuple[int | None, int | None]:
    """What is not known stands behind."""
    if begin is None or (end is not None and begin > end):
        return end, begin
    return begin, end


def _overlap(a: int | None, b: int | None, c: int | None, d: int | None) -> int | None:
    """A length of nothing overlaps what it is within, or begins with; NULL where an end that is
    not known would decide."""
    begin, end = _ordered(a, b)
    other, other_end = _ordered(c, d)
    if begin is None or other is None:
        return None
    if begin == other:
        return None if end is None or other_end is None else 1
    if begin > other:
        begin, end, other, other_end = other, other_end, begin, end
    if end is None:  # of what begins earlier
        return None
    if other < end:
        return 1
    return None if other_end is None else 0


_FUNCTIONS: Final = {
    kind: Function(NAME, (kind,) * 4, BOOLEAN, _overlap, strict=False)
    for kind in (TIMESTAMP, TIMESTAMPTZ)
}


def bind_overlaps(self: Expressions, node: tree.Call) -> Bound:
    parts = [self.bind(argument) for argument in node.arguments]
    kinds = [self.typing.kind_of(part) for part in parts]
    timestamps = [k for n, k in enumerate(kinds) if k != OPEN and not (n % 2 and k == INTERVAL)]
    if len(parts) != 4 or not timestamps or not _DATETIMES.issuperset(timestamps):
        shown = ", ".join(str(kind) for kind in kinds)
        raise UnknownFunction(f"function overlaps({shown}) does not exist", position=node.at)
    if (DATE in timestamps and TIMESTAMP not in timestamps) or TIMESTAMPTZ in timestamps:
        of = TIMESTAMPTZ  # of both that a date may become the preferred one
    else:
        of = TIMESTAMP
    made: list[Bound] = []
    for ordinal, (part, kind) in enumerate(zip(parts, kinds, strict=True)):
        if kind != INTERVAL:
            made.append(self.typing.convert(part, of, node.at))
            continue
        if draws(made[ordinal - 1]):
            raise FeatureNotSupported(
                "OVERLAPS with a length behind a value that changes from call to call is not"
                " supported: compute it in a query in FROM",
                position=node.at,
            )
        made.append(self.typing.operate("+", made[ordinal - 1], part, node.at))
    return Apply(_FUNCTIONS[of], tuple(made), BOOLEAN)
