"""Valid conversations, spoiled at bytes, lengths and messages; greeting and log-in, too."""

from __future__ import annotations

import random
from typing import Any, Final

from tests.isolation.fuzz.bad_statements import COPIES
from tests.isolation.fuzz.wire_database import BEGIN, DATABASE, SCRAM, Talked, cut
from tests.support.pgwire.spoiled_messages import spoil_message
from tests.support.pgwire.wire_words import (
    COPY_DONE,
    FLUSH,
    SYNC,
    TERMINATE,
    bind,
    close,
    copy_data,
    copy_fail,
    describe,
    execute,
    message,
    parse,
    query,
    short,
    startup,
)

READ: Final = (
    *(parse("select b, c, j from t2 where id = $1", "r"), describe("r")),
    *(bind("1", name="r", results=(1,)), execute(), SYNC),
)
WRITE: Final = (
    *(parse("update t2 set a = a + 1 where id = $1"), bind("1"), describe(portal=True)),
    *(execute(), SYNC),
)
CONVERSATIONS: Final[tuple[tuple[bytes, ...], ...]] = (
    (query("select 1; select b from t2 where id = 2"), TERMINATE),
    (*READ, bind("2", name="r"), describe(portal=True), execute("", 1), execute("", 1), SYNC),
    (*WRITE, *READ, close("r"), SYNC),
    (query("begin"), *WRITE, query("savepoint a; select 1/0"), query("rollback to a"), SYNC),
    (query("begin isolation level serializable"), *READ, *WRITE, query("commit")),
    (query("insert into t2 (id) values (7) on conflict (id) do update set a = 2"), FLUSH),
    (query(COPIES[0][0]), copy_data(COPIES[0][1]), copy_fail("no"), query("select 1")),
    (query(COPIES[1][0]), copy_data(COPIES[1][1]), COPY_DONE, *READ),
    (query(COPIES[2][0]), copy_data(COPIES[2][1]), COPY_DONE, SYNC),
    (query("copy t2 (id, b) to stdout"), parse("copy t2 (id) from stdin"), bind(), execute()),
    (parse("select id from t2", "x"), bind(portal="p", name="x"), execute("p", 1), FLUSH, SYNC),
    (close("r"), close("p", portal=True), describe("r"), SYNC, message(b"F", b"x")),
    (
        query("declare c cursor with hold for select 1; fetch c; close c"),
        describe("c", portal=True),
    ),
    (parse("select $1::int + $2", "n", (23, 0)), bind("1", b"\0\0\0\2", name="n", formats=(0, 1))),
    (query("set statement_timeout = '1s'; show timezone; discard all"), SYNC, SYNC, TERMINATE),
)
GREETINGS: Final[tuple[tuple[bytes, ...], ...]] = (
    (BEGIN,),
    (BEGIN, *SCRAM),
    (short(80877103), BEGIN, *SCRAM),
    (short(80877104), short(80877103), BEGIN),
    (short(80877102, bytes(8)),),
    (startup(196610, user="me", database=DATABASE, _pq_=""), *SCRAM),
    (startup(196609, user="me", database=DATABASE), *SCRAM),
    (startup(user="nobody", database=DATABASE), *SCRAM),
    (startup(user="me", database="nowhere"), *SCRAM),
    (startup(user="me", database=DATABASE, options="-c statement_timeout=5s -c x=y"), *SCRAM),
    (startup(user="me", database=DATABASE, replication="true"),),
)


def bad_messages(chance: random.Random, _database: Any) -> Talked:
    """One connection. In most cases its greeting is good: else little would come behind it."""
    greets, asks = chance.random() < 0.2, chance.random() < 0.3
    parts = list(chance.choice(CONVERSATIONS))
    if greets:
        parts = [*chance.choice(GREETINGS), *parts]
    if chance.random() < 0.3:
        parts += chance.choice(CONVERSATIONS)
    for _ in range(chance.randrange(4)):
        if parts:
            spoil_message(chance, parts, chance.randrange(len(parts)))
    if chance.random() < 0.1:
        parts.append(chance.randbytes(chance.randrange(1, 200)))
    node = chance.choice(("r1", "r2"))
    fresh, hurried = greets or chance.random() < 0.5, chance.random() < 0.5
    return Talked(cut(chance, b"".join(parts)), node, fresh, not greets, asks, hurried)
