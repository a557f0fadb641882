"""A database of ours and a PostgreSQL, for modules that ask both the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.postgres.both_servers import both_servers
from tests.support.postgres.client_server import Server


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """Ours and theirs, with nothing in them yet."""
    with both_servers(tmp_path_factory.mktemp("both")) as made:
        yield made
