"""The integration suite on more than one of each: `make integration BROKERS=3 REDIS=sentinel` has
its clusters made of three brokers, and of a Redis with a replica and Sentinels."""

from __future__ import annotations

import os
from typing import Any, Final

import pytest

from infra.kafka.brokers import ONE
from infra.redis.servers import SENTINEL, SINGLE

BROKERS: Final = int(os.environ.get("LEASEHOLD_TEST_BROKERS") or ONE)
REDIS: Final = os.environ.get("LEASEHOLD_TEST_REDIS") or SINGLE
SERVERS: Final[dict[str, Any]] = {"brokers": BROKERS, "redis": REDIS}
"""What a cluster of the suite is made of."""


def not_with_brokers(why: str) -> pytest.MarkDecorator:
    """Return a mark for tests that are nothing for a cluster of several brokers."""
    return pytest.mark.skipif(BROKERS != ONE, reason=f"several brokers: {why}")


def not_with_sentinels(why: str) -> pytest.MarkDecorator:
    """Return a mark for tests that are nothing for a Redis with Sentinels."""
    return pytest.mark.skipif(REDIS == SENTINEL, reason=f"Redis with Sentinels: {why}")
