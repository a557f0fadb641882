"""Whatever SQL clients say: statements' pieces, and messages at the level of bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.isolation.fuzz.bad_messages import bad_messages
from tests.isolation.fuzz.bad_statements import bad_statement, with_parameters
from tests.isolation.fuzz.fuzzing import INPUTS, INPUTS_LONG, fuzz
from tests.isolation.fuzz.wire_database import Talked, WireDatabase
from tests.support.pgwire.wire_words import query


def test_any_statement_is_answered(tmp_path: Path) -> None:
    fuzz("statements", tmp_path, WireDatabase, bad_statement, INPUTS, together=10)


def test_any_message_is_answered(tmp_path: Path) -> None:
    fuzz("messages", tmp_path, WireDatabase, bad_messages, INPUTS, together=10)


def test_a_parameter_in_any_place_is_answered(tmp_path: Path) -> None:
    """The parser takes one in places where PostgreSQL's has none, as for a password."""
    texts = list(with_parameters())
    given = iter(texts)

    def ask(_chance: Any, _database: Any) -> Talked:
        return Talked((query(next(given)),))

    fuzz("parameters", tmp_path, WireDatabase, ask, len(texts), together=50)


@pytest.mark.long("a million statements take some half an hour")
def test_a_million_statements_are_answered(tmp_path: Path) -> None:
    fuzz("statements", tmp_path, WireDatabase, bad_statement, INPUTS_LONG, together=50)


@pytest.mark.long("a million connections, each of some messages, take some half an hour")
def test_a_million_messages_are_answered(tmp_path: Path) -> None:
    fuzz("messages", tmp_path, WireDatabase, bad_messages, INPUTS_LONG, together=50)
