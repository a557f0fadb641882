"""Types of the values that an index compares."""

from __future__ import annotations

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import EXPRESSION, Index
from leasehold.sql.expressions.expression import type_of_expression
from leasehold.values.types import Type


def key_types(descriptor: Descriptor, index: Index) -> tuple[Type, ...]:
    """What each part of the key is compared as."""
    seen = descriptor.showing(index.mentioned)
    texts = iter(index.expressions)
    return tuple(
        type_of_expression(next(texts), seen)
        if column == EXPRESSION
        else descriptor.by_id[column].type
        for column in index.columns
    )
