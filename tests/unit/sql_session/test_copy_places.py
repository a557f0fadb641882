"""Where an error of COPY … FROM STDIN stands, told by the table itself: over a whole session.

`tests/integration/postgres_compat/test_wire_and_postgres.py` asks the same of a real PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.dev.database import DevDatabase
from tests.support.pgwire.copy_contexts import OF_ROWS, TABLE_OF_ROWS
from tests.support.pgwire.wire_words import COPY_DONE, copy_data, error_of, query
from tests.unit.sql_session.test_wire_cursors import Talk


@pytest.fixture
def talk(database: DevDatabase) -> Iterator[Talk]:
    made = Talk(database)
    yield made
    made.send(query("rollback; drop table if exists app.u; drop schema if exists app"))
    made.send(query("drop table if exists u; drop table if exists v"))
    made.conversation.close()
    assert not made.defects


@pytest.mark.parametrize(("data", "code", "context"), OF_ROWS)
def test_a_row_that_is_refused_is_told_by_its_line(
    talk: Talk, data: bytes, code: str, context: str | None
) -> None:
    for text in (*TABLE_OF_ROWS, "begin", "copy u from stdin"):
        talk.send(query(text))
    told = error_of(talk.send(copy_data(data), COPY_DONE))
    assert (told["C"], told.get("W")) == (code, context)


def test_the_table_of_another_schema_is_told_by_its_name_alone(talk: Talk) -> None:
    for text in ("create schema app", "create table app.u (a int primary key)"):
        talk.send(query(text))
    talk.send(query("copy app.u from stdin"))
    told = error_of(talk.send(copy_data(b"x\n"), COPY_DONE))
    assert told["W"] == 'COPY u, line 1, column a: "x"'
