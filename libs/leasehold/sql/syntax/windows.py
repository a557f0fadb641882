"""PostgreSQL's tree of OVER (…) and WINDOW → `tree.py`'s."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from leasehold.sql.syntax import tree
from leasehold.sql.syntax.accounting import Body, handles

if TYPE_CHECKING:
    from leasehold.sql.syntax.expressions import Expressions

_WINDOW: Final = handles(
    "WindowDef",
    *("name", "refname", "partitionClause", "orderClause", "frameOptions"),
    *("startOffset", "endOffset", "location"),
)
_FRAME_UNITS: Final = {0x2: "range", 0x4: "rows", 0x8: "groups"}
_FRAME_STARTS: Final = {
    0x20: "unbounded preceding",
    0x80: "unbounded following",
    0x200: "current row",
    0x800: "preceding",
    0x2000: "following",
}
_FRAME_ENDS: Final = {
    0x40: "unbounded preceding",
    0x100: "unbounded following",
    0x400: "current row",
    0x1000: "preceding",
    0x4000: "following",
}
_FRAME_EXCLUSIONS: Final = {0x8000: "current row", 0x10000: "group", 0x20000: "ties"}
"""As PostgreSQL packs a frame into a number (frameOptions)."""


def read_over(expressions: Expressions, body: Body) -> tree.Window:
    """Return the window of OVER, which may be the name of one."""
    if "name" not in body:
        return read_window(expressions, body)
    expressions.check("WindowDef", body, _WINDOW)
    return tree.Window(expressions.at(body), body["name"])


def read_window(expressions: Expressions, body: Body) -> tree.Window:
    """Return the window of OVER, or one of WINDOW, whose name is the caller's to take."""
    expressions.check("WindowDef", body, _WINDOW)
    at = expressions.at(body)
    base = body.get("refname", "")
    partition = expressions.listed(body.get("partitionClause", []))
    order = expressions.order_by(body.get("orderClause", []))
    return tree.Window(at, base, partition, order, _frame(expressions, body))


def _frame(expressions: Expressions, body: Body) -> tuple[str, tree.Bound, tree.Bound, str] | None:
    options = body.get("frameOptions", 0)
    if not options & 1:
        return None
    return (
        _chosen(_FRAME_UNITS, options),
        _bound(expressions, _chosen(_FRAME_STARTS, options), body.get("startOffset")),
        _bound(expressions, _chosen(_FRAME_ENDS, options), body.get("endOffset")),
        _chosen(_FRAME_EXCLUSIONS, options),
    )


def _bound(expressions: Expressions, kind: str, offset: Body | None) -> tree.Bound:
    return tree.Bound(kind, None if offset is None else expressions.expression(offset))


def _chosen(words: dict[int, str], options: int) -> str:
    return next((word for bit, word in words.items() if options & bit), "")
