"""Goal: what drivers and tools ask of the catalog when they connect, and while they look around, is
answered as PostgreSQL answers it.

Method: the shapes of such queries, in words of our own, asked of both over the same tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.support.postgres.both_servers import Connection, both_servers, told
from tests.support.postgres.client_server import Server

pytestmark = pytest.mark.integration

MADE: Final = """
    create table ship (id bigserial primary key, name varchar(20) unique, since timestamptz);
    create table crew (ship bigint references ship, place int, who text,
        constraint crew_key primary key (place, ship));
    create index crew_who on crew (who desc nulls last, ship);
    insert into ship (name) values ('a'), ('b');
    create table said (id int primary key, a int default -1, b bigint default 5, c bigint default
        5000000000, d numeric default 1.50, e numeric(5, 2) default 2.25, f double precision
        default 1.5, g double precision default 3, h text default 'x', i varchar(5) default 'x',
        j boolean default true, k date default '2020-01-01', l numeric default -2.5, m smallint
        default -3, n double precision default -1.5, o timestamptz default now(), p timestamp
        default current_timestamp, q text default '', r jsonb default '{}', s uuid default
        gen_random_uuid(), t char(3) default 'abc', u numeric default 'NaN', v date default
        current_date, w smallint default 7, x text default E'a\\nb', y boolean default false,
        z numeric default 10000000000);
    create type mood as enum ('glad', 'sad');
    create table keyed (a bool, b char(2), c bytea, d date, e mood, f real, g double precision,
        h inet, i smallint, j integer, k bigint, l interval, m numeric, n text, o varchar, p time,
        q timestamp, r timestamptz, s timetz, t uuid, u cidr);
    create index keyed_all on keyed (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u);
"""
CLASSES: Final = """
    select opcname from pg_opclass where opcmethod = 403 and opcintype in (
      select case typtype when 'e' then 3500 else oid end from pg_type
      where oid in (select atttypid from pg_attribute where attrelid = 'keyed'::regclass
        and attnum > 0))
"""
INDEXES_OF_KIT: Final = """
    select distinct on (t.relname, ic.relname, k.i) t.relname, ic.relname, k.i, i.indisunique,
      am.amname, coalesce(a.attname, pg_get_indexdef(i.indexrelid, k.i, false)),
      i.indoption[k.i - 1] & 1 = 1, i.indoption[k.i - 1] & 2 = 2,
      pg_get_expr(i.indpred, i.indrelid), opc.opcname in (
        select x.opcname from pg_opclass x where x.oid = any (i.indclass))
    from pg_class t left join pg_index i on t.oid = i.indrelid
      left join pg_class ic on ic.oid = i.indexrelid
      cross join lateral (
        select unnest(i.indkey), generate_subscripts(i.indkey, 1) + 1) as k (attnum, i)
      left join pg_attribute a on i.indrelid = a.attrelid and k.attnum = a.attnum
      join pg_namespace n on n.oid = t.relnamespace left join pg_am am on ic.relam = am.oid
      join pg_opclass opc on opc.oid = any (i.indclass)
    where n.nspname = 'public'
"""
"""Which of several classes stands first is nobody's to say."""

PRIMARY_KEYS: Final = """
    select found.table_name, found.column_name, found.key_seq, found.pk_name from (
      select n.nspname as table_schem, t.relname as table_name, a.attname as column_name,
        (information_schema._pg_expandarray(i.indkey)).n as key_seq, c.relname as pk_name,
        information_schema._pg_expandarray(i.indkey) as keys, a.attnum as number
      from pg_catalog.pg_class t join pg_catalog.pg_attribute a on t.oid = a.attrelid
        join pg_catalog.pg_namespace n on t.relnamespace = n.oid
        join pg_catalog.pg_index i on a.attrelid = i.indrelid
        join pg_catalog.pg_class c on c.oid = i.indexrelid
      where n.nspname = 'public' and i.indisprimary) found
    where found.number = (found.keys).x order by 1, 3
"""

INDEX_INFO: Final = """
    select found.table_name, found.index_name, found.ordinal, found.column_name, found.asc_or_desc
    from (
      select t.relname as table_name, c.relname as index_name, (i.keys).n as ordinal,
        trim(both '"' from pg_catalog.pg_get_indexdef(c.oid, (i.keys).n, false)) as column_name,
        case am.amname when 'btree' then
          case i.indoption[(i.keys).n - 1] & 1::smallint when 1 then 'D' else 'A' end
        end as asc_or_desc
      from pg_catalog.pg_class t join (
          select indexrelid, indrelid, indoption,
            information_schema._pg_expandarray(indkey) as keys
          from pg_catalog.pg_index) i on t.oid = i.indrelid
        join pg_catalog.pg_class c on c.oid = i.indexrelid
        join pg_catalog.pg_am am on c.relam = am.oid
      where t.relname in ('ship', 'crew')) found
    order by 1, 2, 3
"""

QUERIES: Final = (
    PRIMARY_KEYS,
    INDEX_INFO,
    # how types are read and written
    """select t.typname, p.proname from pg_type t join pg_proc p on p.oid = t.typreceive
       where t.typname in ('int4', 'text', '_int4', 'timestamptz', 'uuid', 'jsonb', 'numeric')
       order by 1""",
    """select typname from pg_type where typinput = 'array_in'::regproc
       and typname in ('_int4', '_text', 'int4')""",
    "select typname from pg_type where typinput = 'int4in(cstring)'::regprocedure",
    """select typname, typinput::text, typoutput::text, typreceive::text, typsend::text from pg_type
       where typname in ('bool', 'bytea', 'char', 'name', 'int8', 'int2', 'int4', 'text', 'oid',
         'float8', 'bpchar', 'varchar', 'date', 'timestamp', 'timestamptz', 'interval', 'numeric',
         'uuid', 'jsonb', '_int4', 'int2vector', 'oidvector', 'regclass', 'regtype') order by 1""",
    "select 'int4in'::regproc, 'array_in(cstring, oid, integer)'::regprocedure",
    "select 'no_such_function'::regproc",
    "select 'int4in'::regproc::oid, 42::regproc, 0::regproc, 4000000::regproc",
    # types of rows
    """select c.relname, c.reltype::regtype::text, a.typname, format_type(a.oid, null)
       from pg_class c join pg_type t on t.oid = c.reltype join pg_type a on a.oid = t.typarray
       where c.relname in ('ship', 'crew') order by 1""",
    """select typtype, typcategory, typinput::text, typreceive::text, typlen, typalign, typstorage,
       typbyval, typisdefined, typrelid::regclass::text, pg_type_is_visible(oid), typdelim
       from pg_type where typname in ('ship', '_ship') order by typname""",
    """select 'ship'::regtype::text, to_regtype('public.crew[]')::text, to_regtype('ship_id_seq'),
       to_regtype('crew_who'), to_regtype('app.ship')""",
    "select relname from pg_class where relname in ('ship_id_seq', 'crew_who') and reltype <> 0",
    # functions in FROM
    "select x[1] from string_to_array('a,b', ',') as x",
    "select * from current_schema()",
    "select s from upper('x') as s",
    "select * from upper('x') as s (a)",
    "select * from upper('x') with ordinality",
    "select name, n from ship, abs(-3) n order by 1",
    "select name, (select a from length(name) a) from ship order by 1",
    "select * from count(*)",
    "select * from no_such_function(1)",
    "select e from jsonb_array_elements('[1, 2]'::jsonb) as e",
    "select e, value from jsonb_array_elements('[1, 2]'::jsonb) as e where e <> '1'",
    "select e from jsonb_array_elements_text('[1, 2]'::jsonb) as e order by e desc",
    "select key from jsonb_each('{\"a\": 1}'::jsonb)",
    'select * from jsonb_each(\'{"a": 1, "b": [2]}\'::jsonb) as x (k) order by k',
    'select * from jsonb_each_text(\'{"a": 1, "b": null}\') with ordinality',
    """select name, key, value from ship, jsonb_each(jsonb_build_object(name, id)) order by 1""",
    "select * from jsonb_each('[1]')",
    "select * from jsonb_each('1')",
    "select * from pg_get_keywords() order by word",
    "select word from pg_get_keywords() where catcode = 'R' and not barelabel order by 1",
    """select ct.relname, ci.relname, k.n, trim(both '"' from pg_get_indexdef(ci.oid, k.n, false)),
       case i.indoption[k.n - 1] & 1::smallint when 1 then 'D' else 'A' end
       from pg_class ct join pg_index i on ct.oid = i.indrelid
       join pg_class ci on ci.oid = i.indexrelid
       join information_schema._pg_expandarray(i.indkey) k on 1=1
       where ct.relname in ('ship', 'crew') order by 1, 2, 3""",
    "select * from information_schema._pg_expandarray(array[7, 8]) as k where k.x > 7",
    # records
    "select (i).n, (i).x from (select information_schema._pg_expandarray(array[7, 8]) as i) q",
    "select (i)::text from (select information_schema._pg_expandarray(array[7, null, 8]) as i) q",
    "select (information_schema._pg_expandarray(array[7, 8])).n, 5",
    "select (1).n",
    # names of objects in texts, and of types and tables in other forms
    "select 'x' || 'ship'::regclass, 'crew'::regclass || '.', 23::regtype || '[]'",
    "select '{int,bigint,\"char\"}'::regtype[], 20 = any ('{int,int8}'::regtype[])",
    "select '{no_such_type}'::regtype[]",
    "select 'trigger'::regtype::oid, 'pg_catalog.trigger'::regtype, 'event_trigger'::regtype",
    "select '\"any\"'::regtype, 2283::regtype, 2275::regtype, 'internal'::regtype::oid",
    # operator classes
    f"""select oid, opcname, opcintype, opcintype::regtype, format_type(opcintype, null),
       opcdefault, opckeytype, opcfamily, opcnamespace::regnamespace, pg_opclass_is_visible(oid)
       from pg_opclass where opcmethod = 403 and opcname in ({CLASSES}) order by opcname""",
    f"""select f.oid, opfname, amname, opfnamespace::regnamespace, count(*) from pg_opfamily f
       join pg_am am on am.oid = opfmethod join pg_opclass c on opcfamily = f.oid
       where opcmethod = 403 and opcname in ({CLASSES}) group by 1, 2, 3, 4 order by 2""",
    """select indclass, indcollation, indclass[0], indclass[4] from pg_index
       where indexrelid = 'keyed_all'::regclass""",
    """select c.relname, array_agg(o.opcname order by k.n) from pg_index i
       join pg_class c on c.oid = i.indexrelid
       cross join lateral unnest(i.indclass) with ordinality as k (opclass, n)
       join pg_opclass o on o.oid = k.opclass
       where i.indrelid in ('ship'::regclass, 'crew'::regclass, 'keyed'::regclass)
       group by 1 order by 1""",
    INDEXES_OF_KIT,
    "select 999::regtype, 3500::regtype, 'anyenum'::regtype::oid, format_type(2276, null)",
    "set synchronize_seqscans to off",
    """select '"pg_catalog"."int4"'::regtype, '"text"'::regtype, 'pg_catalog."char"'::regtype""",
    "select (current_database() || '.public.ship')::regclass",
    "select 'no_such_database.public.ship'::regclass",
    "select oidvectortypes('23 25'::oidvector)",
    "select pg_sequence_last_value('ship'::regclass)",
    "select relname from pg_statio_user_tables where schemaname = 'public' order by 1",
    "select setting from pg_settings where name in ('max_index_keys', 'block_size') order by name",
    # names of many
    "select array[23, 25]::oid[]::regtype[]",
    "select array[23, 25]::oid[]::regtype[]::text[]",
    "select array_to_string(array['crew'::regclass, 'ship'::regclass], ', ')",
    # counts and what there is not
    "select count(*) >= 0 from pg_stat_user_tables",
    "select relname from pg_stat_user_tables where schemaname = 'public' order by 1",
    "select relname, indexrelname from pg_stat_user_indexes where schemaname = 'public' order by 2",
    "select count(*) from pg_policies",
    "select count(*) from pg_rules where schemaname = 'public'",
    "select character_set_name from information_schema.character_sets",
    "select count(*) from information_schema.element_types where object_schema = 'public'",
    # defaults
    """select column_name, column_default from information_schema.columns
       where table_name = 'said' order by ordinal_position""",
    """select attnum, pg_get_expr(adbin, adrelid) from pg_attrdef join pg_attribute
       on attrelid = adrelid and attnum = adnum where adrelid = 'said'::regclass order by 1""",
    "set role none",
)


EXPLAINED: Final = {
    "select 1": [{"Node Type": "Result"}],
    "select * from ship": [{"Node Type": "Seq Scan", "Relation Name": "ship"}],
    "update ship set name = 'x'": [
        {"Node Type": "ModifyTable", "Operation": "Update"},
        {"Node Type": "Seq Scan", "Relation Name": "ship"},
    ],
    "select * from ship where id = 1": [
        {"Node Type": "Index Scan", "Index Name": "ship_pkey", "Relation Name": "ship"}
    ],
}


def nodes_of(plan: Any) -> Iterator[dict[str, Any]]:
    told_of = ("Node Type", "Operation", "Index Name", "Relation Name")
    hidden = {"Relation Name": "ModifyTable"}
    yield {
        name: plan[name]
        for name in told_of
        if name in plan and plan["Node Type"] != hidden.get(name)
    }
    for each in plan.get("Plans", ()):
        yield from nodes_of(each)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Connection, Connection]]:
    """Connections to ours and to theirs, with the same tables."""
    servers: tuple[Server, Server]
    with both_servers(tmp_path_factory.mktemp("tools")) as servers:
        one, other = (server.psycopg(autocommit=True) for server in servers)
        with one, other:
            for each in (one, other):
                each.execute(MADE.encode())
            yield one, other


@pytest.mark.parametrize("text", QUERIES)
def test_a_tool_is_answered_as_by_postgresql(
    both: tuple[Connection, Connection], text: str
) -> None:
    ours, theirs = both
    assert told(ours, text) == told(theirs, text)


@pytest.mark.parametrize("text", EXPLAINED)
def test_a_plan_as_json_is_read_as_postgresqls(
    both: tuple[Connection, Connection], text: str
) -> None:
    for each in both:
        each.execute("set enable_bitmapscan = off" if each is both[1] else "select 1")
        ((found,),) = each.execute(f"explain (format json) {text}".encode()).fetchall()
        assert list(nodes_of(found[0]["Plan"])) == EXPLAINED[text]
