"""Columns whose value follows from others of the row: what a write makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Derived
from leasehold.catalog.states import READABLE, WRITTEN
from leasehold.model.errors import Refused, StaleVersion
from leasehold.model.records.events import Image
from leasehold.sql.expressions.expression import compile_expression

Compute = Callable[[Image], Any]


class _Following(NamedTuple):
    """A derived column. `compute` is None where the column's pair is not written in its state."""

    column: Column
    derived: Derived
    compute: Compute | None


_KEPT_MAX: Final = 4_096
_kept: dict[tuple[int, int], tuple[Descriptor, tuple[_Following, ...]]] = {}


def value_of(descriptor: Descriptor, column: Column) -> Compute:
    """Return a function from a row's image to the value of a derived column, in storage form."""
    assert column.derived is not None, column
    # While a type changes both have the name; the expression means the other one, whichever of
    # them is public here.
    others = tuple(c for c in descriptor.columns if c.element_id != column.element_id)
    seen = replace(descriptor, columns=others).showing(column.derived.sources)
    derived = column.derived
    return compile_expression(derived.expression, seen, column, zone=derived.zone)


def _following(descriptor: Descriptor) -> tuple[_Following, ...]:
    name = descriptor.table_id, descriptor.version
    found = _kept.get(name)
    if found is None or found[0] is not descriptor:
        if len(_kept) >= _KEPT_MAX:
            _kept.clear()
        made = tuple(
            _Following(c, c.derived, value_of(descriptor, c) if c.state in WRITTEN else None)
            for c in descriptor.columns
            if c.derived is not None
        )
        found = _kept[name] = (descriptor, made)
    return found[1]


def derive(descriptor: Descriptor, before: Image | None, image: dict[int, Any]) -> None:
    """Put the derived pairs into the image of a written row, where a source has changed or they
    are not there yet.

    Raises what the expression raises for a strict one whose sources the write changes;
    StaleVersion (40001, to be replayed) for a reverse one: in a moment nobody needs the old column
    any more.
    """
    for column, derived, compute in _following(descriptor):
        own = column.element_id
        same = before is not None and all(before.get(s) == image.get(s) for s in derived.sources)
        if compute is None:
            # ⚠ As with an index key in delete-only: what a newer writer has put goes, since this
            # version can't put what is right now.
            if not same:
                image[own] = None
            continue
        if same and _stands(column, image):
            continue
        try:
            image[own] = compute(image)
        except Refused as error:
            # ⚠ As with a constraint: a row from before that breaks it may be written elsewhere.
            if not same and (derived.reverse or derived.strict):
                raise _refusal(column, derived, error) from error
            image[own] = None


def _stands(column: Column, image: Image) -> bool:
    """Whether the pair of a row whose sources stay the same is what it should be."""
    if image.get(column.element_id) is not None:
        return True
    # Every row has had a public one's: what lacks it has NULL for its value.
    return column.state in READABLE


def _refusal(column: Column, derived: Derived, error: Refused) -> Refused:
    if derived.reverse:
        return StaleVersion(
            f"column {column.name!r} is changing its type, and this value has no form in"
            f" the old one, which some still read: try again ({error.message})",
            column=column.name,
        )
    words = f"column {column.name!r} is changing its type to {column.type}"
    if derived.generated:
        words = f"generated column {column.name!r} can't be computed"
    said = {k: v for k, v in error.detail.items() if k != "position"}
    return type(error)(f"{words}: {error.message}", **{**said, "column": column.name})


def refusal_of(descriptor: Descriptor, column: Column, image: Image) -> Refused | None:
    """Return why the value of a written derived column can't be computed of a row, None when it
    can."""
    compute = next(each.compute for each in _following(descriptor) if each.column == column)
    assert compute is not None, column
    try:
        compute(image)
    except Refused as error:
        return error
    return None


def is_relied_on(column: Column) -> bool:
    """Whether a check of the rows looks at its value: it is derived, readable, and not on its way
    out."""
    derived = column.derived
    return derived is not None and column.state in READABLE and not derived.loose


def explain_difference(compute: Compute, image: Image, element_id: int) -> str:
    """Return why a row's derived pair is not what its expression says, "" when it is."""
    try:
        expected = compute(image)
    except Refused as error:
        return f"the row's value can't be computed: {error.message}"
    found = image.get(element_id)
    return "" if found == expected else f"the row has {found!r:.80} instead of {expected!r:.80}"
