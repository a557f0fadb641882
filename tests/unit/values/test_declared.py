"""Goal: a type that is declared has a line wherever one is asked for, so that the next is small.

Method: each type a column may have, and an array of it, through every table that types are in.
"""

from __future__ import annotations

from typing import Any, Final

import apsw
import pytest

from leasehold.adapters.sqlite.checking.value_forms import install_form_check, wrong_value
from leasehold.catalog.definitions import format_type
from leasehold.events.avro_schema import avro_type
from leasehold.events.debezium.column_types import Decimals, form_of
from leasehold.pgwire.values.decoding import make_decoder
from leasehold.pgwire.values.encoding import BINARY, TEXT, make_encoder
from leasehold.sql.functions.registry import cast_for
from leasehold.values.declared import BY_NAME, DECLARED
from leasehold.values.oids import oid_of, type_of_oid
from leasehold.values.storage import from_storage, to_json, to_storage
from leasehold.values.text_io import from_text, shown_text
from leasehold.values.time_zone import UTC
from leasehold.values.types import KNOWN, Type, array_of, element_of, is_column_type, parse_type

TEXTS: Final[dict[str, str]] = {
    **dict.fromkeys(("smallint", "integer", "bigint"), "7"),
    **dict.fromkeys(("numeric", "real", "double precision"), "-1.5"),
    **dict.fromkeys(("text", "varchar"), "a"),
    "char": "a",
    "boolean": "t",
    "bytea": "\\x00ff",
    "date": "2024-02-29",
    "time": "10:20:30.5",
    "timetz": "10:20:30.5-03:30",
    "timestamp": "2024-02-29 10:20:30.5",
    "timestamptz": "2024-02-29 10:20:30.5+00",
    "interval": "1 mon -00:00:01",
    "uuid": "00000000-0000-0000-0000-000000000007",
    "inet": "10.1.2.3/8",
    "cidr": "10.0.0.0/8",
    "json": '{"b" :1, "a": [1]}',
    "jsonb": '{"a": [1]}',
}


def kind_named(name: str) -> Type:
    return Type("char", 1) if name == "char" else Type(name)


def value_of(kind: Type) -> Any:
    return from_text(kind, TEXTS[kind.name])


@pytest.mark.parametrize("name", KNOWN)
def test_a_type_has_every_form(name: str) -> None:
    kind = kind_named(name)
    stored = value_of(kind)
    assert shown_text(kind, stored) == TEXTS[name]
    assert to_storage(kind)(from_storage(kind, stored)) == stored
    assert to_storage(kind)(to_json(kind, stored)) == stored
    for made in (kind, array_of(kind)):
        assert parse_type(str(made)) == made
        assert is_column_type(made.name)
        assert type_of_oid(oid_of(made)) == Type(made.name)
        assert format_type(oid_of(made), None) not in ("???", None)
        assert avro_type(made)
        assert form_of(made, Decimals.STRING).schema
        assert wrong_value(made, "t.c1")
        assert cast_for(made, Type("text"), "assignment") is not None
        assert cast_for(Type("text"), made, "explicit") is not None


@pytest.mark.parametrize("form", [TEXT, BINARY], ids=["text", "binary"])
@pytest.mark.parametrize("name", KNOWN)
def test_a_client_gives_what_it_gets(name: str, form: int) -> None:
    kind = kind_named(name)
    stored = value_of(kind)
    many = to_storage(array_of(kind))([from_storage(kind, stored), None])
    for made, value in ((kind, stored), (array_of(kind), many)):
        sent = make_encoder(made, form, UTC)(value)
        assert make_decoder(made, form, UTC)(sent[4:]) == value


WRONG: Final[dict[str, tuple[Any, ...]]] = {
    "real": ("x", 1, b""),
    "time": (-1, 86_400_000_001, "10:20", 1.5),
    "timetz": ("x", 1.5),
    "interval": ("1 mon", "0 0 0 1", 5, "00000000000000000000000 0 0 0"),
    "inet": ("10.1.2.3", "40a0102032", 5),
    "cidr": ("10.0.0.0/8", "40a000000080a010203"),
    "json": ('{"a"}', "", 5),
    "integer[]": ("[1,x]", "{1,2}", '["a"]', "[1.5]", "[[1]]", 5),
    "time[]": ("[-1]", '["10:20"]'),
    "varchar(2)[]": ('["abc"]', "[1]"),
    "bytea[]": ('["a"]', '[{"\\\\x":"f"}]'),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_check_finds_what_is_no_value_of_the_type(name: str) -> None:
    kind = parse_type(name)
    connection = apsw.Connection(":memory:")
    install_form_check(connection, kind)
    wrong = f"SELECT {wrong_value(kind, '?1')}"
    element = element_of(kind)
    right = value_of(kind) if element is None else to_storage(kind)([None])
    assert connection.execute(wrong, (right,)).get == 0
    assert connection.execute(wrong, (None,)).get == 0
    for value in WRONG[name]:
        assert connection.execute(wrong, (value,)).get == 1, value


def test_every_number_is_given_once() -> None:
    oids = [each.oid for each in DECLARED] + [e.array_oid for e in DECLARED if e.array_oid]
    assert len(set(oids)) == len(oids)
    synonyms = [synonym for each in DECLARED for synonym in (each.name, *each.synonyms)]
    assert len(set(synonyms)) == len(synonyms)


def test_casts_that_nobody_asks_for_are_to_types_that_are_there() -> None:
    assert all(target in BY_NAME for each in DECLARED for target in each.implicit)
