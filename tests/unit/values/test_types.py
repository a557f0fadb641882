"""Types: storage values, their limits, and that every form comes back as it went in."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from ipaddress import ip_interface, ip_network
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidArgument,
    InvalidText,
    OutOfRange,
    Refused,
    TooLong,
    WrongType,
)
from leasehold.values import interval
from leasehold.values.storage import from_storage, to_json, to_storage
from leasehold.values.types import KNOWN, TEXT_BYTES_MAX, Type, parse_type


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("INT8", Type("bigint")),
        (" varchar(20) ", Type("varchar", 20)),
        ("character varying(3)", Type("varchar", 3)),
        ("timestamp with time zone", Type("timestamptz")),
        ("float", Type("double precision")),
    ],
)
def test_parse_type(text: str, kind: Type) -> None:
    assert parse_type(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        *("money", "xml", "", "int(4)", "numeric(1,2,3)", "char(1,2)", "jsonb(1)"),
    ],
)
def test_parse_type_refused(text: str) -> None:
    with pytest.raises(FeatureNotSupported):
        parse_type(text)


@pytest.mark.parametrize(
    "text",
    [
        *("varchar()", "varchar(0)", "varchar(x)", "varchar(²)", "numeric(0)", "numeric(1001)"),
        *("numeric(5,-1001)", "char(0)", f"varchar({TEXT_BYTES_MAX + 1})"),
    ],
)
def test_a_length_or_precision_out_of_range(text: str) -> None:
    with pytest.raises(InvalidArgument):
        parse_type(text)


def test_a_types_words_are_read_back() -> None:
    for kind in (*map(parse_type, KNOWN), Type("varchar", 9), Type("numeric", None, 9, -2)):
        assert parse_type(str(kind)) == kind


@pytest.mark.parametrize(
    ("kind", "outside", "stored"),
    [
        ("integer", 5, 5),
        ("integer", 5.0, 5),
        ("smallint", -32_768, -32_768),
        ("bigint", (1 << 63) - 1, (1 << 63) - 1),
        ("double precision", 1, 1.0),
        ("double precision", "Infinity", math.inf),
        ("double precision", "-Infinity", -math.inf),
        *(("double precision", nan, "NaN") for nan in (math.nan, "NaN", Decimal("NaN"))),
        ("numeric", math.nan, "F0"),
        ("boolean", True, 1),
        ("text", "é", "é"),
        ("bytea", "\\x00ff", b"\x00\xff"),
        ("bytea", b"x", b"x"),
        ("date", "1970-01-02", 1),
        ("date", date(1969, 12, 31), -1),
        ("timestamp", "1970-01-01T00:00:00.000001", 1),
        ("timestamp", "1970-01-01T00:00:00+05:00", 0),
        ("timestamptz", "1970-01-01T00:00:00+05:00", -18_000_000_000),
        ("timestamptz", datetime(1970, 1, 1, tzinfo=UTC), 0),
        ("uuid", "{00000000-0000-0000-0000-0000000000AA}", "00000000-0000-0000-0000-0000000000aa"),
        ("uuid", UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_to_storage(kind: str, outside: Any, stored: Any) -> None:
    value = to_storage(Type(kind))(outside)
    assert (value, type(value)) == (stored, type(stored))


@pytest.mark.parametrize("kind", KNOWN)
def test_null_is_null_in_every_type(kind: str) -> None:
    assert to_storage(Type(kind))(None) is None
    assert from_storage(Type(kind), None) is None
    assert to_json(Type(kind), None) is None


@pytest.mark.parametrize(
    ("kind", "outside", "error"),
    [
        ("smallint", 32_768, OutOfRange),
        ("integer", -(1 << 31) - 1, OutOfRange),
        ("bigint", 1 << 63, OutOfRange),
        ("integer", True, WrongType),
        ("integer", 1.5, WrongType),
        ("integer", float("inf"), WrongType),
        ("integer", "5", InvalidText),
        *((kind, float("nan"), WrongType) for kind in ("integer", "text", "boolean", "date")),
        ("jsonb", float("nan"), InvalidText),
        *((kind, "NaN", InvalidText) for kind in ("integer", "date", "jsonb")),
        ("double precision", "1.5", InvalidText),
        ("double precision", "nan", InvalidText),
        ("double precision", Decimal("sNaN"), OutOfRange),
        ("double precision", "infinity", InvalidText),
        ("double precision", 10**400, OutOfRange),
        ("double precision", True, WrongType),
        ("boolean", 1, WrongType),
        ("text", 5, WrongType),
        ("text", "a\x00b", InvalidText),
        ("text", "\ud800", InvalidText),
        ("text", "x" * (TEXT_BYTES_MAX + 1), TooLong),
        ("bytea", "ff", InvalidText),
        ("bytea", "\\xf", InvalidText),
        ("bytea", b"x" * (TEXT_BYTES_MAX + 1), TooLong),
        ("date", "2021-02-29", InvalidText),
        ("date", datetime(2020, 1, 1), WrongType),  # noqa: DTZ001
        ("timestamp", "yesterday", InvalidText),
        ("timestamptz", "0001-01-01T00:00:00+05:00", OutOfRange),
        ("timestamptz", "9999-12-31T23:59:59-05:00", OutOfRange),
        ("uuid", "x", InvalidText),
        ("uuid", 5, WrongType),
    ],
)
def test_refused(kind: str, outside: Any, error: type[Refused]) -> None:
    with pytest.raises(error):
        to_storage(Type(kind))(outside)


def test_varchar_counts_characters() -> None:
    assert to_storage(Type("varchar", 2))("éé") == "éé"
    with pytest.raises(TooLong):
        to_storage(Type("varchar", 2))("abc")


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "smallint": st.integers(-(1 << 15), (1 << 15) - 1),
    "integer": st.integers(-(1 << 31), (1 << 31) - 1),
    "bigint": st.integers(-(1 << 63), (1 << 63) - 1),
    "double precision": st.floats(allow_nan=False),
    "real": st.floats(allow_nan=False, width=32),
    "time": st.times(),
    "timetz": st.builds(
        lambda value, minutes: value.replace(tzinfo=timezone(timedelta(minutes=minutes))),
        st.times(),
        st.integers(-959, 959),
    ),
    "interval": st.builds(
        lambda months, days, us: interval.text_of(
            interval.stored_form(interval.Span(months, days, us))
        ),
        *(st.integers(-(1 << bits), (1 << bits) - 1) for bits in (30, 30, 60)),
    ),
    "inet": st.one_of(
        st.ip_addresses(),
        st.builds(lambda a, n: ip_interface((int(a), n)), st.ip_addresses(v=4), st.integers(0, 31)),
    ),
    "cidr": st.builds(
        lambda a, n: ip_network((int(a), n), strict=False),
        st.ip_addresses(v=4),
        st.integers(0, 32),
    ),
    "text": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    "varchar": st.text("abc", max_size=5),
    "boolean": st.booleans(),
    "bytea": st.binary(max_size=20),
    "date": st.dates(),
    "timestamp": st.datetimes(),
    "timestamptz": st.datetimes(timezones=st.just(UTC)),
    "uuid": st.uuids(),
    "char": st.sampled_from(["a", " "]),
    "numeric": st.decimals(allow_nan=False, allow_infinity=False, places=3),
    "json": st.sampled_from(['{"a": [1, 2.50,  null], "a":1 }', '"x"', " null"]),
    "jsonb": st.sampled_from(['{"a": [1, 2.50, null]}', '"x"', "null"]),
}


@given(st.data(), st.sampled_from(KNOWN))
def test_every_form_comes_back(data: st.DataObject, name: str) -> None:
    kind = parse_type(name)
    value = data.draw(VALUES[name])
    stored = to_storage(kind)(value)
    assert from_storage(kind, stored) == value
    assert (
        to_storage(kind)(json.loads(json.dumps(to_json(kind, stored), allow_nan=False))) == stored
    )


@given(
    st.data(), st.sampled_from(["bigint", "real", "double precision", "date", "timestamp", "uuid"])
)
def test_storage_values_are_ordered_as_the_values(data: st.DataObject, name: str) -> None:
    left, right = data.draw(VALUES[name]), data.draw(VALUES[name])
    convert = to_storage(Type(name))
    assert (convert(left) < convert(right)) == (left < right)
