"""Arrays in an expression over one row: made of values, taken apart, and compared element by
element."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.model.budget import charge_each
from leasehold.model.errors import (
    CannotCast,
    FeatureNotSupported,
    WrongObject,
    WrongType,
)
from leasehold.sql.expressions.closures import Compute
from leasehold.sql.expressions.typed import Typed, cast_part, convert, unify
from leasehold.sql.functions.arrays.array import constructor, subscript
from leasehold.sql.functions.function import BOOLEAN, INTEGER
from leasehold.sql.functions.registry import cast_for, operator_for
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.kept import expression_of, nodes_of
from leasehold.sql.syntax.types import check_items
from leasehold.values.arrays import elements_of, refuse_dimensions
from leasehold.values.types import Type, array_of, element_of, plain_type

if TYPE_CHECKING:
    from leasehold.sql.expressions.compiler import Compiler

_TEST_WORK: Final = 100
"""Of an element that is compared."""
_ARRAYS: Final = (tree.ArrayOf, tree.OverArray, tree.Subscript)


def compile_array(compiler: Compiler, node: tree.ArrayOf, target: Type | None = None) -> Typed:
    """Return ARRAY[…]; `target`: the type of array that it is cast to, which each item is brought
    to."""
    check_items(node, target)
    items = [compiler.part(item) for item in node.items]
    if target is None:
        element, parts = unify(items, "ARRAY")
    else:
        element = element_of(target) or target
        parts = [
            _cast(item, element, each.at) for item, each in zip(items, node.items, strict=True)
        ]
    if element_of(element) is not None:
        refuse_dimensions(node.at)
    made = constructor(plain_type(element)).compute
    return Typed(array_of(element), lambda row: made(*[part(row) for part in parts]))


def _cast(part: Typed, kind: Type, at: int) -> Compute:
    if part.kind is None:
        return convert(part, kind)
    cast = cast_for(part.kind, kind, "explicit")
    if cast is None:
        raise CannotCast(f"cannot cast type {part.kind} to {kind}", position=at)
    return cast_part(part, cast)


def compile_subscript(compiler: Compiler, node: tree.Subscript) -> Typed:
    """Return array[index]."""
    if node.is_slice or node.low is None:
        raise FeatureNotSupported(
            "a slice of an array is not supported in an expression over one row", position=node.at
        )
    if isinstance(node.array, tree.Subscript):
        refuse_dimensions(node.at)
    array, place = compiler.part(node.array), compiler.part(node.low)
    if array.kind is None or element_of(array.kind) is None:
        raise WrongType(f"cannot subscript type {array.kind or 'unknown'}", position=node.at)
    index = convert(place, INTEGER)
    function = subscript(plain_type(array.kind))

    def compute(row: Any) -> Any:
        stored, number = array.compute(row), index(row)
        return None if stored is None or number is None else function.compute(stored, number)

    return Typed(element_of(array.kind), compute)


def compile_over_array(compiler: Compiler, node: tree.OverArray) -> Typed:
    """Return `operand` `sign` ANY|ALL (array): NULL where none decides and one is NULL."""
    value, array = compiler.part(node.operand), compiler.part(node.array)
    kind = array.kind
    if kind is None:
        kind = array_of(plain_type(operator_for(node.sign, value.kind, None).arguments[1]))
    element = element_of(kind)
    if element is None:
        raise WrongObject("op ANY/ALL (array) requires array on right side", position=node.at)
    # A test is computed over the value, made once, and each element.
    left = value if value.kind is None else Typed(value.kind, itemgetter(0))
    test = compiler.operated(node.sign, left, Typed(element, itemgetter(1)))
    if test.kind != BOOLEAN:
        raise WrongObject("op ANY/ALL (array) requires operator to yield boolean", position=node.at)
    listed = convert(array, kind) if array.kind is None else array.compute
    every, compute = node.every, value.compute
    decides: Callable[[Any], Any] = test.compute

    def over_elements(row: Any) -> int | None:
        stored = listed(row)
        if stored is None:
            return None
        elements = elements_of(stored)
        if not elements:
            return int(every)
        given = compute(row)
        unknown = False
        for each in charge_each(elements, _TEST_WORK):
            found = decides((given, each))
            if found is None:
                unknown = True
            elif bool(found) != every:
                return int(not every)
        return None if unknown else int(every)

    return Typed(BOOLEAN, over_elements)


def uses_arrays(table: Descriptor) -> bool:
    """Return whether an expression that a table keeps makes arrays of a row's values or takes them
    apart, which earlier releases do not compute."""
    return any(_has_arrays(text) for text in _texts_of(table))


def _texts_of(table: Descriptor) -> Iterable[str]:
    for column in table.columns:
        yield column.default_expression
        if column.derived is not None:
            yield column.derived.expression
    for index in table.indexes:
        yield from (*index.expressions, index.predicate)
    yield from (check.expression for check in table.checks)


def _has_arrays(text: str) -> bool:
    words = text.lower()
    if not any(word in words for word in ("[", "any", "all", "some")):
        return False
    return any(isinstance(node, _ARRAYS) for node in nodes_of(expression_of(text)))
