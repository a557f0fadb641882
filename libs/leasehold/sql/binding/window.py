"""What OVER (…) says → a bound window: its partition, order and frame."""

from __future__ import annotations

from math import isinf
from typing import TYPE_CHECKING

from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidFrame,
    UnknownObject,
    WindowingError,
)
from leasehold.sql.binding.bound_tree import OPEN, Bound, Frame, Key, Native, Over, Slot, Value
from leasehold.sql.binding.typing import as_key
from leasehold.sql.binding.walk import has_window
from leasehold.sql.functions.function import BIGINT, DOUBLE, INTERVAL, is_integer
from leasehold.sql.syntax import tree
from leasehold.values.dates import DAY_US
from leasehold.values.doubles import NAN
from leasehold.values.interval import span_of
from leasehold.values.types import FLOATS, Type

if TYPE_CHECKING:
    from leasehold.sql.binding.expressions import Expressions


def bind_over(self: Expressions, node: tree.Call) -> Over | None:
    window = node.over
    if window is None:
        return None
    window = _based(self, window)
    partition = tuple(as_key(self.settle(n)) for n in window.partition)
    order = self.bind_sort_keys(window.order)
    for part in (*partition, *(key.value for key in order)):
        if has_window(part):
            raise WindowingError("window functions can't be nested", position=node.at)
    return Over(partition, order, _frame(self, window, order))


def _based(self: Expressions, window: tree.Window) -> tree.Window:
    if not window.base:
        return window
    base = self.windows.get(window.base)
    if base is None:
        raise UnknownObject(f"window {window.base!r} does not exist", position=window.at)
    base = _based(self, base)
    plain = not (window.partition or window.order or window.frame)
    if plain:
        return base
    if window.partition or (window.order and base.order) or base.frame is not None:
        raise WindowingError(
            f"cannot override a clause of window {window.base!r}", position=window.at
        )
    return tree.Window(window.at, "", base.partition, window.order or base.order, window.frame)


def _frame(self: Expressions, window: tree.Window, order: tuple[Key, ...]) -> Frame | None:
    if window.frame is None:
        return None
    unit, start, end, exclusion = window.frame
    ranks = (
        "unbounded preceding",
        "preceding",
        "current row",
        "following",
        "unbounded following",
    )
    if start.kind == "unbounded following" or end.kind == "unbounded preceding":
        raise WindowingError("frame start or end is at the wrong side", position=window.at)
    if ranks.index(start.kind) > ranks.index(end.kind):
        raise WindowingError(
            f"frame starting from {start.kind} cannot have {end.kind} as its end",
            position=window.at,
        )
    if unit == "groups" and not order:
        raise WindowingError("GROUPS mode requires an ORDER BY clause", position=window.at)
    in_range = unit == "range" and (start.offset is not None or end.offset is not None)
    sorted_by = _range_kind(order, window.at) if in_range else None
    offsets = [
        None if bound.offset is None else _offset(self, bound.offset, sorted_by, window.at)
        for bound in (start, end)
    ]
    return Frame(unit, start.kind, offsets[0], end.kind, offsets[1], exclusion)


def _offset(self: Expressions, node: tree.Node, sorted_by: Type | None, at: int) -> Bound:
    """A number of rows or groups; with RANGE, of type `sorted_by`, how far its value may be away.
    A number for SQLite, which refuses negative ones and NULL when it runs."""
    part = self.bind(node)
    if sorted_by is None or is_integer(sorted_by):
        given = self.typing.kind_of(part)
        if sorted_by is not None and given != OPEN and not is_integer(given):
            raise _not_in_range(sorted_by, at, given)
        part = self.typing.convert(part, BIGINT, at)
        if not isinstance(part, Value | Slot):
            raise FeatureNotSupported(
                "a frame's offset must be a constant or a parameter", position=at
            )
        return part
    if sorted_by.name not in FLOATS and self.typing.kind_of(part) not in (OPEN, INTERVAL):
        raise _not_in_range(sorted_by, at, self.typing.kind_of(part))
    part = self.typing.convert(part, DOUBLE if sorted_by.name in FLOATS else INTERVAL, at)
    if not isinstance(part, Value):
        raise FeatureNotSupported(
            f"an offset of RANGE over {sorted_by} must be a constant", position=at
        )
    if part.value is None:
        return part
    if sorted_by.name in FLOATS:
        if part.value == NAN:
            raise InvalidFrame("a frame's offset must be a number, not NaN", position=at)
        if isinf(part.value):
            raise FeatureNotSupported("RANGE with an infinite offset is not supported", position=at)
        return part
    return Value(BIGINT, _distance(part.value, sorted_by, at))


def _distance(interval: str, sorted_by: Type, at: int) -> int:
    """Return an interval in what `sorted_by` is stored as: days, or microseconds. Raises
    FeatureNotSupported for one whose length differs."""
    months, days, microseconds = span_of(interval)
    if months:
        raise FeatureNotSupported(
            "RANGE with months or years is not supported: their length differs", position=at
        )
    if days and sorted_by.name == "timestamptz":
        raise FeatureNotSupported(
            "RANGE with days over timestamptz is not supported: their length differs by time zone;"
            " say hours",
            position=at,
        )
    whole = days * DAY_US + microseconds
    return whole // DAY_US if sorted_by.name == "date" else whole


def _range_kind(order: tuple[Key, ...], at: int) -> Type:
    """Return the type of the one value that RANGE with an offset is over. Raises WindowingError,
    FeatureNotSupported."""
    if len(order) != 1:
        raise WindowingError(
            "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
            position=at,
        )
    value = order[0].value
    if isinstance(value, Native) and value.word == "key":
        (value,) = value.arguments
    kind = value.kind
    if is_integer(kind) or kind.name in FLOATS or kind.name in ("date", "timestamp", "timestamptz"):
        return kind
    raise _not_in_range(kind, at)


def _not_in_range(kind: Type, at: int, offset: Type | None = None) -> FeatureNotSupported:
    beside = "" if offset is None else f" and offset type {offset}"
    return FeatureNotSupported(
        f"RANGE with offset PRECEDING/FOLLOWING is not supported for column type {kind}{beside}",
        position=at,
    )
