"""Columns that follow another one while its type changes: what a write makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from leasehold.model.errors import Refused, StaleVersion
from leasehold.model.records import Image
from leasehold.schema.descriptor import Descriptor
from leasehold.schema.elements import Column, Derived
from leasehold.schema.states import WRITTEN
from leasehold.sql.expression import compile_expression

Compute = Callable[[Image], Any]
_KEPT_MAX: Final = 4_096
_kept: dict[tuple[int, int], tuple[Descriptor, tuple[tuple[Column, Derived, Compute], ...]]] = {}


def value_of(descriptor: Descriptor, column: Column) -> Compute:
    """A function from a row's image to the value of a derived column, in storage form."""
    assert column.derived is not None, column
    # Both have the name; the expression means the other one, whichever of them is public here.
    others = tuple(c for c in descriptor.columns if c.element_id != column.element_id)
    seen = replace(descriptor, columns=others).showing((column.derived.source,))
    return compile_expression(column.derived.expression, seen, column)


def _derived(descriptor: Descriptor) -> tuple[tuple[Column, Derived, Compute], ...]:
    name = descriptor.table_id, descriptor.version
    found = _kept.get(name)
    if found is None or found[0] is not descriptor:
        if len(_kept) >= _KEPT_MAX:
            _kept.clear()
        made = tuple(
            (column, column.derived, value_of(descriptor, column))
            for column in descriptor.columns
            if column.derived is not None
        )
        found = _kept[name] = (descriptor, made)
    return found[1]


def derive(descriptor: Descriptor, before: Image | None, image: dict[int, Any]) -> None:
    """Put the derived pairs into the image of a written row, where their source has changed or
    they are not there yet.

    Raises what the expression raises for a strict one; StaleVersion (40001, to be replayed) for a
    reverse one: in a moment nobody needs the old column any more.
    """
    for column, derived, compute in _derived(descriptor):
        own, source = column.element_id, derived.source
        same = before is not None and before.get(source) == image.get(source)
        if column.state not in WRITTEN:
            # ⚠ As with an index key in delete-only: what a newer writer has put goes, since this
            # version can't put what is right now.
            if not same:
                image[own] = None
            continue
        if same and (image.get(own) is not None or image.get(source) is None):
            continue
        try:
            image[own] = compute(image)
        except Refused as error:
            if derived.reverse:
                raise StaleVersion(
                    f"column {column.name!r} is changing its type, and this value has no form in"
                    f" the old one, which some still read: try again ({error.message})",
                    column=column.name,
                ) from error
            if derived.strict:
                raise type(error)(
                    f"column {column.name!r} is changing its type to {column.type}:"
                    f" {error.message}",
                    **{**error.detail, "column": column.name},
                ) from error
            image[own] = None


def unlike(compute: Compute, image: Image, element_id: int) -> str:
    """Why a row's derived pair is not what its expression says, "" when it is."""
    try:
        expected = compute(image)
    except Refused as error:
        return f"the row's value can't be converted: {error.message}"
    found = image.get(element_id)
    return "" if found == expected else f"the row has {found!r:.80} instead of {expected!r:.80}"
