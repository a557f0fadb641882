"""What clients say to a whole session, and the answers: held to our sessions in `test_wire_stories`
and to a real PostgreSQL in `tests/integration/test_wire_and_postgres`.

A turn is a text (a simple Query) or messages with their Sync, and the words of its answer.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from tests.unit.pgwire.wire_words import SYNC, bind, execute, parse, query

Turn: TypeAlias = tuple[str | tuple[bytes, ...], str]
MADE: Final = (
    "drop table if exists t",
    "create table t (id int primary key, a int)",
    "insert into t values (1, 10), (2, 20), (3, 30)",
)
"""Before each story."""


class Story(NamedTuple):
    name: str
    turns: tuple[Turn, ...]


def messages_of(said: str | tuple[bytes, ...]) -> tuple[bytes, ...]:
    return (query(said),) if isinstance(said, str) else said


def ran(text: str) -> tuple[bytes, ...]:
    """By the extended protocol, without a name or a Sync."""
    return parse(text), bind(), execute()


COUNT: Final = "select count(*) from t"
THREE: Final = "T(count) D(3) C(SELECT 1) Z(I)"
SERIES: Final = "select * from generate_series(1, 9)"
IMPLICIT: Final = (
    Story(
        "BEGIN behind an INSERT of the same text goes on with its transaction",
        (
            (
                "insert into t values (9, 9); begin; insert into t values (10, 10); rollback",
                "C(INSERT 0 1) C(BEGIN) C(INSERT 0 1) C(ROLLBACK) Z(I)",
            ),
            (COUNT, THREE),
            (
                "insert into t values (9, 9); begin; select 1",
                "C(INSERT 0 1) C(BEGIN) T(?column?) D(1) C(SELECT 1) Z(T)",
            ),
            ("select no", "E(42703) Z(E)"),
            ("commit", "C(ROLLBACK) Z(I)"),
            (COUNT, THREE),
        ),
    ),
    Story(
        "what is committed in the middle of a text stays",
        (
            (
                (
                    "insert into t values (9, 9); begin; insert into t values (10, 10); commit;"
                    " insert into t values (11, 11); select no"
                ),
                "C(INSERT 0 1) C(BEGIN) C(INSERT 0 1) C(COMMIT) C(INSERT 0 1) E(42703) Z(I)",
            ),
            (COUNT, "T(count) D(5) C(SELECT 1) Z(I)"),
        ),
    ),
    Story(
        "BEGIN in a batch of the extended protocol goes on with what came before",
        (
            (
                (*ran("insert into t values (9, 9)"), *ran("begin"), *ran("select 1"), SYNC),
                "1 2 C(INSERT 0 1) 1 2 C(BEGIN) 1 2 D(1) C(SELECT 1) Z(T)",
            ),
            ("rollback", "C(ROLLBACK) Z(I)"),
            (COUNT, THREE),
        ),
    ),
    Story(
        "a cursor that was declared before BEGIN is the block's",
        (
            (
                "select 1; declare c cursor for select id from t order by id; begin",
                "T(?column?) D(1) C(SELECT 1) C(DECLARE CURSOR) C(BEGIN) Z(T)",
            ),
            ("fetch c", "T(id) D(1) C(FETCH 1) Z(T)"),
            ("commit", "C(COMMIT) Z(I)"),
            ("fetch c", "E(34000) Z(I)"),
            ("declare c cursor for select 1; begin", "C(DECLARE CURSOR) C(BEGIN) Z(T)"),
            (
                "begin; declare c cursor for select 1",
                "N(25001) C(BEGIN) E(42P03) Z(E)",
            ),
            ("rollback", "C(ROLLBACK) Z(I)"),
        ),
    ),
    Story(
        "a level can't be another one than that of the statements before BEGIN",
        (
            (
                "insert into t values (9, 9); begin isolation level serializable; select 1",
                "C(INSERT 0 1) E(25001) Z(I)",
            ),
            (
                "select id from t where id = 1; begin isolation level serializable",
                "T(id) D(1) C(SELECT 1) E(25001) Z(I)",
            ),
            (COUNT, THREE),
            (
                "insert into t values (9, 9); begin isolation level read committed",
                "C(INSERT 0 1) C(BEGIN) Z(T)",
            ),
            ("set transaction isolation level serializable", "E(25001) Z(E)"),
            ("rollback", "C(ROLLBACK) Z(I)"),
            (
                "set timezone = 'UTC'; begin isolation level serializable",
                "C(SET) C(BEGIN) Z(T)",
            ),
            ("show transaction_isolation", "T(transaction_isolation) D(serializable) C(SHOW) Z(T)"),
            ("rollback", "C(ROLLBACK) Z(I)"),
        ),
    ),
    Story(
        "READ ONLY holds from BEGIN on",
        (
            (
                "insert into t values (9, 9); begin read only; insert into t values (10, 10)",
                "C(INSERT 0 1) C(BEGIN) E(25006) Z(E)",
            ),
            ("rollback", "C(ROLLBACK) Z(I)"),
            (COUNT, THREE),
        ),
    ),
    Story(
        "savepoints are those of the block, and what came before it stays",
        (
            (
                (
                    "insert into t values (9, 9); begin; savepoint s; insert into t values (8, 8);"
                    " rollback to s; select count(*) from t; commit"
                ),
                (
                    "C(INSERT 0 1) C(BEGIN) C(SAVEPOINT) C(INSERT 0 1) C(ROLLBACK)"
                    " T(count) D(4) C(SELECT 1) C(COMMIT) Z(I)"
                ),
            ),
            (COUNT, "T(count) D(4) C(SELECT 1) Z(I)"),
        ),
    ),
)
STORIES: Final = (*IMPLICIT,)
