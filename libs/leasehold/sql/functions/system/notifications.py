"""LISTEN and NOTIFY as functions: what a transaction tells, and what its session listens to."""

from __future__ import annotations

from typing import Final

from leasehold.catalog.elements import CommitContext
from leasehold.sql.functions.function import DOUBLE, TEXT, Function
from leasehold.sql.functions.system.session import system_of
from leasehold.values.arrays import stored_form
from leasehold.values.types import Type, array_of


def _notify(context: CommitContext, channel: str | None, payload: str | None) -> str:
    system_of(context).notify(channel or "", payload or "")
    return ""


def _channels(context: CommitContext) -> str:
    return stored_form(list(system_of(context).listening()[0]))


def _usage(context: CommitContext) -> float:
    return system_of(context).listening()[1]


FUNCTIONS: Final[tuple[Function, ...]] = (
    Function(
        "pg_notify",
        (TEXT, TEXT),
        Type("void"),
        _notify,
        strict=False,
        volatility="volatile",
        steers=True,
    ),
    Function("pg_notification_queue_usage", (), DOUBLE, _usage, volatility="volatile", steers=True),
)
SETS: Final[tuple[Function, ...]] = (
    Function("pg_listening_channels", (), array_of(TEXT), _channels, volatility="stable"),
)
"""Of arrays, which FROM takes apart, as `arrays/set_returning.py`."""
