"""SQL on an embedded replica by Python's own interface (PEP 249): reads without a network.

with leasehold.connect() as connection:
    row = connection.execute("SELECT free FROM seats WHERE flight = %s", (4711,)).fetchone()
    connection.execute("UPDATE seats SET free = free - 1 WHERE flight = %s", (4711,))
    connection.commit()
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from leasehold.dbapi.connection import Connection
from leasehold.dbapi.cursor import Cursor
from leasehold.dbapi.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004 - PEP 249's name
    error_of,
)
from leasehold.dbapi.types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)
from leasehold.model.errors import LeaseholdError
from leasehold.replica.replica import open_replica
from leasehold.replica.serving_node import COHERENT_TIMEOUT_S
from leasehold.replica.shared import SharedReplica
from leasehold.settings.client import ClientSettings
from leasehold.sql_session.session import SqlSession

apilevel: Final = "2.0"
threadsafety: Final = 1
"""Threads may share the module and the replica, but no connection at the same time."""
paramstyle: Final = "format"
USER: Final = "leasehold"


def connect(
    settings: ClientSettings | None = None,
    *,
    path: Path | str | None = None,
    autocommit: bool = False,
    isolation: str | None = None,
    wait_s: float = COHERENT_TIMEOUT_S,
    stopped: Callable[[], bool] = lambda: False,
) -> Connection:
    """A connection to the replica that this process embeds: opened by the first, closed with the
    last of its connections.

    Its session is the role that LEASEHOLD_REQUEST_ROLE names, else the first one. `path`,
    `wait_s`: as of `open_replica`; `stopped`: looked at while it waits to become coherent. Raises
    OperationalError and what it is made of; ProgrammingError (42704) for no role."""
    settings = settings or ClientSettings.read()
    file = Path(path) if path else settings.cluster.folder / "store.db"
    try:
        shared = SharedReplica.of(
            file.absolute(), lambda: open_replica(settings, path=path, wait_s=0)
        )
        try:
            shared.wait_coherent(wait_s, stopped)
            role = settings.requests.role
            if role is not None:
                shared.node.access.roles.named(role)
            return Connection(
                SqlSession(shared.node, shared.plans, user=role or USER),
                shared.leave,
                autocommit=autocommit,
                isolation=isolation,
            )
        except BaseException:
            shared.leave()
            raise
    except LeaseholdError as error:
        raise error_of(error) from error


__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
