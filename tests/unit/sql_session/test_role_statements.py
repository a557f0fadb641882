"""Goal: statements about roles and privileges work as statements of a session: their tags and what
is told, in transaction blocks, on every node; and no password is seen by anybody.

Method: a database in this process, whose log, activity and stores are looked through.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.adapters.sqlite.snapshot import SqliteSnapshot
from leasehold.dev.database import DevDatabase
from leasehold.pgwire.session import Notice
from tests.support.sql_session.sql_client import SqlClient, client_of_tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("database")


@pytest.fixture(scope="module")
def database(folder: Path) -> Iterator[DevDatabase]:
    made = DevDatabase(folder)
    try:
        made.wait_ready()
        yield made
    finally:
        made.close()


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    made = ("create table t (id int primary key, a int)", "create role ann login; create role bob")
    with client_of_tables(database, *made, dropped_by="drop table t; drop role ann, bob") as one:
        one.reports.clear()
        yield one
        one.ask("drop owned by ann, bob")


def told(client: SqlClient) -> list[tuple[str, str, str]]:
    reports, client.reports = client.reports, []
    return [(r.severity, r.sqlstate, r.message) for r in reports if isinstance(r, Notice)]


@pytest.mark.parametrize(
    ("said", "tag", "notices"),
    [
        ("create role x; create user y", "CREATE ROLE", []),
        ("alter role ann createrole", "ALTER ROLE", []),
        ("alter role ann rename to x; alter role x rename to ann", "ALTER ROLE", []),
        (
            "drop role if exists nobody",
            "DROP ROLE",
            [("NOTICE", "00000", 'role "nobody" does not exist, skipping')],
        ),
        ("grant bob to ann", "GRANT ROLE", []),
        (
            "revoke ann from bob",
            "REVOKE ROLE",
            [("WARNING", "01000", 'role "bob" is not a member of role "ann"')],
        ),
        ("alter group bob add user ann", "ALTER ROLE", []),
        ("grant all on t to ann", "GRANT", []),
        ("revoke all on t from public", "REVOKE", []),
        ("alter table t owner to leasehold", "ALTER TABLE", []),
        ("reassign owned by ann to bob", "REASSIGN OWNED", []),
        ("drop owned by ann", "DROP OWNED", []),
    ],
)
def test_tags_and_notices_are_postgresqls(
    client: SqlClient, said: str, tag: str, notices: list[tuple[str, str, str]]
) -> None:
    for text in (said, f"begin; {said}; rollback"):
        client.ask(text)
        assert client.tags[-2 if text.startswith("begin") else -1] == tag
        assert told(client) == notices
        client.ask("revoke bob from ann; drop role if exists x, y")
        told(client)


def test_a_block_is_whole_and_its_savepoints_count(client: SqlClient) -> None:
    client.ask("begin; create role x; grant select on t to x; rollback")
    assert client.code("drop role x") == "42704"
    client.ask("begin; create role x; savepoint s; grant select on t to x; rollback to s; commit")
    client.ask("drop role x")
    client.ask("begin; create table u (id int primary key); grant select on u to ann; commit")
    assert client.code("drop role ann") == "2BP01"
    client.ask("drop table u")


def test_what_is_wrong_is_told_at_once(client: SqlClient) -> None:
    for text, code in (
        ("create role ann", "42710"),
        ("grant ann to ann", "0LP01"),
        ("grant usage on t to ann", "0LP01"),
        ("grant select (x) on t to ann", "42703"),
        ("grant select on nothing to ann", "42P01"),
        ("create role pg_x", "42939"),
        ("explain create role x", "0A000"),
    ):
        assert client.code(text) == code, text
        client.ask("begin")
        assert client.code(text) == code, text
        client.ask("rollback")


@pytest.mark.parametrize(
    "said",
    [
        "create role eve login password 'h1dden'",
        "alter role ann password 'h1dden'",
        "begin; alter role ann password 'h1dden'; commit",
        "alter role ann password 'h1dden'; grant ann to nobody",
        "create role ann password 'h1dden'",
    ],
)
def test_a_password_is_seen_by_nobody(
    database: DevDatabase, folder: Path, client: SqlClient, said: str
) -> None:
    statements = client.session.statements(said)
    assert "h1dden" not in repr(statements)
    client.code(said)
    found = client.ask("select query from pg_stat_activity")
    assert "h1dden" not in repr(found)
    with client.node.single_read().snapshot() as snapshot:
        assert isinstance(snapshot, SqliteSnapshot)
        roles = snapshot.catalog.access.roles
    stored = [role.verifier for role in roles.by_id.values() if role.verifier]
    assert all(each.startswith("SCRAM-SHA-256$16384:") for each in stored)
    for path in folder.rglob("*"):
        assert not path.is_file() or b"h1dden" not in path.read_bytes(), path
    client.code("rollback")
    client.ask("alter role ann password null; drop role if exists eve")
