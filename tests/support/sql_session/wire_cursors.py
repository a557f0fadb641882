"""What clients do with cursors: FETCH, MOVE, Execute with a limit of rows. See `wire_stories`."""

from __future__ import annotations

from typing import Final

TOLD: Final = """\
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
"""
