"""What clients are told of names, rows, notices and errors. See `wire_stories`."""

from __future__ import annotations

from typing import Final

TOLD: Final = """\
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
