"""`leasehold role`: what a producer is given, and what becomes of it when it is revoked; and what
the audit log hears of it and of sessions. Against a listener over a database in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.codec.request_bytes import pack_fields
from leasehold.adapters.os.clock import new_request_id
from leasehold.adapters.postgres.client import SqlConnection
from leasehold.cli.main import main
from leasehold.dev.database import REPLY_TO, DevDatabase
from leasehold.model.audit import Audited, AuditEvent
from leasehold.model.records.requests import Outcome
from leasehold.model.signatures import read_keys, signer
from leasehold.pgwire.messages.client_replies import Row, Told
from leasehold.settings.sql_address import SqlAddress
from leasehold.settings.sql_port import PgwireSettings
from leasehold.sql_session.listener import SqlListener
from tests.support.cli.json_output import check_printed

MASTER = "a-master-key-of-more-than-enough-characters"
ROW = {"table": "t", "op": "insert", "values": {"id": 1}}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[DevDatabase]:
    made = DevDatabase(tmp_path, replicants=1, keys=read_keys(MASTER))
    made.wait_ready()
    try:
        for sql in (
            "create table t (id bigint primary key)",
            "create role till login",
            "grant insert on t to till",
        ):
            assert made.ask({"sql": sql}).committed
        yield made
    finally:
        made.close()


@pytest.fixture
def port(database: DevDatabase, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    listener = SqlListener(database.sql_node(), PgwireSettings())
    for name, value in (
        ("PORT", str(listener.port)),
        ("USER", "leasehold"),
        ("HOST", "127.0.0.1"),
    ):
        monkeypatch.setenv(f"LEASEHOLD_SQL_{name}", value)
    monkeypatch.setenv("LEASEHOLD_DATABASE", database.cluster.shape.database)
    monkeypatch.setenv("LEASEHOLD_REQUEST_KEY", MASTER)
    try:
        yield listener.port
    finally:
        listener.close()


def run(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["role", *words, "--json"]) == 0
    (told,) = check_printed(["role", *words, "--json"], capsys.readouterr().out)
    return told


def submit(database: DevDatabase, key: str, row: int) -> Outcome:
    sign = signer(read_keys(key), database.cluster.shape.database, "till")
    request_id = new_request_id()
    fields = {**ROW, "values": {"id": row}, "id": request_id, "reply_to": REPLY_TO}
    media_type, body = pack_fields(fields)
    with database.held():
        database.cluster.put(sign("requests", "", media_type, body), body)
    answers = database._outcomes
    assert database.until(lambda: request_id in answers, 10)
    return answers[request_id]


def master_events(database: DevDatabase) -> list[AuditEvent]:
    master = database.cluster.master()
    assert master is not None
    return list(master.driver.audited)


@pytest.mark.usefixtures("port")
def test_a_key_signs_until_it_is_revoked_and_the_next_one_then(
    database: DevDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(capsys, "key", "till")
    assert submit(database, first["key"], 1).lsn
    revoked = run(capsys, "revoke-key", "till")
    second = run(capsys, "key", "till")
    assert revoked["number"] == second["number"] != first["number"]
    assert submit(database, first["key"], 2).code == "28000"
    assert submit(database, second["key"], 3).lsn


@pytest.mark.usefixtures("port")
def test_a_role_made_anew_under_an_old_name_has_another_key(
    database: DevDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    before = run(capsys, "key", "till")
    for sql in ("revoke insert on t from till", "drop role till", "create role till login"):
        assert database.ask({"sql": sql}).committed, sql
    assert database.ask({"sql": "grant insert on t to till"}).committed
    assert submit(database, before["key"], 1).code == "28000"
    assert submit(database, run(capsys, "key", "till")["key"], 2).lsn


@pytest.mark.usefixtures("port")
def test_what_can_t_be_printed_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["role", "key", "nobody"]) == 1
    assert "does not exist" in capsys.readouterr().err
    monkeypatch.delenv("LEASEHOLD_REQUEST_KEY")
    assert main(["role", "key", "till"]) == 2
    assert "LEASEHOLD_REQUEST_KEY" in capsys.readouterr().err


def test_roles_and_grants_are_audited_with_who_asked(database: DevDatabase) -> None:
    database.ask({"sql": "create role guest login"})
    database.ask({"sql": "grant till to guest"})
    database.ask({"sql": "drop role guest"})
    told = [(e.kind, e.subject, e.words, e.role) for e in master_events(database)][-3:]
    assert told == [
        (Audited.ROLE, "role guest", "made", "leasehold"),
        (Audited.GRANT, "role till", "granted to guest", "leasehold"),
        (Audited.ROLE, "role guest", "dropped", "leasehold"),
    ]
    grants = [e for e in master_events(database) if e.kind is Audited.GRANT and e.subject == "t"]
    assert grants


def test_jobs_and_dead_letters_tell_who_asked(database: DevDatabase, port: int) -> None:
    for sql in ("create role chief superuser login", "create index t_id on t (id)"):
        asked_by = "" if sql.startswith("create role") else "chief"
        assert database.ask({"sql": sql}, principal=asked_by).committed
    refused = {"table": "t", "op": "delete", "key": {"id": 1}}
    assert database.ask(refused, principal="till").outcome.code == "42501"
    name = database.cluster.shape.database
    told = []
    with closing(SqlConnection(SqlAddress(port=port, user="leasehold"), name)) as own:
        for view in ("jobs", "dead_letter"):
            rows = own.ask(f"select asked_by from leasehold.{view}")
            told += [row.values[0] for row in rows if isinstance(row, Row)]
    assert told == ["chief", "till"]
    schema = [e for e in master_events(database) if e.kind is Audited.SCHEMA]
    assert (schema[-1].role, schema[-1].subject) == ("chief", "t")


def test_a_session_s_refusals_and_its_end_are_audited(database: DevDatabase, port: int) -> None:
    name = database.cluster.shape.database
    with (
        closing(SqlConnection(SqlAddress(port=port, user="till"), name)) as other,
        closing(SqlConnection(SqlAddress(port=port, user="leasehold"), name)) as own,
    ):
        for _ in range(2):  # also once its plan is known
            said = list(other.ask("select * from t"))
            assert any(isinstance(each, Told) and each.fields["C"] == "42501" for each in said)
        text = "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'till'"
        list(own.ask(text))
    kinds = (Audited.REFUSED, Audited.ENDED)
    refused, again, ended = (event for event in database.audit.events if event.kind in kinds)
    came = [event.user for event in database.audit.events if event.kind is Audited.LOG_IN]
    assert came == ["till", "leasehold"]
    assert (refused.kind, refused.outcome, refused.user) == (Audited.REFUSED, "42501", "till")
    assert again == refused
    assert (ended.kind, ended.user, ended.words) == (Audited.ENDED, "leasehold", "ended")
    assert ended.subject.endswith("of till")
