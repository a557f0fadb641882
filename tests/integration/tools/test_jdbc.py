"""Goal: what programs of Java ask and send by PostgreSQL's own driver comes to the same on a
listener of ours as on a PostgreSQL: batches of 1,000, and each method of DatabaseMetaData.

Method: the driver itself, as `infra/client_tools.sh` installs it, with programs of
tests/support/tools/jdbc, each run against both: what it prints is compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.postgres.both_servers import both_servers
from tests.support.postgres.client_server import Server
from tests.support.tools.client_tools import FILES, INSTALLED, jdbc_of, need, run

pytestmark = [
    pytest.mark.integration,
    pytest.mark.long("a driver of another language, which infra/client_tools.sh installs"),
]
JAR: Final = INSTALLED / "jars" / "postgresql-42.7.4.jar"
MADE: Final = """
    create type mood as enum ('sad', 'ok');
    create table ship (id bigserial primary key, name varchar(20) unique, since timestamptz,
        price numeric(8, 2) default 1.50, ok boolean not null default true, body jsonb, feel mood);
    create table crew (ship bigint references ship on delete cascade, place int, who text not null,
        raw bytea, day date, tags text[], constraint crew_key primary key (place, ship));
    create index crew_who on crew (who desc nulls last, ship);
    create unique index crew_day on crew (day) where place > 3;
    create view seen as select name, count(*) as n from ship join crew on ship = id group by name;
    comment on table ship is 'what floats';
    comment on column crew.who is 'a name';
"""
COUNTS: Final = re.compile("(?:cardinality|pages)=-?[0-9]+ ", re.IGNORECASE)
"""Of rows and pages of an index, which nobody counts."""
OTHERWISE: Final = (
    # Names of the server and its database, and what lies beside the database's own.
    *("getURL", "getUserName", "getDatabaseProductVersion", "getCatalogs", "getSchemas"),
    *("getTypeInfo", "getSQLKeywords", "getNumericFunctions", "getClientInfoProperties"),
    "getDatabaseMinorVersion",
)


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    need(JAR, "java")
    with both_servers(tmp_path) as servers:
        yield servers


def told(server: Server, program: str) -> list[str]:
    found = run(
        *("java", "-cp", JAR, FILES / "jdbc" / program),
        *(jdbc_of(server.port, server.database), server.user),
        told=False,
    )
    found = COUNTS.sub("", found)
    for name in (server.database, server.user):  # PostgreSQL's database has its user's name
        found = found.replace(f"={name} ", "=NAME ")
    return found.splitlines()


def test_batches_of_a_thousand(both: tuple[Server, Server]) -> None:
    ours, theirs = (told(server, "Batch.java") for server in both)
    assert ours == theirs
    assert ours.count("updated 1000") == 3
    assert ours.count("failed with 23505") == 3


def test_each_method_of_database_meta_data(both: tuple[Server, Server]) -> None:
    for server in both:
        with server.psycopg(autocommit=True) as connection:
            connection.execute(MADE.encode())
    ours, theirs = (
        [line for line in told(server, "Describe.java") if not line.startswith(OTHERWISE)]
        for server in both
    )
    assert sorted({*ours} ^ {*theirs}) == []
    assert ours == theirs
    assert len(ours) > 200
