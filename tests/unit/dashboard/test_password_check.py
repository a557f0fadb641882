"""Goal: a log-in to the dashboard is what a log-in to SQL is, for roles that see what others run.

Method: listeners for SQL over a whole database in this process, its administrators and roles.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from infra.ports import find_free_port
from leasehold.adapters.postgres.client import SqlConnection
from leasehold.dashboard.password_check import PasswordCheck, Verdict
from leasehold.dev.database import DevDatabase
from leasehold.pgwire.auth.scram_server import verifier_of_password
from leasehold.pgwire.messages.client_replies import Told
from leasehold.settings.sql_address import SqlAddress
from leasehold.settings.sql_port import PgwireSettings
from leasehold.sql_session.listener import SqlListener

ROLES = (
    "create role plain login password 'pencil'",
    "create role watcher login password 'pencil' in role pg_monitor",
    "create role reader login password 'pencil' in role pg_read_all_stats",
    "create role boss superuser login password 'pencil'",
    "create role readers in role pg_monitor",
    "create role member login password 'pencil' in role readers",
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    dev = DevDatabase(Path(tmp_path_factory.mktemp("dashboard")))
    dev.wait_ready()
    with listening(dev) as port:
        name = dev.cluster.shape.database
        with closing(SqlConnection(SqlAddress(port=port), name)) as sql:
            for statement in ROLES:
                assert not [s for s in sql.ask(statement) if isinstance(s, Told) and s.failed]
    yield dev
    dev.close()


@contextmanager
def listening(database: DevDatabase, **settings: Any) -> Iterator[int]:
    listener = SqlListener(database.sql_node(), PgwireSettings(**settings))
    try:
        yield listener.port
    finally:
        listener.close()


def test_who_sees_what_others_run_may_read(database: DevDatabase) -> None:
    users = {"root": verifier_of_password("chalk", b"salt" * 4, 4096)}
    with listening(database, auth="scram-sha-256", users=users) as port:
        check = PasswordCheck(SqlAddress(port=port), database.cluster.shape.database)
        assert {
            who: check.judge(*who)
            for who in (
                ("root", "chalk"),
                ("boss", "pencil"),
                ("watcher", "pencil"),
                ("reader", "pencil"),
                ("member", "pencil"),
                ("plain", "pencil"),
                ("readers", "pencil"),  # may not log in
                ("watcher", "wrong"),
                ("nobody", "pencil"),
            )
        } == {
            ("root", "chalk"): Verdict.MAY_READ,
            ("boss", "pencil"): Verdict.MAY_READ,
            ("watcher", "pencil"): Verdict.MAY_READ,
            ("reader", "pencil"): Verdict.MAY_READ,
            ("member", "pencil"): Verdict.MAY_READ,
            ("plain", "pencil"): Verdict.MAY_NOT_READ,
            ("readers", "pencil"): Verdict.WRONG,
            ("watcher", "wrong"): Verdict.WRONG,
            ("nobody", "pencil"): Verdict.WRONG,
        }


def test_a_node_that_lets_everybody_in_vouches_for_nobody(
    database: DevDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    name = database.cluster.shape.database
    with listening(database) as port, caplog.at_level(logging.WARNING):
        assert PasswordCheck(SqlAddress(port=port), name).judge("boss", "x") is Verdict.UNKNOWN
    assert "asks for no password" in caplog.text
    away = PasswordCheck(SqlAddress(port=find_free_port()), name)
    assert away.judge("boss", "pencil") is Verdict.UNKNOWN
    assert "could not be looked at" in caplog.text
    assert "pencil" not in caplog.text
