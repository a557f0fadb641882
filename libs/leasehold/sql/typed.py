"""A compiled part with its type, and how it is brought to another one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from leasehold.model.errors import Refused, WrongType
from leasehold.schema.types import Type
from leasehold.sql.casts import Context
from leasehold.sql.catalogue import cast_for
from leasehold.sql.closures import Compute, constant, strict
from leasehold.sql.function import Function, in_utc, unchanged
from leasehold.sql.resolution import common_type

_asked: Final[ContextVar[list[Function] | None]] = ContextVar("_asked", default=None)


@contextmanager
def asking_zone() -> Iterator[list[Function]]:
    """What of the session's time zone is asked for by what is compiled meanwhile."""
    found: list[Function] = []
    token = _asked.set(found)
    try:
        yield found
    finally:
        _asked.reset(token)


def without_session(function: Function) -> Function:
    """What is compiled here is kept, and computed where there is no session: in UTC."""
    asked = _asked.get()
    if function.zoned and asked is not None:
        asked.append(function)
    return in_utc(function)


class Typed(NamedTuple):
    """A compiled part. `kind` None: a quoted constant (`text`) or NULL, its type still open.
    `fixed`: it is the same for every row."""

    kind: Type | None
    compute: Compute
    text: str | None = None
    fixed: bool = False


def brought(part: Typed, kind: Type) -> Compute:
    """A part as an argument of a type: an open constant is read as it, another type is cast.
    Raises WrongType where no cast is made without being asked for."""
    if part.kind is None:
        if part.text is None:
            return constant(None)
        return constant(of_constant(kind, part.text))
    cast = cast_for(part.kind, Type(kind.name), "implicit")
    if cast is None:
        raise WrongType(f"{part.kind} is not {kind}: CAST it")
    return converted(part, cast)


def converted(part: Typed, cast: Function) -> Compute:
    """With a constant, at once."""
    if cast.compute is unchanged:
        return part.compute
    cast = without_session(cast)
    made = strict(cast.compute, part.compute)
    if not part.fixed:
        return made
    try:
        return constant(made({}))
    except Refused:
        return made  # a branch that is never taken may hold it


def of_constant(kind: Type, text: str, context: Context = "implicit") -> Any:
    """A quoted constant's value. It is one for all, even where its zone is UTC for want of another:
    nothing asks for a session's then."""
    cast = cast_for(None, kind, context)
    assert cast is not None
    return in_utc(cast).compute(text)


def called(function: Function, parts: Sequence[Typed]) -> Typed:
    """A function over parts, which are brought to the types it takes."""
    arguments = [brought(p, kind) for p, kind in zip(parts, function.arguments, strict=True)]
    function = without_session(function)
    if function.strict:
        return Typed(function.result, strict(function.compute, *arguments))
    compute = function.compute
    return Typed(function.result, lambda row: compute(*[argument(row) for argument in arguments]))


def assigned(made: Typed, target: Type) -> Compute:
    """What is stored in a column of `target`: PostgreSQL's assignment. Raises WrongType."""
    if made.kind is None:
        return brought(made, target)
    cast = cast_for(made.kind, target, "assignment")
    if cast is None:
        raise WrongType(f"the expression is of type {made.kind}; {target} is needed: CAST it")
    return converted(made, cast)


def common(parts: list[Typed], where: str) -> tuple[Type, list[Compute]]:
    """The type that values of all parts are brought to, and how."""
    kind = common_type([part.kind for part in parts], where)
    same = [part.kind == kind for part in parts]
    return kind, [
        part.compute if alike else brought(part, kind)
        for part, alike in zip(parts, same, strict=True)
    ]
