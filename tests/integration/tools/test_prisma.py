"""Goal: Prisma takes a schema and a program to the same on a listener of ours as on a PostgreSQL:
the migrations that it writes are deployed, what it reads of a database is what it has made, and its
client's queries come to the same.

Method: those parts of Prisma that are packages alone, its engines as WebAssembly over
node-postgres, as `infra/client_tools.sh` installs them; a project of tests/support/tools/prisma in
a folder of its own, run against both: what it prints is compared.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.postgres.both_servers import both_servers
from tests.support.postgres.client_server import Server
from tests.support.tools.client_tools import FILES, INSTALLED, need, run, url_of

pytestmark = [
    pytest.mark.integration,
    pytest.mark.long("a tool of another language, which infra/client_tools.sh installs"),
]
PRISMA: Final = INSTALLED / "node_modules" / ".bin" / "prisma"
Ask = Callable[..., str]


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    need(PRISMA, "node")
    with both_servers(tmp_path) as servers:
        yield servers


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The project in a folder of its own, where its packages are found."""
    folder = tmp_path / "project"
    shutil.copytree(FILES / "prisma", folder)
    (folder / "node_modules").symlink_to(INSTALLED / "node_modules")
    return folder


def asked(project: Path, server: Server) -> Ask:
    """Return what runs a command of Prisma's on a server, and returns what it prints."""

    def ask(*words: str, schema: str = "schema.prisma") -> str:
        more = {
            "WALK_URL": url_of(server.port, server.database, server.user),
            "WALK_SCHEMA": schema,
            "CHECKPOINT_DISABLE": "1",
            "PRISMA_HIDE_UPDATE_MESSAGE": "1",
            "NO_COLOR": "1",
        }
        program: tuple[str | Path, ...] = ("node", *words)
        if not words[0].endswith(".mjs"):
            program = (PRISMA, *words, "--config", "prisma.config.mjs")
        return run(*program, cwd=project, more=more, told=False)

    return ask


def write_migrations(project: Path, ask: Ask) -> None:
    """Let Prisma write the migrations to its first schema, and from there to the second."""
    ends = {
        "0_init": ("--from-empty", "--to-schema-datamodel", "first.prisma"),
        "1_more": (
            *("--from-schema-datamodel", "first.prisma"),
            *("--to-schema-datamodel", "schema.prisma"),
        ),
    }
    folder = project / "migrations"
    folder.mkdir()
    (folder / "migration_lock.toml").write_text('provider = "postgresql"\n')
    for name, words in ends.items():
        (folder / name).mkdir()
        text = ask("migrate", "diff", *words, "--script")
        (folder / name / "migration.sql").write_text(text)


def test_migrations_are_deployed(both: tuple[Server, Server], project: Path) -> None:
    found = []
    for server in both:
        ask = asked(project, server)
        if not (project / "migrations").exists():
            write_migrations(project, ask)
        assert "All migrations have been successfully applied" in ask("migrate", "deploy")
        assert "No pending migrations" in ask("migrate", "deploy")
        assert "up to date" in ask("migrate", "status")
        read = [ask("db", "pull", "--print", schema="bare.prisma")]
        assert "already in sync" in ask("db", "push", "--skip-generate")
        pushed = ("db", "push", "--skip-generate", "--accept-data-loss")
        assert "now in sync" in ask(*pushed, schema="later.prisma")
        assert "already in sync" in ask(*pushed, schema="later.prisma")
        read.append(ask("db", "pull", "--print", schema="bare.prisma"))
        found.append([each.partition("generator client")[2] for each in read])
    ours, theirs = found
    assert ours == theirs
    assert "model sailors" in ours[0]
    assert "model sailors" not in ours[1]


def test_a_client_asks(both: tuple[Server, Server], project: Path) -> None:
    found = []
    for server in both:
        ask = asked(project, server)
        ask("db", "push", "--skip-generate")
        if not (project / "made").exists():
            ask("generate")
        found.append(ask("walk.mjs").splitlines())
    ours, theirs = found
    assert ours == theirs
    assert len(ours) > 30
    failed = {line.partition(" failed: ")[0] for line in ours if " failed: " in line}
    assert failed == {
        "taken",
        "gone",
        "no such ship",
        "undone",
        "raw wrong",
        "restricted",
    }
