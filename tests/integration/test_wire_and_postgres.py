"""Goal: what the unit tests hold our conversation to is what PostgreSQL itself does.

Method: the same bytes to a real PostgreSQL, the same words expected of it.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.integration.postgres_server import postgres_server
from tests.unit.pgwire.transcripts import TRANSCRIPTS, Transcript
from tests.unit.pgwire.wire_words import TERMINATE, said, startup

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
