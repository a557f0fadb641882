"""A compiled part with its type, and how it is brought to another one."""

from __future__ import annotations

from typing import NamedTuple

from leasehold.model.errors import WrongType
from leasehold.schema.types import Type
from leasehold.sql import operators
from leasehold.sql.closures import Compute, constant, strict
from leasehold.sql.operators import DOUBLE
from leasehold.sql.text_form import from_text


class Typed(NamedTuple):
    """A compiled part. `kind` None: a quoted constant (`text`) or NULL, its type still open."""

    kind: Type | None
    compute: Compute
    text: str | None = None


def settled(part: Typed, kind: Type) -> Compute:
    """A part brought to `kind`: an open constant is read as it, an integer becomes a double."""
    if part.kind is None:
        return constant(None if part.text is None else from_text(kind, part.text))
    if kind == DOUBLE and operators.is_integer(part.kind):
        return strict(float, part.compute)
    return part.compute


def assigned(made: Typed, target: Type) -> Compute:
    """What is stored in a column of `target`: PostgreSQL's assignment. Raises WrongType."""
    if made.kind is None:
        return settled(made, target)
    convert = operators.assign(made.kind, target)
    if convert is None:
        raise WrongType(f"the expression is of type {made.kind}; {target} is needed: CAST it")
    return strict(convert, made.compute)


def common(parts: list[Typed]) -> tuple[Type, list[Compute]]:
    kind = operators.common_type([part.kind for part in parts if part.kind is not None])
    return kind, [settled(part, kind) for part in parts]
