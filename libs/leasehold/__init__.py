"""Leasehold: tables that many services share, coherent, replicated, changeable while they run."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from leasehold.client.agent import Agent
    from leasehold.client.change_producer import ChangeProducer
    from leasehold.client.client_settings import ClientSettings
    from leasehold.client.dbapi import connect
    from leasehold.client.replica import Replica, open_replica
    from leasehold.client.subscriber import Subscriber

__all__ = [
    "Agent",
    "ChangeProducer",
    "ClientSettings",
    "Replica",
    "Subscriber",
    "__version__",
    "connect",
    "open_replica",
]

__version__: Final = "0.1.0"

_HOMES: Final = {
    "Agent": "leasehold.client.agent",
    "ChangeProducer": "leasehold.client.change_producer",
    "ClientSettings": "leasehold.client.client_settings",
    "Replica": "leasehold.client.replica",
    "Subscriber": "leasehold.client.subscriber",
    "connect": "leasehold.client.dbapi",
    "open_replica": "leasehold.client.replica",
}


def __getattr__(name: str) -> Any:
    """Loaded when first asked for: importing the package loads no Kafka and no Redis client."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
