"""Cursors behind the protocol: those of DECLARE and portals are one kind of thing to a client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.pgwire.conversation import Conversation
from leasehold.pgwire.limits import Limits
from leasehold.sql.planning.plan import Plans
from leasehold.sql_session.session import SqlSession
from tests.support.pgwire.wire_words import (
    SYNC,
    bind,
    close,
    describe,
    error_of,
    execute,
    parse,
    query,
    said,
)

SERIES = "select * from generate_series(1, 600)"


class Talk:
    """One client's connection, without a socket."""

    def __init__(self, database: DevDatabase) -> None:
        self._spoken: list[bytes] = []
        self.defects: list[Exception] = []
        self.session = SqlSession(database.sql_node(), Plans(), user="me")
        self.conversation = Conversation(
            self.session, self._spoken.append, Limits(), self.defects.append
        )
        self.conversation.begin(7, b"key!")

    def send(self, *messages: bytes) -> bytes:
        """In a hurry first, as the listener has it."""
        self._spoken.clear()
        for message in messages:
            waits = self.conversation.receive(message, hurried=True)
            while waits is not None:
                waits = self.conversation.receive(b"")
        return b"".join(self._spoken)


@pytest.fixture
def talk(database: DevDatabase) -> Iterator[Talk]:
    made = Talk(database)
    yield made
    made.conversation.close()
    assert not made.defects
    assert made.session._cursors.room.bytes_taken == 0


def held(talk: Talk) -> bool:
    """Does a portal hold a snapshot?"""
    portals: Any = talk.conversation._batch.objects._portals.values()
    return any(each.portal._snapshot is not None for each in portals)


def test_psycopg_declares_describes_and_fetches(talk: Talk) -> None:
    talk.send(query("begin"))
    declare = 'declare "a b" cursor for select $1::integer as n, $2::text as t'
    answer = talk.send(
        parse(declare),
        describe(),
        bind("5", "x"),
        describe(portal=True),
        execute(),
        SYNC,
    )
    assert said(answer)[2:] == ["n", "2", "n", "C(DECLARE CURSOR)", "Z(T)"]
    assert said(talk.send(describe("a b", portal=True), SYNC)) == ["T(n,t)", "Z(T)"]
    assert said(talk.send(query('fetch forward 10 from "a b"'))) == [
        *("T(n,t)", "D(5,x)", "C(FETCH 1)", "Z(T)")
    ]
    assert said(talk.send(query('close "a b"'))) == ["C(CLOSE CURSOR)", "Z(T)"]


def test_fetch_is_prepared_as_any_statement(talk: Talk) -> None:
    talk.send(query(f"begin; declare c cursor for {SERIES}"))
    answer = talk.send(parse("fetch 3 c", "f"), describe("f"), SYNC)
    assert said(answer)[-2:] == ["T(generate_series)", "Z(T)"]
    answer = talk.send(bind(name="f"), execute(), bind(name="f"), execute(rows_max=2), SYNC)
    assert said(answer) == [
        *("2", "D(1)", "D(2)", "D(3)", "C(FETCH 3)", "2", "D(4)", "D(5)", "s", "Z(T)")
    ]
    answer = talk.send(query("move c"), query("fetch 300 c"), query("fetch 0 c"))
    words = said(answer)
    assert words[0] == "C(MOVE 1)"
    assert [w for w in words if w[0] == "C"][1:] == ["C(FETCH 300)", "C(FETCH 1)"]
    assert words[-3:] == ["D(307)", "C(FETCH 1)", "Z(T)"]


def test_a_binary_cursor_gives_bytes_in_the_simple_protocol(talk: Talk) -> None:
    talk.send(query("begin; declare b binary cursor for select 258"))
    assert b"\0\0\0\x04\0\0\x01\x02" in talk.send(query("fetch b"))
    talk.send(query("move backward all b"))
    assert b"\0\0\0\x03258" in talk.send(parse("fetch b"), bind(), execute(), SYNC)


def test_one_name_is_of_one_cursor(talk: Talk) -> None:
    talk.send(query("begin; declare c cursor for select 1; savepoint s"))
    answer = talk.send(parse("select 2"), bind(portal="c"), SYNC)
    assert error_of(answer)["C"] == "42P03"
    answer = talk.send(query("rollback to s"), execute("c"), SYNC)
    assert said(answer)[2:] == ["D(1)", "C(SELECT 1)", "Z(T)"]
    answer = talk.send(query("rollback to s"), close("c", portal=True), SYNC, query("fetch c"))
    assert error_of(answer)["C"] == "34000"


def test_close_is_of_portals_too(talk: Talk) -> None:
    talk.send(query("begin"), parse("select 2"), bind(portal="p"), SYNC)
    assert said(talk.send(query("close p"))) == ["C(CLOSE CURSOR)", "Z(T)"]
    assert said(talk.send(query("close p"))) == ["E(34000)", "Z(E)"]


def test_portals_of_the_protocol_are_moved_forward(talk: Talk) -> None:
    """asyncpg's `Cursor.forward` says MOVE."""
    talk.send(query("begin"), parse(SERIES), bind(portal="p"), execute("p", 2), SYNC)
    assert said(talk.send(query("move forward 300 p"))) == ["C(MOVE 300)", "Z(T)"]
    assert said(talk.send(query("fetch 2 p"))) == [
        *("T(generate_series)", "D(303)", "D(304)", "C(FETCH 2)", "Z(T)")
    ]
    assert said(talk.send(execute("p", 1), SYNC)) == ["D(305)", "s", "Z(T)"]
    assert said(talk.send(query("move all in p"))) == ["C(MOVE 295)", "Z(T)"]
    assert said(talk.send(query("savepoint s"), query("declare p cursor for select 1")))[2:] == [
        *("E(42P03)", "Z(E)")
    ]
    answer = talk.send(query("rollback to s"), query("fetch prior p"))
    assert said(answer)[-2:] == ["E(55000)", "Z(E)"]


def test_a_portal_that_rests_holds_no_snapshot(talk: Talk) -> None:
    """asyncpg's cursors are portals: their client takes its time between two Executes."""
    talk.send(query("begin"), parse(SERIES), bind(portal="p"), execute("p", 3))
    assert held(talk), "as long as more may be asked for at once"
    talk.send(SYNC)
    assert not held(talk)
    words = said(talk.send(execute("p", 300), SYNC))
    assert (words[0], words[299], words[300]) == ("D(4)", "D(303)", "s")
    words = said(talk.send(execute("p", 300), SYNC))
    assert (words[0], words[-2], len(words)) == ("D(304)", "C(SELECT 297)", 299)


def test_outside_of_a_block_nothing_is_put_aside(talk: Talk) -> None:
    """Sync ends the portal."""
    asked = "select * from generate_series(1, 1000000000000)"
    answer = talk.send(parse(asked), bind(portal="p"), execute("p", 2), SYNC, execute("p", 2), SYNC)
    assert said(answer) == ["1", "2", "D(1)", "D(2)", "s", "Z(I)", "E(34000)", "Z(I)"]


def test_an_error_of_what_was_put_aside_comes_in_its_turn(talk: Talk) -> None:
    asked = "select 10 / (5 - n) from generate_series(1, 9) as n"
    answer = talk.send(query("begin"), parse(asked), bind(portal="p"), execute("p", 2), SYNC)
    assert said(answer)[-2:] == ["s", "Z(T)"]
    assert said(talk.send(execute("p", 2), SYNC)) == ["D(5)", "D(10)", "s", "Z(T)"]
    assert said(talk.send(execute("p", 2), SYNC)) == ["E(22012)", "Z(E)"]


def test_with_hold_is_there_after_its_batch(talk: Talk) -> None:
    assert said(talk.send(query(f"declare h cursor with hold for {SERIES}"))) == [
        *("C(DECLARE CURSOR)", "Z(I)")
    ]
    assert said(talk.send(parse("fetch 2 h"), bind(), execute(), SYNC))[2:] == [
        *("D(1)", "D(2)", "C(FETCH 2)", "Z(I)")
    ]
    assert said(talk.send(query("close h")))[-1] == "Z(I)"


def test_a_portal_that_is_closed_is_not_run_again_for_who_fetches_from_it(talk: Talk) -> None:
    """It would have held a snapshot that nobody closes."""
    talk.send(query("begin"), parse(SERIES), bind(portal="p"), execute("p", 2), SYNC)
    talk.send(parse("fetch 3 p"), bind(portal="q"), SYNC)
    assert said(talk.send(execute("q", 2), SYNC)) == ["D(3)", "D(4)", "s", "Z(T)"]
    answer = talk.send(close("p", portal=True), execute("q", 2), SYNC)
    assert said(answer) == ["3", "E(34000)", "Z(E)"]
    talk.send(query("rollback; begin"), parse(SERIES), bind(portal="p"), execute("p", 2), SYNC)
    talk.send(parse("move 3 p"), bind(portal="q"), close("p", portal=True), SYNC)
    answer = talk.send(parse("select 5"), bind(portal="p"), execute("q"), SYNC)
    assert said(answer) == ["1", "2", "E(34000)", "Z(E)"]


def test_the_text_before_lends_its_transaction_to_no_cursor(talk: Talk) -> None:
    talk.send(parse("declare c cursor for select 1", "d"), SYNC)
    for before in ("select 1; select 2", "select 1; select 1 / 0"):
        talk.send(query(before))
        assert said(talk.send(bind(name="d"), execute(), SYNC)) == ["2", "E(25P01)", "Z(I)"]


def test_what_is_no_transaction_is_not_chained(talk: Talk) -> None:
    for verb in ("commit", "rollback"):
        assert said(talk.send(query(f"{verb} and chain"))) == ["E(25P01)", "Z(I)"]
        assert said(talk.send(query(f"select 1; {verb} and chain")))[-2:] == ["E(25P01)", "Z(I)"]
