"""The wire forms of a table's elements."""

from __future__ import annotations

from typing import Any, Final

from leasehold.catalog.elements import (
    Check,
    Column,
    CommitContext,
    Computed,
    Derived,
    ForeignKey,
    Index,
    Lock,
    Missing,
    OnChange,
    Source,
)
from leasehold.catalog.sequence import Numbering
from leasehold.catalog.states import State
from leasehold.catalog.wire_form import AS_LIST, Field, WireForm, required, sparse, unless_none
from leasehold.values.types import type_from_wire, type_to_wire


def state_label(state: State) -> str:
    return state.label


def state_of(label: str) -> State:
    return State[label.upper().replace("-", "_")]


def derived_to_wire(derived: Derived) -> list[Any]:
    """Return the body of a derived value; without its time zone where that is UTC."""
    said = derived[1:] if derived.zone else derived[1:-1]
    return [list(derived.sources), *said]


def derived_from_wire(body: Any) -> Derived:
    """Return what `derived_to_wire` was given. A number for `sources` is that of the one column:
    so it was before there were generated ones."""
    sources, *rest = body
    return Derived((sources,) if isinstance(sources, int) else tuple(sources), *rest)


def missing_to_wire(missing: Missing) -> list[Any]:
    """Return the body of a missing value. ⚠ What is there at once has a third part, what is
    computed a fourth one. A node of an earlier release refuses each: it would leave the rows
    without it."""
    below, value, at_once, computed = missing
    if computed is None:
        return [below, value, at_once] if at_once else [below, value]
    sources = [
        [s.element_id, s.name, type_to_wire(s.type), s.missing and missing_to_wire(s.missing)]
        for s in computed.sources
    ]
    said = [computed.expression, type_to_wire(computed.type), sources]
    return [below, value, at_once, said]


def missing_from_wire(body: Any) -> Missing:
    """Return what `missing_to_wire` was given."""
    if len(body) < MISSING_PARTS:
        return Missing(*body)
    below, value, at_once, (expression, kind, bodies) = body
    sources = tuple(
        Source(element_id, name, type_from_wire(of), missing_from_wire(own) if own else None)
        for element_id, name, of, own in bodies
    )
    return Missing(below, value, at_once, Computed(expression, type_from_wire(kind), sources))


def _context_from_wire(body: Any) -> CommitContext:
    now_us, seed = body
    return CommitContext(now_us, bytes.fromhex(seed))


MISSING_PARTS: Final = len(Missing._fields)
_ID: Final = required("element_id", "id")
_NAME: Final = required("name")
_STATE: Final = required("state", "", state_label, state_of)


def _action(attribute: str) -> Field:
    return sparse(attribute, "", lambda action: action.value, OnChange)


COLUMN_FORM: Final = WireForm(
    Column,
    _ID,
    _NAME,
    Field("type", "", type_to_wire, type_from_wire, spread=True),
    required("nullable"),
    required("default"),
    _STATE,
    Field("not_null_enforced"),
    Field("filled"),
    Field("alias"),
    Field("locks", "", *AS_LIST),
    Field("derived", "", unless_none(derived_to_wire), unless_none(derived_from_wire)),
    Field("missing", "", unless_none(missing_to_wire), unless_none(missing_from_wire)),
    Field("default_expression"),
    Field(
        "moment",
        "",
        unless_none(lambda context: [context.now_us, context.seed.hex()]),
        unless_none(_context_from_wire),
    ),
    sparse("hidden"),
    sparse("numbering", "", list, unless_none(lambda body: Numbering(*body))),
    sparse("owns", "", *AS_LIST),
    sparse("ordinal"),
    sparse("moment_zone"),
    sparse("narrow", "", unless_none(type_to_wire), unless_none(type_from_wire)),
    sparse("demanded"),
    sparse("default_text"),
)
INDEX_FORM: Final = WireForm(
    Index,
    _ID,
    _NAME,
    required("columns", "", *AS_LIST),
    required("unique"),
    _STATE,
    Field("unique_enforced"),
    Field("constraint"),
    Field("alias"),
    Field("expressions", "", *AS_LIST),
    Field("predicate"),
    Field("included", "", *AS_LIST),
    Field("mentioned", "", *AS_LIST),
    sparse("implied"),
    sparse("orders", "", *AS_LIST),
    sparse("equal_nulls"),
    sparse("deferrable"),
)
CHECK_FORM: Final = WireForm(
    Check,
    _ID,
    _NAME,
    required("expression"),
    required("columns", "", *AS_LIST),
    _STATE,
    sparse("zone"),
)
LOCK_FORM: Final = WireForm(Lock, _ID, _NAME, _STATE)
FOREIGN_KEY_FORM: Final = WireForm(
    ForeignKey,
    _ID,
    _NAME,
    required("columns", "", *AS_LIST),
    required("parent"),
    required("parent_columns", "", *AS_LIST),
    required("parent_index"),
    required("index"),
    _STATE,
    _action("on_delete"),
    _action("on_update"),
    sparse("full"),
    sparse("delete_sets", "", *AS_LIST),
    sparse("deferred"),
    sparse("deferrable"),
)
