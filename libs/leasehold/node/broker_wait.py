"""Waits for a broker that is away when a node starts."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event as Flag
from typing import Final, TypeVar

from leasehold.adapters.kafka.access import AccessDenied
from leasehold.model.errors import BusUnavailable

RETRY_S: Final = 0.5
LOG: Final = logging.getLogger("leasehold.node")
T = TypeVar("T")


def once_there(ask: Callable[[], T], stop: Flag) -> T | None:
    """Return what the broker answers, None after `stop`. Raises AccessDenied, what `ask` raises."""
    while not stop.is_set():
        try:
            return ask()
        except AccessDenied:
            raise
        except BusUnavailable as error:
            if not stop.is_set():
                LOG.warning("waiting for Kafka: %s", error.message)
                stop.wait(RETRY_S)
    return None
