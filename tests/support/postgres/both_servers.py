"""A server of ours and a PostgreSQL, for tests that say the same to both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests.integration.postgres_compat.test_psql_and_postgres import USER
from tests.support.postgres.client_server import Server
from tests.support.postgres.dev_server import dev_server
from tests.support.postgres.postgres_server import postgres_server

Connection = psycopg.Connection[Any]


@contextmanager
def both_servers(folder: Path) -> Iterator[tuple[Server, Server]]:
    """Ours and theirs; at the end ours is checked: its nodes hold the same."""
    with postgres_server() as port, dev_server(folder) as served:
        ours = Server("leasehold", served.port, USER, served.database)
        yield ours, Server("postgresql", port, USER, USER)
        assert not served.dev.check().differences


def told(connection: Connection, text: str) -> Any:
    """The rows of its last statement, its tag, or its SQLSTATE."""
    try:
        cursor = connection.execute(text.encode())
    except psycopg.Error as error:
        return error.sqlstate
    while cursor.nextset():
        pass
    return cursor.fetchall() if cursor.description else cursor.statusmessage
