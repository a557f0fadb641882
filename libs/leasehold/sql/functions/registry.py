"""Functions, operators and casts, found by name and types: one meaning for whoever evaluates SQL.

`Function.compute` takes and gives storage values. An argument type None is an open constant
(PostgreSQL's `unknown`): whoever calls brings it to the type that the found function takes, by
`cast_for(None, …)`; an argument of another type by `cast_for(…, "implicit")`. What PostgreSQL has
as syntax (CASE, COALESCE, IN, IS) is the compilers' own, by `resolution.common_type`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, Final
from zoneinfo import ZoneInfo

from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import FeatureNotSupported, UnknownFunction, WrongObject
from leasehold.sql.functions import comparisons, enums, networks, not_supported, polymorphic
from leasehold.sql.functions.aggregates.aggregates import Aggregate, aggregate_of
from leasehold.sql.functions.arrays import array, set_returning
from leasehold.sql.functions.casts.casts import Context, make_cast
from leasehold.sql.functions.dates import arithmetic as date_arithmetic
from leasehold.sql.functions.dates import fields, times, timestamps
from leasehold.sql.functions.function import TEXT, Function, is_text, make_zoned
from leasehold.sql.functions.jsonb import functions as jsonb
from leasehold.sql.functions.jsonb import json_functions, made_objects, named_parts
from leasehold.sql.functions.numbers import arithmetic, mathematics
from leasehold.sql.functions.resolution import category, kind_name, resolve
from leasehold.sql.functions.system import (
    advisory_locks,
    catalog,
    node,
    notifications,
    rights,
    sequence,
    session,
)
from leasehold.sql.functions.texts import bytea, like, regexp, text
from leasehold.values.time_zone import InZone
from leasehold.values.types import KNOWN, SYNONYMS, TEXT_BYTES_MAX, Type, element_of

Kinds = tuple[Type | None, ...]


def _by_name(table: Iterable[Function]) -> dict[str, tuple[Function, ...]]:
    found: dict[str, list[Function]] = defaultdict(list)
    for function in table:
        found[function.name].append(function)
    return {name: tuple(functions) for name, functions in found.items()}


_MODULES: Final[tuple[Any, ...]] = (
    networks,
    *(
        advisory_locks,
        arithmetic,
        comparisons,
        polymorphic,
        array,
        bytea,
        catalog,
        jsonb,
        json_functions,
        made_objects,
        named_parts,
        timestamps,
        node,
        notifications,
    ),
    *(mathematics, like, regexp, rights, sequence, session, text, date_arithmetic, fields, times),
)
ALL_FUNCTIONS: Final[tuple[Function, ...]] = tuple(
    f for module in _MODULES for f in getattr(module, "FUNCTIONS", ())
)
_OF_SYNTAX: Final = _by_name(set_returning.FIELDS)
"""Functions that no text names."""
ALL_OPERATORS: Final[tuple[Function, ...]] = tuple(
    f for module in _MODULES for f in getattr(module, "OPERATORS", ())
)
_FUNCTIONS: Final = _by_name(ALL_FUNCTIONS)
_OPERATORS: Final = _by_name(ALL_OPERATORS)
_FAMILIES: Final = {
    **polymorphic.FAMILIES,
    **array.FAMILIES,
    **enums.FAMILIES,
    **made_objects.FAMILIES,
}
FUNCTION_NAMES: Final = frozenset(_FUNCTIONS) | frozenset(_FAMILIES)
_SETS: Final = _by_name((*set_returning.FUNCTIONS, *notifications.SETS))
SET_NAMES: Final[frozenset[str]] = frozenset(set_returning.FAMILIES) | _SETS.keys()
_KEPT_MAX: Final = 8_192


def function_for(name: str, kinds: Sequence[Type | None]) -> Function:
    """Raises UnknownFunction (42883), AmbiguousFunction (42725). A sign is an operator's, which
    stands before its one operand."""
    if name in _OPERATORS:
        return _operator(name, tuple(kinds))
    return _function(name, tuple(kinds))


def operator_for(sign: str, left: Type | None, right: Type | None) -> Function:
    """Raises as `function_for`."""
    return _operator(sign, (left, right))


@lru_cache(maxsize=_KEPT_MAX)
def set_for(name: str, kinds: Kinds) -> Function:
    """Return the function of a name among SET_NAMES, which gives an array of the rows. Raises as
    `function_for`."""
    family = set_returning.FAMILIES.get(name)
    found = family(kinds) if family is not None else resolve(_SETS.get(name, ()), kinds)
    if found is None:
        raise _no_function_takes(name, kinds)
    return found


@lru_cache(maxsize=_KEPT_MAX)
def cast_for(source: Type | None, target: Type, context: Context) -> Function | None:
    """Return the cast, None where there is none in this context; its `compute` may be
    `unchanged`."""
    return make_cast(source, target, context)


def is_type_name(name: str) -> bool:
    """Return whether a type has this name, which may be called as a cast then."""
    return SYNONYMS.get(name, name) in KNOWN


@lru_cache(maxsize=_KEPT_MAX)
def aggregate_for(name: str, kinds: Kinds) -> Aggregate:
    """Return the aggregate over values of these types, () for count(*). Raises as `function_for`,
    and FeatureNotSupported."""
    return aggregate_of(name, kinds)


@lru_cache(maxsize=_KEPT_MAX)
def _function(name: str, kinds: Kinds) -> Function:
    family = _FAMILIES.get(name)
    of_family = None if family is None else family(kinds)
    if of_family is not None:
        return of_family
    found = resolve(_FUNCTIONS.get(name) or _OF_SYNTAX.get(name, ()), kinds)
    if found is not None:
        return found
    if name in _OF_SYNTAX:
        field = name.rpartition(".")[2]
        raise WrongObject(
            f"column notation .{field} applied to type {kind_name(kinds[0])}, which is not a"
            " composite type"
        )
    if len(kinds) == 1 and is_type_name(name):  # date('2020-01-31') is a cast
        cast = cast_for(kinds[0], Type(SYNONYMS.get(name, name)), "explicit")
        if cast is not None:
            return cast
    signature = _signature(name, kinds)
    sentence = not_supported.FUNCTIONS.get(name)
    if name == "to_char" and kinds and kinds[0] is not None and category(kinds[0]) == "N":
        sentence = not_supported.TO_CHAR
    if sentence is not None:
        raise FeatureNotSupported(f"function {signature}: {sentence}")
    if name not in FUNCTION_NAMES:
        raise UnknownFunction(f"function {signature} does not exist")
    raise _no_function_takes(name, kinds)


def _no_function_takes(name: str, kinds: Kinds) -> UnknownFunction:
    return UnknownFunction(
        f"function {_signature(name, kinds)} does not exist: no function of that name takes such"
        " arguments; CAST some of them"
    )


def _signature(name: str, kinds: Kinds) -> str:
    return f"{name}({', '.join(map(kind_name, kinds))})"


@lru_cache(maxsize=_KEPT_MAX)
def _operator(sign: str, kinds: Kinds) -> Function:
    functions = _OPERATORS.get(sign, ())
    family = array.OPERATOR_FAMILIES.get(sign)
    if family is not None and any(kind is not None and element_of(kind) for kind in kinds):
        of_family = family(kinds)
        if of_family is not None:
            return of_family
    family = enums.OPERATOR_FAMILIES.get(sign)
    of_family = None if family is None else family(kinds)
    if of_family is not None:
        return of_family
    if sign == "||" and len(kinds) == 2:
        functions = (*functions, *_beside_text(kinds))
    known = [kind for kind in kinds if kind is not None]
    if len(kinds) == 2 and len(known) == 1:
        # PostgreSQL tries first whether both operands may be of one type.
        name = known[0].name
        for function in functions:
            if [kind.name for kind in function.arguments] == [name, name]:
                return function
    found = resolve(functions, kinds)
    if found is not None:
        return found
    of_json = known and all(kind.name == "jsonb" for kind in known)
    if sign in not_supported.OPERATORS and len(kinds) == 2 and of_json:
        raise FeatureNotSupported(f"operator {sign}: {not_supported.OPERATORS[sign]}")
    words = f" {sign} ".join(kind_name(kind) for kind in kinds)
    words = f"{sign} {words}" if len(kinds) == 1 else words
    raise UnknownFunction(
        f"operator does not exist: {words}: no operator of that name takes such arguments; CAST"
        " some of them"
    )


def _beside_text(kinds: Kinds) -> list[Function]:
    """text || anything and anything || text: what is no text is cast to it."""
    made = []
    left, right = kinds
    for kind, at_left in ((left, True), (right, False)):
        if kind is None or is_text(kind) or kind.name in ("jsonb", "bytea") or element_of(kind):
            continue
        change = cast_for(kind, TEXT, "explicit")
        assert change is not None, kind
        arguments = (kind, TEXT) if at_left else (TEXT, kind)
        if change.zoned:
            compute = _joined_in_zone(change.compute, at_left=at_left)
            made.append(make_zoned("||", arguments, TEXT, compute))
            continue
        if change.volatility != "immutable":  # a name that the catalog is asked for
            named = _joined_by_name(change.compute, at_left=at_left)
            made.append(Function("||", arguments, TEXT, named, volatility="stable"))
            continue
        shorter = _joined(change.compute, at_left=at_left)
        longer = _joined(change.compute, at_left=at_left, most=text.MADE_CHARACTERS_MAX)
        made.append(Function("||", arguments, TEXT, shorter, computes_more=longer))
    return made


def _joined_in_zone(to_text: Callable[..., Any], *, at_left: bool) -> Callable[..., Any]:
    def compute(zone: ZoneInfo, left: Any, right: Any) -> Any:
        return _joined(partial(to_text, InZone(zone)), at_left=at_left)(left, right)

    return compute


def _joined_by_name(to_text: Callable[..., Any], *, at_left: bool) -> Callable[..., Any]:
    def compute(context: CommitContext, left: Any, right: Any) -> Any:
        return _joined(partial(to_text, context), at_left=at_left)(left, right)

    return compute


def _joined(
    to_text: Callable[[Any], str], *, at_left: bool, most: int = TEXT_BYTES_MAX
) -> Callable[[Any, Any], str]:
    joined = partial(text.concatenate, most=most)
    if at_left:
        return lambda left, right: joined(to_text(left), right)
    return lambda left, right: joined(left, to_text(right))
