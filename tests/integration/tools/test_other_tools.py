"""Goal: migration tools of other languages take a history through on a listener of ours: goose up
and down, knex in one transaction for all of its migrations, Liquibase's change sets.

Method: the tools themselves, as `infra/client_tools.sh` installs them, with files of
tests/support/tools, each on a whole database in this process. One of each language (Go, JavaScript,
Java) is run each time where it is installed, the others with the long tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psycopg
import pytest

from tests.support.postgres.dev_server import DevServer, dev_server
from tests.support.tools.client_tools import FILES, INSTALLED, jdbc_of, need, run, url_of

pytestmark = pytest.mark.integration
long = pytest.mark.long("further tools of a language of which one is run each time")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[DevServer]:
    with dev_server(tmp_path) as made:
        yield made


def url(served: DevServer) -> str:
    return url_of(served.port, served.database)


def test_goose_walks_up_and_down(served: DevServer) -> None:
    goose = INSTALLED / "bin" / "goose"
    need(goose, str(goose))
    asked = (goose, "-dir", FILES / "goose", "postgres", url(served))
    assert "successfully migrated database to version: 3" in run(*asked, "up")
    with psycopg.connect(url(served)) as connection:
        found = connection.execute("select title, age from posts join users on users.id = user_id")
        assert sorted(found.fetchall()) == [("a", 3), ("b", 3)]
    assert "Pending" not in run(*asked, "status")
    assert "current version: 0" in run(*asked, "down-to", "0")


def test_knex_walks_up_and_down_in_one_transaction(served: DevServer) -> None:
    need(INSTALLED / "node_modules" / "knex", "node")
    told = json.loads(run("node", FILES / "knex" / "run.js", url(served), INSTALLED))
    assert told["made"] == 3
    assert {"about", "age", "name"} <= {*told["columns"]}
    assert told["rows"] == [{"email": "a@b", "age": 3}, {"email": "c@d", "age": 3}]
    assert not told["left"]


@long
def test_liquibase_runs_its_change_sets(served: DevServer) -> None:
    need(INSTALLED / "jars" / "liquibase-core-4.29.2.jar", "java")
    jdbc = jdbc_of(served.port, served.database)
    folder = FILES / "liquibase"
    told = run("java", "-cp", f"{INSTALLED}/jars/*", folder / "Walk.java", jdbc, folder)
    assert "unrun 0" in told
    assert told.rstrip().endswith("done") or "\ndone" in told


HEARD: Final = "news first\nnews second\nnews end\n"


@long
def test_jdbc_hears_what_is_told(served: DevServer) -> None:
    jar = INSTALLED / "jars" / "postgresql-42.7.4.jar"
    need(jar, "java")
    jdbc = jdbc_of(served.port, served.database)
    told = run("java", "-cp", jar, FILES / "notify" / "Listen.java", jdbc)
    assert told.endswith(HEARD)


@long
def test_node_postgres_hears_what_is_told_while_it_waits(served: DevServer) -> None:
    need(INSTALLED / "node_modules" / "pg", "node")
    assert run("node", FILES / "notify" / "listen.js", url(served), INSTALLED) == HEARD


def test_flyway_begins_with_a_baseline_and_migrates(served: DevServer) -> None:
    """Its baseline makes a table, puts a row in and then gives it its key, in one transaction."""
    need(INSTALLED / "jars" / "flyway-core-10.20.1.jar", "java")
    with psycopg.connect(url(served), autocommit=True) as connection:
        connection.execute("create table old (id int primary key)")
        connection.execute("insert into old values (1), (2)")
        connection.execute("create table heap (word text)")
        connection.execute("insert into heap values ('a'), ('b'), ('a')")
        jdbc = jdbc_of(served.port, served.database)
        folder = FILES / "flyway"
        told = run("java", "-cp", f"{INSTALLED}/jars/*", folder / "Walk.java", jdbc, folder)
        assert "migrated 3" in told
        assert "again 0" in told
        assert [line for line in told.splitlines() if line[:2] in ("1 ", "2 ", "3 ", "4 ")] == [
            "1 BASELINE",
            "2 SUCCESS",
            "3 SUCCESS",
            "4 SUCCESS",
        ]
        assert "left []" in told
