"""Computes what a row has in a column that nobody gave a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, CommitContext
from leasehold.model.records.events import Image
from leasehold.sql.expressions.default import compile_default, is_random

Draw: TypeAlias = Callable[[Column], int]
"""The next number of the sequence that a column draws from. Raises SequenceExhausted."""


def default_of(
    descriptor: Descriptor,
    column: Column,
    image: Image,
    context: CommitContext | None,
    draw: Draw | None = None,
) -> Any:
    """Return the storage value of a column's default in the row of `image`, as of `context`. It is
    None where there is no default, or nobody has decided on a context: a node that applies what was
    decided. `draw` is the master's, in whose commit the sequence is moved.

    Raises what the expression raises.
    """
    if not column.default_expression:
        return column.default
    if column.draws_from and draw is not None:
        return draw(column)
    if context is None:
        return None
    assert not column.draws_from, f"nobody gives column {column.name!r} a number here"
    zone = column.moment_zone if context == column.moment else ""
    compute = compile_default(column.default_expression, column.written_type, zone)
    key = tuple(image.get(element_id) for element_id in descriptor.primary_key)
    return compute(context, descriptor.table_id, column.element_id, key)


def default_of_old_rows(column: Column) -> Any:
    """Return what all rows from before the column show of its default, None where each has its own,
    as one that is drawn from a sequence, for which no moment is kept."""
    if not column.default_expression:
        return column.default
    if column.moment is None or is_random(column.default_expression):
        return None
    compute = compile_default(column.default_expression, column.type, column.moment_zone)
    return compute(column.moment, 0, 0, ())
