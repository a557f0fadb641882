"""Pieces of statements of every kind, joined, cut, swapped, with extreme values."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Iterator
from typing import Any, Final

from tests.isolation.fuzz.wire_database import Talked, cut
from tests.support.pgwire.wire_words import (
    COPY_DONE,
    SYNC,
    bind,
    close,
    copy_data,
    copy_fail,
    describe,
    execute,
    parse,
    query,
)

_PIECE_OF_STATEMENT: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\w+|::|<=|>=|<>|->>?|@>|\|\||\S")
STATEMENTS: Final[tuple[str, ...]] = (
    "select id, a, b from t2 where a > 1 and b like 'x%' order by id desc nulls last limit 3",
    "select distinct on (a) a, count(*), sum(c), avg(g) from t2 group by a having sum(c) > 1",
    "select t2.id, p.n from t2 left join p on p.t2_id = t2.id where p.n is null for update",
    "with x as (select rank() over (partition by a order by id) r from t2) select * from x",
    "with recursive r (n) as (select 1 union all select n + 1 from r where n < 5) select n from r",
    "select case when f then 'y' else coalesce(b, 'z') end || k::text, d + 1, now() - e from t2",
    "select i -> 'a' ->> 0, i @> '{\"a\": 1}'::jsonb, (j::int[])[1], unnest(j::int[]) from t2",
    "select upper(b), substring(b from 1 for 2), regexp_replace(b, '(x+)', '\\1', 'g') from t2",
    "select extract(epoch from e), date_trunc('day', e), to_char(d, 'YYYY'), age(e) from t2",
    "select generate_series(1, 3), string_agg(b, ',' order by id), jsonb_agg(a) from t2 group by 1",
    "select * from t2 where exists (select 1 from p where p.t2_id = t2.id) union select * from t2",
    "select cast('12' as int), 1.5e10::numeric(5, 1), 'abc'::bytea, interval '1 day 2 hours'",
    "select relname, attname from pg_class c join pg_attribute a on a.attrelid = c.oid limit 2",
    "select * from information_schema.columns where table_name = 't2'",
    "values (1, 'a'), (2, null)",
    "table t2",
    "insert into t2 (id, b) values (3, 'y') on conflict (id) do update set b = excluded.b || 1",
    "insert into t2 (id, a) select g, g * 2 from generate_series(10, 14) g on conflict do nothing",
    "insert into p values (1, 1, 5) returning id, n + 1",
    "update t2 set a = a + 1, b = lower(b), j = '{3}', i = '{}' where id = 1 returning *",
    "update t2 set a = p.n from p where p.t2_id = t2.id",
    "delete from p where n > 3 returning id",
    "delete from t2 using p where p.t2_id = t2.id and t2.id > 5",
    "truncate p",
    "begin isolation level serializable read only",
    "begin; savepoint a; update t2 set a = 1 where id = 1; rollback to a; release a; commit",
    "start transaction isolation level repeatable read",
    "commit and chain",
    "rollback",
    "declare c scroll cursor with hold for select id from t2 order by id",
    "fetch backward 2 from c; move forward all in c; close c",
    "prepare q (int, text) as select $1 + 1, $2; execute q (1, 'x'); deallocate all",
    "explain (verbose, format json) select * from t2 where a = 1",
    "explain analyze select count(*) from t2",
    "set statement_timeout = '5s'; show all; reset all; set local timezone = 'Europe/Berlin'",
    "set session characteristics as transaction isolation level read committed",
    "discard all",
    "create table x1 (id bigserial primary key, a int not null default 5, b text check (b <> ''))",
    "create table if not exists x2 (a int, b int, unique (a, b), foreign key (a) references t2)",
    "alter table x1 add column z int default 7, drop column if exists b, alter a drop not null",
    "alter table x1 rename column z to y; alter table x1 alter column y type bigint",
    "alter table x1 add constraint k check (a > 0), drop constraint if exists k",
    "create unique index concurrently if not exists xi on x1 ((a + 1), lower(b)) where a > 0",
    "drop index if exists xi; drop table if exists x1, x2 cascade",
    "create sequence if not exists x3 increment -2 minvalue -9 cycle; alter sequence x3 restart 1",
    "select nextval('s1'), currval('s1'), setval('s1', 5, false), lastval()",
    "drop sequence if exists x3",
    "create role ann login password 'x'; grant select (id, a), update on t2 to ann",
    "alter role ann password 'x' valid until '2030-01-01' connection limit 5",
    "revoke all on t2 from ann; grant ann to me with admin option; drop role if exists ann",
    "set role none; reset role; select current_user, has_table_privilege('t2', 'select')",
    "comment on table t2 is 'words'",
    "create view v as select * from t2",
    "lock table t2 in share mode",
    "analyze t2; vacuum t2",
    "listen x; notify x, 'y'; unlisten *",
    "do $$ begin perform 1; end $$",
    "select 1 as of system time '-1s'",
    "copy t2 (id, b) to stdout (format csv, header)",
    "copy (select * from t2) to stdout with binary",
)
COPIES: Final = (
    ("copy t2 (id, a, b) from stdin", b"20\t1\tx\n21\t\\N\ty\\tz\n\\.\n"),
    ("copy t2 (id, b) from stdin (format csv, quote '\"', null 'N')", b'22,"a,b"\n23,N\n'),
    ("copy p from stdin with (format binary)", b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\xff\xff"),
)
EXTREME: Final[tuple[str, ...]] = (
    *("0", "-1", "2147483647", "-2147483648", "9223372036854775807", "9223372036854775808"),
    *("1e400", "-1e-400", "0." + "0" * 400 + "1", "9" * 2_000, "1e131071", "'NaN'", "'-Infinity'"),
    *("null", "true", "''", "' '", "'\\x'", "'\\xff'", "E'\\u0000'", "E'\\xff'", "U&'\\D800'"),
    *("'" + "漢" * 500 + "'", "'" + "a" * 20_000 + "'", "'{" + "{" * 50 + "}" * 50 + "}'"),
    *("'[" * 1 + "[" * 400 + "]" * 400 + "]'", "'4713-01-01 BC'", "'294277-01-01'", "'infinity'"),
    *("'1 year -13 mons'::interval", "array[]::int[]", "array[[1],[2]]", "'{1,null}'::int[]"),
    *("$1", "$0", "$65535", "$99999999999", "@", "::", "::int", "::nothing", "::numeric(1001)"),
    *("(" * 300, ")" * 300, "not " * 500, "- " * 400, "1 +" * 400 + "1", "select (" * 100),
    *("--", "/*", "*/", ";", ";;", "$$", "$a$", "'", '"', "\\", "\x7f", "\u202e", "\ufeff"),
    *("repeat('x', 1000000)", "repeat('x', 2000000000)", "lpad('', 99999999)", "power(9, 1e9)"),
    *("generate_series(1, 100000000)", "generate_series(1, 0)", "regexp_replace('" + "a" * 200),
    *("(select count(*) from pg_class a, pg_class b)", "random()", "now()", "pg_backend_pid()"),
    *("999999999999999999999::numeric ^ 99999", "1 / 0", "factorial(9999)", "1 % 0", "sqrt(-1)"),
    *("'a' similar to '(a|)*b'", "'x' ~ '(a*)*b'", "'x' like '%%%%%%'", "'%' like '\\'"),
)
VALUES: Final[tuple[bytes | None, ...]] = (
    *(None, b"", b"1", b"-1", b"x", b"\xff", b"\0", b"1" * 3_000, b"{1,2}", b"[]", b"NaN", b"t"),
    *(struct.pack("!i", 5), struct.pack("!q", -5), struct.pack("!d", 1e308), bytes(16)),
    *(
        struct.pack("!3i", 1, 0, 23),
        struct.pack("!hhhh", 9, 1, 0, 2),
        bytes.fromhex("01" + "7b" * 9),
    ),
)
OIDS: Final = (
    0,
    16,
    17,
    20,
    21,
    23,
    25,
    114,
    700,
    701,
    1043,
    1082,
    1114,
    1184,
    1700,
    1007,
    3802,
    99,
)


def with_parameters() -> Iterator[str]:
    """Each statement with a parameter in the place of each of its pieces."""
    for each in STATEMENTS:
        pieces = pieces_of(each)
        for at in range(len(pieces)):
            for parameter in ("$0", "$1"):
                yield " ".join((*pieces[:at], parameter, *pieces[at + 1 :]))


def pieces_of(sql: str) -> list[str]:
    return _PIECE_OF_STATEMENT.findall(sql)


def statement(chance: random.Random) -> str:
    """A statement that may mean something, or nothing."""
    pieces = pieces_of(chance.choice(STATEMENTS))
    for _ in range(chance.choice((0, 1, 1, 2, 3, 6))):
        if not pieces:
            break
        at = chance.randrange(len(pieces))
        match chance.randrange(9):
            case 0:
                del pieces[at]
            case 1 | 2:
                pieces[at] = chance.choice(EXTREME)
            case 3:
                pieces.insert(at, chance.choice(EXTREME))
            case 4:
                other = pieces_of(chance.choice(STATEMENTS))
                pieces[at:] = other[chance.randrange(len(other)) :]
            case 5:
                other = pieces_of(chance.choice(STATEMENTS))
                pieces[at : at + 1] = other[: chance.randrange(len(other)) + 1]
            case 6:
                to = chance.randrange(len(pieces))
                pieces[at], pieces[to] = pieces[to], pieces[at]
            case 7:
                other = pieces_of(chance.choice(STATEMENTS))
                pieces[at] = f"({' '.join(other)})"
            case 8:
                pieces = pieces[:at]
    sql = " ".join(pieces)
    if chance.random() < 0.05:
        sql = f"{sql}; {chance.choice(STATEMENTS)}"
    return sql.replace("\0", "")


def bad_statement(chance: random.Random, _database: Any) -> Talked:
    """By a simple query, by messages with parameters of any type and form, or as a COPY."""
    kind = chance.random()
    said: list[bytes]
    if kind < 0.5:
        said = [query(statement(chance))]
    elif kind < 0.85:
        said = _extended(chance)
    else:
        said = _copied(chance)
    fresh = chance.random() < 0.1
    hurried = chance.random() < 0.3
    parts = cut(chance, b"".join(said))
    return Talked(parts, chance.choice(("r1", "r2")), fresh, True, False, hurried)


def _extended(chance: random.Random) -> list[bytes]:
    count = chance.choice((0, 0, 1, 2, 5))
    name = chance.choice(("", "", "q1", "q2"))
    types = [chance.choice(OIDS) for _ in range(chance.randrange(count + 1))]
    values = [chance.choice(VALUES) for _ in range(count)]
    formats = [chance.choice((0, 0, 1, 2)) for _ in range(chance.choice((0, 1, count)))]
    results = [chance.choice((0, 1, 1, 7)) for _ in range(chance.choice((0, 1, 2)))]
    sql = statement(chance)
    for number in range(count):
        literal = re.search(r"(?<![\w'])\d+(?![\w'])", sql)
        if literal is not None:
            sql = f"{sql[: literal.start()]}${number + 1}{sql[literal.end() :]}"
    said = [
        parse(sql, name, types),
        describe(name),
        bind(*values, name=name, formats=formats, results=results),
        describe(portal=True),
        execute("", chance.choice((0, 0, 1, 2))),
        execute(""),
        SYNC,
    ]
    if chance.random() < 0.2:
        said.insert(chance.randrange(len(said)), close(name, portal=chance.random() < 0.5))
    if chance.random() < 0.2:
        del said[chance.randrange(len(said) - 1)]
    return said


def _copied(chance: random.Random) -> list[bytes]:
    sql, data = chance.choice(COPIES)
    if chance.random() < 0.3:
        pieces = pieces_of(sql)
        pieces[chance.randrange(len(pieces))] = chance.choice(EXTREME)
        sql = " ".join(pieces).replace("\0", "")
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(data) + 1)
        data = data[:at] + chance.choice(VALUES[1:]) + data[at + chance.randrange(3) :]  # type: ignore[operator]
    at = chance.randrange(len(data) + 1)
    end = chance.choice((COPY_DONE, COPY_DONE, copy_fail("no"), SYNC, query("select 1")))
    return [query(sql), copy_data(data[:at]), copy_data(data[at:]), end, COPY_DONE, SYNC]
