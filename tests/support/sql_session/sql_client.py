"""Talks to a session as the wire does: simple queries, prepared ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol
from zoneinfo import ZoneInfo

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.errors import LeaseholdError
from leasehold.pgwire.session import Report, Status
from leasehold.pgwire.values.encoding import TEXT
from leasehold.pgwire.values.formats import make_result_form
from leasehold.replica.serving_node import SqlNode
from leasehold.sql.planning.plan import Plans
from leasehold.sql_session.session import SqlSession

UTC = ZoneInfo("UTC")


@contextmanager
def database_with(folders: pytest.TempPathFactory, *texts: str) -> Iterator[DevDatabase]:
    """A database of a file's own, in which these were asked."""
    made = DevDatabase(folders.mktemp("database"))
    try:
        made.wait_ready()
        if texts:
            maker = SqlClient(made)
            for text in texts:
                maker.ask(text)
            maker.session.close()
        yield made
    finally:
        made.close()


def ends(session: SqlSession) -> None:
    """The batch. Raises what it waits for."""
    waits = session.end_batch()
    if waits is not None:
        raise waits


class HasNodes(Protocol):
    def sql_node(self, name: str = ...) -> SqlNode: ...


class SqlClient:
    """`tags`: of the last text's statements."""

    def __init__(
        self, database: HasNodes, node: str = "r1", *, user: str = "me", **settings: str
    ) -> None:
        self.node = database.sql_node(node)
        self.session = SqlSession(self.node, Plans(), user=user, process=7, settings=settings)
        self.tags: list[str] = []
        self.reports: list[Report] = []

    def status(self) -> Status:
        return self.session.status

    def ask(self, text: str) -> list[Any]:
        """The last statement's rows. An error fails the batch, as the wire has it."""
        self.tags, rows = [], []
        session = self.session
        try:
            for statement in session.statements(text):
                rows = self.run(session.prepare(statement, ()))
            ends(session)
        except LeaseholdError:
            session.fail()
            raise
        finally:
            self.reports += session.take_reports()
        return rows

    def run(self, prepared: Any, values: Sequence[Any] = (), portion: int = 2) -> list[Any]:
        """Rows as they are stored. Each must also be one that its declared types can be told in."""
        told = make_result_form(prepared.columns or (), (TEXT,), UTC)
        portal = self.session.bind(prepared, values)
        rows: list[Any] = []
        try:
            while True:
                found = portal.fetch(portion)
                rows += found.rows
                if prepared.columns:
                    _ = [told.row(row) for row in found.rows]
                if found.tag is not None:
                    self.tags.append(found.tag)
                    return rows
        finally:
            portal.close()

    def code(self, text: str) -> str:
        """The SQLSTATE that it fails with."""
        try:
            self.ask(text)
        except LeaseholdError as error:
            return error.sqlstate
        return "00000"


@contextmanager
def client_of_tables(database: DevDatabase, *texts: str, dropped_by: str) -> Iterator[SqlClient]:
    """A client of tables that `texts` make. What was done to them must be the same on every node;
    what is open then is rolled back, and `dropped_by` takes them away."""
    made = SqlClient(database)
    for text in texts:
        made.ask(text)
    yield made
    assert not database.check().differences
    made.session.fail()
    made.ask(f"rollback; {dropped_by}")
    made.session.close()
