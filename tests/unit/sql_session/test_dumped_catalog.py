"""What pg_dump asks of the catalog, row by row: rules and dependencies of views, what belongs to
an extension, privileges that objects begin with. `tests/integration/tools/test_pg_dump.py` runs
pg_dump itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.errors import InvalidText
from leasehold.sql.system_catalog.roles import default_acl
from tests.support.sql_session.sql_client import SqlClient, client_of_tables

DEFAULT_ACLS: Final = {
    "c": None,
    "r": "{o=arwdDxt/o}",
    "s": "{o=rwU/o}",
    "d": "{=Tc/o,o=CTc/o}",
    "f": "{=X/o,o=X/o}",
    "l": "{=U/o,o=U/o}",
    "L": "{o=rw/o}",
    "n": "{o=UC/o}",
    "t": "{o=C/o}",
    "F": "{o=U/o}",
    "S": "{o=U/o}",
    "T": "{=U/o,o=U/o}",
    "p": "{o=sA/o}",
}
"""What acldefault gives in PostgreSQL 15 for objects of the role o."""


@pytest.fixture(scope="module")
def client(database: DevDatabase) -> Iterator[SqlClient]:
    made = (
        "create type mood as enum ('sad', 'ok')",
        "create table t (id int primary key, gone int, a int, b text, m mood)",
        "alter table t drop column gone",
        "create view v as select id, b from t where a > 1",
        "create view w as select v.id, 'ok'::mood as m, lower(v.b::text) as l from v",
        "create view n as select count(*) as c from t",
        "create schema app",
        "create table s (id serial primary key)",
    )
    drop = "drop view if exists w, v, n; drop table if exists t, s; drop type mood; drop schema app"
    with client_of_tables(database, *made, dropped_by=drop) as client:
        yield client


@pytest.mark.parametrize("kind", DEFAULT_ACLS)
def test_what_privileges_an_object_begins_with(kind: str) -> None:
    found = default_acl(kind, "o")
    assert (f"{{{','.join(found)}}}" if found else None) == DEFAULT_ACLS[kind]


def test_a_role_that_needs_quotes_and_a_kind_that_there_is_not() -> None:
    assert default_acl("n", "A b") == ('"A b"=UC/"A b"',)
    with pytest.raises(InvalidText):
        default_acl("x", "o")


def test_acldefault_names_the_owner(client: SqlClient) -> None:
    asked = "select acldefault('f', oid)::text, rolname from pg_roles where oid = 10"
    ((shown, name),) = client.ask(asked)
    assert shown == f"{{=X/{name},{name}=X/{name}}}"


def test_the_schema_public_tells_what_all_may(client: SqlClient) -> None:
    asked = (
        "select nspname, nspacl::text, pg_get_userbyid(nspowner) from pg_namespace where nspname"
    )
    ((_, shown, owner),) = client.ask(f"{asked} = 'public'")
    assert shown == f"{{{owner}=UC/{owner},=U/{owner}}}"
    ((_, shown, _),) = client.ask(f"{asked} = 'app'")
    assert shown is None


def test_each_view_is_a_rule(client: SqlClient) -> None:
    asked = (
        "select r.rulename, c.relname, r.ev_type::text, r.ev_enabled::text, r.is_instead"
        " from pg_rewrite r join pg_class c on c.oid = r.ev_class order by 2"
    )
    assert client.ask(asked) == [("_RETURN", name, "1", "O", True) for name in ("n", "v", "w")]
    ((numbers, rules),) = client.ask("select count(distinct oid), count(*) from pg_rewrite")
    assert numbers == rules == 3


def test_a_rule_depends_on_what_its_view_reads(client: SqlClient) -> None:
    asked = (
        "select v.relname, d.deptype::text, c.relname, d.refobjsubid, a.attname, d.objsubid"
        " from pg_depend d join pg_rewrite r on r.oid = d.objid"
        " join pg_class v on v.oid = r.ev_class join pg_class c on c.oid = d.refobjid"
        " left join pg_attribute a on a.attrelid = c.oid and a.attnum = d.refobjsubid"
        " where d.classid = 'pg_rewrite'::regclass and d.refclassid = 'pg_class'::regclass"
        " order by 1, 2, 4"
    )
    assert client.ask(asked) == [
        ("n", "i", "n", 0, None, 0),
        ("n", "n", "t", 0, None, 0),
        ("v", "i", "v", 0, None, 0),
        *(("v", "n", "t", n, a, 0) for n, a in enumerate(("id", "a", "b"), 1)),
        ("w", "i", "w", 0, None, 0),
        ("w", "n", "v", 0, None, 0),
    ]


def test_a_sequence_depends_on_its_column_beside_them(client: SqlClient) -> None:
    asked = (
        "select s.relname, d.deptype::text, c.relname, d.refobjsubid from pg_depend d"
        " join pg_class s on s.oid = d.objid join pg_class c on c.oid = d.refobjid"
        " where d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass"
        " and s.relkind = 'S'"
    )
    assert client.ask(asked) == [("s_id_seq", "a", "s", 1)]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("", " SELECT t.id,\n    t.b\n   FROM public.t\n  WHERE (t.a > 1);"),
        ("public", " SELECT t.id,\n    t.b\n   FROM t\n  WHERE (t.a > 1);"),
    ],
)
def test_a_views_query_names_public_where_the_path_has_it_not(
    client: SqlClient, path: str, shown: str
) -> None:
    client.ask(f"select set_config('search_path', '{path}', false)")
    schema = "" if path else "public."
    ((v, w),) = client.ask(
        "select pg_get_viewdef(v.oid), pg_get_viewdef(w.oid) from pg_class v, pg_class w"
        " where v.relname = 'v' and w.relname = 'w'"
    )
    client.ask("reset search_path")
    assert v == shown
    assert f"'ok'::{schema}mood" in w
    assert f"from {schema}v" in w
    assert "lower(v.b::text)" in w


def test_the_schema_of_ours_is_an_extensions(client: SqlClient) -> None:
    ((name, schema, owner),) = client.ask(
        "select e.extname, n.nspname, pg_get_userbyid(e.extowner)"
        " from pg_extension e join pg_namespace n on n.oid = e.extnamespace"
    )
    assert (name, schema) == ("leasehold", "leasehold")
    assert owner
    member = (
        "exists (select from pg_depend d join pg_extension e on e.oid = d.refobjid"
        " where d.refclassid = 'pg_extension'::regclass and d.deptype = 'e'"
    )
    relations = (
        f"select {member} and d.classid = 'pg_class'::regclass and d.objid = c.oid), count(*)"
        " from pg_class c join pg_namespace n on n.oid = c.relnamespace"
    )
    ((is_member, count),) = client.ask(f"{relations} where n.nspname = 'leasehold' group by 1")
    assert (bool(is_member), count > 5) == (True, True)
    ((is_member, _),) = client.ask(f"{relations} where n.nspname <> 'leasehold' group by 1")
    assert not is_member
    schemas = f"select nspname from pg_namespace n where {member}"
    asked = f"{schemas} and d.classid = 'pg_namespace'::regclass and d.objid = n.oid)"
    assert client.ask(asked) == [("leasehold",)]


def test_letters_of_a_name(client: SqlClient) -> None:
    asked = "select typname[0]::text, typname[1]::text, typname[4]::text, typname[5]::text"
    assert client.ask(f"{asked}, typname[-1]::text from pg_type where typname = '_int4'") == [
        ("_", "i", "4", None, None)
    ]
    assert client.ask("select ('é'::name)[0]::text, ('é'::name)[1]::text") == [("\\303", "\\251")]


def test_who_keeps_tables_and_indexes(client: SqlClient) -> None:
    asked = (
        "select amname, amhandler::text, amtype::text from pg_am where amname in ('btree', 'heap')"
    )
    assert client.ask(f"{asked} order by 1") == [
        ("btree", "bthandler", "i"),
        ("heap", "heap_tableam_handler", "t"),
    ]


@pytest.mark.parametrize("relation", ["pg_init_privs", "pg_transform", "pg_seclabels"])
def test_what_there_is_none_of(client: SqlClient, relation: str) -> None:
    assert client.ask(f"select * from {relation}") == []
