"""What clients say around BEGIN, savepoints and the portals that they end. See `wire_stories`."""

from __future__ import annotations

from typing import Final

TOLD: Final = """\
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
"""
