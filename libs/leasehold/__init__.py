"""Leasehold: tables that many services share, coherent, replicated, changeable while they run."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from leasehold.client.agent import Agent
    from leasehold.client.change_producer import ChangeProducer
    from leasehold.client.subscriber import Subscriber
    from leasehold.dbapi.async_connection import AsyncConnection, connect_async
    from leasehold.dbapi.module import (
        BINARY,
        DATETIME,
        NUMBER,
        ROWID,
        STRING,
        Binary,
        Connection,
        DatabaseError,
        DataError,
        Date,
        DateFromTicks,
        Error,
        IntegrityError,
        InterfaceError,
        InternalError,
        NotSupportedError,
        OperationalError,
        ProgrammingError,
        Time,
        TimeFromTicks,
        Timestamp,
        TimestampFromTicks,
        Warning,  # noqa: A004 - PEP 249's name
        apilevel,
        connect,
        paramstyle,
        threadsafety,
    )
    from leasehold.replica.replica import Replica, open_replica
    from leasehold.settings.client import ClientSettings

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Agent",
    "AsyncConnection",
    "Binary",
    "ChangeProducer",
    "ClientSettings",
    "Connection",
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
    "Replica",
    "Subscriber",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "__version__",
    "apilevel",
    "connect",
    "connect_async",
    "open_replica",
    "paramstyle",
    "threadsafety",
]

__version__: Final = "0.2.0.dev0"

_HOMES: Final = {
    "Agent": "leasehold.client.agent",
    "AsyncConnection": "leasehold.dbapi.async_connection",
    "ChangeProducer": "leasehold.client.change_producer",
    "ClientSettings": "leasehold.settings.client",
    "Replica": "leasehold.replica.replica",
    "Subscriber": "leasehold.client.subscriber",
    "connect_async": "leasehold.dbapi.async_connection",
    "open_replica": "leasehold.replica.replica",
}
_DBAPI: Final = "leasehold.dbapi.module"
"""Everything else of `__all__`: this package is a module as PEP 249 wants it."""


def __getattr__(name: str) -> Any:
    """Loaded when first asked for: importing the package loads no Kafka and no Redis client."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, _DBAPI)), name)
