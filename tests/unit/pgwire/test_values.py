"""Goal: every value comes and goes in PostgreSQL's own forms, text and binary.

Method: forms recorded from PostgreSQL 15 (which an integration test holds to them); what was said
in binary is then sent back; refused texts; hypothesis for all values there are.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leasehold.model.errors import LeaseholdError
from leasehold.pgwire.values.decoding import make_decoder, make_input
from leasehold.pgwire.values.encoding import BINARY, TEXT, make_encoder
from leasehold.values.arrays import stored_form as array_form
from leasehold.values.declared import BY_NAME
from leasehold.values.interval import Span, stored_form
from leasehold.values.jsonb import text_of
from leasehold.values.oids import modifier_of
from leasehold.values.storage import to_storage
from leasehold.values.time_zone import offset_text, zone_of
from leasehold.values.types import Type, array_of
from tests.support.pgwire.small_session import type_named
from tests.support.pgwire.talk import Talk
from tests.support.pgwire.value_cases import INPUTS, REFUSED
from tests.support.pgwire.value_forms_recorded import FORMS
from tests.support.pgwire.wire_words import (
    SYNC,
    bind,
    columns,
    describe,
    error_of,
    execute,
    parse,
    rows,
)

UTC = zone_of("UTC")
BERLIN = zone_of("Europe/Berlin")
CASES = [(kind, text, *FORMS[kind][text]) for kind, texts in INPUTS.items() for text in texts]
ALL = [Type(name) for name in INPUTS if not name.endswith("[]")]


@pytest.mark.parametrize(("kind", "text", "shown", "binary"), CASES)
def test_forms_are_those_of_postgresql(kind: str, text: str, shown: str, binary: str) -> None:
    talk = Talk()
    said = talk.send(
        parse(f"select $1::{kind}, $1::{kind}"), bind(text, results=(0, 1)), execute(), SYNC
    )
    assert rows(said) == [[shown.encode(), bytes.fromhex(binary)]]
    back = bind(bytes.fromhex(binary), formats=(1,), results=(0, 1))
    assert rows(talk.send(back, execute(), SYNC)) == [[shown.encode(), bytes.fromhex(binary)]]


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in REFUSED.items() for text in texts]
)
def test_what_is_no_value_is_refused(kind: str, text: str) -> None:
    talk = Talk()
    fields = error_of(talk.send(parse(f"select $1::{kind}"), bind(text), execute(), SYNC))
    assert fields["C"] in ("22P02", "22003", "22023", "22007", "22008")
    assert fields["W"] == "parameter $1"
    assert not talk.defects


@pytest.mark.parametrize("kind", ALL, ids=str)
@settings(max_examples=30)
@given(data=st.binary(max_size=40))
def test_no_binary_value_is_a_defect(kind: Type, data: bytes) -> None:
    for one in (kind, array_of(kind)):
        for form in (TEXT, BINARY):
            try:
                value = make_decoder(one, form, UTC)(data)
            except LeaseholdError:
                continue
            assert make_encoder(one, form, UTC)(value)


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.integers(0, 1),
    "smallint": st.integers(-(1 << 15), (1 << 15) - 1),
    "integer": st.integers(-(1 << 31), (1 << 31) - 1),
    "bigint": st.integers(-(1 << 63), (1 << 63) - 1),
    "double precision": st.floats(allow_nan=False) | st.just("NaN"),
    "text": TEXTS,
    "varchar": TEXTS,
    "bytea": st.binary(),
    "date": st.dates().map(lambda day: day.toordinal() - date(1970, 1, 1).toordinal()),
    "timestamp": st.datetimes().map(
        lambda at: (at - datetime(1970, 1, 1)) // timedelta(microseconds=1)  # noqa: DTZ001
    ),
    "uuid": st.uuids().map(str),
    "jsonb": st.recursive(
        st.none() | st.booleans() | st.integers() | TEXTS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
        max_leaves=5,
    ).map(text_of),
    "interval": st.builds(
        lambda *parts: stored_form(Span(*parts)),
        *(st.integers(-1000, 1000), st.integers(-1000, 1000), st.integers(-(10**12), 10**12)),
    ),
    "oid": st.integers(0, (1 << 32) - 1),
}
NUMERIC = to_storage(Type("numeric"))
VALUES["numeric"] = st.decimals(allow_nan=False, allow_infinity=False).map(NUMERIC)
VALUES["json"] = VALUES["jsonb"]
VALUES["timestamptz"] = VALUES["timestamp"]


@pytest.mark.parametrize("kind", ALL, ids=str)
@settings(max_examples=30)
@given(data=st.data())
def test_what_is_said_is_read_back(kind: Type, data: st.DataObject) -> None:
    value = data.draw(VALUES[kind.name])
    many = array_form(data.draw(st.lists(st.none() | VALUES[kind.name], max_size=4)))
    for form in (TEXT, BINARY):
        assert make_decoder(kind, form, UTC)(make_encoder(kind, form, UTC)(value)[4:]) == value
        array = array_of(kind)
        assert make_decoder(array, form, UTC)(make_encoder(array, form, UTC)(many)[4:]) == many


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2024-01-01 12:00:00", "2024-01-01 12:00:00+01"),
        ("2024-07-01 12:00:00", "2024-07-01 12:00:00+02"),
        ("2024-03-31 01:59:59", "2024-03-31 01:59:59+01"),
        ("2024-03-31 03:00:00", "2024-03-31 03:00:00+02"),
        ("2024-10-27 04:00:00", "2024-10-27 04:00:00+01"),
        ("2024-07-01 12:00:00Z", "2024-07-01 14:00:00+02"),
    ],
)
def test_a_time_without_a_zone_is_meant_in_the_sessions(text: str, shown: str) -> None:
    kind = Type("timestamptz")
    value = make_input(kind, BERLIN)(text)
    assert make_encoder(kind, TEXT, BERLIN)(value)[4:].decode() == shown


@pytest.mark.parametrize(
    ("ahead", "shown"), [(19_800, "+05:30"), (-2670, "-00:44:30"), (-28_800, "-08"), (0, "+00")]
)
def test_offsets_are_as_long_as_they_need_to_be(ahead: int, shown: str) -> None:
    assert offset_text(ahead) == shown


@pytest.mark.parametrize(
    ("kind", "oid", "size", "modifier"),
    [
        ("boolean", 16, 1, -1),
        ("smallint", 21, 2, -1),
        ("integer", 23, 4, -1),
        ("bigint", 20, 8, -1),
        ("double precision", 701, 8, -1),
        ("text", 25, -1, -1),
        ("varchar", 1043, -1, -1),
        ("varchar(5)", 1043, -1, 9),
        ("char(3)", 1042, -1, 7),
        ("bytea", 17, -1, -1),
        ("date", 1082, 4, -1),
        ("timestamp", 1114, 8, -1),
        ("timestamptz", 1184, 8, -1),
        ("uuid", 2950, 16, -1),
        ("numeric", 1700, -1, -1),
        ("numeric(10,2)", 1700, -1, 655_366),
        ("jsonb", 3802, -1, -1),
        ("interval", 1186, 16, -1),
        ("integer[]", 1007, -1, -1),
        ("text[]", 1009, -1, -1),
    ],
)
def test_columns_are_described_with_oid_size_and_modifier(
    kind: str, oid: int, size: int, modifier: int
) -> None:
    talk = Talk()
    said = talk.send(parse(f"select $1::{kind}"), describe(), SYNC)
    assert columns(said) == [("?column?", oid, size, modifier, 0)]


def test_a_modifier_is_of_the_element() -> None:
    assert modifier_of(array_of(type_named("varchar(5)"))) == 9
    assert len({numbers.oid for numbers in BY_NAME.values()}) == len(BY_NAME)
