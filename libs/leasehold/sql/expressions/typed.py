"""A compiled part with its type, and how it is brought to another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from leasehold.model.errors import Refused, WrongType
from leasehold.sql.expressions.closures import Compute, constant, strict
from leasehold.sql.functions.casts.casts import Context
from leasehold.sql.functions.function import Function, fix_to_utc, fix_to_zone, unchanged
from leasehold.sql.functions.registry import cast_for
from leasehold.sql.functions.resolution import common_type
from leasehold.sql.syntax import tree
from leasehold.values.time_zone import UTC, zone_of
from leasehold.values.types import Type, plain_type


@dataclass(slots=True)
class ZoneUse:
    """What of an expression would be another value in another time zone than UTC: `functions` over
    its columns, and `constants`, which the zone that they are written in makes one value of."""

    functions: list[Function] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.functions or self.constants)


_asked: Final[ContextVar[ZoneUse | None]] = ContextVar("_asked", default=None)
_met: Final[ContextVar[list[object] | None]] = ContextVar("_met", default=None)
_zone: Final[ContextVar[ZoneInfo]] = ContextVar("_zone", default=UTC)
_constants: Final[ContextVar[ZoneInfo]] = ContextVar("_constants", default=UTC)


@contextmanager
def asking_zone() -> Iterator[ZoneUse]:
    """What of the session's time zone is asked for by what is compiled meanwhile."""
    found = ZoneUse()
    token = _asked.set(found)
    try:
        yield found
    finally:
        _asked.reset(token)


@contextmanager
def noting_meaning() -> Iterator[list[object]]:
    """What is compiled meanwhile, by all that the types of its columns decide: the functions that
    values go through, and what constants and orders are made of them."""
    found: list[object] = []
    token = _met.set(found)
    try:
        yield found
    finally:
        _met.reset(token)


def note_meaning(*parts: object) -> None:
    """Take down what a type has decided, for whoever compares (`noting_meaning`)."""
    met = _met.get()
    if met is not None:
        met += parts


@contextmanager
def computed_in(zone: str, constants: str | None = None) -> Iterator[None]:
    """What is compiled meanwhile is computed in that time zone, wherever that is; "" = UTC.
    `constants`: in which its constants are read, None = in the same. Raises InvalidArgument (22023)
    for one that is not known."""
    read = zone if constants is None else constants
    token = _zone.set(zone_of(zone) if zone else UTC)
    other = _constants.set(zone_of(read) if read else UTC)
    try:
        yield
    finally:
        _zone.reset(token)
        _constants.reset(other)


def zone_computed_in() -> ZoneInfo:
    return _zone.get()


def fix_zone(function: Function) -> Function:
    """What is compiled here is kept, and computed where there is no session: in the time zone that
    is kept with it, or in UTC."""
    asked = _asked.get()
    if function.zoned and asked is not None:
        asked.functions.append(function)
    note_meaning(function.compute)
    return fix_to_zone(function, _zone.get())


class Typed(NamedTuple):
    """A compiled part. `kind` None: a quoted constant (`text`) or NULL, its type still open.
    `fixed`: it is the same for every row."""

    kind: Type | None
    compute: Compute
    text: str | None = None
    fixed: bool = False


class Held:
    """Parts that several tests of one expression ask of, each computed once for all of them: twice
    on each of a hundred levels would take for ever.

    `parts`, and what `beside` returns, are computed over the values of those parts and the row."""

    def __init__(self, parts: Sequence[Typed], nodes: Sequence[tree.Node]) -> None:
        """Begin with compiled nodes. A column, or a constant, is had sooner than kept."""
        self._values: list[Compute] = []
        self.parts: list[Typed] = []
        once = [
            not (part.fixed or part.kind is None or isinstance(node, tree.Name))
            for part, node in zip(parts, nodes, strict=True)
        ]
        self._holds = any(once)
        for part, kept in zip(parts, once, strict=True):
            if kept:
                self._values.append(part.compute)
                self.parts.append(part._replace(compute=itemgetter(len(self._values))))
            else:
                self.parts.append(self.beside(part))

    def beside(self, other: Typed) -> Typed:
        """Return another part of the same tests."""
        if not self._holds or other.fixed or other.kind is None:
            return other
        return other._replace(compute=self.given(other.compute))

    def given(self, compute: Compute) -> Compute:
        """Return a function of the row as one of what the tests are computed over."""
        return (lambda held: compute(held[0])) if self._holds else compute

    def over(self, tests: Callable[[Any], Any]) -> Compute:
        """Return what the tests give as a function of the row."""
        if not self._holds:
            return tests
        if len(self._values) == 1:
            (value,) = self._values
            return lambda row: tests((row, value(row)))
        return lambda row: tests((row, *[value(row) for value in self._values]))


def convert(part: Typed, kind: Type) -> Compute:
    """A part as an argument of a type: an open constant is read as it, another type is cast.
    Raises WrongType where no cast is made without being asked for."""
    if part.kind is None:
        if part.text is None:
            return constant(None)
        return constant(read_constant(kind, part.text))
    cast = cast_for(part.kind, plain_type(kind), "implicit")
    if cast is None:
        raise WrongType(f"{part.kind} is not {kind}: CAST it")
    return cast_part(part, cast)


def cast_part(part: Typed, cast: Function) -> Compute:
    """Return a part with a cast; that of a constant is made at once."""
    if cast.compute is unchanged:
        return part.compute
    cast = fix_zone(cast)
    made = strict(cast.compute, part.compute)
    if not part.fixed:
        return made
    try:
        return constant(made({}))
    except Refused:
        return made  # a branch that is never taken may hold it


def read_constant(kind: Type, text: str, context: Context = "implicit") -> Any:
    """A quoted constant's value: one for all, in the zone in which constants are read."""
    cast = cast_for(None, kind, context)
    assert cast is not None
    made = fix_to_zone(cast, _constants.get()).compute(text)
    asked = _asked.get()
    if cast.zoned and asked is not None and made != fix_to_utc(cast).compute(text):
        asked.constants.append(text)
    note_meaning(text, made)
    return made


def call_function(function: Function, parts: Sequence[Typed]) -> Typed:
    """A function over parts, which are brought to the types it takes."""
    arguments = [convert(p, kind) for p, kind in zip(parts, function.arguments, strict=True)]
    function = fix_zone(function)
    if function.strict:
        return Typed(function.result, strict(function.compute, *arguments))
    compute = function.compute
    return Typed(function.result, lambda row: compute(*[argument(row) for argument in arguments]))


def assign(made: Typed, target: Type) -> Compute:
    """What is stored in a column of `target`: PostgreSQL's assignment. Raises WrongType."""
    if made.kind is None:
        return convert(made, target)
    cast = cast_for(made.kind, target, "assignment")
    if cast is None:
        raise WrongType(f"the expression is of type {made.kind}; {target} is needed: CAST it")
    return cast_part(made, cast)


def unify(parts: list[Typed], where: str) -> tuple[Type, list[Compute]]:
    """The type that values of all parts are brought to, and how."""
    kind = common_type([part.kind for part in parts], where)
    same = [part.kind == kind for part in parts]
    return kind, [
        part.compute if alike else convert(part, kind)
        for part, alike in zip(parts, same, strict=True)
    ]
