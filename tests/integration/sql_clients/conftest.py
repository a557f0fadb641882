"""Goal: the clients that people use work here as they do with PostgreSQL: psycopg 3, asyncpg,
SQLAlchemy 2 over both, pandas.

Method: each test runs twice, on the listener of a whole database in this process and on a real
PostgreSQL, and says what both must come to.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.pgwire_settings import PgwireSettings
from leasehold.client.dev import DevDatabase
from leasehold.client.sql_listener import SqlListener
from tests.integration.postgres_server import postgres_server
from tests.integration.sql_clients.every_type import DDL, INSERT, ROW
from tests.integration.sql_clients.server import Server


@pytest.fixture(scope="module", params=["leasehold", "postgresql"])
def server(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Server]:
    if request.param == "postgresql":
        with postgres_server() as port:
            yield Server("postgresql", port, "postgres", "postgres")
        return
    folder: Path = tmp_path_factory.mktemp("clients")
    database = DevDatabase(folder)
    database.wait_ready()
    listener = SqlListener(database.sql_node(), PgwireSettings())
    try:
        yield Server("leasehold", listener.port, "leasehold", "dev")
    finally:
        listener.close()
        database.close()


@pytest.fixture
def table(server: Server) -> Iterator[str]:
    """A table with a row of every type and one of NULLs."""
    with server.psycopg(autocommit=True) as connection:
        connection.execute(DDL)
        connection.execute(INSERT, ROW)
        connection.execute("INSERT INTO every (id) VALUES (2)")
        yield "every"
        connection.execute("DROP TABLE every")


@pytest.fixture
def many(server: Server) -> Iterator[str]:
    with server.psycopg(autocommit=True) as connection:
        connection.execute("CREATE TABLE many (id integer PRIMARY KEY, name text)")
        connection.execute("INSERT INTO many SELECT n, 'n' || n FROM generate_series(1, 5000) AS n")
        yield "many"
        connection.execute("DROP TABLE many")
