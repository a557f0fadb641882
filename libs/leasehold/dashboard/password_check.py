"""Asks a SQL node whether a user's password is right and whether he may see what the dashboard
shows."""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import replace
from enum import Enum
from typing import Final

from leasehold.adapters.postgres.client import SqlConnection
from leasehold.model.errors import ConfigurationError, LeaseholdError
from leasehold.pgwire.messages.client_replies import Row, Told
from leasehold.settings.sql_address import SqlAddress

LOG: Final = logging.getLogger("leasehold.dashboard")
ANSWER_TIMEOUT_S: Final = 10.0
STATEMENT_TIMEOUT_S: Final = 120.0
"""Longer than the node itself lets a statement of these connections run."""
APPLICATION: Final = "leasehold dashboard"
MAY_READ: Final = (
    "SELECT pg_has_role('pg_read_all_stats', 'USAGE') OR pg_has_role('pg_monitor', 'USAGE')"
)
"""Superusers have every role."""
_REFUSES_USER: Final = ("28P01", "28000")


class Verdict(Enum):
    """What is known of one who wants to log in."""

    MAY_READ = "may read"
    MAY_NOT_READ = "has no right to"
    WRONG = "is not who he says, or nobody"
    UNKNOWN = "could not be asked for"


class PasswordCheck:
    """Logs in to a SQL node in a user's name: what the node says of its own users and of the roles
    of the database is then true here, too, and nothing of theirs is kept here."""

    def __init__(self, address: SqlAddress, database: str) -> None:
        self._address = address
        self._database = database

    def connect(self, user: str, password: str) -> SqlConnection:
        """Open a connection in a user's name. Raises what `SqlConnection` does, and
        ConfigurationError where the node has looked at the dashboard's certificate instead of a
        password. A node that asks for neither lets in whom it lets in everywhere else."""
        address = replace(self._address, user=user, password=password)
        made = SqlConnection(
            address, self._database, application=APPLICATION, answer_timeout_s=STATEMENT_TIMEOUT_S
        )
        if address.tls_client_cert is not None and not made.proved:
            made.close()
            raise ConfigurationError(
                f"the SQL node {address.peer[0]}:{address.peer[1]} lets the dashboard in by its"
                " certificate and asks for no password, so it can't tell who signs in"
            )
        return made

    def judge(self, user: str, password: str) -> Verdict:
        """Return what the node says; it may take some seconds. UNKNOWN comes with a line in the
        log."""
        address = replace(self._address, user=user, password=password)
        try:
            connection = SqlConnection(
                address,
                self._database,
                application=APPLICATION,
                answer_timeout_s=ANSWER_TIMEOUT_S,
            )
            with closing(connection):
                # Else it lets in everybody, or has looked at a certificate of the dashboard's.
                if not connection.proved:
                    LOG.warning(
                        "nobody can log in to the dashboard: the SQL node %s:%d asks for no"
                        " password; set LEASEHOLD_SQL_USERS_FILE or"
                        " LEASEHOLD_SQL_AUTH=scram-sha-256 there",
                        *address.peer,
                    )
                    return Verdict.UNKNOWN
                return _read_answer(connection)
        except LeaseholdError as error:
            if error.sqlstate in _REFUSES_USER:
                return Verdict.WRONG
            LOG.warning("a log-in to the dashboard could not be looked at: %s", error.message)
            return Verdict.UNKNOWN


def _read_answer(connection: SqlConnection) -> Verdict:
    verdict = Verdict.UNKNOWN
    for said in connection.ask(MAY_READ):
        if isinstance(said, Row):
            verdict = Verdict.MAY_READ if said.values == ["t"] else Verdict.MAY_NOT_READ
        elif isinstance(said, Told) and said.failed:
            LOG.warning("the SQL node can't say who may read: %s", said.fields.get("M", ""))
            return Verdict.UNKNOWN
    return verdict
