"""What a TransactionWriter takes, before any broker is asked."""

from __future__ import annotations

from contextlib import closing

import pytest

from leasehold.adapters.kafka.transaction import TransactionWriter
from leasehold.settings.environment import KafkaSettings


@pytest.mark.parametrize("bootstrap", ["127.0.0.1:1", "127.0.0.1:1,127.0.0.1:2"])
@pytest.mark.parametrize("timeout_ms", [1_000, 7_000, 30_000, 60_000])
def test_a_transaction_may_be_shorter_than_a_brokers_answer(
    bootstrap: str, timeout_ms: int
) -> None:
    """Where there are several brokers an answer has a time of its own, and librdkafka refuses one
    that is longer than the transaction's."""
    settings = KafkaSettings(bootstrap=bootstrap)
    with closing(TransactionWriter(settings, "short", "short", timeout_ms=timeout_ms)):
        pass
