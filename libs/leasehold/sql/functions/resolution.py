"""PostgreSQL's rules by which a call means one of the functions of its name, step by step.

An argument of type None is a quoted constant or NULL, whose type is still open: PostgreSQL's
`unknown`. Lengths and precisions play no part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from leasehold.model.errors import AmbiguousFunction, CannotCast, WrongType
from leasehold.sql.functions.function import BIGINT, INTEGER, NUMERIC, TEXT, Function
from leasehold.values.declared import DECLARED, ENUM, names_where
from leasehold.values.letters import is_digits
from leasehold.values.text_io import from_text
from leasehold.values.types import INTEGER_BITS, Type, element_of, is_same_enum

CATEGORIES: Final = {each.name: each.category for each in (*DECLARED, ENUM)}
"""PostgreSQL's letters by the names of types; every other type is of U, user-defined ones."""
_NOTHING_IN_COMMON: Final = frozenset({"E", "P", "U", "Z"})
"""Categories whose types are not brought to a common one."""
PREFERRED: Final = names_where(lambda each: each.preferred)
_IMPLICIT: Final = {each.name: frozenset(each.implicit) for each in DECLARED}
"""Casts that are made without being asked for, anywhere in an expression."""

Kinds = Sequence[Type | None]


def is_implicit(source: Type, target: Type) -> bool:
    if not is_same_enum(source, target):
        return False
    if source.name == target.name or target.name in _IMPLICIT.get(source.name, ()):
        return True
    given, wanted = element_of(source), element_of(target)
    return given is not None and wanted is not None and is_implicit(given, wanted)


def category(kind: Type) -> str:
    return "A" if element_of(kind) else CATEGORIES.get(kind.name, "U")


def is_preferred(kind: Type) -> bool:
    return kind.name in PREFERRED


def resolve(functions: Sequence[Function], kinds: Kinds) -> Function | None:
    """The function that is meant, None where none takes such arguments. Raises AmbiguousFunction
    (42725)."""
    fitting = [f for f in (_widened(f, len(kinds)) for f in functions) if f is not None]
    for function in fitting:
        if _exact(function, kinds) == len(kinds):
            return function
    able = [f for f in fitting if _takes(f, kinds)]
    if len(able) > 1:
        able = _best(able, kinds)
    if len(able) > 1:
        able = _by_open_ones(able, kinds)
    if len(able) > 1:
        signature = f"{functions[0].name}({', '.join(kind_name(kind) for kind in kinds)})"
        raise AmbiguousFunction(
            f"{signature} is not unique: more than one function or operator takes such arguments;"
            " CAST some of them"
        )
    return able[0] if able else None


def kind_name(kind: Type | None) -> str:
    if kind is None:
        return "unknown"
    return kind.name if kind.enum is None else str(kind)


def _widened(function: Function, count: int) -> Function | None:
    """A variadic one with as many arguments as the call has; None where the number is wrong."""
    arguments = function.arguments
    if len(arguments) == count:
        return function
    if not function.variadic or count < len(arguments):
        return None
    more = (arguments[-1],) * (count - len(arguments))
    return replace(function, arguments=(*arguments, *more))


def _same(kind: Type | None, argument: Type) -> bool:
    return kind is not None and kind.name == argument.name and is_same_enum(kind, argument)


def _exact(function: Function, kinds: Kinds) -> int:
    return sum(map(_same, kinds, function.arguments))


def _takes(function: Function, kinds: Kinds) -> bool:
    return all(
        kind is None or is_implicit(kind, argument)
        for kind, argument in zip(kinds, function.arguments, strict=True)
    )


def _best(able: list[Function], kinds: Kinds) -> list[Function]:
    """Return the functions with most exact matches; of them those with most exact or preferred
    ones."""
    most = max(_exact(f, kinds) for f in able)
    able = [f for f in able if _exact(f, kinds) == most]

    def liked(function: Function) -> int:
        return sum(
            _same(kind, argument)
            or (
                kind is not None and is_preferred(argument) and category(kind) == category(argument)
            )
            for kind, argument in zip(kinds, function.arguments, strict=True)
        )

    most = max(map(liked, able))
    return [f for f in able if liked(f) == most]


def _by_open_ones(able: list[Function], kinds: Kinds) -> list[Function]:
    """What the positions of open constants say: a category all agree on, text before others; at
    last the type that all other arguments have."""
    places = [position for position, kind in enumerate(kinds) if kind is None]
    if not places:
        return able
    left = able
    for position in places:
        wanted = {category(f.arguments[position]) for f in able}
        if "S" in wanted:
            wanted = {"S"}
        if len(wanted) > 1:
            return _as_the_others(able, kinds)
        left = [f for f in left if category(f.arguments[position]) in wanted]
        if any(is_preferred(f.arguments[position]) for f in left):
            left = [f for f in left if is_preferred(f.arguments[position])]
    if len(left) == 1:
        return left
    return _as_the_others(left or able, kinds)


def _as_the_others(able: list[Function], kinds: Kinds) -> list[Function]:
    known = {kind.name: kind for kind in kinds if kind is not None}
    if len(known) != 1:
        return able
    (one,) = map(Type, known)
    fitting = [f for f in able if _takes(f, [one] * len(kinds))]
    return fitting if len(fitting) == 1 else able


def number_constant(text: str) -> tuple[Type, Any]:
    """Return a number's type and storage value, as PostgreSQL's scanner gives it: an integer where
    it has room, else a numeric."""
    digits = text.removeprefix("-")
    if is_digits(digits) and len(digits.lstrip("0")) < 20:
        value = int(digits.lstrip("0") or "0") * (-1 if text[0] == "-" else 1)
        for kind in (INTEGER, BIGINT):
            limit = 1 << INTEGER_BITS[kind.name] - 1
            if -limit <= value < limit:
                return kind, value
    return NUMERIC, from_text(NUMERIC, text)


def nullif_type(left: Type, right: Type | None) -> Type:
    """Return the type of NULLIF, which is that of its equality's left side, as in PostgreSQL: which
    has such operators between whole numbers of two sizes and moments of two kinds, and brings other
    pairs to one type."""
    if left.name == "varchar":
        return TEXT
    if right is None or category(left) != "N" or category(right) != "N":
        return left
    names = (left.name, right.name)
    wider = (name for name in ("double precision", "numeric") if name in names)
    name = next(wider, left.name)
    return left if name == left.name else Type(name)


def common_type(kinds: Sequence[Type | None], where: str = "the values") -> Type:
    """The type to which CASE, COALESCE, UNION … bring all of them: PostgreSQL's rule. Text where
    none is known. A length or precision stays where all have the same. Raises WrongType (42804),
    CannotCast (42846) for two enum types."""
    known = [kind for kind in kinds if kind is not None]
    if not known:
        return TEXT
    if all(kind == known[0] for kind in kinds):
        return known[0]
    found = known[0]
    for kind in known[1:]:
        if kind.name == found.name and is_same_enum(kind, found):
            found = with_more_labels(found, kind)
            continue
        if category(kind) == category(found) == ENUM.category:
            raise CannotCast(f"{where} could not convert type {kind} to {found}")
        if category(kind) != category(found) or category(kind) in _NOTHING_IN_COMMON:
            said = f"{kind_name(found)} and {kind_name(kind)}"
            raise WrongType(f"{where} are of types {said}: CAST one of them")
        one_way = is_implicit(found, kind) and not is_implicit(kind, found)
        if not is_preferred(found) and one_way:
            found = kind
    return Type(found.name, enum=found.enum)


def with_more_labels(one: Type, other: Type) -> Type:
    """Return, of two types of one name, the version of an enum type that knows more labels: of two
    columns the one may have been told of a new one before the other."""
    if one.enum is None or other.enum is None or len(one.enum.labels) >= len(other.enum.labels):
        return one
    return other
