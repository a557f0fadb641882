"""What a row has in a column that nobody gave a value."""

from __future__ import annotations

from typing import Any

from leasehold.model.errors import FeatureNotSupported
from leasehold.model.records import Image
from leasehold.schema.descriptor import Descriptor
from leasehold.schema.elements import Column, Moment
from leasehold.sql.default import compile_default, is_random


def default_of(descriptor: Descriptor, column: Column, image: Image, moment: Moment | None) -> Any:
    """The storage value of a column's default in the row of `image`, as of `moment`; None where it
    has none, or nobody has decided on a moment: a node that applies what was decided.

    Raises what the expression raises.
    """
    if not column.default_expression:
        return column.default
    if moment is None:
        return None
    if column.draws_from:
        raise FeatureNotSupported(
            f"column {column.name!r} can't be set to its default, which draws from a sequence",
            column=column.name,
        )
    compute = compile_default(column.default_expression, column.type)
    key = tuple(image.get(element_id) for element_id in descriptor.primary_key)
    return compute(moment, descriptor.table_id, column.element_id, key)


def default_of_old_rows(column: Column) -> Any:
    """What all rows from before the column show of its default; None where each has its own."""
    if not column.default_expression:
        return column.default
    if column.moment is None or is_random(column.default_expression):
        return None
    return compile_default(column.default_expression, column.type)(column.moment, 0, 0, ())
