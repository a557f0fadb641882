"""A statement's names are put behind their schemas: those that are looked up, and no others."""

from __future__ import annotations

from typing import Final

import pytest

from leasehold.catalog.access import Access
from leasehold.catalog.roles import BOOTSTRAP_ROLE
from leasehold.catalog.search_path import find_schemas, read_search_path
from leasehold.model.errors import InvalidArgument, UnknownSchema
from leasehold.sql.session.search_path import qualify, shift_back

LIES_IN: Final = {"t": "app", "u": "public", "own": "", "mood": "app", "A b": "app"}
CASES: Final = {
    "select * from t, u as ü": "select * from app.t, public.u as ü",
    "select t.a from t where exists (select 1 from other.t)": (
        "select t.a from app.t where exists (select 1 from other.t)"
    ),
    'select * from "A b", own': 'select * from app."A b", own',
    # Names of WITH hide relations where they are seen, and nowhere else.
    "with t as (select * from t) select * from t, (with u as (table t) table u) x, u": (
        "with t as (select * from app.t) select * from t, (with u as (table t) table u) x, public.u"
    ),
    "with recursive t as (select 1 union all table t) table t": (
        "with recursive t as (select 1 union all table t) table t"
    ),
    "with t as (select 1) insert into t table t": "with t as (select 1) insert into app.t table t",
    "select 1 from u for update of u": "select 1 from public.u for update of u",
    "merge into t using u on true when matched then delete": (
        "merge into app.t using public.u on true when matched then delete"
    ),
    "update t set a = u.a from u where t.a = 1": (
        "update app.t set a = u.a from public.u where t.a = 1"
    ),
    "create table new (a int references t, b mood[], like u)": (
        "create table app.new (a int references app.t, b app.mood[], like public.u)"
    ),
    "create table new (a int); create index on new (a)": (
        "create table app.new (a int); create index on app.new (a)"
    ),
    "create temporary table new (a int)": "create temporary table new (a int)",
    "create temporary table new as table t": "create temporary table new as table app.t",
    "create table new as table t": "create table app.new as table app.t",
    "create table new (a serial, b money)": "create table app.new (a serial, b money)",
    "create view new as select * from t": "create view app.new as select * from app.t",
    "drop table if exists t, other.u, u cascade": (
        "drop table if exists app.t, other.u, public.u cascade"
    ),
    "alter sequence t owned by u.a": "alter sequence app.t owned by public.u.a",
    "comment on column t.a is 'x'": "comment on column app.t.a is 'x'",
    "comment on column other.t.a is 'x'": "comment on column other.t.a is 'x'",
    "comment on constraint c on t is 'x'": "comment on constraint c on app.t is 'x'",
    "alter type mood add value 'x' before 'y'": "alter type app.mood add value 'x' before 'y'",
    "drop type mood": "drop type app.mood",
    "select 'x'::mood, 1::int, 'y'::text": "select 'x'::app.mood, 1::int, 'y'::text",
    "select nextval('t'), nextval('no such'), nextval('A b'), nextval('\"A b\"')": (
        "select nextval('app.t'), nextval('no such'), nextval('A b'), nextval('app.\"A b\"')"
    ),
    "select 'T'::regclass, '17'::regclass, 'other.t'::regclass, nextval($1)": (
        "select 'app.T'::regclass, '17'::regclass, 'other.t'::regclass, nextval($1)"
    ),
    "select * from t /* from t */ where a = 'from t' -- from t": (
        "select * from app.t /* from t */ where a = 'from t' -- from t"
    ),
    "copy t (a) from stdin": "copy app.t (a) from stdin",
    "explain select * from t": "explain select * from app.t",
    "begin": "begin",
}


def find(name: str, is_type: bool) -> str | None:
    return LIES_IN.get(name)


@pytest.mark.parametrize("text", CASES)
def test_names_are_put_behind_their_schemas(text: str) -> None:
    assert qualify(text, find, "app").text == CASES[text]


def test_what_is_nowhere_is_looked_for_where_it_would_be_made() -> None:
    found = qualify("select * from x", find, "app")
    assert (found.text, found.called) == ("select * from app.x", (("app.x", "x"),))
    assert qualify("select * from x", find, None).text == "select * from pg_nowhere.x"
    with pytest.raises(UnknownSchema) as refused:
        qualify("create table new (a int)", find, None)
    assert refused.value.detail["position"] == 14


def test_schemas_are_quoted() -> None:
    found = qualify("select nextval('t') from t", lambda name, is_type: "a\"b'", None)
    assert found.text == 'select nextval(\'"a""b\'\'".t\') from "a""b\'".t'


def test_places_go_back_to_those_of_the_text_that_was_said() -> None:
    said = "select ä from t, u where zzz"
    found = qualify(said, find, "app")
    for word in ("select", "ä", "from", "where", "zzz"):
        position = found.text.index(word) + 1
        assert shift_back(position, found.insertions) == said.index(word) + 1, word
    inside = found.text.index("public") + 3
    assert shift_back(inside, found.insertions) == said.index("u where") + 1


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("app", ("app",)),
        (' "$user" ,  Public', ("$user", "public")),
        ('"A ""b""",c', ('A "b"', "c")),
        ('""', ("",)),
    ],
)
def test_lists_of_schemas_are_read(text: str, names: tuple[str, ...]) -> None:
    assert read_search_path(text) == names


@pytest.mark.parametrize("text", ["a b", "a,", ",", '"a', "a,,b", "x" * 9_000])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        read_search_path(text)


def test_a_schema_that_is_built_in_is_no_users() -> None:
    """The first role is called leasehold, and so is the schema of what nodes tell."""
    found = find_schemas('"$user", public', "leasehold", Access(), BOOTSTRAP_ROLE)
    assert found == ("public",)
    assert find_schemas("leasehold, no", "r", Access(), BOOTSTRAP_ROLE) == ("leasehold",)
