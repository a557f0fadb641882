"""Goal: what the table of clients says that a tool does not get is refused, with a sentence and the
SQLSTATE by which tools tell that it is not there.

Method: what such a tool sends, in own words, on a whole database in this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import psycopg
import pytest

from tests.support.postgres.client_server import Server
from tests.support.postgres.dev_server import dev_server
from tests.support.tools.client_tools import USER

pytestmark = pytest.mark.integration

REFUSED: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "a database": (('create database "test_shop"',), "0A000"),
    "a column of type oid": (("create table pictures (id int primary key, body oid)",), "42704"),
    "a materialized view": (("create materialized view seen as select 1 as one",), "0A000"),
    "a swap of two tables' names": (
        (
            "create table report (id int primary key, total int)",
            "begin",
            "create table report_new as select 1 as id, 2 as total",
            "alter table report rename to report_old",
            "alter table report_new rename to report",
        ),
        "0A000",
    ),
    "rows of a function beside an aggregate": (
        ("select regexp_split_to_table('a b a', ' ') as word, count(1) group by word",),
        "0A000",
    ),
    "a check over a column that the block converts": (
        (
            "create table ware (id int primary key, size text)",
            "insert into ware values (1, '3')",
            "begin",
            "alter table ware alter column size type int using size::int",
            "alter table ware add constraint positive check (size > 0)",
        ),
        "0A000",
    ),
    "a check that rows of the block mend": (
        (
            "create table part (id int primary key, size int)",
            "insert into part values (1, -3)",
            "begin",
            "update part set size = 3",
            "alter table part add constraint positive check (size > 0)",
            "commit",
        ),
        "23514",
    ),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with dev_server(tmp_path_factory.mktemp("refused")) as served:
        yield Server("leasehold", served.port, USER, served.database)


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused(server: Server, name: str) -> None:
    texts, code = REFUSED[name]
    with server.psycopg(autocommit=True) as connection:
        for text in texts[:-1]:
            connection.execute(text.encode())
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(texts[-1].encode())
    assert caught.value.sqlstate == code
    assert caught.value.diag.message_primary
