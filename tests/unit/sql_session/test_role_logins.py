"""Goal: roles of the catalog log in by their passwords; what changes them holds at once.

Method: roles as the catalog gives them; then psycopg at a port over a whole database.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from leasehold.catalog.access import Access
from leasehold.catalog.roles import FIRST_ROLE, Role, Roles
from leasehold.dev.database import DevDatabase
from leasehold.pgwire.auth.logins import Account
from leasehold.pgwire.auth.scram_server import verifier_of_password
from leasehold.settings.sql_port import PgwireSettings
from leasehold.sql_session.listener import SqlListener
from leasehold.sql_session.role_logins import RoleLogins
from tests.unit.adapters.postgres.test_server import until_true

PENCIL = verifier_of_password("pencil", b"salt" * 4, 4096)
ANN = Role(20_000, "ann", may_log_in=True, verifier=str(PENCIL), connections_max=2)
STAFF = Role(20_001, "staff")


def test_what_the_catalog_says_of_a_role() -> None:
    held = Roles([ANN._replace(valid_until_us=7), STAFF, FIRST_ROLE])
    logins = RoleLogins(lambda: held)
    ann = Account(PENCIL, connections_max=2, valid_until_us=7, role_id=20_000)
    assert logins.find("ann") == ann
    assert logins.find("staff") == Account(None, may_log_in=False, role_id=20_001)
    first = logins.find(FIRST_ROLE.name)
    assert first is not None
    assert first.administrator
    assert logins.find("nobody") is None
    assert logins.verifiers() == [PENCIL]


def test_a_role_is_found_again_by_its_number() -> None:
    held = [Roles([ANN])]
    logins = RoleLogins(lambda: held[0])
    ann = logins.find("ann")
    assert ann is not None
    before = logins.revision
    held[0] = Roles([ANN._replace(name="anna"), Role(20_002, "ann", may_log_in=True)])
    assert logins.revision != before
    assert logins.find_again("ann", ann) == ann, "it has another name"
    held[0] = Roles([Role(20_002, "ann", may_log_in=True)])
    assert logins.find_again("ann", ann) is None, "one of the same name is another"
    assert logins.find_again("ann", Account(PENCIL)) is None, "one of the file of users"


def test_what_is_no_verifier_lets_nobody_in() -> None:
    held = Roles([ANN._replace(verifier="md5abc")])
    logins = RoleLogins(lambda: held)
    found = logins.find("ann")
    assert found is not None
    assert found.verifier is None
    assert logins.verifiers() == []


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    dev = DevDatabase(Path(tmp_path_factory.mktemp("roles")))
    dev.wait_ready()
    yield dev
    dev.close()


@contextmanager
def listening(
    database: DevDatabase, monkeypatch: pytest.MonkeyPatch, held: list[Roles], **settings: Any
) -> Iterator[int]:
    node = database.sql_node()
    monkeypatch.setattr(type(node), "access", property(lambda _: Access(held[0])))
    listener = SqlListener(node, PgwireSettings(**settings))
    try:
        yield listener.port
    finally:
        listener.close()


def connect(port: int, database: DevDatabase, **options: Any) -> psycopg.Connection[Any]:
    name = database.cluster.shape.database
    return psycopg.connect(
        host="127.0.0.1", port=port, dbname=name, autocommit=True, connect_timeout=60, **options
    )


def is_ended(client: psycopg.Connection[Any]) -> bool:
    try:
        client.execute("select 1")
    except psycopg.OperationalError:  # what was said crosses with what is asked
        return True
    return False


def test_a_role_that_loses_its_log_in_loses_its_sessions(
    database: DevDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = [Roles([ANN, STAFF, FIRST_ROLE])]
    ann = {"user": "ann", "password": "pencil"}
    with listening(database, monkeypatch, held, auth="scram-sha-256") as port:
        for wrong in ({"user": "staff", "password": "pencil"}, {"user": "ann", "password": "x"}):
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                connect(port, database, **wrong)
        with connect(port, database, **ann) as client:
            held[0] = Roles([ANN._replace(may_log_in=False), STAFF, FIRST_ROLE])
            until_true(lambda: is_ended(client), "the session ended")
        with pytest.raises(psycopg.OperationalError, match="is not permitted to log in"):
            connect(port, database, **ann)


def test_where_nobody_is_asked_roles_still_need_leave_to_log_in(
    database: DevDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = [Roles([ANN, STAFF, FIRST_ROLE])]
    with listening(database, monkeypatch, held) as port:
        with connect(port, database, user="anybody") as client:
            assert client.execute("select 1").fetchone() == (1,)
        with pytest.raises(psycopg.OperationalError, match="is not permitted to log in"):
            connect(port, database, user="staff")


@contextmanager
def serving(database: DevDatabase, **settings: Any) -> Iterator[int]:
    listener = SqlListener(database.sql_node(), PgwireSettings(**settings))
    try:
        yield listener.port
    finally:
        listener.close()


def test_statements_about_roles_hold_for_log_ins(database: DevDatabase) -> None:
    """CREATE ROLE, ALTER ROLE and DROP ROLE, while clients are connected."""
    bob = {"user": "bob", "password": "pencil"}
    who = "select current_user, current_setting('is_superuser')"
    with (
        serving(database) as trusting,
        serving(database, auth="scram-sha-256", users={"root": PENCIL}) as asking,
        connect(trusting, database, user="anybody") as admin,
    ):
        admin.execute("create role bob login password 'pencil' connection limit 1")
        with connect(asking, database, **bob) as client:
            assert client.execute(who).fetchone() == ("bob", "off")
            with pytest.raises(psycopg.OperationalError, match="too many connections for role"):
                connect(asking, database, **bob)
            admin.execute("alter role bob rename to robert")
            assert client.execute("select 1").fetchone() == (1,)
            admin.execute("alter role robert password 'another' connection limit -1")
            assert client.execute("select 1").fetchone() == (1,)
            changed = {"user": "robert", "password": "another"}
            with connect(asking, database, **changed) as other:
                assert other.execute(who).fetchone() == ("robert", "off")
            admin.execute("alter role robert nologin")
            until_true(lambda: is_ended(client), "the session ended")
        with pytest.raises(psycopg.OperationalError, match="is not permitted to log in"):
            connect(asking, database, **changed)
        admin.execute("drop role robert")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            connect(asking, database, **changed)


def test_an_administrator_of_the_file_is_one_whatever_roles_are_called(
    database: DevDatabase,
) -> None:
    who = "select current_user, current_setting('is_superuser')"
    with serving(database, users={"root": PENCIL}) as port:
        with connect(port, database, user="root", password="pencil") as client:
            client.execute("create role root nologin")
            assert client.execute(who).fetchone() == ("root", "on")
        with connect(port, database, user="root", password="pencil") as client:
            assert client.execute(who).fetchone() == ("root", "on")
            client.execute("set role root")
            client.execute("reset role")
            client.execute("create table kept_for_root (id int primary key)")
            client.execute("drop role root")
