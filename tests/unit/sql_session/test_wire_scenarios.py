"""Scenarios 81 to 87 with SQL sessions behind the protocol: what `tests/unit/pgwire` holds our
conversation to over small sessions, and PostgreSQL itself in `tests/integration`, holds with the
real ones on a whole database in this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.pgwire.conversation import Conversation
from leasehold.pgwire.limits import Limits
from leasehold.sql.planning.plan import Plans
from leasehold.sql_session.session import SqlSession
from tests.support.pgwire.transcripts import TRANSCRIPTS, Transcript
from tests.support.pgwire.wire_words import (
    SYNC,
    bind,
    describe,
    error_of,
    execute,
    parse,
    query,
    said,
)


class Talk:
    """One client's connection, without a socket. `defects`: exceptions that are not of the tree."""

    def __init__(self, database: DevDatabase) -> None:
        self._spoken: list[bytes] = []
        self.defects: list[Exception] = []
        session = SqlSession(database.sql_node(), Plans(), user="me")
        self.conversation = Conversation(
            session, self._spoken.append, Limits(), self.defects.append
        )
        self.conversation.begin(7, b"key!")

    def send(self, *messages: bytes) -> bytes:
        self._spoken.clear()
        for message in messages:
            self.conversation.receive(message)
        return b"".join(self._spoken)


@pytest.fixture
def talk(database: DevDatabase) -> Iterator[Talk]:
    made = Talk(database)
    yield made
    made.conversation.close()
    assert not made.defects
    after: Any = Talk(database)
    after.send(query("drop table if exists t"))
    after.conversation.close()


def own(message: bytes) -> bytes:
    """There are no temporary tables here."""
    old, new = b"create temp table", b"create table"
    if old not in message:
        return message
    return query(message[5:-1].decode().replace(old.decode(), new.decode()))


LATER = "an error that is found while binding"
"""PostgreSQL computes 1/0 when it plans; here it is found when the statement runs."""


@pytest.mark.parametrize(
    "transcript",
    [t for t in TRANSCRIPTS if t.name != LATER],
    ids=lambda t: f"{t.scenario or ''} {t.name}",
)
def test_transcripts(transcript: Transcript, talk: Talk) -> None:
    answer = talk.send(*map(own, transcript.messages))
    assert " ".join(said(answer)) == transcript.answer


def test_84_stale_prepared_statement(talk: Talk) -> None:
    """DROP COLUMN, then Bind of SELECT *: refused before BindComplete, and once prepared anew it
    is well; in a block as outside of one."""
    talk.send(query("create table t (id int primary key, a int); insert into t values (1, 2)"))
    talk.send(parse("select * from t", "s"), SYNC)
    assert said(talk.send(bind(name="s"), execute(), SYNC))[1] == "D(1,2)"
    talk.send(query("alter table t drop column a"))
    for messages in ((bind(name="s"), execute(), SYNC), (describe("s"), SYNC)):
        answer = talk.send(*messages)
        assert said(answer) == ["E(0A000)", "Z(I)"]
        assert error_of(answer)["R"] == "RevalidateCachedQuery"
    answer = talk.send(query("begin"), bind(name="s"), execute(), SYNC, query("rollback"))
    assert said(answer) == ["C(BEGIN)", "Z(T)", "E(0A000)", "Z(E)", "C(ROLLBACK)", "Z(I)"]
    again = (parse("select * from t"), bind(), execute(), SYNC)
    assert said(talk.send(*again)) == ["1", "2", "D(1)", "C(SELECT 1)", "Z(I)"]


def test_86_batch_one_implicit_transaction(talk: Talk) -> None:
    """Writes of one simple query, and of one extended batch, are all there or none."""
    talk.send(query("create table t (id int primary key)"))
    broken = "insert into t values (1); insert into t values (2); select 1/(select 0)"
    assert said(talk.send(query(broken)))[-2:] == ["E(22012)", "Z(I)"]
    one, two = "insert into t values (3)", "insert into t values (3)"
    answer = talk.send(*(m for text in (one, two) for m in (parse(text), bind(), execute())), SYNC)
    assert [w for w in said(answer) if w[0] in "EZ"] == ["E(23505)", "Z(I)"]
    assert said(talk.send(query("select count(*) from t")))[1] == "D(0)"
    talk.send(query("insert into t values (4); insert into t values (5)"))
    assert said(talk.send(query("select count(*) from t")))[1] == "D(2)"


def test_87_null_parameter_and_parameter_status_on_set(talk: Talk) -> None:
    answer = talk.send(parse("select $1::int is null, $1::int", ""), bind(None), execute(), SYNC)
    assert said(answer)[2] == "D(t,NULL)"
    words = said(talk.send(query("set application_name = 'mine'; set local search_path = public")))
    assert "S(application_name=mine)" in words
