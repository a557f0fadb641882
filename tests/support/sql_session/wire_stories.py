"""What clients say to a whole session, and the answers: held to our sessions in `test_wire_stories`
and to a real PostgreSQL in `tests/integration/test_wire_and_postgres`.

A line that begins with | is of messages, with a Sync at their end; any other one is a simple Query.
Under it stands the answer in the words of `wire_words`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.support.pgwire.wire_words import SYNC, bind, close, describe, execute, parse, query

MADE: Final = (
    "drop table if exists t",
    "create table t (id int primary key, a int)",
    "insert into t values (1, 10), (2, 20), (3, 30)",
)
"""Before each story."""
_MESSAGE: Final = re.compile(r"(\w+)( \w+)?\((\w*)(?:, (\w+))?\) ?(.*)")


class Turn(NamedTuple):
    said: str
    answer: str

    @property
    def messages(self) -> list[bytes]:
        if not self.said.startswith("|"):
            return [query(self.said)]
        return [*map(_message, self.said[2:].split(" | ")), SYNC]


class Story(NamedTuple):
    name: str
    turns: tuple[Turn, ...]


def _message(said: str) -> bytes:
    """`parse(f) select 1`, `bind(p, f) 1 2`, `execute(p, 3)`, `describe portal(p)`."""
    found = _MESSAGE.fullmatch(" ".join(said.split()))
    assert found is not None, said
    verb, what, name, second, rest = found.groups()
    match verb:
        case "parse":
            return parse(rest, name)
        case "bind":
            return bind(*rest.split(), portal=name, name=second or "")
        case "execute":
            return execute(name, int(second or 0))
    made = {"describe": describe, "close": close}[verb]
    return made(name, portal=what == " portal")


def stories() -> Iterator[Story]:
    told = _TOLD.replace("{70}", "a" * 70).replace("{63}", "a" * 63)
    for text in told.removeprefix("# ").split("\n# "):
        name, *lines = text.strip().splitlines()
        pairs = zip(lines[::2], lines[1::2], strict=True)
        yield Story(name, tuple(Turn(said.strip(), " ".join(a.split())) for said, a in pairs))


_TOLD: Final = """\
# BEGIN behind an INSERT of the same text goes on with its transaction
  insert into t values (9, 9); begin; insert into t values (10, 10); rollback
    C(INSERT 0 1) C(BEGIN) C(INSERT 0 1) C(ROLLBACK) Z(I)
  select count(*) from t
    T(count) D(3) C(SELECT 1) Z(I)
  insert into t values (9, 9); begin; select 1
    C(INSERT 0 1) C(BEGIN) T(?column?) D(1) C(SELECT 1) Z(T)
  select no
    E(42703) Z(E)
  commit
    C(ROLLBACK) Z(I)
  select count(*) from t
    T(count) D(3) C(SELECT 1) Z(I)
# what is committed in the middle of a text stays
  insert into t values (9, 9); begin; insert into t values (10, 10); commit; insert into t \
  values (11, 11); select no
    C(INSERT 0 1) C(BEGIN) C(INSERT 0 1) C(COMMIT) C(INSERT 0 1) E(42703) Z(I)
  select count(*) from t
    T(count) D(5) C(SELECT 1) Z(I)
# BEGIN in a batch of the extended protocol goes on with what came before
  | parse() insert into t values (9, 9) | bind() | execute() | parse() begin | bind() | \
  execute() | parse() select 1 | bind() | execute()
    1 2 C(INSERT 0 1) 1 2 C(BEGIN) 1 2 D(1) C(SELECT 1) Z(T)
  rollback
    C(ROLLBACK) Z(I)
  select count(*) from t
    T(count) D(3) C(SELECT 1) Z(I)
# a cursor that was declared before BEGIN is the block's
  select 1; declare c cursor for select id from t order by id; begin
    T(?column?) D(1) C(SELECT 1) C(DECLARE CURSOR) C(BEGIN) Z(T)
  fetch c
    T(id) D(1) C(FETCH 1) Z(T)
  commit
    C(COMMIT) Z(I)
  fetch c
    E(34000) Z(I)
  declare c cursor for select 1; begin
    C(DECLARE CURSOR) C(BEGIN) Z(T)
  begin; declare c cursor for select 1
    N(25001) C(BEGIN) E(42P03) Z(E)
  rollback
    C(ROLLBACK) Z(I)
# a level can't be another one than that of the statements before BEGIN
  insert into t values (9, 9); begin isolation level serializable; select 1
    C(INSERT 0 1) E(25001) Z(I)
  select id from t where id = 1; begin isolation level serializable
    T(id) D(1) C(SELECT 1) E(25001) Z(I)
  select count(*) from t
    T(count) D(3) C(SELECT 1) Z(I)
  insert into t values (9, 9); begin isolation level read committed
    C(INSERT 0 1) C(BEGIN) Z(T)
  set transaction isolation level serializable
    E(25001) Z(E)
  rollback
    C(ROLLBACK) Z(I)
  set timezone = 'UTC'; begin isolation level serializable
    C(SET) C(BEGIN) Z(T)
  show transaction_isolation
    T(transaction_isolation) D(serializable) C(SHOW) Z(T)
  rollback
    C(ROLLBACK) Z(I)
# READ ONLY holds from BEGIN on
  insert into t values (9, 9); begin read only; insert into t values (10, 10)
    C(INSERT 0 1) C(BEGIN) E(25006) Z(E)
  rollback
    C(ROLLBACK) Z(I)
  select count(*) from t
    T(count) D(3) C(SELECT 1) Z(I)
# savepoints are those of the block, and what came before it stays
  insert into t values (9, 9); begin; savepoint s; insert into t values (8, 8); rollback to s; \
  select count(*) from t; commit
    C(INSERT 0 1) C(BEGIN) C(SAVEPOINT) C(INSERT 0 1) C(ROLLBACK) T(count) D(4) C(SELECT 1) \
    C(COMMIT) Z(I)
  select count(*) from t
    T(count) D(4) C(SELECT 1) Z(I)
# FETCH is prepared before its cursor is there
  begin
    C(BEGIN) Z(T)
  | parse(f) fetch c
    1 Z(T)
  | describe statement(f)
    t() n Z(T)
  | bind(, f)
    2 Z(T)
  | bind(, f) | execute()
    2 E(34000) Z(E)
  rollback
    C(ROLLBACK) Z(I)
# FETCH gives what its cursor gives when it is bound
  begin
    C(BEGIN) Z(T)
  | parse(f) fetch c | describe statement(f)
    1 t() n Z(T)
  declare c cursor for select 1
    C(DECLARE CURSOR) Z(T)
  | bind(, f) | describe portal() | execute()
    2 T(?column?) D(1) C(FETCH 1) Z(T)
  rollback
    C(ROLLBACK) Z(I)
# MOVE is prepared before its cursor is there
  begin
    C(BEGIN) Z(T)
  | parse(f) move c | describe statement(f) | bind(, f) | describe portal() | execute()
    1 t() n 2 n E(34000) Z(E)
  rollback
    C(ROLLBACK) Z(I)
# a prepared FETCH whose cursor is gone
  begin; declare c cursor for select 1
    C(BEGIN) C(DECLARE CURSOR) Z(T)
  | parse(f) fetch c | describe statement(f)
    1 t() T(?column?) Z(T)
  close c
    C(CLOSE CURSOR) Z(T)
  rollback
    C(ROLLBACK) Z(I)
  begin
    C(BEGIN) Z(T)
  | bind(, f) | describe portal() | execute()
    2 n E(34000) Z(E)
  rollback
    C(ROLLBACK) Z(I)
# a bound FETCH whose cursor is gone
  begin; declare c cursor for select 1
    C(BEGIN) C(DECLARE CURSOR) Z(T)
  | parse(f) fetch c | describe statement(f) | bind(p, f)
    1 t() T(?column?) 2 Z(T)
  close c
    C(CLOSE CURSOR) Z(T)
  | execute(p)
    E(34000) Z(E)
  rollback
    C(ROLLBACK) Z(I)
# a prepared FETCH of another cursor
  begin; declare c cursor for select 1
    C(BEGIN) C(DECLARE CURSOR) Z(T)
  | parse(f) fetch c | describe statement(f)
    1 t() T(?column?) Z(T)
  close c; declare c cursor for select 1 as x, 'a' as b
    C(CLOSE CURSOR) C(DECLARE CURSOR) Z(T)
  rollback
    C(ROLLBACK) Z(I)
  begin; declare c cursor for select 1 as x, 'a' as b
    C(BEGIN) C(DECLARE CURSOR) Z(T)
  | bind(, f) | describe portal() | execute()
    2 T(x,b) D(1,a) C(FETCH 1) Z(T)
  rollback
    C(ROLLBACK) Z(I)
# FETCH from a portal, then from a cursor of its name
  begin
    C(BEGIN) Z(T)
  | parse() select * from generate_series(1,9) | bind(p) | execute(p, 2)
    1 2 D(1) D(2) s Z(T)
  | parse() fetch 3 p | describe statement() | bind() | describe portal() | execute() | execute()
    1 t() T(generate_series) 2 T(generate_series) D(3) D(4) D(5) C(FETCH 3) C(FETCH 0) Z(T)
  | parse(f) fetch 3 p
    1 Z(T)
  | close portal(p)
    3 Z(T)
  | bind(, f) | describe portal()
    2 n Z(T)
  declare p cursor for select 'x' as y
    C(DECLARE CURSOR) Z(T)
  | bind(, f) | describe portal() | execute()
    2 T(y) D(x) C(FETCH 1) Z(T)
  rollback
    C(ROLLBACK) Z(I)
# FETCH counts the rows of one Execute
  begin; declare c cursor for select * from generate_series(1,20)
    C(BEGIN) C(DECLARE CURSOR) Z(T)
  | parse(f) fetch 5 c | bind(p, f) | execute(p, 2) | execute(p, 2) | execute(p, 2) | execute(p, 2)
    1 2 D(1) D(2) s D(3) D(4) s D(5) C(FETCH 1) C(FETCH 0) Z(T)
  | bind(q, f) | execute(q) | execute(q) | execute(q, 1)
    2 D(6) D(7) D(8) D(9) D(10) C(FETCH 5) C(FETCH 0) C(FETCH 0) Z(T)
  rollback
    C(ROLLBACK) Z(I)
# FETCH that gave as many rows as were asked for
  begin; declare c cursor for select * from generate_series(1,20)
    C(BEGIN) C(DECLARE CURSOR) Z(T)
  | parse(f) fetch 4 c | bind(p, f) | execute(p, 2) | execute(p, 2) | execute(p, 2)
    1 2 D(1) D(2) s D(3) D(4) s C(FETCH 0) Z(T)
  rollback
    C(ROLLBACK) Z(I)
# MOVE is run once
  begin; declare c cursor for select * from generate_series(1,20)
    C(BEGIN) C(DECLARE CURSOR) Z(T)
  | parse() move 5 c | bind(p) | execute(p) | execute(p)
    1 2 C(MOVE 5) E(55000) Z(E)
  rollback
    C(ROLLBACK) Z(I)
# SELECT counts the rows of one Execute
  begin
    C(BEGIN) Z(T)
  | parse() select 1 | bind(p) | execute(p) | execute(p)
    1 2 D(1) C(SELECT 1) C(SELECT 0) Z(T)
  | parse() select 1 | bind(q) | execute(q, 1) | execute(q, 1) | execute(q, 1)
    1 2 D(1) s C(SELECT 0) C(SELECT 0) Z(T)
  rollback
    C(ROLLBACK) Z(I)
# UPDATE RETURNING counts the rows of one Execute
  begin
    C(BEGIN) Z(T)
  | parse() update t set a=a+1 returning id | bind(p) | execute(p) | execute(p)
    1 2 D(1) D(2) D(3) C(UPDATE 3) C(UPDATE 0) Z(T)
  rollback
    C(ROLLBACK) Z(I)
  begin
    C(BEGIN) Z(T)
  | parse() update t set a=a+1 returning id | bind(p) | execute(p, 1) | execute(p, 1) | \
  execute(p, 1) | execute(p, 1)
    1 2 D(1) s D(2) s D(3) s C(UPDATE 0) Z(T)
  rollback
    C(ROLLBACK) Z(I)
# INSERT RETURNING counts the rows of one Execute
  begin
    C(BEGIN) Z(T)
  | parse() insert into t values (7,7),(8,8) returning id | bind() | execute(, 1) | execute(, \
  1) | execute()
    1 2 D(7) s D(8) s C(INSERT 0 0) Z(T)
  rollback
    C(ROLLBACK) Z(I)
# DELETE RETURNING counts the rows of one Execute
  begin
    C(BEGIN) Z(T)
  | parse() delete from t returning id | bind() | execute(, 2) | execute(, 2) | execute()
    1 2 D(1) D(2) s D(3) C(DELETE 1) C(DELETE 0) Z(T)
  rollback
    C(ROLLBACK) Z(I)
# unknown names in a failed block
  begin
    C(BEGIN) Z(T)
  select no
    E(42703) Z(E)
  | execute(no)
    E(34000) Z(E)
  | describe portal(no)
    E(34000) Z(E)
  | describe statement(no)
    E(26000) Z(E)
  | bind(, no)
    E(26000) Z(E)
  | close statement(no) | close portal(no)
    3 3 Z(E)
  | parse(r) rollback | describe statement(r) | bind(, r) | execute()
    1 t() n 2 C(ROLLBACK) Z(I)
# too few parameters in a failed block
  begin
    C(BEGIN) Z(T)
  | parse(s) select $1::int | parse(co) commit
    1 1 Z(T)
  select no
    E(42703) Z(E)
  | bind(, s)
    E(08P01) Z(E)
  | bind(, co) 1
    E(08P01) Z(E)
  | bind(, s) 1
    E(25P02) Z(E)
  rollback
    C(ROLLBACK) Z(I)
# Execute of a cursor gives its next rows
  begin; declare c cursor for select * from generate_series(1,20)
    C(BEGIN) C(DECLARE CURSOR) Z(T)
  | describe portal(c) | execute(c, 2) | execute(c, 3)
    T(generate_series) D(1) D(2) s D(3) D(4) D(5) s Z(T)
  fetch c
    T(generate_series) D(6) C(FETCH 1) Z(T)
  rollback
    C(ROLLBACK) Z(I)
# Execute of a cursor gives all rows
  begin; declare c cursor for select * from generate_series(1,3)
    C(BEGIN) C(DECLARE CURSOR) Z(T)
  fetch c
    T(generate_series) D(1) C(FETCH 1) Z(T)
  | execute(c) | execute(c)
    D(2) D(3) C(SELECT 2) C(SELECT 0) Z(T)
  fetch backward c
    T(generate_series) D(3) C(FETCH 1) Z(T)
  rollback
    C(ROLLBACK) Z(I)
# Execute of a cursor outside of a block
  declare c cursor with hold for select * from generate_series(1,3)
    C(DECLARE CURSOR) Z(I)
  | describe portal(c) | execute(c, 1)
    T(generate_series) D(1) s Z(I)
  fetch c
    T(generate_series) D(2) C(FETCH 1) Z(I)
  | close portal(c)
    3 Z(I)
# Execute of a binary cursor gives text
  begin; declare b binary cursor for select 258 as x
    C(BEGIN) C(DECLARE CURSOR) Z(T)
  | describe portal(b) | execute(b)
    T(x) D(258) C(SELECT 1) Z(T)
  rollback
    C(ROLLBACK) Z(I)
# Execute of a cursor WITH HOLD
  declare c cursor with hold for select * from generate_series(1,700)
    C(DECLARE CURSOR) Z(I)
  | execute(c, 2)
    D(1) D(2) s Z(I)
  | execute(c, 2) | execute(c, 2)
    D(3) D(4) s D(5) D(6) s Z(I)
  fetch c
    T(generate_series) D(7) C(FETCH 1) Z(I)
  | close portal(c)
    3 Z(I)
  | execute(c)
    E(34000) Z(I)
# a cursor in a failed block
  declare c cursor with hold for select * from generate_series(1,700); begin
    C(DECLARE CURSOR) C(BEGIN) Z(T)
  select no
    E(42703) Z(E)
  | execute(c, 2)
    E(25P02) Z(E)
  | describe portal(c)
    E(25P02) Z(E)
  rollback
    C(ROLLBACK) Z(I)
  fetch c
    E(34000) Z(I)
  close c
    E(34000) Z(I)
# ROLLBACK TO ends portals that were bound since
  begin
    C(BEGIN) Z(T)
  savepoint s
    C(SAVEPOINT) Z(T)
  | parse() select * from generate_series(1,9) | bind(p) | execute(p, 2)
    1 2 D(1) D(2) s Z(T)
  rollback to s
    C(ROLLBACK) Z(T)
  | execute(p, 2)
    E(34000) Z(E)
  rollback
    C(ROLLBACK) Z(I)
# ROLLBACK TO leaves portals from before
  begin
    C(BEGIN) Z(T)
  | parse() select * from generate_series(1,9) | bind(p) | execute(p, 2)
    1 2 D(1) D(2) s Z(T)
  savepoint s
    C(SAVEPOINT) Z(T)
  select no
    E(42703) Z(E)
  rollback to s
    C(ROLLBACK) Z(T)
  | execute(p, 2)
    D(3) D(4) s Z(T)
  rollback
    C(ROLLBACK) Z(I)
# ROLLBACK TO ends portals of its own batch
  begin
    C(BEGIN) Z(T)
  | parse() select * from generate_series(1,9) | bind(p) | execute(p, 2) | parse() savepoint \
  s | bind() | execute() | parse() select * from generate_series(1,9) | bind(q) | execute(q, \
  2) | parse() rollback to s | bind() | execute() | execute(p, 2) | execute(q, 2)
    1 2 D(1) D(2) s 1 2 C(SAVEPOINT) 1 2 D(1) D(2) s 1 2 C(ROLLBACK) D(3) D(4) s E(34000) Z(E)
  rollback
    C(ROLLBACK) Z(I)
# RELEASE leaves portals
  begin; savepoint s
    C(BEGIN) C(SAVEPOINT) Z(T)
  | parse() select * from generate_series(1,9) | bind(p) | execute(p, 2)
    1 2 D(1) D(2) s Z(T)
  release s
    C(RELEASE) Z(T)
  | execute(p, 2)
    D(3) D(4) s Z(T)
  savepoint s2; rollback to s2
    C(SAVEPOINT) C(ROLLBACK) Z(T)
  | execute(p, 2)
    D(5) D(6) s Z(T)
  rollback
    C(ROLLBACK) Z(I)
# ROLLBACK TO ends portals of savepoints that were released
  begin; savepoint o; savepoint s
    C(BEGIN) C(SAVEPOINT) C(SAVEPOINT) Z(T)
  | parse() select * from generate_series(1,9) | bind(p) | execute(p, 2)
    1 2 D(1) D(2) s Z(T)
  release s
    C(RELEASE) Z(T)
  rollback to o
    C(ROLLBACK) Z(T)
  | execute(p, 2)
    E(34000) Z(E)
  rollback
    C(ROLLBACK) Z(I)
# ROLLBACK TO ends the unnamed portal
  begin; savepoint s
    C(BEGIN) C(SAVEPOINT) Z(T)
  | parse() select * from generate_series(1,9) | bind() | execute(, 2) | parse(r) rollback to \
  s | bind(z, r) | execute(z) | execute(, 2)
    1 2 D(1) D(2) s 1 2 C(ROLLBACK) E(34000) Z(E)
  rollback
    C(ROLLBACK) Z(I)
# a portal that has failed is not run again
  begin
    C(BEGIN) Z(T)
  | parse() select 10 / (1 - n) from generate_series(1, 9) as n | bind(p)
    1 2 Z(T)
  savepoint s
    C(SAVEPOINT) Z(T)
  | execute(p)
    E(22012) Z(E)
  rollback to s
    C(ROLLBACK) Z(T)
  | execute(p)
    E(55000) Z(E)
  rollback
    C(ROLLBACK) Z(I)
# savepoints of one name and their portals
  begin; savepoint a
    C(BEGIN) C(SAVEPOINT) Z(T)
  | parse(g) select * from generate_series(1,9) | bind(p, g) | execute(p, 1)
    1 2 D(1) s Z(T)
  savepoint a
    C(SAVEPOINT) Z(T)
  | bind(q, g) | execute(q, 1)
    2 D(1) s Z(T)
  rollback to a
    C(ROLLBACK) Z(T)
  | execute(p, 1)
    D(2) s Z(T)
  | execute(q, 1)
    E(34000) Z(E)
  rollback to a
    C(ROLLBACK) Z(T)
  release a; rollback to a
    C(RELEASE) C(ROLLBACK) Z(T)
  | execute(p, 1)
    E(34000) Z(E)
  rollback
    C(ROLLBACK) Z(I)
# ROLLBACK TO ends its own portal
  begin; savepoint s
    C(BEGIN) C(SAVEPOINT) Z(T)
  | parse() rollback to s | bind(z) | execute(z) | execute(z)
    1 2 C(ROLLBACK) E(34000) Z(E)
  rollback
    C(ROLLBACK) Z(I)
# ROLLBACK TO can be run once
  begin
    C(BEGIN) Z(T)
  | parse(r) rollback to s | bind(z, r)
    1 2 Z(T)
  savepoint s
    C(SAVEPOINT) Z(T)
  | execute(z) | execute(z)
    C(ROLLBACK) E(55000) Z(E)
  rollback
    C(ROLLBACK) Z(I)
# AND CHAIN ends portals
  begin
    C(BEGIN) Z(T)
  | parse(g) select * from generate_series(1,9) | bind(p, g) | execute(p, 1)
    1 2 D(1) s Z(T)
  commit and chain
    C(COMMIT) Z(T)
  | execute(p, 1)
    E(34000) Z(E)
  rollback
    C(ROLLBACK) Z(I)
# long names are cut, with a notice for each
  create table {70} (id int, {63} int); insert into {70} values (1, 2)
    N(42622) N(42622) C(CREATE TABLE) C(INSERT 0 1) Z(I)
  | parse() select {70} as x from {63}
    N(42622) 1 Z(I)
  | bind() | execute()
    2 D(2) C(SELECT 1) Z(I)
  select {70}.no from {70}
    N(42622) N(42622) E(42703) Z(I)
  drop table {70}
    N(42622) C(DROP TABLE) Z(I)
  drop table {63}
    E(42P01) Z(I)
# a name of nothing
  select 1 as ""
    E(42601) Z(I)
  begin; savepoint ""
    E(42601) Z(I)
# columns without a name
  select true, (false), true is true, true::text, 1 = 1, case when true then true end
    T(?column?,?column?,?column?,text,?column?,case) D(t,f,t,true,t,t) C(SELECT 1) Z(I)
# what a recursive query begins with gives the length, too
  with recursive r(x) as (select 'a'::varchar(5) union all select 'toolongx' from r where x = 'a') \
  select * from r
    E(42804) Z(I)
  with recursive r(x) as (select 1::numeric(5,2) union all select x + 1 from r where x < 3) \
  select * from r
    E(42804) Z(I)
  with recursive r(x) as (select 'a'::varchar(5) union all select 'b'::varchar(5) from r \
  where x = 'a') select * from r
    T(x) D(a) D(b) C(SELECT 2) Z(I)
# EXPLAIN of a cursor that would be declared
  begin; explain declare c scroll cursor for select no from t
    C(BEGIN) E(42703) Z(E)
  rollback
    C(ROLLBACK) Z(I)
  explain declare c scroll no scroll cursor for select 1
    E(42P11) Z(I)
  explain declare c cursor with hold for select * from t for update
    E(0A000) Z(I)
  explain declare c cursor for insert into t values (1, 2)
    E(42601) Z(I)
  explain declare c cursor for
    E(42601) Z(I)
  explain fetch c
    E(42601) Z(I)
# what is no sequence
  select nextval('pg_class')
    T(nextval) E(42809) Z(I)
  select currval('t_pkey')
    T(currval) E(42809) Z(I)
  select setval('t', 1)
    T(setval) E(42809) Z(I)
# NULLIF computes each of its values once
  drop sequence if exists s; create sequence s; select nullif(nextval('s'), -1)
    N(00000) C(DROP SEQUENCE) C(CREATE SEQUENCE) T(nullif) D(1) C(SELECT 1) Z(I)
  select nullif(nextval('s'), nextval('s')), nullif(nextval('s'), 4), nextval('s')
    T(nullif,nullif,nextval) D(2,NULL,5) C(SELECT 1) Z(I)
  select nullif(1, 1.0), nullif(2, null), nullif(null, 2), nullif('a', 'b'), nullif('1', 1)
    T(nullif,nullif,nullif,nullif,nullif) D(NULL,2,NULL,a,NULL) C(SELECT 1) Z(I)
  drop sequence s
    C(DROP SEQUENCE) Z(I)
# rows before an error are told
  select 20 / (id - 3) as d from t order by id
    T(d) D(-10) D(-20) E(22012) Z(I)
  begin; insert into t values (0, 0); select 6 / (id - 2) as d from t; select 1
    C(BEGIN) C(INSERT 0 1) T(d) D(-6) E(22012) Z(E)
  rollback
    C(ROLLBACK) Z(I)
  | parse() select 20 / (id - 3) from t order by id | bind() | execute()
    1 2 D(-10) D(-20) E(22012) Z(I)
  | parse() select 20 / (id - 3) from t order by id | bind() | execute(, 2) | execute(, 2)
    1 2 D(-10) D(-20) s E(22012) Z(I)
  | parse() select 20 / (id - 3) from t order by id | bind() | execute(, 9)
    1 2 D(-10) D(-20) E(22012) Z(I)
  select 20 / (id - 1) as d from t order by id
    T(d) E(22012) Z(I)
# a recursive query that begins with a constant of no type
  with recursive r(x) as (select 'a' union all select relname::varchar from r, pg_class \
  where x = '') select * from r
    E(42804) Z(I)
  with recursive r(x) as (select 'z' union all select id from t, r) select * from r
    E(22P02) Z(I)
  with recursive r(x) as (select null union all select id from t, r) select * from r
    E(42804) Z(I)
  with recursive r(x) as (values ('z') union all select 'y'::varchar from r where x = 'z') \
  select * from r
    T(x) D(z) D(y) C(SELECT 2) Z(I)
  with recursive r(x) as (select 'z' union all select 'y' from r where x = 'z') select * from r
    T(x) D(z) D(y) C(SELECT 2) Z(I)
# IN computes what is looked for once
  create sequence s; select nextval('s') in (select id from t), nextval('s') not in (select id \
  from t where id > 2)
    C(CREATE SEQUENCE) T(?column?,?column?) D(t,t) C(SELECT 1) Z(I)
  select currval('s'), nextval('s') = any (select null::int)
    T(currval,?column?) D(2,NULL) C(SELECT 1) Z(I)
  select id, nextval('s') in (select id::smallint + 4 from t) as i from t order by id
    T(id,i) D(1,f) D(2,t) D(3,t) C(SELECT 3) Z(I)
  select currval('s'); drop sequence s
    T(currval) D(6) C(SELECT 1) C(DROP SEQUENCE) Z(I)
# lastval of a sequence that is gone
  drop sequence if exists s; begin; create sequence s; select nextval('s')
    N(00000) C(DROP SEQUENCE) C(BEGIN) C(CREATE SEQUENCE) T(nextval) D(1) C(SELECT 1) Z(T)
  rollback
    C(ROLLBACK) Z(I)
  select lastval()
    T(lastval) E(55000) Z(I)
  create sequence s
    C(CREATE SEQUENCE) Z(I)
  select nextval('s'), lastval(); begin; create sequence s2; select nextval('s2'), lastval()
    T(nextval,lastval) D(1,1) C(SELECT 1) C(BEGIN) C(CREATE SEQUENCE) T(nextval,lastval) D(1,1) \
    C(SELECT 1) Z(T)
  rollback
    C(ROLLBACK) Z(I)
  select currval('s')
    T(currval) D(1) C(SELECT 1) Z(I)
  select lastval()
    T(lastval) E(55000) Z(I)
  begin; create sequence s3; savepoint a; create sequence s4; select nextval('s4'); rollback to a
    C(BEGIN) C(CREATE SEQUENCE) C(SAVEPOINT) C(CREATE SEQUENCE) T(nextval) D(1) C(SELECT 1) \
    C(ROLLBACK) Z(T)
  create sequence s5; savepoint a; select currval('s5')
    C(CREATE SEQUENCE) C(SAVEPOINT) T(currval) E(55000) Z(E)
  rollback to a
    C(ROLLBACK) Z(T)
  select lastval()
    T(lastval) E(55000) Z(E)
  rollback
    C(ROLLBACK) Z(I)
  select nextval('s'); drop sequence s
    T(nextval) D(2) C(SELECT 1) C(DROP SEQUENCE) Z(I)
  select lastval()
    T(lastval) E(55000) Z(I)
# rows without a column
  select
    T() D() C(SELECT 1) Z(I)
  select from t where a > 10
    T() D() D() C(SELECT 2) Z(I)
  with x as (select from t) select count(*) from x
    T(count) D(3) C(SELECT 1) Z(I)
  with x as (select from t) select * from x limit 1
    T() D() C(SELECT 1) Z(I)
  select count(*) from (select from t union all select from t) as x
    T(count) D(6) C(SELECT 1) Z(I)
  select from t intersect all select from t where a > 10 limit 1
    T() D() C(SELECT 1) Z(I)
  begin; declare c cursor for select from t; fetch 2 c; rollback
    C(BEGIN) C(DECLARE CURSOR) T() D() D() C(FETCH 2) C(ROLLBACK) Z(I)
# LATERAL queries that aggregate
  select t.id, s.* from t, lateral (select count(*) as n, sum(u.a) from t u where u.id < t.id) s \
  order by 1
    T(id,n,sum) D(1,0,NULL) D(2,1,10) D(3,2,30) C(SELECT 3) Z(I)
  select t.id, s.x from t cross join lateral (select sum(u.a) + t.id from t u where u.id <= t.id) \
  as s(x) where x > 20 order by x desc
    T(id,x) D(3,63) D(2,32) C(SELECT 2) Z(I)
  select s.n, count(*) from t, lateral (select count(*) / 2 as n from t u where u.id < t.id) s \
  group by s.n order by 1
    T(n,count) D(0,2) D(1,1) C(SELECT 2) Z(I)
  select t.id, r.d from t, lateral (select count(*) c from t u where u.id < t.id) s, \
  lateral (select s.c + count(*) d from t w where w.id <> s.c) r order by 1
    T(id,d) D(1,3) D(2,3) D(3,4) C(SELECT 3) Z(I)
  select count(*) from t, lateral (select count(*), u.id from t u) s
    E(42803) Z(I)
  select count(*) from pg_partition_tree('t'::regclass) as p where p.isleaf
    T(count) D(0) C(SELECT 1) Z(I)
  select option_name from pg_options_to_table(null)
    T(option_name) C(SELECT 0) Z(I)
# what is no query has failed before its columns are told
  begin; declare c cursor for select 10 / (2 - n) as x from generate_series(1, 3) as n; fetch c
    C(BEGIN) C(DECLARE CURSOR) T(x) D(10) C(FETCH 1) Z(T)
  fetch 2 c
    E(22012) Z(E)
  rollback; fetch 2 c
    C(ROLLBACK) E(34000) Z(I)
  begin; declare c cursor for select id from t order by id; fetch prior c; fetch c
    C(BEGIN) C(DECLARE CURSOR) T(id) C(FETCH 0) T(id) D(1) C(FETCH 1) Z(T)
  rollback
    C(ROLLBACK) Z(I)
  begin; declare c no scroll cursor for select id from t order by id; fetch 2 c; fetch prior c
    C(BEGIN) C(DECLARE CURSOR) T(id) D(1) D(2) C(FETCH 2) E(55000) Z(E)
  rollback
    C(ROLLBACK) Z(I)
  insert into t values (4, 1 / (select count(*) from t where a < 0)) returning id
    E(22012) Z(I)
  update t set a = 1 / (id - 2) returning a
    E(22012) Z(I)
  delete from t where 1 / (id - 2) > 0 returning *
    E(22012) Z(I)
  select 1 / (id - 1) as x from t order by id
    T(x) E(22012) Z(I)
  | parse() update t set a = 1 / (id - 2) returning a | describe statement() | bind() | execute()
    1 t() T(a) 2 E(22012) Z(I)
"""
STORIES: Final = (*stories(),)
