"""Goal: object mappers and tools of data people, of several languages, come to the same on a
listener of ours as on a PostgreSQL.

Method: the tools themselves, as `infra/client_tools.sh` installs them, each with a program of
tests/support/tools, run against both: what it prints is compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.postgres.both_servers import both_servers
from tests.support.postgres.client_server import Server
from tests.support.tools.client_tools import (
    FILES,
    INSTALLED,
    PYTHON,
    jdbc_of,
    need,
    run,
    url_of,
)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.long("tools of other languages, which infra/client_tools.sh installs"),
]
Both = tuple[Server, Server]
INDEXES_OF_DRIZZLE: Final = 4
JARS: Final = INSTALLED / "java"
MADE: Final = """
    create table ship (id bigserial primary key, name varchar(20) unique, since timestamptz,
        price numeric(8, 2) default 1.50, ok boolean not null default true, body jsonb);
    create table crew (ship bigint references ship on delete cascade, place int, who text not null,
        raw bytea, day date, constraint crew_key primary key (place, ship));
    create index crew_who on crew (who desc nulls last, ship);
    create unique index crew_day on crew (day) where place > 3;
    create view seen as select name, count(*) as n from ship join crew on ship = id group by name;
    comment on table ship is 'what floats';
    comment on column crew.who is 'a name';
"""


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Both]:
    with both_servers(tmp_path) as servers:
        yield servers


def url(server: Server) -> str:
    return url_of(server.port, server.database, server.user)


def jdbc(server: Server) -> str:
    return jdbc_of(server.port, server.database)


def same(both: Both, *words: str | Path, wanted: str = "") -> None:
    """Run a program for both servers, whose addresses stand in the place of URL, JDBC and the
    like, and compare what it prints."""
    found = []
    for server in both:
        named = {"URL": url(server), "JDBC": jdbc(server), "USER": server.user}
        named |= {"PORT": str(server.port), "DATABASE": server.database}
        found.append(run(*(named.get(str(word), word) for word in words), told=False))
    ours, theirs = found
    assert ours == theirs
    assert wanted in ours


def test_tortoise_makes_and_uses_its_schema(both: Both) -> None:
    need(PYTHON, PYTHON)
    same(both, PYTHON, FILES / "tortoise" / "walk.py", "URL", wanted="left")


def test_optuna_runs_a_study_of_several_workers(both: Both) -> None:
    need(PYTHON, PYTHON)
    same(both, PYTHON, FILES / "optuna" / "study.py", "URL", wanted="trials 12 left 0")


def test_pgcli_looks_around(both: Both) -> None:
    need(PYTHON, PYTHON)
    for server in both:
        with server.psycopg(autocommit=True) as connection:
            connection.execute(MADE.encode())
    same(both, PYTHON, FILES / "pgcli" / "look.py", "DATABASE", "USER", "PORT", wanted="crew")


@pytest.mark.parametrize("program", ["typeorm", "sequelize"])
def test_node_s_mappers(both: Both, program: str) -> None:
    need(INSTALLED / "node_modules" / program, "node")
    same(both, "node", FILES / program / "run.js", "URL", INSTALLED, wanted="{")


def columns_of(server: Server) -> list[Any]:
    with server.psycopg() as connection:
        found = connection.execute(
            "select table_name, column_name, data_type from information_schema.columns"
            " where table_schema = 'public' order by 1, 2"
        )
        return found.fetchall()


def run_drizzle_kit(server: Server, out: Path, *words: str) -> str:
    """Return what a command of drizzle-kit's prints; what it writes comes into `out`."""
    kit = INSTALLED / "node_modules" / ".bin" / "drizzle-kit"
    need(kit, "node")
    files = FILES / "drizzle"
    more = {"WALK_URL": url(server), "WALK_OUT": str(out), "WALK_FOLDER": str(INSTALLED)}
    return run(kit, *words, "--config", files / "drizzle.config.js", cwd=files, more=more)


def test_drizzle_kit_generates_and_migrates(both: Both, tmp_path: Path) -> None:
    tables = []
    for server in both:
        for word in ("generate", "migrate", "migrate"):
            run_drizzle_kit(server, tmp_path / server.kind, word)
        tables.append(columns_of(server))
    assert tables[0] == tables[1]
    assert ("ship", "kind", "USER-DEFINED") in tables[0]


def test_drizzle_kit_pushes_and_pulls(both: Both, tmp_path: Path) -> None:
    """A second push has nothing to do."""
    pulled = []
    for server in both:
        out = tmp_path / server.kind
        assert "Changes applied" in run_drizzle_kit(server, out, "push", "--force")
        assert "No changes detected" in run_drizzle_kit(server, out, "push", "--force")
        run_drizzle_kit(server, out, "pull")
        texts = [(out / name).read_text() for name in ("schema.ts", "relations.ts")]
        pulled.append("".join(texts))
    lines, theirs = (
        sorted(sorted(line.split(", ")) for line in text.splitlines()) for text in pulled
    )
    assert lines == theirs, "in whatever order it is told of tables"
    assert 'export const ship = pgTable("ship", {' in pulled[0]
    indexes = [each for each in pulled[0].split() if each.startswith(("index(", "uniqueIndex("))]
    assert len(indexes) == INDEXES_OF_DRIZZLE


def test_golang_migrate_walks_up_and_down(both: Both) -> None:
    migrate = INSTALLED / "bin" / "migrate"
    need(migrate, migrate)
    for server in both:
        asked = (migrate, "-path", FILES / "migrate", "-database", url(server))
        run(*asked, "up")
        assert run(*asked, "version").strip() == "2"
        with server.psycopg() as connection:
            assert connection.execute("select email, age from users order by 1").fetchall() == [
                ("a@b", 3),
                ("c@d", 3),
            ]
        run(*asked, "down", "-all")
        run(*asked, "drop", "-f")


def test_hibernate_updates_and_validates(both: Both, tmp_path: Path) -> None:
    need(JARS / "hibernate-core-7.4.15.Final.jar", "java")
    run("javac", "-cp", f"{JARS}/*", "-d", tmp_path, FILES / "hibernate" / "Walk.java")
    path = f"{JARS}/*:{tmp_path}"
    same(both, "java", "-cp", path, "Walk", "JDBC", "USER", wanted="empty 0")


def test_jooq_generates_the_same_classes(both: Both, tmp_path: Path) -> None:
    need(JARS / "jooq-codegen-3.19.39.jar", "java")
    trees = []
    for server in both:
        with server.psycopg(autocommit=True) as connection:
            connection.execute(MADE.encode())
        out = tmp_path / server.kind
        program = FILES / "jooq" / "Generate.java"
        run("java", "-cp", f"{JARS}/*", program, jdbc(server), server.user, out)
        trees.append({p.relative_to(out): p.read_text() for p in sorted(out.rglob("*.java"))})
    ours, theirs = trees
    assert ours.keys() == theirs.keys()
    # Of a view it keeps the text, which is here as it was said.
    assert {path.name for path in ours if ours[path] != theirs[path]} <= {"Seen.java"}
