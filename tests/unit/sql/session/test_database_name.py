"""Names behind the session's own database, in whose place blanks stand."""

from __future__ import annotations

from typing import Final

import pytest

from leasehold.sql.session.database_name import without_database

NAMED: Final = {
    'select "shop".b.t.a, shop.t.a, shop.c from "shop"."b"."t" join shop.b.u on true': (
        'select        b.t.a, shop.t.a, shop.c from        "b"."t" join      b.u on true'
    ),
    "select 'é', shop.b.t.* from shop.b.t": "select 'é',      b.t.* from      b.t",
    "drop table if exists shop.b.x, Shop.b.y cascade": (
        "drop table if exists      b.x,      b.y cascade"
    ),
    "comment on column shop.b.t.a is 'shop.b.t'": "comment on column      b.t.a is 'shop.b.t'",
    "alter table only shop.b.t rename to u": "alter table only      b.t rename to u",
    "insert into shop.b.t (a) values (1)": "insert into      b.t (a) values (1)",
    "create index i on shop.b.t (a); select 1": "create index i on      b.t (a); select 1",
}
STAY: Final = [
    "comment on column shop.t.a is 'x'",
    "set shop.setting = 1",
    "select shop.a from shop.t",
    "select x.shop.b.c from x.t",
    "select other.b.t.a from other.b.t",
    "select 'shop.b.t', \"SHOP\".b.t from t where a = $$shop.b.t$$ -- shop.b.t",
    "select shop.b.t from from",
    "",
]


@pytest.mark.parametrize("text", NAMED)
def test_blanks_stand_in_its_place(text: str) -> None:
    assert without_database(text, "shop") == NAMED[text]
    assert len(NAMED[text]) == len(text), "places stay"


@pytest.mark.parametrize("text", STAY)
def test_what_is_no_name_of_it_stays(text: str) -> None:
    assert without_database(text, "shop") == text
