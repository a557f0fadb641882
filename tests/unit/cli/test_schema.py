"""`leasehold schema` against a listener over a whole database in this process."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from leasehold.adapters.postgres.client import SqlConnection
from leasehold.cli.json_forms import FORMS
from leasehold.cli.main import main
from leasehold.dev.database import DevDatabase
from leasehold.settings.sql_address import SqlAddress
from leasehold.settings.sql_port import PgwireSettings
from leasehold.sql_session.listener import SqlListener
from leasehold.transfer.declared_schema import LOCK

FIRST = """
CREATE TABLE seats (id int PRIMARY KEY, class text, free int);
CREATE VIEW open_seats AS SELECT id FROM seats WHERE free > 0;
COMMENT ON COLUMN seats.free IS 'may be negative';
CREATE SEQUENCE tickets START 5;
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    dev = DevDatabase(Path(tmp_path_factory.mktemp("schema")))
    dev.wait_ready()
    yield dev
    dev.close()


@pytest.fixture
def folder(
    database: DevDatabase, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Path]:
    listener = SqlListener(database.sql_node(), PgwireSettings(port=0))
    monkeypatch.setenv("LEASEHOLD_SQL_PORT", str(listener.port))
    monkeypatch.setenv("LEASEHOLD_DATABASE", database.cluster.shape.database)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    yield tmp_path
    listener.close()


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[Any], str]:
    """The exit code, what was printed for programs, and the errors."""
    capsys.readouterr()
    code = main([*words, "--json"])
    told = capsys.readouterr()
    lines = [json.loads(line) for line in told.out.splitlines()]
    for line in lines if code != 2 else ():
        Draft202012Validator(FORMS[" ".join(words[:2])].schema).validate(line)
    return code, lines, told.err


def test_from_nothing_to_a_schema_to_another_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: the plan, what it needs said, a failure in the middle, and going on from there."""
    file = folder / "schema.sql"
    file.write_text(FIRST)
    code, (plan,), _ = said(capsys, "schema", "diff", str(file))
    assert (code, plan["equal"], len(plan["requests"])) == (1, False, 1)
    code, told, errors = said(capsys, "schema", "apply", str(file))
    assert (code, len(told)) == (2, 1)
    assert "--yes" in errors
    code, told, _ = said(capsys, "schema", "apply", str(file), "--yes")
    assert code == 0
    assert [line.get("state") for line in told] == [None, "done", None]
    code, (plan,), _ = said(capsys, "schema", "diff", str(file))
    assert (code, plan["equal"]) == (0, True)

    assert main(["sql", "-c", "INSERT INTO seats VALUES (1, 'Y', 3), (2, 'Y', 3)"]) == 0
    file.write_text(
        "CREATE TABLE seats (id int PRIMARY KEY, free int,\n"
        "  cabin text UNIQUE, -- leasehold: renamed from class\n  gate text DEFAULT 'A');\n"
        "CREATE VIEW open_seats AS SELECT id FROM seats WHERE free > 0;"
        "COMMENT ON COLUMN seats.free IS 'may be negative'; CREATE SEQUENCE tickets START 5;"
    )
    code, (plan,), _ = said(capsys, "schema", "diff", str(file))
    flat = [each for request in plan["requests"] for each in request["statements"]]
    assert [each["sql"] for each in flat] == [
        "ALTER TABLE seats RENAME COLUMN class TO cabin",
        "ALTER TABLE seats ADD COLUMN gate text DEFAULT 'A'::text",
        "ALTER TABLE seats ADD CONSTRAINT seats_cabin_key UNIQUE (cabin)",
    ]
    assert [each["instant"] for each in flat] == [True, True, False]
    assert plan["requests"][0]["rows_about"] == 2
    assert "cabin" in flat[2]["may_fail"]
    code, told, errors = said(capsys, "schema", "apply", str(file), "--yes")
    assert code == 1
    assert told[-1]["code"] == "23505"
    assert "requests are done and stay so" in errors
    assert main(["sql", "-c", "DELETE FROM seats WHERE id = 2"]) == 0
    code, told, _ = said(capsys, "schema", "apply", str(file), "--yes")
    assert (code, told[-1]["equal"]) == (0, True)


def test_what_loses_something_is_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "less.sql"
    assert main(["sql", "-c", "CREATE TABLE gone (id int PRIMARY KEY)"]) == 0
    file.write_text("")
    code, told, errors = said(capsys, "schema", "apply", str(file), "--yes")
    assert code == 1
    assert "--allow-drop" in errors
    assert "the rows of gone" in "; ".join(told[0]["losses"])
    code, told, _ = said(capsys, "schema", "apply", str(file), "--yes", "--allow-drop")
    assert (code, told[-1]["equal"]) == (0, True)


def test_two_who_apply_do_not_meet(
    folder: Path, database: DevDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "schema.sql"
    file.write_text(FIRST)
    port = int(database_port())
    with closing(SqlConnection(SqlAddress(port=port), database.cluster.shape.database)) as other:
        list(other.ask(f"SELECT pg_advisory_lock({LOCK})"))
        code, _, errors = said(capsys, "schema", "apply", str(file), "--yes")
        list(other.ask(f"SELECT pg_advisory_unlock({LOCK})"))
    assert code == 1
    assert "another schema apply runs" in errors


def test_who_has_applied_gives_the_lock_back_before_he_ends(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """However late the node hears that a connection is closed."""
    left: list[SqlConnection] = []
    file = folder / "schema.sql"
    file.write_text("CREATE TABLE kept (id int PRIMARY KEY)")
    with monkeypatch.context() as patched:
        patched.setattr(SqlConnection, "close", lambda connection: left.append(connection))
        for _ in range(2):
            code, _, errors = said(capsys, "schema", "apply", str(file), "--yes", "--allow-drop")
            assert (code, errors) == (0, "")
    for connection in left:
        connection.close()


def database_port() -> str:
    import os

    return os.environ["LEASEHOLD_SQL_PORT"]


def test_people_see_statements_costs_and_dangers(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = folder / "a.sql", folder / "b.sql"
    first.write_text("CREATE TABLE t (id int PRIMARY KEY, a int)")
    assert main(["schema", "apply", "--yes", "--allow-drop", str(first)]) == 0
    first.write_text("CREATE TABLE t (id int PRIMARY KEY, b int UNIQUE)")
    second.write_text("CREATE TABLE u (id int)")
    capsys.readouterr()
    assert main(["schema", "diff", str(first), str(second)]) == 1
    told = capsys.readouterr().out
    for words in (
        "one job on table t, which fills and looks at about 0 rows",
        "-- LOSES the values of column a of table t",
        "-- may fail: two rows with the same b fail it",
        "CREATE TABLE u",
        "4 statements in 2 requests",
    ):
        assert words in told, told
    second.write_text("CREATE TABLE u (id int);\nCREATE TABLE v (id nonsense)")
    assert main(["schema", "diff", str(first), str(second)]) == 2
    assert re.search(r'b\.sql, line 2: .*"nonsense"', capsys.readouterr().err)


HINTS = {
    ("sql", "-c", "SELECT 1 FROM nope"): (1, "leasehold versions lists the tables"),
    ("sql", "-c", "SELECT nope FROM pg_class"): (1, "leasehold versions TABLE"),
    ("sql", "-c", "SELEC 1"): (1, "docs/reference/sql.md"),
    ("sql", "-d", "nope", "-c", "SELECT 1"): (1, "LEASEHOLD_DATABASE"),
    ("sql", "-p", "1", "-c", "SELECT 1"): (3, "LEASEHOLD_SQL_PORT"),
    ("sql", "-p", "no", "-c", "SELECT 1"): (2, "docs/reference/settings.md"),
    ("schema", "diff", "no-such-file.sql"): (2, "No such file"),
}


def test_an_error_says_what_to_do(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = {}
    for words, (_, hint) in HINTS.items():
        capsys.readouterr()
        code = main([*words])
        errors = capsys.readouterr().err
        found[words] = code, hint if hint in errors else errors
    assert found == HINTS
