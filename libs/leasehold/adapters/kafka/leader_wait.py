"""Waiting for a partition's leader: a topic made a moment ago, or a broker just restarted, has none
that every broker knows, and answers so. That passes by itself; a broker that is away does not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeVar

from confluent_kafka import KafkaException

from leasehold.adapters.kafka.client import LEADERLESS, LeaderMissing, error_of
from leasehold.adapters.os.clock import boottime_ns

LEADER_TIMEOUT_S: Final = 15.0
LOOK_AGAIN_S: Final = 0.1

Answer = TypeVar("Answer")


def ask_once_led(ask: Callable[[], Answer], timeout_s: float = LEADER_TIMEOUT_S) -> Answer:
    """Return `ask()`, asked again while only a leader is missing. Raises what `ask` raises, and
    LeaderMissing after `timeout_s`."""
    give_up_ns = boottime_ns() + int(timeout_s * 1e9)
    never = threading.Event()
    while True:
        try:
            return ask()
        except LeaderMissing:
            if boottime_ns() >= give_up_ns:
                raise
            never.wait(LOOK_AGAIN_S)


def lacks_leader(error: KafkaException) -> bool:
    """Whether only the partition's leader is missing just now."""
    return error_of(error).code() in LEADERLESS
