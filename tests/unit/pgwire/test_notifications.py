"""Goal: what was told to a client's channels comes between its transactions, and at once while it
waits for nothing.

Method: a conversation with a small session, which gives one notification a portion."""

from __future__ import annotations

import pytest

from leasehold.replica.notifications import Told
from tests.support.pgwire.talk import Talk
from tests.support.pgwire.wire_words import SYNC, bind, execute, messages, parse, query, said

CASES = [Told("news", "x", 5), Told("é", "", 0)]


def told(answer: bytes) -> list[bytes]:
    return [body for kind, body in messages(answer) if kind == "A"]


def tells(talk: Talk) -> bool:
    return talk.conversation.tells


def tell(talk: Talk) -> bytes:
    """Return what is said to a client that waits for nothing."""
    before = len(talk.said)
    talk.conversation.tell()
    return b"".join(talk.said[before:])


def test_a_client_that_waits_for_nothing_is_told_at_once() -> None:
    talk = Talk()
    assert not tells(talk)
    assert tell(talk) == b""
    talk.session.notifications += CASES
    assert tells(talk)
    assert told(tell(talk)) == [b"\0\0\0\5news\0x\0"]
    assert tells(talk)
    assert told(tell(talk)) == ["\0\0\0\0é\0\0".encode()]
    assert not tells(talk)


def test_a_client_in_a_block_is_told_behind_it() -> None:
    talk = Talk()
    talk.send(query("begin"))
    talk.session.notifications += CASES[:1]
    assert not tells(talk)
    assert tell(talk) == b""
    assert said(talk.send(query("select 1")))[-1] == "Z(T)"
    assert said(talk.send(query("select")))[-1] == "Z(E)", "it has failed"
    assert not tells(talk)
    answer = talk.send(query("rollback"))
    assert [kind for kind, _ in messages(answer)] == ["C", "A", "Z"]


@pytest.mark.parametrize("fails", [False, True])
def test_it_comes_before_ready_for_query(fails: bool) -> None:
    talk = Talk()
    talk.session.notifications += CASES[:1]
    answer = talk.send(query("syntax" if fails else "select 1"))
    kinds = [kind for kind, _ in messages(answer)]
    assert kinds == (["E", "A", "Z"] if fails else ["T", "D", "C", "A", "Z"])


def test_nothing_comes_in_the_middle_of_a_batch() -> None:
    talk = Talk()
    answer = talk.send(parse("select 1"), bind())
    talk.session.notifications += CASES[:1]
    assert not tells(talk)
    assert tell(talk) == b""
    answer += talk.send(execute(), SYNC)
    assert [kind for kind, _ in messages(answer)] == ["1", "2", "D", "C", "A", "Z"]


def test_nothing_comes_behind_the_last_words() -> None:
    talk = Talk()
    talk.conversation.end()
    talk.session.notifications += CASES
    assert not tells(talk)
    assert tell(talk) == b""
