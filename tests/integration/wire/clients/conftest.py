"""Goal: the clients that people use work here as they do with PostgreSQL: psycopg 3, asyncpg,
SQLAlchemy 2 over both, pandas.

Method: each test runs twice, on the listener of a whole database in this process and on a real
PostgreSQL, and says what both must come to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.postgres.client_server import Server
from tests.support.postgres.dev_server import dev_server
from tests.support.postgres.every_type import DDL, INSERT, ROW
from tests.support.postgres.postgres_server import postgres_server


@pytest.fixture(scope="module", params=["leasehold", "postgresql"])
def server(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Server]:
    if request.param == "postgresql":
        with postgres_server() as port:
            yield Server("postgresql", port, "postgres", "postgres")
        return
    with dev_server(tmp_path_factory.mktemp("clients")) as served:
        yield Server("leasehold", served.port, "leasehold", served.database)


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
