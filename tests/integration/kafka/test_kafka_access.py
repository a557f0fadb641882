"""Goal: a real broker's "no" is told as access denied, by every client and by whole processes.

Method: one broker with a SASL listener and an authorizer; `ada` may do everything, `bob` nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace

import pytest

from leasehold.adapters.kafka.access import AccessDenied
from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.adapters.kafka.topic_creation import ensure_topics
from leasehold.adapters.kafka.transaction import TransactionWriter
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.model.errors import BusUnavailable
from leasehold.model.topics import Topic
from leasehold.settings.environment import KafkaSettings, to_environment
from tests.support.cluster.guarded_kafka import guarded_broker_in

DEADLINE_S = 60.0
ASK_S = 2.0
"""A client that is refused goes on trying for so long before it says so."""
TOPIC = "there"
SERVICES = ("services.replicant.main", "services.changefeed.main", "spark_streaming.main")


@pytest.fixture(scope="module")
def ada(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaSettings]:
    """Settings of a user who may do everything, on a broker that asks for a password."""
    with guarded_broker_in(tmp_path_factory.mktemp("secured"), "ada", "bob") as settings:
        ensure_topics(settings, [Topic(TOPIC, 1, {})])
        yield settings


@pytest.fixture
def bob(ada: KafkaSettings) -> KafkaSettings:
    """A user who is known and may do nothing."""
    return replace(ada, username="bob")


@pytest.fixture
def impostor(ada: KafkaSettings) -> KafkaSettings:
    return replace(ada, password="wrong")


def test_who_may_reads(ada: KafkaSettings) -> None:
    reader = TopicReader(ada, "test")
    assert reader.end_offset(TOPIC, 0) == 0
    with pytest.raises(BusUnavailable, match="no topic nowhere") as caught:
        reader.end_offset("nowhere", 0)
    assert not isinstance(caught.value, AccessDenied)
    reader.close()


@pytest.mark.parametrize(("user", "why"), [("impostor", "Invalid username"), ("bob", "uthoriz")])
def test_who_may_not_is_told_so(
    user: str, why: str, ada: KafkaSettings, request: pytest.FixtureRequest
) -> None:
    settings: KafkaSettings = request.getfixturevalue(user)
    words = rf"access denied as user {settings.username} .*{why}.*check LEASEHOLD_KAFKA_USERNAME"
    reader = TopicReader(settings, "test")
    with pytest.raises(AccessDenied, match=words):
        reader.end_offset(TOPIC, 0, timeout_s=ASK_S)
    with pytest.raises(AccessDenied, match=words):
        reader.partitions(TOPIC, timeout_s=ASK_S)
    reader.close()
    with pytest.raises(AccessDenied, match=words):
        TopicAdmin(settings, "test").create([Topic("new", 1, {})], 1, timeout_s=ASK_S)
    transactions = TransactionWriter(settings, "test", "test")
    with pytest.raises(AccessDenied, match=words):
        transactions.open()
    transactions.close()
    writer = TopicWriter(settings, "test", delivery_timeout_ms=2_000)
    writer.send(TOPIC, 0, None, b"x", token=1)
    writer.flush(DEADLINE_S)
    (delivery,) = writer.deliveries()
    assert delivery.error is not None
    assert f"access denied as user {settings.username}" in delivery.error
    writer.close(1)


def test_l4_each_record_that_is_denied_for_good_is_told_once(bob: KafkaSettings) -> None:
    """The refusal ends librdkafka's producer: while a record is queued, while its outcome is told,
    or before. What confluent_kafka raises then must not take the place of any outcome."""
    for _ in range(10):
        writer = TopicWriter(bob, "test", delivery_timeout_ms=2_000)
        writer._producer.list_topics(timeout=DEADLINE_S)  # so that it is refused about now
        for token in range(3):
            writer.send(TOPIC, 0, None, b"x", token=token)
        assert writer.flush(DEADLINE_S) == 0
        told = writer.deliveries()
        assert {delivery.token for delivery in told} == {0, 1, 2}
        assert len(told) == 3
        assert all("access denied as user bob" in (delivery.error or "") for delivery in told)
        give_up_s = time.monotonic() + DEADLINE_S
        while len(writer):  # librdkafka may have news yet that are no outcome's
            assert writer.deliveries(0.1) == []
            assert time.monotonic() < give_up_s, "records are on their way, or counted so"
        writer.close(1)


@pytest.fixture(scope="module")
def refused_services(
    ada: KafkaSettings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, subprocess.Popen[str]]]:
    """All at once: each goes on trying for some seconds."""
    access = to_environment(replace(ada, password="wrong"))
    with ExitStack() as started:
        made = {}
        for module in SERVICES:
            data = tmp_path_factory.mktemp(module)
            made[module] = subprocess.Popen(
                [sys.executable, "-m", module],
                env={**os.environ, **access, "LEASEHOLD_DATA": str(data)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            started.enter_context(made[module])
            started.callback(made[module].kill)
        yield made


@pytest.mark.parametrize("module", SERVICES)
def test_a_service_ends_with_the_reason(
    module: str, refused_services: Mapping[str, subprocess.Popen[str]]
) -> None:
    service = refused_services[module]
    _, said = service.communicate(timeout=DEADLINE_S)
    assert service.returncode == 1
    assert "Traceback" not in said
    assert "ERROR" in said.splitlines()[-1]
    assert "access denied as user ada" in said.splitlines()[-1]
    assert "wrong" not in said
