"""Goal: psql's commands print of a database here what they print of the same tables in PostgreSQL.

Method: psql itself, on the listener of a whole database in this process and on a PostgreSQL of the
same DDL; the same text, but for what is listed with its reason.
"""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import psycopg
import pytest

from tests.support.postgres.dev_server import dev_server
from tests.support.postgres.postgres_server import postgres_server
from tests.support.sql.described_tables import DDL

pytestmark = pytest.mark.integration

USER: Final = "postgres"
WAIT_S: Final = 30.0
SAME: Final = (
    r"\d",
    r"\d legs",
    r"\d+ legs",
    r"\d public.legs",
    r"\d nope",
    r"\d legs_pkey",
    r"\dt",
    r"\dt f*",
    r"\dt public.*",
    r"\dtS pg_cl*",
    r"\di",
    r"\dv",
    r"\ds",
    r"\dm",
    r"\df",
    r"\dT",
    r"\dD",
    r"\dp",
    r"\z",
    r"\db",
    r"\dP",
    r"\dP+",
    r"\dPt+",
    r"\dPi+",
    r"\des+",
    r"\deu+",
    r"\dew+",
    r"\det+",
    r"\dE",
    r"\dy",
    r"\ddp",
    r"\des",
    r"\dRp",
    r"\dX",
    r"\encoding",
    r"\d flights",
    r"\d+ flights",
    r"\d flights_gate",
)
SIZE: Final = ("8192 bytes", "")  # nobody counts the pages of one table
SCHEMAS: Final = ("public | pg_database_owner", f"leasehold | {USER} public | {USER}")
"""The first role owns them, and there is one more schema."""
MAY: Final = (
    f"{USER} | Superuser, Create role, Create DB, Replication, Bypass RLS",
    (
        "leasehold_read_dead_letters | Cannot login | {} leasehold_steer_jobs | Cannot login | {}"
        f" {USER} | Superuser, Create role, Create DB"
    ),
)
"""Two roles that only Leasehold has."""
ACCESS: Final = """
create role clerk login connection limit 3;
create role staff nologin createdb;
create role "Odd One" noinherit login valid until '2031-05-06';
grant staff to clerk, "Odd One" with admin option;
alter table legs owner to clerk;
grant select, insert on flights to clerk with grant option;
grant select on flights to public;
grant update (seats, gate), select (id) on flights to staff, "Odd One";
grant usage on sequence numbers to staff;
"""
OTHERWISE: Final = {
    r"\dt+": (SIZE,),
    r"\di+": (SIZE,),
    r"\dn": (SCHEMAS, ("(1 row)", "(2 rows)")),
    r"\du": (MAY,),
    r"\dg": (MAY,),
    r"\l postgres": (("postgres | postgres", "dev | postgres"),),  # the database's own name
}
"""What PostgreSQL prints, and what stands for it here; blanks and lines don't count then."""

ANSWERED: Final = (
    *(
        "dS",
        "d+",
        "da",
        "daS",
        "dA",
        "dA+",
        "dAc",
        "dAf",
        "dAo",
        "dAo btree",
        "dAp",
        "db+",
        "dc",
        "dcS",
        "dC",
        "dC+",
    ),
    *("dconfig", "dconfig+", "dconfig *time*", "dconfig work_mem", "dd", "ddS", "dd legs", "dDS"),
    *("dE+", "dew", "det", "deu", "df+", "dfS", "dF", "dFd", "dFp", "dFt", "dl", "dL", "dL+"),
    *("dLS", "dL sql", "dm+", "dn+", "dnS", "do", "doS", "dO", "dOS", "drds", "dRs", "ds+"),
    *("dtS", "dT+", "dTS", "dT int*", "df lower*", "du+", "dvS", "dx", "lo_list"),
)


class Servers(NamedTuple):
    theirs: dict[str, str]
    ours: dict[str, str]


def environment(port: int, database: str) -> dict[str, str]:
    given = {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": USER, "PGDATABASE": database}
    return {**os.environ, **given, "TERM": "dumb", "PSQL_HISTORY": "/dev/null"}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    ddl = f"{DDL}; create sequence numbers; {ACCESS}"
    with postgres_server() as port, dev_server(tmp_path_factory.mktemp("psql"), DDL) as served:
        for at, database in ((port, USER), (served.port, served.database)):
            with psycopg.connect(
                host="127.0.0.1", port=at, user=USER, dbname=database, autocommit=True
            ) as client:
                for text in (ddl if at == port else ddl.removeprefix(DDL)).split(";"):
                    client.execute(text.encode())
                client.execute(f"grant create on database {database} to staff".encode())
        yield Servers(environment(port, USER), environment(served.port, served.database))


def psql(env: dict[str, str], command: str) -> str:
    done = subprocess.run(
        ["psql", "-X", "-c", command], env=env, capture_output=True, text=True, timeout=WAIT_S
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("command", SAME)
def test_the_same_is_printed(servers: Servers, command: str) -> None:
    assert psql(servers.ours, command) == psql(servers.theirs, command)


@pytest.mark.parametrize("command", OTHERWISE)
def test_the_same_but_for_what_is_listed(servers: Servers, command: str) -> None:
    mine = command.replace(" postgres", f" {servers.ours['PGDATABASE']}")
    expected = words(psql(servers.theirs, command))
    for theirs, ours in OTHERWISE[command]:
        assert theirs in expected, command
        expected = words(expected.replace(theirs, ours))
    assert words(psql(servers.ours, mine)) == expected


@pytest.mark.parametrize("command", ANSWERED)
def test_no_command_fails_that_postgresql_answers(servers: Servers, command: str) -> None:
    """What they print depends on what PostgreSQL brings along: functions, operators, casts …"""
    for env in servers:
        assert "ERROR" not in psql(env, rf"\{command}")


def words(text: str) -> str:
    """Without the blanks and lines that a column's width is made of."""
    return " ".join(re.sub(r"[-+]{3,}", " ", text).split())


def test_connection_information(servers: Servers) -> None:
    said = psql(servers.ours, r"\conninfo")
    assert f'database "{servers.ours["PGDATABASE"]}" as user "{USER}"' in said


def test_rows_are_copied_into_files_and_from_them(servers: Servers, tmp_path: Path) -> None:
    made = "create table copied (id int primary key, word text)"
    told = []
    for kind, env in zip(("theirs", "ours"), servers, strict=True):
        file, rows = tmp_path / kind, tmp_path / "rows"
        rows.write_text('1,"a, b"\n2,\n3,"it\'s ""so"""\n')
        commands = (
            made,
            rf"\copy copied from {rows} csv",
            rf"\copy (select * from copied order by id desc) to {file} csv header",
            "drop table copied",
        )
        said = [psql(env, command).replace(str(rows), "rows") for command in commands]
        told.append((said, file.read_text()))
    assert told[0] == told[1]
    assert told[0][0][1:3] == ["COPY 3\n", "COPY 3\n"]


@pytest.mark.parametrize(
    ("typed", "completed"), [(r"\d leg", "legs_pkey"), ("select * from fli", "flights")]
)
def test_the_tab_key_completes_names_of_tables(
    servers: Servers, typed: str, completed: str
) -> None:
    """The key thrice: what they have in common, nothing more, all there are."""
    mine, theirs = pty.openpty()
    program = subprocess.Popen(
        ["psql", "-X"], env=servers.ours, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    try:
        seen(mine, "=")  # the prompt
        os.write(mine, f"{typed}\t\t\t".encode())
        assert completed in seen(mine, completed)
    finally:
        program.kill()
        program.wait()
        os.close(mine)


def seen(terminal: int, wanted: str) -> str:
    """All that comes until `wanted` has."""
    text, end = "", time.monotonic() + WAIT_S
    while wanted not in text and time.monotonic() < end:
        if select.select([terminal], [], [], 1.0)[0]:
            text += os.read(terminal, 4096).decode(errors="replace")
    return text
