"""For tests of SQL sessions: one database for all of a file's tests, and who talks to it.

A file whose tests share tables too has its own `database`, which makes them (`database_with`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.dev.database import DevDatabase
from tests.support.sql_session.sql_client import SqlClient, database_with


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    """Nothing is in it yet."""
    with database_with(tmp_path_factory) as made:
        yield made


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    made = SqlClient(database)
    yield made
    made.session.close()


@pytest.fixture
def other(database: DevDatabase) -> Iterator[SqlClient]:
    """On another node."""
    made = SqlClient(database, "r2")
    yield made
    made.session.close()
