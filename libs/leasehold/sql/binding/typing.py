"""How operands are brought to one type: PostgreSQL's rules for constants whose type is open, for
comparison, for CASE and UNION, and for what is stored in a column."""

from __future__ import annotations

from typing import Any, Final
from zoneinfo import ZoneInfo

from leasehold.model.errors import CannotCast, Refused, UnknownFunction, WrongObject, WrongType
from leasehold.sql.binding.bound_tree import OPEN, Apply, Bound, Native, Slot, Value
from leasehold.sql.functions import resolution
from leasehold.sql.functions.arrays.array import order_key
from leasehold.sql.functions.function import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DOUBLE,
    TEXT,
    Function,
    unchanged,
)
from leasehold.sql.functions.registry import cast_for, operator_for
from leasehold.sql.syntax.positions import refused_at, with_position
from leasehold.values.catalog_types import LETTERED, NUMBERED, REGISTERED
from leasehold.values.declared import NUMBERS, Compared, names_compared
from leasehold.values.time_zone import InZone
from leasehold.values.types import INTEGER_BITS, Type, element_of, is_same_enum, plain_type

COMPARISONS: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})
_WIDTHS: Final = ("smallint", "integer", "bigint", "numeric", "real", "double precision")
_DATETIMES: Final = ("date", "timestamp", "timestamptz")
PLAIN: Final = names_compared(Compared.AS_STORED)
"""Types whose storage values SQLite compares as PostgreSQL compares the values."""
KEYED: Final = names_compared(Compared.BY_KEY)
"""Types that are compared by a part of the storage value (`emit.key_of`)."""
ORDER_KEYED: Final = frozenset({"jsonb"})
"""Types that are compared by bytes which a function makes of a value, as arrays are."""
_NUMBERED: Final = NUMBERED | frozenset(INTEGER_BITS)
_LETTERED: Final = LETTERED | {"text", "varchar", "char"}


def without_length(kind: Type) -> Type:
    """Return the type without a length: what an operator sees."""
    return plain_type(kind)


class Typing:
    """The types of one statement's parts. `types` are those of its parameters that are known so
    far, by number; `zone` is the session's, in which constants are read; `asked_zone` says that one
    was."""

    def __init__(self, types: dict[int, Type], zone: ZoneInfo) -> None:
        self.types = types
        self.zone = zone
        self.asked_zone = False

    def kind_of(self, part: Bound) -> Type:
        if isinstance(part, Slot):
            return self.types.get(part.number, part.kind)
        return part.kind

    def settle(self, part: Bound, at: int) -> Bound:
        """An open constant as text."""
        return self.convert(part, TEXT, at) if self.kind_of(part) == OPEN else part

    def convert(self, part: Bound, target: Type, at: int, context: str = "implicit") -> Bound:
        """A part as a value of `target`. Raises WrongType, and what the type says of a constant."""
        kind = self.kind_of(part)
        if isinstance(part, Slot):
            if kind == OPEN:
                # What is shown by its name comes as its name.
                named = target.name in REGISTERED
                self.types[part.number] = kind = TEXT if named else without_length(target)
            part = Slot(part.number, kind)
        if kind == OPEN:
            return self._constant(part, target, at, context)
        if kind == target:
            return part
        function = cast_for(kind, target, context)
        if function is None:
            raise WrongType(
                f"the expression is of type {kind}; {target} is needed: CAST it", position=at
            )
        return self._cast_by(function, part, target, at)

    def _constant(self, part: Bound, target: Type, at: int, context: str) -> Bound:
        if not isinstance(part, Value) or part.value is None:
            return retype(part, target)
        # A column takes no text that is too long; CAST cuts it, and is of the type without length.
        function = cast_for(None, target, "assignment" if context == "assignment" else "explicit")
        if function is None:
            raise CannotCast(f"cannot cast type unknown to {target}", position=at)
        if not _is_constant(function):
            return Apply(function, (Value(TEXT, part.value),), target)
        return self._compute(function, part.value, target, at)

    def _compute(self, function: Function, value: Any, target: Type, at: int) -> Value:
        given: tuple[Any, ...] = (value,)
        if function.zoned:
            self.asked_zone = True
            given = (InZone(self.zone), value)
        try:
            return Value(target, function.compute(*given))
        except Refused as error:
            raise error if "position" in error.detail else with_position(error, at) from error

    def cast(self, part: Bound, target: Type, at: int) -> Bound:
        """CAST(part AS target)."""
        kind = self.kind_of(part)
        if kind == OPEN:
            part = self.convert(part, without_length(target), at)
            kind = part.kind
        if kind == target:
            return part
        function = cast_for(kind, target, "explicit")
        if function is None:
            raise CannotCast(f"cannot cast type {kind} to {target}", position=at)
        return self._cast_by(function, part, target, at)

    def _cast_by(self, function: Function, part: Bound, target: Type, at: int) -> Bound:
        kind = part.kind
        widens = INTEGER_BITS.get(kind.name, 99) <= INTEGER_BITS.get(target.name, 0)
        if function.compute is unchanged or widens:
            return retype(part, target)
        if isinstance(part, Value) and _is_constant(function):
            if part.value is None:
                return retype(part, target)
            return self._compute(function, part.value, target, at)
        if kind.name in INTEGER_BITS and target.name == "double precision":
            return Native("real", (part,), DOUBLE)  # the nearest double, in SQLite as well
        return Apply(function, (part,), target)

    # ---------------------------------------------------------- several parts

    def find_common(self, parts: list[Bound], at: int, what: str) -> Type:
        """The type that all are brought to (CASE, UNION, VALUES, IN …); OPEN for constants alone.

        Raises WrongType.
        """
        return common_type([self.kind_of(part) for part in parts], at, what)

    def unify(
        self, parts: list[Bound], at: int, what: str, places: list[int] | None = None
    ) -> tuple[Type, list[Bound]]:
        """Return the parts brought to one type, and that type. `places` say where each stands, for
        what is wrong with one alone."""
        kind = self.find_common(parts, at, what)
        if kind == OPEN:
            kind = TEXT
        found = zip(parts, places or [at] * len(parts), strict=True)
        return kind, [self.convert(part, kind, ordinal) for part, ordinal in found]

    # ---------------------------------------------------------- operators

    def compare(self, sign: str, left: Bound, right: Bound, at: int) -> Bound:
        """Raises UnknownFunction for types that can't be compared."""
        kind = self.comparison_type(sign, left, right, at)
        if kind is None:
            return self.operate(sign, left, right, at)
        left, right = self.convert(left, kind, at), self.convert(right, kind, at)
        return Native(sign, (as_key(left), as_key(right)), BOOLEAN)

    def test(self, sign: str, left: Bound, right: Bound, at: int) -> Bound:
        """Return the test of ANY and ALL. Raises UnknownFunction; WrongObject where the operator
        gives no boolean."""
        if sign in COMPARISONS:
            return self.compare(sign, left, right, at)
        found = self.operate(sign, left, right, at)
        if found.kind != BOOLEAN:
            raise WrongObject("op ANY/ALL requires an operator that gives boolean", position=at)
        return found

    def comparison_type(self, sign: str, left: Bound, right: Bound, at: int) -> Type | None:
        """What both are brought to, so that SQLite compares them as PostgreSQL does; None: the
        catalogue's operator compares them."""
        one, other = self.kind_of(left), self.kind_of(right)
        if one == OPEN:
            one = other
        if other == OPEN:
            other = one
        if one == OPEN:
            return TEXT
        names = {one.name, other.name}
        found: Type | None = None
        if not is_same_enum(one, other):
            return None  # nothing compares them
        if names <= NUMBERS:
            found = choose_widest([one, other])
        elif names <= {"text", "varchar"}:  # char is compared by the catalogue
            found = TEXT
        elif names & NUMBERED and names <= _NUMBERED:
            found = without_length(one) if len(names) == 1 else BIGINT
        elif names & LETTERED and names <= _LETTERED:
            found = without_length(one) if len(names) == 1 else TEXT
        elif names <= set(_DATETIMES):
            found = Type("date") if names == {"date"} else _context(names)
        elif len(names) == 1:
            found = without_length(one)
        if found is None:
            return None
        name = found.name
        return found if name in PLAIN or name in KEYED or name in ORDER_KEYED else None

    def operate(self, sign: str, left: Bound, right: Bound, at: int) -> Bound:
        """An operator of the catalogue. Raises UnknownFunction with the operator's place."""
        one, other = self.kind_of(left), self.kind_of(right)
        with refused_at(at):
            function = operator_for(sign, known_or_none(one), known_or_none(other))
        return self.call(function, [left, right], at)

    def call(self, function: Function, arguments: list[Bound], at: int) -> Bound:
        """A function over arguments that are brought to its types."""
        kinds = list(function.arguments)
        if function.variadic:
            kinds += kinds[-1:] * (len(arguments) - len(kinds))
        parts = zip(arguments, kinds, strict=True)
        brought = tuple(self.convert(part, kind, at) for part, kind in parts)
        return Apply(function, brought, function.result)


def _is_constant(function: Function) -> bool:
    """Return whether the function gives one value for a constant, as long as the session's time
    zone is the one that the plan is made for."""
    return function.zoned or function.volatility == "immutable"


def known_or_none(kind: Type) -> Type | None:
    """Return the type as the catalogue says it, which has None for one that is open."""
    return None if kind == OPEN else kind


def retype(part: Bound, kind: Type) -> Bound:
    """The same storage value under another type."""
    if isinstance(part, Value):
        return Value(kind, part.value)
    return Native("same", (part,), kind)


def as_key(part: Bound) -> Bound:
    """What stands for a value in comparisons, groups and orders."""
    if part.kind.name in KEYED:
        return Native("key", (part,), part.kind)
    return Apply(order_key(part.kind), (part,), BYTEA) if has_order_key(part.kind) else part


def has_order_key(kind: Type) -> bool:
    return kind.name in ORDER_KEYED or element_of(kind) is not None


def choose_widest(kinds: list[Type]) -> Type:
    """Return the type in which all of these numbers are compared: a real beside another type is a
    double, as in PostgreSQL."""
    name = max((kind.name for kind in kinds), key=_WIDTHS.index)
    alike = all(kind.name == name for kind in kinds)
    return Type(name if alike or name != "real" else "double precision")


def _context(names: set[str]) -> Type:
    return Type("timestamptz" if "timestamptz" in names else "timestamp")


def common_type(kinds: list[Type], at: int, what: str) -> Type:
    """Return the type that all of these are brought to: OPEN where all are open; with an open one
    among them it has no length, which would cut the constant. Raises WrongType."""
    known = [kind for kind in kinds if kind != OPEN]
    if not known:
        return OPEN
    try:
        found = resolution.common_type(known, what)
        return found if len(known) == len(kinds) else without_length(found)
    except WrongType as error:
        raise with_position(error, at) from error


def sentence_of(name: str, kinds: list[Type]) -> UnknownFunction:
    said = ", ".join(str(kind) for kind in kinds)
    return UnknownFunction(f"function {name}({said}) does not exist")
