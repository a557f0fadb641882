"""Goal: what the unit tests hold our conversation to is what PostgreSQL itself does.

Method: the same bytes to a real PostgreSQL, the same words expected of it.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.support.pgwire.copy_cases import CASES as COPIED
from tests.support.pgwire.copy_cases import REFUSED as NOT_COPIED
from tests.support.pgwire.copy_cases import CopyCase
from tests.support.pgwire.copy_contexts import OF_ROWS, TABLE_OF_ROWS, TOLD, Told
from tests.support.pgwire.copy_out_cases import COLUMNS, OPTIONS, ZONE, data_of
from tests.support.pgwire.copy_out_cases import ours as copied_out
from tests.support.pgwire.copy_out_cases import query as out_query
from tests.support.pgwire.talk import Talk
from tests.support.pgwire.transcripts import TRANSCRIPTS, Transcript
from tests.support.pgwire.value_cases import INPUTS, REFUSED
from tests.support.pgwire.value_forms_recorded import FORMS
from tests.support.pgwire.wire_words import (
    COPY_DONE,
    SYNC,
    TERMINATE,
    bind,
    columns,
    copy_data,
    describe,
    error_of,
    execute,
    parse,
    query,
    rows,
    said,
    startup,
)
from tests.support.postgres.postgres_server import postgres_server
from tests.support.sql_session.wire_stories import MADE, STORIES, Story

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with postgres_server() as port:
        yield port


def talk(port: int, *messages: bytes) -> bytes:
    """Everything that is said after the greeting; the connection is then left."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(startup(user="postgres", database="postgres"))
        greeting = b""
        while not greeting.endswith(b"Z\0\0\0\5I"):
            greeting += connection.recv(65_536)
        connection.sendall(b"".join(messages) + TERMINATE)
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    return answer


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda transcript: transcript.name)
def test_postgresql_answers_so(port: int, transcript: Transcript) -> None:
    assert " ".join(said(talk(port, *transcript.messages))) == transcript.answer


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_postgresql_tells_the_same_stories(port: int, story: Story) -> None:
    answers: list[list[str]] = [[]]
    spoken = [message for turn in story.turns for message in turn.messages]
    for word in said(talk(port, *map(query, MADE), *spoken)):
        answers[-1].append(word)
        if word.startswith("Z("):
            answers.append([])
    found = [" ".join(words) for words in answers[len(MADE) : -1]]
    assert found == [turn.answer for turn in story.turns]


@pytest.mark.parametrize("kind", INPUTS)
def test_values_have_the_forms_that_are_recorded(port: int, kind: str) -> None:
    messages = [parse(f"select $1::{kind}, $1", "s")]
    for text in INPUTS[kind]:
        messages += [bind(text, name="s", results=(0, 1)), execute(), SYNC]
    found = {
        text: (str(shown, "utf-8"), binary.hex())
        for text, (shown, binary) in zip(INPUTS[kind], rows(talk(port, *messages)), strict=True)
        if shown is not None and binary is not None
    }
    assert found == FORMS[kind]


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in REFUSED.items() for text in texts]
)
def test_what_is_refused_has_the_same_code(port: int, kind: str, text: str) -> None:
    messages = (parse(f"select $1::{kind}"), bind(text), execute(), SYNC)
    assert error_of(talk(port, *messages))["C"] == error_of(Talk().send(*messages))["C"]


@pytest.mark.parametrize("kind", ["varchar(5)", "char(3)", "integer[]", "timestamptz", "text"])
def test_columns_are_described_alike(port: int, kind: str) -> None:
    messages = (parse(f"select $1::{kind} as x"), describe(), SYNC)
    assert columns(talk(port, *messages)) == columns(Talk().send(*messages))


@pytest.mark.parametrize("case", [*COPIED, *NOT_COPIED], ids=lambda case: repr(case.data))
def test_copy_reads_the_same_rows(port: int, case: CopyCase) -> None:
    answer = talk(
        port,
        query("create temp table t (n serial, a text, b text)"),
        query(f"copy t (a, b) from stdin with ({case.written or 'FORMAT text'})"),
        *(copy_data(case.data), COPY_DONE),
        query("select a, b from t order by n"),
    )
    if case in NOT_COPIED:
        assert error_of(answer)["C"] in ("22P04", "22021")
    else:
        found = [tuple(None if v is None else v.decode() for v in row) for row in rows(answer)]
        assert found == list(case.rows)


@pytest.mark.parametrize("told", TOLD, ids=lambda told: repr(told.case.data)[:40])
def test_copy_tells_the_same_place_of_an_error(port: int, told: Told) -> None:
    answer = talk(
        port,
        query("create temp table t (a text, b integer)"),
        query(f"copy t from stdin with ({told.case.written or 'FORMAT text'})"),
        *(copy_data(told.case.data), COPY_DONE),
    )
    assert error_of(answer).get("W") == told.context


@pytest.mark.parametrize(("data", "code", "context"), OF_ROWS)
def test_copy_tells_the_same_place_of_a_row_that_the_table_refuses(
    port: int, data: bytes, code: str, context: str | None
) -> None:
    made = ("drop table if exists u, v", *TABLE_OF_ROWS, "copy u from stdin")
    told = error_of(talk(port, *map(query, made), copy_data(data), COPY_DONE))
    assert (told["C"], told.get("W")) == (code, context)


@pytest.mark.parametrize("options", OPTIONS)
def test_copy_writes_the_same_bytes(port: int, options: str) -> None:
    text = out_query(len(COLUMNS))
    setting = query(f"set timezone = '{ZONE}'")
    answer = talk(port, setting, query(f"copy ({text}) to stdout with ({options})"))
    assert data_of(answer).hex() == copied_out(OPTIONS[options], len(COLUMNS)).hex()
