"""Which sequence a default draws from: its name as PostgreSQL reads that of a relation."""

from __future__ import annotations

from typing import Final

import pytest

from leasehold.sql.ddl.columns import find_drawn_sequence
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.syntax.statements import CreateTable

DRAWN: Final = {
    "nextval('s')": "s",
    "nextval('S')": "s",
    "nextval(' s ')": "s",
    "nextval('\"S\"')": "S",
    'nextval(\'"S"."q"\')': "S.q",
    "nextval('S.Q')": "s.q",
    "nextval('\"A\".b')": "A.b",
    "nextval('a.\"B\"')": "a.B",
    'nextval(\'"a""b"."c""d"\'::regclass)': 'a"b.c"d',
    "nextval('\"it''s\"')": "it's",
    "nextval('public.s')": "s",
    "nextval('PUBLIC.s')": "s",
    'nextval(\'"public"."S"\')': "S",
    "nextval ( 's' :: regclass )": "s",
    "nextval('s'::text::regclass)": "s",
    "\"nextval\"('s')": "s",
}
OTHERS: Final = (
    *("nextval('')", "nextval('s') + 1", "1 + nextval('s')", "nextval('\"a')", "nextval('\"\".s')"),
    *("nextval('s'::int)", "currval('s')", "nextval(s)", "nextval(17)"),
)


@pytest.mark.parametrize("text", DRAWN)
def test_the_sequence_of_a_default(text: str) -> None:
    assert find_drawn_sequence(text) == DRAWN[text]
    made = parse_ddl(f"CREATE TABLE t (id integer PRIMARY KEY, n integer DEFAULT {text})")
    assert isinstance(made, CreateTable)
    numbering = made.columns[1].numbering
    assert numbering is not None
    assert numbering.named == DRAWN[text]


@pytest.mark.parametrize("text", OTHERS)
def test_what_draws_from_none(text: str) -> None:
    assert find_drawn_sequence(text) is None
