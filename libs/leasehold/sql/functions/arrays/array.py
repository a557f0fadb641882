"""Functions and operators over arrays. Each is made for the types of one call, as PostgreSQL's
polymorphic ones are: `anyarray` means the same type on both sides, `anycompatible` a common one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

from leasehold.catalog.elements import CommitContext
from leasehold.model.budget import charge_each
from leasehold.model.errors import NullNotAllowed, WrongType
from leasehold.sql.functions.comparisons import SIGNS, comparison
from leasehold.sql.functions.function import (
    BOOLEAN,
    BYTEA,
    INTEGER,
    TEXT,
    Function,
    is_text,
    unchanged,
)
from leasehold.sql.functions.polymorphic import in_zones
from leasehold.sql.functions.resolution import common_type
from leasehold.sql.functions.system.session import system_of
from leasehold.sql.functions.texts.text import too_long
from leasehold.values.arrays import (
    ELEMENTS_MAX,
    check_characters,
    collect,
    elements_of,
    stored_form,
)
from leasehold.values.catalog_types import NAME, REGISTERED
from leasehold.values.text_io import shown_text
from leasehold.values.types import (
    TEXT_BYTES_MAX,
    Type,
    array_of,
    element_of,
    first_subscript,
    order_key_of,
)

Kinds = Sequence[Type | None]
Family = Callable[[Kinds], Function | None]
Key = Callable[[Any], Any]

TEXTS: Final = array_of(TEXT)
_TEST_WORK: Final = 100
"""Of an element that is compared with another one."""
_SHOWN_WORK: Final = 200
_HIGH_BIT: Final = 0x80


def _of(kind: Type | None) -> Type | None:
    return None if kind is None else element_of(kind)


def _taken(kinds: Kinds, *wanted: Type) -> bool:
    """Return whether types that are known are those that are wanted, where texts stand for each
    other."""
    return len(kinds) == len(wanted) and all(
        kind is None or kind.name == want.name or (is_text(kind) and is_text(want))
        for kind, want in zip(kinds, wanted, strict=True)
    )


def _common_element(kinds: Kinds, shape: str) -> Type | None:
    """Return the element type that the arrays (`a` in `shape`) and single values (`e`) of a call
    have in common; None where there is none, or an argument is of another shape."""
    known: list[Type] = []
    for kind, letter in zip(kinds, shape, strict=False):
        if letter == "i" and not _taken([kind], INTEGER):
            return None
        if kind is None or letter == "i":
            continue
        element = element_of(kind)
        if (element is None) == (letter == "a"):
            return None
        known.append(kind if element is None else element)
    try:
        return common_type(known) if known else None
    except WrongType:
        return None


def _key(element: Type) -> Key:
    return order_key_of(element) or unchanged


# ------------------------------------------------------------------ made and taken apart


@lru_cache(maxsize=256)
def constructor(element: Type) -> Function:
    """ARRAY[…]."""
    return Function(
        "array",
        (element,),
        array_of(element),
        lambda *values: stored_form(values),
        strict=False,
        variadic=True,
    )


@lru_cache(maxsize=256)
def subscript(array: Type) -> Function:
    """a[i]: NULL where there is none."""
    element = element_of(array)
    assert element is not None, array

    first = first_subscript(array)

    def compute(stored: str, position: int) -> Any:
        values = elements_of(stored)
        return values[position - first] if 0 <= position - first < len(values) else None

    return Function("subscript", (array, INTEGER), element, compute)


def _letter_of_name(name: str, position: int) -> str | None:
    encoded = name.encode()
    if not 0 <= position < len(encoded):
        return None
    letter = encoded[position]
    return chr(letter) if letter < _HIGH_BIT else f"\\{letter:03o}"


LETTER_OF_NAME: Final = Function("subscript", (NAME, INTEGER), Type('"char"'), _letter_of_name)
"""name[i]: a name is an array of its bytes, counted from 0; NULL behind its end."""


@lru_cache(maxsize=256)
def array_slice(array: Type) -> Function:
    """a[low:high], both ends among them."""
    first = first_subscript(array)

    def compute(stored: str, low: int, high: int) -> str:
        return stored_form(elements_of(stored)[max(low - first, 0) : max(high - first + 1, 0)])

    return Function("slice", (array, INTEGER, INTEGER), array, compute)


@lru_cache(maxsize=256)
def order_key(kind: Type) -> Function:
    """Bytes in the place of an array or of jsonb, in the same order, and equal for equal ones."""
    return Function("order_key", (kind,), BYTEA, _key(kind))


# ------------------------------------------------------------------ what an array is like


def _measure(name: str, compute: Callable[..., Any]) -> Family:
    """Return functions of an array and a dimension, of which there is one."""

    def family(kinds: Kinds) -> Function | None:
        if len(kinds) != 2 or _of(kinds[0]) is None or not _taken(kinds[1:], INTEGER):
            return None
        array = kinds[0]
        assert array is not None

        shift = first_subscript(array) - 1 if name != "array_length" else 0

        def measured(stored: str, dimension: int) -> Any:
            values = elements_of(stored)
            return compute(values) + shift if values and dimension == 1 else None

        return Function(name, (array, INTEGER), INTEGER, measured)

    return family


def _whole(name: str, result: Type, compute: Callable[[list[Any]], Any]) -> Family:
    """Return functions of an array alone."""

    def family(kinds: Kinds) -> Function | None:
        if len(kinds) != 1 or kinds[0] is None or element_of(kinds[0]) is None:
            return None
        return Function(name, (kinds[0],), result, lambda stored: compute(elements_of(stored)))

    return family


# ------------------------------------------------------------------ an array and a value


def _over_elements(
    name: str, shape: str, compute: Callable[..., Any], result: Type | None = None
) -> Family:
    """Return functions over an array (`a` in `shape`) and values of its element type (`e`).

    `compute` gets the key of elements and the arguments, an array as the list of its elements, None
    for a NULL one; it gives the elements of an array, None for NULL, or with `result` a value of
    that type. A last `i` in `shape` is an integer that may be left out."""
    least = len(shape.removesuffix("i"))
    position = shape.index("a")

    def family(kinds: Kinds) -> Function | None:
        if not least <= len(kinds) <= len(shape):
            return None
        element = _common_element(kinds, shape)
        if element is None:
            return None
        key, array = _key(element), array_of(element)

        def computed(*values: Any) -> Any:
            stored = values[position]
            elements = None if stored is None else elements_of(stored)
            found = compute(key, *values[:position], elements, *values[position + 1 :])
            return found if found is None or result == INTEGER else stored_form(found)

        by_letter = {"a": array, "e": element, "i": INTEGER}
        arguments = tuple(by_letter[letter] for letter in shape[: len(kinds)])
        return Function(name, arguments, result or array, computed, strict=False)

    return family


def _is(wanted: Any, key: Key) -> Callable[[Any], bool]:
    """Return the test of an element, IS NOT DISTINCT FROM the one that is wanted."""
    if wanted is None:
        return lambda value: value is None
    found = key(wanted)
    return lambda value: value is not None and bool(key(value) == found)


def _remove(key: Key, values: list[Any] | None, gone: Any) -> list[Any] | None:
    if values is None:
        return None
    test = _is(gone, key)
    return [v for v in charge_each(values, _TEST_WORK) if not test(v)]


def _replace(key: Key, values: list[Any] | None, old: Any, new: Any) -> list[Any] | None:
    if values is None:
        return None
    test = _is(old, key)
    made = [new if test(v) else v for v in charge_each(values, _TEST_WORK)]
    if isinstance(new, str | bytes):
        check_characters(len(new) * sum(1 for value in made if value is new))
    return made


def _positions(key: Key, values: list[Any] | None, wanted: Any) -> list[int] | None:
    if values is None:
        return None
    test = _is(wanted, key)
    counted = enumerate(charge_each(values, _TEST_WORK), start=1)
    return [position for position, v in counted if test(v)]


def _position(key: Key, values: list[Any] | None, wanted: Any, *start: int | None) -> int | None:
    if values is None:
        return None
    if None in start:
        raise NullNotAllowed("initial position must not be null")
    first = max(start[0] or 0, 1) if start else 1
    test = _is(wanted, key)
    found = enumerate(charge_each(values[first - 1 :], _TEST_WORK), start=first)
    return next((position for position, v in found if test(v)), None)


def _cat(kinds: Kinds) -> Function | None:
    known = [kind for kind in kinds if kind is not None]
    if len(kinds) != 2 or not known or not all(map(element_of, known)):
        return None
    try:
        array = common_type(known)
    except WrongType:
        return None

    def compute(left: str | None, right: str | None) -> str | None:
        if left is None or right is None:
            return right if left is None else left
        return stored_form(elements_of(left) + elements_of(right))

    return Function("array_cat", (array, array), array, compute, strict=False)


# ------------------------------------------------------------------ texts


@in_zones
def _to_string(kinds: Kinds, zone: ZoneInfo) -> Function | None:
    texts = [TEXT] * (len(kinds) - 1)
    element = _of(kinds[0]) if len(kinds) in (2, 3) and _taken(kinds[1:], *texts) else None
    if element is None or kinds[0] is None:
        return None
    if element.name in REGISTERED:
        return _names_to_string(kinds[0], element, texts)

    def compute(stored: str | None, by: str | None, null: str | None = None) -> str | None:
        if stored is None or by is None:
            return None
        shown = collect(
            null if v is None else shown_text(element, v, zone)
            for v in charge_each(elements_of(stored), _SHOWN_WORK)
        )
        return _joined_texts(shown, by)

    return Function("array_to_string", (kinds[0], *texts), TEXT, compute, strict=False)


def _joined_texts(shown: Iterable[str | None], by: str) -> str:
    texts = [text for text in shown if text is not None]
    if sum(map(len, texts)) + len(by) * max(len(texts) - 1, 0) > TEXT_BYTES_MAX:
        raise too_long()
    return by.join(texts)


def _names_to_string(kind: Type, element: Type, texts: list[Type]) -> Function:
    """Return the function for an array of what is shown by its name, which the catalog knows."""

    def compute(
        context: CommitContext, stored: str | None, by: str | None, null: str | None = None
    ) -> str | None:
        if stored is None or by is None:
            return None
        show = system_of(context).catalog.names.show
        found = charge_each(elements_of(stored), _SHOWN_WORK)
        shown = collect(null if v is None else show(element.name, v) for v in found)
        return _joined_texts(shown, by)

    arguments = (kind, *texts)
    return Function("array_to_string", arguments, TEXT, compute, strict=False, volatility="stable")


def split_text(text: str | None, by: str | None, null: str | None = None) -> str | None:
    """Return the array of what stands between `by`: each character where `by` is NULL, the text as
    it is where it is "". What is equal to `null` becomes NULL."""
    if text is None:
        return None
    if by is None:
        parts = list(text[: ELEMENTS_MAX + 1])  # one too many is refused
    elif by and text:
        parts = text.split(by, ELEMENTS_MAX)
    else:
        parts = [text] if text else []
    return stored_form([None if part == null else part for part in parts])


# ------------------------------------------------------------------ operators


def _both(kinds: Kinds) -> Type | None:
    """The one array type of both operands."""
    known = [kind for kind in kinds if kind is not None]
    if len(kinds) != 2 or not known or element_of(known[0]) is None:
        return None
    return known[0] if all(kind.name == known[0].name for kind in known) else None


def _compared(sign: str) -> Family:
    def family(kinds: Kinds) -> Function | None:
        array = _both(kinds)
        if array is None:
            return None
        key = _key(array)
        return Function(sign, (array, array), BOOLEAN, comparison(sign, key, key))

    return family


def _sets(sign: str, test: Callable[[frozenset[Any], frozenset[Any]], bool]) -> Family:
    """Return an operator over the elements of two arrays as sets; NULL is equal to nothing."""

    def family(kinds: Kinds) -> Function | None:
        array = _both(kinds)
        element = _of(array)
        if array is None or element is None:
            return None
        key = _key(element)

        def keys(stored: str) -> frozenset[Any]:
            elements = charge_each(elements_of(stored), _TEST_WORK)
            return frozenset(v if v is None else key(v) for v in elements)

        return Function(sign, (array, array), BOOLEAN, lambda a, b: int(test(keys(a), keys(b))))

    return family


def _holds(whole: frozenset[Any], part: frozenset[Any]) -> bool:
    return None not in part and part <= whole


def _joined(kinds: Kinds) -> Function | None:
    """Two arrays, or an array and a value on either side; what is open is an array."""
    return _cat(kinds) or _append(kinds) or _prepend(kinds)


_append: Final = _over_elements(
    "array_append", "ae", lambda _, values, value: [*(values or ()), value]
)
_prepend: Final = _over_elements(
    "array_prepend", "ea", lambda _, value, values: [value, *(values or ())]
)
FAMILIES: Final[dict[str, Family]] = {
    "array_length": _measure("array_length", len),
    "array_upper": _measure("array_upper", len),
    "array_lower": _measure("array_lower", lambda values: 1),
    "cardinality": _whole("cardinality", INTEGER, len),
    "array_ndims": _whole("array_ndims", INTEGER, lambda values: 1 if values else None),
    "array_dims": _whole("array_dims", TEXT, lambda v: f"[1:{len(v)}]" if v else None),
    "array_append": _append,
    "array_prepend": _prepend,
    "array_cat": _cat,
    "array_remove": _over_elements("array_remove", "ae", _remove),
    "array_replace": _over_elements("array_replace", "aee", _replace),
    "array_position": _over_elements("array_position", "aei", _position, INTEGER),
    "array_positions": _over_elements("array_positions", "ae", _positions, array_of(INTEGER)),
    "array_to_string": _to_string,
}
OPERATOR_FAMILIES: Final[dict[str, Family]] = {
    **{sign: _compared(sign) for sign in SIGNS},
    "@>": _sets("@>", _holds),
    "<@": _sets("<@", lambda part, whole: _holds(whole, part)),
    "&&": _sets("&&", lambda a, b: not (a & b).isdisjoint(a - {None})),
    "||": _joined,
}
FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("string_to_array", (TEXT, TEXT), TEXTS, split_text, strict=False),
    Function("string_to_array", (TEXT, TEXT, TEXT), TEXTS, split_text, strict=False),
)
