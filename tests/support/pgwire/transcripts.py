"""Messages and what a server must answer, word for word: PostgreSQL 15 answers exactly so.

`test_transcripts.py` holds our conversation to it,
`tests/integration/postgres_compat/test_wire_and_postgres.py`
PostgreSQL itself. Statements are those that both know; each transcript begins on a new connection.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.support.pgwire.wire_words import (
    COPY_DONE,
    FLUSH,
    SYNC,
    bind,
    close,
    copy_data,
    copy_fail,
    describe,
    execute,
    message,
    parse,
    query,
)


class Transcript(NamedTuple):
    """`scenario`: numbers of the scenarios that it is."""

    name: str
    messages: tuple[bytes, ...]
    answer: str
    scenario: int = 0


ONE = (parse("select 1"), bind(), execute(), SYNC)
ANSWERED = "1 2 D(1) C(SELECT 1) Z(I)"
BROKEN = "select 1/(select 0)"
FAILING = (parse(BROKEN), bind(), execute())
SERIES = "select * from generate_series(1, 5)"
TABLE = query("create temp table t (id int primary key, a text)")
CREATED = "C(CREATE TABLE) Z(I)"

TRANSCRIPTS = (
    Transcript("simple query", (query("select 1"),), "T(?column?) D(1) C(SELECT 1) Z(I)"),
    Transcript("empty query", (query(""), query(" ;; ")), "I Z(I) I Z(I)", 87),
    Transcript(
        "several statements in one query",
        (query("select 1; select 2"),),
        "T(?column?) D(1) C(SELECT 1) T(?column?) D(2) C(SELECT 1) Z(I)",
    ),
    Transcript(
        "an error in a simple query skips only the rest of that query",
        (query(f"select 1; {BROKEN}; select 2"), query("select 3")),
        "T(?column?) D(1) C(SELECT 1) T(?column?) E(22012) Z(I) T(?column?) D(3) C(SELECT 1) Z(I)",
        83,
    ),
    Transcript("extended", ONE, ANSWERED),
    Transcript(
        "after an error everything is skipped up to Sync, a simple query too",
        (*FAILING, query("select 1"), parse("select 2"), FLUSH, execute(), SYNC, query("select 3")),
        "1 2 E(22012) Z(I) T(?column?) D(3) C(SELECT 1) Z(I)",
        81,
    ),
    Transcript(
        "a failed block",
        (
            query("begin"),
            query(BROKEN),
            query("select 1"),
            *(parse("select 1"), SYNC),
            *(parse("rollback", "r"), bind(name="r"), execute(), SYNC),
        ),
        "C(BEGIN) Z(T) T(?column?) E(22012) Z(E) E(25P02) Z(E) E(25P02) Z(E) 1 2 C(ROLLBACK) Z(I)",
        82,
    ),
    Transcript(
        "bind and describe in a failed block",
        (
            *(parse("select 1", "s"), SYNC),
            *(query("begin"), query(BROKEN)),
            *(bind(name="s"), SYNC),
            *(describe("s"), SYNC),
            *(FLUSH, SYNC),
            query("commit"),
            *(bind(name="s"), execute(), SYNC),
        ),
        "1 Z(I) C(BEGIN) Z(T) T(?column?) E(22012) Z(E) E(25P02) Z(E) E(25P02) Z(E) Z(E)"
        " C(ROLLBACK) Z(I) 2 D(1) C(SELECT 1) Z(I)",
        82,
    ),
    Transcript(
        "describe tells parameters and columns without running",
        (parse("select $1::integer as a, $2::text as b", "s"), describe("s"), SYNC),
        "1 t(23,25) T(a,b) Z(I)",
    ),
    Transcript(
        "describe of a portal, and of what gives no rows",
        (
            *(parse("select 1 as a", "s"), bind(name="s"), describe(portal=True), SYNC),
            *(parse("begin"), describe(), bind(), describe(portal=True), SYNC),
        ),
        "1 2 T(a) Z(I) 1 t() n 2 n Z(I)",
    ),
    Transcript(
        "flush brings answers without an end of the batch",
        (parse("select 1"), FLUSH, bind(), execute(), FLUSH, SYNC),
        ANSWERED,
    ),
    Transcript(
        "a portal is suspended and resumed",
        (parse(SERIES), bind(), execute("", 2), execute("", 2), execute("", 2), execute(""), SYNC),
        "1 2 D(1) D(2) s D(3) D(4) s D(5) C(SELECT 1) C(SELECT 0) Z(I)",
        85,
    ),
    Transcript(
        "a portal that gave exactly as many rows as asked for is suspended",
        (parse(SERIES), bind(), execute("", 5), execute("", 5), SYNC),
        "1 2 D(1) D(2) D(3) D(4) D(5) s C(SELECT 0) Z(I)",
        85,
    ),
    Transcript(
        "portals end with their transaction",
        (
            *(parse(SERIES, "s"), bind(name="s", portal="p"), execute("p", 1), SYNC),
            *(execute("p"), SYNC),
        ),
        "1 2 D(1) s Z(I) E(34000) Z(I)",
        85,
    ),
    Transcript(
        "portals end with a transaction that fails, in a simple query too",
        (
            *(parse(SERIES, "s"), bind(name="s", portal="p"), query(BROKEN)),
            *(execute("p"), SYNC),
        ),
        "1 2 T(?column?) E(22012) Z(I) E(34000) Z(I)",
        85,
    ),
    Transcript(
        "portals live on in a block, through Sync",
        (
            query("begin"),
            *(parse(SERIES, "s"), bind(name="s", portal="p"), execute("p", 4), SYNC),
            *(execute("p"), close("p", portal=True), execute("p"), SYNC),
            query("rollback"),
        ),
        "C(BEGIN) Z(T) 1 2 D(1) D(2) D(3) D(4) s Z(T) D(5) C(SELECT 1) 3 E(34000) Z(E)"
        " C(ROLLBACK) Z(I)",
        85,
    ),
    Transcript(
        "a portal that gives no rows runs once",
        (query("begin"), parse("savepoint a"), bind(), execute(), execute(), SYNC),
        "C(BEGIN) Z(T) 1 2 C(SAVEPOINT) E(55000) Z(E)",
    ),
    Transcript(
        "names of prepared statements",
        (
            *(parse("select 1", "s"), parse("select 2", "s"), SYNC),
            *(bind(name="s"), execute(), SYNC),
            *(close("s"), close("unknown"), bind(name="s"), SYNC),
            *(parse("select 3"), parse("select 4"), bind(), execute(), SYNC),
        ),
        "1 E(42P05) Z(I) 2 D(1) C(SELECT 1) Z(I) 3 3 E(26000) Z(I) 1 1 2 D(4) C(SELECT 1) Z(I)",
    ),
    Transcript(
        "a simple query drops the unnamed statement",
        (parse("select 1"), SYNC, query("select 2"), bind(), SYNC),
        "1 Z(I) T(?column?) D(2) C(SELECT 1) Z(I) E(26000) Z(I)",
    ),
    Transcript(
        "a cursor name that is taken",
        (
            *(parse("select 1", "s"), bind(name="s", portal="p"), bind(name="s", portal="p"), SYNC),
            *(bind(name="s"), bind(name="s"), execute(), SYNC),
        ),
        "1 2 E(42P03) Z(I) 2 2 D(1) C(SELECT 1) Z(I)",
    ),
    Transcript(
        "deallocate",
        (
            *(parse("select 1", "s"), SYNC, query("deallocate s"), query("deallocate s")),
            *(parse("select 1", "s"), SYNC, query("deallocate all"), bind(name="s"), SYNC),
        ),
        "1 Z(I) C(DEALLOCATE) Z(I) E(26000) Z(I) 1 Z(I) C(DEALLOCATE ALL) Z(I) E(26000) Z(I)",
    ),
    Transcript(
        "an empty statement in the extended protocol",
        (parse(""), describe(), bind(), describe(portal=True), execute(), SYNC),
        "1 t() n 2 n I Z(I)",
        87,
    ),
    Transcript(
        "null and empty parameters",
        (parse("select $1::text, $2::text, $3::integer"), bind(None, "", None), execute(), SYNC),
        "1 2 D(NULL,,NULL) C(SELECT 1) Z(I)",
        87,
    ),
    Transcript(
        "too few parameters",
        (parse("select $1::text"), bind(), SYNC, parse("select 1"), bind("x"), SYNC),
        "1 E(08P01) Z(I) 1 E(08P01) Z(I)",
    ),
    Transcript(
        "formats that do not fit",
        (
            *(parse("select $1::text", "s"), bind("x", name="s", formats=(0, 0)), SYNC),
            *(bind("x", name="s", results=(0, 0)), SYNC, bind("x", name="s", formats=(2,)), SYNC),
        ),
        "1 E(08P01) Z(I) E(08P01) Z(I) E(22023) Z(I)",
    ),
    Transcript(
        "values that are no values",
        (
            *(parse("select $1::integer", "s"), bind("x", name="s"), SYNC),
            *(bind(b"\0\0\1", name="s", formats=(1,)), SYNC),
            *(bind(bytes(5), name="s", formats=(1,)), SYNC),
            *(bind("99999999999", name="s"), SYNC),
            *(parse("select $1::text", "t"), bind(b"\xff", name="t"), SYNC),
            *(parse("select $1::boolean", "b"), bind("maybe", name="b"), SYNC),
        ),
        "1 E(22P02) Z(I) E(08P01) Z(I) E(22P03) Z(I) E(22003) Z(I) 1 E(22021) Z(I) 1 E(22P02) Z(I)",
    ),
    Transcript(
        "several commands in one prepared statement",
        (parse("select 1; select 2"), SYNC, parse("select 1;"), bind(), execute(), SYNC),
        f"E(42601) Z(I) {ANSWERED}",
    ),
    Transcript("no parameter in a simple query", (query("select $1::text"),), "E(42P02) Z(I)"),
    Transcript(
        "parameter status on set",
        (query("set timezone to 'UTC'"), query("set application_name = 'me'")),
        "C(SET) Z(I) C(SET) S(application_name=me) Z(I)",
        87,
    ),
    Transcript(
        "a batch is one implicit transaction",
        (
            TABLE,
            *(parse("insert into t values (1, 'a')"), bind(), execute(), *FAILING, SYNC),
            query("select id from t"),
            query(f"insert into t values (2, 'b'); {BROKEN}"),
            query("select id from t"),
            *(parse("insert into t values (3, 'c')"), bind(), execute(), SYNC),
            query("select id from t"),
        ),
        f"{CREATED} 1 2 C(INSERT 0 1) 1 2 E(22012) Z(I) T(id) C(SELECT 0) Z(I)"
        " C(INSERT 0 1) T(?column?) E(22012) Z(I) T(id) C(SELECT 0) Z(I)"
        " 1 2 C(INSERT 0 1) Z(I) T(id) D(3) C(SELECT 1) Z(I)",
        86,
    ),
    Transcript(
        "copy from stdin",
        (
            TABLE,
            *(query("copy t from stdin"), copy_data(b"1\ta\n2\t\\N\n3"), copy_data(b"\tx\\ty\n")),
            COPY_DONE,
            query("select id, a from t order by id"),
        ),
        f"{CREATED} G C(COPY 3) Z(I) T(id,a) D(1,a) D(2,NULL) D(3,x\ty) C(SELECT 3) Z(I)",
    ),
    Transcript(
        "copy that fails, on the client's side and on ours; its data is dropped",
        (
            TABLE,
            *(query("copy t from stdin"), copy_data(b"1\ta\n"), copy_fail("changed my mind")),
            *(query("copy t from stdin"), copy_data(b"1\n"), copy_data(b"2\tb\n"), COPY_DONE),
            query("select id from t"),
        ),
        f"{CREATED} G E(57014) Z(I) G E(22P04) Z(I) T(id) C(SELECT 0) Z(I)",
    ),
    Transcript(
        "sync and flush mean nothing during copy",
        (
            TABLE,
            *(query("copy t from stdin"), SYNC, FLUSH, copy_data(b"1\ta\n"), COPY_DONE),
        ),
        f"{CREATED} G C(COPY 1) Z(I)",
    ),
    Transcript(
        "another message during copy ends the connection",
        (TABLE, query("copy t from stdin"), query("select 1"), query("select 2")),
        f"{CREATED} G E(08P01) E(08P01)",
    ),
    Transcript(
        "an error that is found while binding",
        (parse("select 1/0"), bind(), execute(), SYNC, query("select 1/0")),
        "1 E(22012) Z(I) E(22012) Z(I)",
    ),
    Transcript(
        "copy in the extended protocol",
        (
            TABLE,
            *(parse("copy t from stdin"), bind(), execute()),
            *(copy_data(b"1\ta\n"), COPY_DONE, SYNC),
            *(parse("copy t from stdin"), bind(), execute(), copy_fail("no"), execute(), SYNC),
        ),
        f"{CREATED} 1 2 G C(COPY 1) Z(I) 1 2 G E(57014) Z(I)",
    ),
    Transcript(
        "copy among other statements of one query",
        (
            TABLE,
            *(query("select 1; copy t from stdin; select 2"), copy_data(b"1\ta\n"), COPY_DONE),
        ),
        f"{CREATED} T(?column?) D(1) C(SELECT 1) G C(COPY 1) T(?column?) D(2) C(SELECT 1) Z(I)",
    ),
    Transcript(
        "a malformed message of the extended protocol",
        (message(b"D", b"Xs\0"), SYNC, message(b"E", b"\0"), SYNC, query("select 1")),
        "E(08P01) Z(I) E(08P01) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)",
    ),
    Transcript(
        "warnings of blocks",
        (query("commit"), query("begin; begin"), query("rollback")),
        "N(25P01) C(COMMIT) Z(I) C(BEGIN) N(25001) C(BEGIN) Z(T) C(ROLLBACK) Z(I)",
    ),
)
