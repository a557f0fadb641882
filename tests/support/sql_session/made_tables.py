"""Random descriptors and rows for properties: every type, state and kind of name."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from hypothesis import strategies as st

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import (
    Check,
    Column,
    CommitContext,
    Computed,
    Derived,
    Index,
    Lock,
    Missing,
    Source,
)
from leasehold.catalog.states import State
from leasehold.values.arrays import stored_form as stored_array
from leasehold.values.doubles import NAN
from leasehold.values.interval import Span
from leasehold.values.interval import stored_form as stored_span
from leasehold.values.jsonb import text_of
from leasehold.values.networks import Address
from leasehold.values.networks import stored_form as stored_address
from leasehold.values.storage import to_storage
from leasehold.values.times import ZonedTime
from leasehold.values.times import stored_form as stored_time
from leasehold.values.types import INTEGER_BITS, KNOWN, Type, array_of, element_of, parse_type

TIMES: Final = ("timestamp", "timestamptz")
FOLLOWED: Final = (
    None,
    Derived((1,), "id + 1"),
    Derived((1,), "id", True, True),
    Derived((1,), "id || 'x'", True, generated=True),
)
US_LEAST: Final = -62_135_596_800_000_000  # 0001-01-01
US_MOST: Final = 253_402_300_799_999_999  # 9999-12-31
STATES: Final = st.sampled_from([State.DELETE_ONLY, State.WRITE_ONLY, State.PUBLIC, State.PUBLIC])
TEXTS: Final = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9
)
NAMES: Final = st.one_of(
    st.from_regex(r"[a-z_][a-z0-9_]{0,9}", fullmatch=True),
    st.sampled_from(["int", "record", "_x20_", "a b", "a_x20_b", "x_x", "7up", "größe", "Ä", '"']),
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=9
    ),
)
NUMBERS: Final = st.decimals(
    allow_nan=False, allow_infinity=False, places=2, min_value=-9, max_value=9
)
JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
TYPES: Final = st.one_of(
    st.sampled_from([parse_type(name) for name in KNOWN]),
    st.builds(Type, st.just("varchar"), st.integers(1, 9)),
    st.builds(Type, st.just("char"), st.integers(1, 9)),
    st.builds(lambda p, s: Type("numeric", None, p + s, s), st.integers(1, 40), st.integers(0, 9)),
    st.builds(array_of, st.sampled_from([parse_type(name) for name in KNOWN])),
)


def stored_numeric(kind: Type, number: Decimal) -> str:
    return str(to_storage(kind)(min(number, Decimal(9)).quantize(Decimal("0.01"), "ROUND_DOWN")))


def storage_values(kind: Type) -> st.SearchStrategy[Any]:
    """Storage values that a column of this type may hold, NULL apart."""
    element = element_of(kind)
    if element is not None:
        return st.lists(st.none() | storage_values(element), max_size=3).map(stored_array)
    if kind.name in INTEGER_BITS:
        limit = 1 << INTEGER_BITS[kind.name] - 1
        return st.integers(-limit, limit - 1)
    strategies: Mapping[str, st.SearchStrategy[Any]] = {
        "double precision": st.floats(allow_nan=False) | st.just(NAN),
        "real": st.floats(allow_nan=False, width=32) | st.just(NAN),
        "time": st.integers(0, 86_400_000_000),
        "timetz": st.builds(
            ZonedTime, st.integers(0, 86_400_000_000), st.integers(-57_599, 57_599)
        ).map(stored_time),
        "interval": st.builds(
            Span, *(st.integers(-(1 << bits), 1 << bits) for bits in (30, 30, 60))
        ).map(stored_span),
        "inet": st.builds(Address, st.just(4), st.integers(0, 9), st.integers(0, 32)).map(
            stored_address
        ),
        "cidr": st.integers(0, 32).map(lambda n: stored_address(Address(4, 0, n))),
        "text": TEXTS,
        "varchar": TEXTS.map(lambda text: text[: kind.length]),
        "boolean": st.integers(0, 1),
        "bytea": st.binary(max_size=9),
        "date": st.integers(US_LEAST // 86_400_000_000, US_MOST // 86_400_000_000),
        "timestamp": st.integers(US_LEAST, US_MOST),
        "timestamptz": st.integers(US_LEAST, US_MOST),
        "uuid": st.uuids().map(str),
        "char": TEXTS.map(lambda text: text[: kind.length].rstrip(" ")),
        "numeric": NUMBERS.map(lambda number: stored_numeric(kind, number)),
        "json": JSON.map(text_of).map(lambda text: f" {text}"),
        "jsonb": JSON.map(text_of),
    }
    return strategies[kind.name]


@st.composite
def missing_values(draw: st.DrawFn, kind: Type, deep: int = 2) -> Missing:
    """What images of before mean: a value, or what is computed of others."""
    below = draw(st.integers(1, 9))
    if not deep or draw(st.booleans()):
        return Missing(below, draw(storage_values(kind)), draw(st.booleans()))
    sources = []
    for element_id in draw(st.lists(st.integers(1, 99), min_size=1, max_size=2, unique=True)):
        own = draw(TYPES)
        said = draw(st.none() | missing_values(own, deep - 1))
        sources.append(Source(element_id, draw(NAMES), own, said))
    return Missing(below, None, computed=Computed("NULL", kind, tuple(sources)))


@st.composite
def columns(draw: st.DrawFn, element_id: int, name: str) -> Column:
    kind = draw(TYPES)
    decided = draw(st.sampled_from(["", "now()"])) if kind.name in TIMES else ""
    return Column(
        element_id,
        name,
        kind,
        nullable=draw(st.booleans()),
        default=None if decided else draw(st.none() | storage_values(kind)),
        state=draw(STATES),
        not_null_enforced=draw(st.booleans()),
        filled=draw(st.booleans()),
        derived=draw(st.sampled_from(FOLLOWED)),
        missing=draw(st.none() | missing_values(kind)),
        default_expression=decided,
        moment=draw(st.sampled_from([None, CommitContext(7, b"seed")])) if decided else None,
    )


@st.composite
def descriptors(draw: st.DrawFn, table_id: int = 1, columns_max: int = 8) -> Descriptor:
    """Column 1 is the primary key, which is never NULL."""
    names = draw(st.lists(NAMES, min_size=2, max_size=columns_max, unique=True))
    *names, former = names
    made = [Column(1, names[0], draw(TYPES), nullable=False)]
    made += [draw(columns(at, name)) for at, name in enumerate(names[1:], start=2)]
    some = st.lists(st.sampled_from([c.element_id for c in made]), min_size=1, unique=True).map(
        tuple
    )
    return Descriptor(
        table_id,
        draw(NAMES),
        draw(st.integers(1, 1_000)),
        tuple(made),
        (1,),
        indexes=(
            Index(
                *(90, draw(NAMES), (0, *draw(some)), draw(st.booleans()), draw(STATES)),
                expressions=(draw(TEXTS),),
                predicate=draw(TEXTS),
                included=draw(some),
                mentioned=draw(some),
            ),
        ),
        next_element_id=100,
        checks=(Check(91, draw(NAMES), draw(TEXTS), draw(some), state=draw(STATES)),),
        alias=draw(st.sampled_from(["", former])),
        row_locks=draw(st.sampled_from([(), (Lock(92, former, State.PUBLIC),)])),
    )


@st.composite
def rows(draw: st.DrawFn, descriptor: Descriptor) -> dict[int, Any]:
    """An image by element id that is consistent under `descriptor`."""
    image = {}
    for column in descriptor.columns:
        values = storage_values(column.type)
        image[column.element_id] = draw(values if not column.nullable else st.none() | values)
    return image
