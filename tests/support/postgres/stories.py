"""Stories: statements that are said to two servers one after the other, and what each answers."""

from __future__ import annotations

from typing import Any

import psycopg

from tests.support.postgres.both_servers import Connection
from tests.support.postgres.client_server import Server


def statements_of(story: str) -> list[str]:
    """One a line; a line that begins further in goes on with the one before."""
    found: list[str] = []
    for line in story.strip("\n").splitlines():
        if line.startswith(" " * 10):
            found[-1] += " " + line.strip()
        elif line.strip():
            found.append(line.strip())
    return found


def told(connection: Connection, text: str) -> Any:
    """Its rows, its tag, or its SQLSTATE with the constraint that it names."""
    try:
        cursor = connection.execute(text.encode())
    except psycopg.Error as error:
        broken = str(error.sqlstate).startswith("23")
        return error.sqlstate, error.diag.constraint_name if broken else None
    return cursor.fetchall() if cursor.description else cursor.statusmessage


def drop_tables(connection: Connection) -> None:
    named = "select tablename from pg_tables where schemaname = 'public' order by 1"
    for (name,) in connection.execute(named).fetchall():
        connection.execute(f'drop table "{name}" cascade'.encode())
    named = "select sequencename from pg_sequences where schemaname = 'public' order by 1"
    for (name,) in connection.execute(named).fetchall():
        connection.execute(f'drop sequence "{name}"'.encode())


def check_story(servers: tuple[Server, Server], story: str) -> None:
    """Say a story to both, compare each answer, and leave no table behind."""
    ours, theirs = servers
    with ours.psycopg(autocommit=True) as one, theirs.psycopg(autocommit=True) as other:
        try:
            for text in statements_of(story):
                mine, theirs_said = told(one, text), told(other, text)
                assert mine == theirs_said, f"{text}: {mine!r}, and not {theirs_said!r}"
        finally:
            for each in (one, other):
                each.execute("rollback")
                each.execute("reset role")
                drop_tables(each)
