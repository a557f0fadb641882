"""Goal: a project of dbt's comes to the same on a listener of ours as on a PostgreSQL: seeds,
views, tables, incremental models, contracts, tests, snapshots, and the catalog that its documents
show.

Method: dbt itself, as `infra/client_tools.sh` installs it, with the project of
tests/support/tools/dbt, run against both: what it prints, and the rows that it leaves, are
compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.postgres.both_servers import both_servers
from tests.support.postgres.client_server import Server
from tests.support.tools.client_tools import FILES, INSTALLED, need, run

pytestmark = [
    pytest.mark.integration,
    pytest.mark.long("dbt starts for some twenty seconds on each server"),
]
PYTHON: Final = INSTALLED / "dbt" / "bin" / "python"
RELATIONS: Final = (
    "harbour.landings",
    "harbour.ships",
    "harbour.checked_landings",
    "harbour.tonnes_by_ship",
    "harbour.busy_days",
    "harbour.quays",
    "harbour.busiest",
)
SEEN: Final = """
    select ship, flag, dbt_valid_to is null, dbt_valid_from < dbt_valid_to
    from harbour_seen.ships_seen order by ship, dbt_valid_from
"""


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    need(PYTHON, PYTHON)
    with both_servers(tmp_path) as servers:
        yield servers


def walk(server: Server, folder: Path) -> list[str]:
    """Take the project through, and return what became of it."""
    folder.mkdir()
    more = {
        "WALK_PORT": str(server.port),
        "WALK_USER": server.user,
        "WALK_DATABASE": server.database,
        "DO_NOT_TRACK": "1",
    }
    return run(PYTHON, FILES / "dbt" / "walk.py", folder, more=more, told=False).splitlines()


def rows(server: Server, query: str) -> list[tuple[Any, ...]]:
    with server.psycopg(autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


def test_a_project_is_taken_through(both: tuple[Server, Server], tmp_path: Path) -> None:
    ours, theirs = (walk(server, tmp_path / server.kind) for server in both)
    assert ours == theirs
    assert any(line.startswith("build busy_days success") for line in ours)
    for relation in RELATIONS:
        left, right = (rows(server, f"select * from {relation} order by 1, 2") for server in both)
        assert left == right, relation
        assert left, relation
    seen, wanted = (rows(server, SEEN) for server in both)
    assert seen == wanted
    assert len(seen) == 6
