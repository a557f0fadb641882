"""Goal: denied access to Kafka is told as such, with what to check; a broker that is away is not.

Method: errors as librdkafka reports them, and one real client against a TLS server that it can't
trust.
"""

from __future__ import annotations

import logging
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from leasehold.adapters.kafka import client as kafka_client
from leasehold.adapters.kafka.access import AccessDenied, denial
from leasehold.adapters.kafka.client import ClientWatch, flush
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.model.errors import BusUnavailable
from leasehold.settings.environment import KafkaSettings

ADA = KafkaSettings(
    bootstrap="b:1", security="SASL_PLAINTEXT", username="ada", password="never to be shown"
)
CERTIFIED = KafkaSettings(
    bootstrap="b:1", security="SSL", certificate=Path("our.pem"), key=Path("key.pem")
)
REFUSED = KafkaError(
    KafkaError._TRANSPORT,
    "b:1/bootstrap: Connect to b:1 failed: Connection refused (after 0ms in state CONNECT)",
)
ALL_DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")
TIMED_OUT = KafkaException(KafkaError(KafkaError._TIMED_OUT, "Timed out"))
WRONG_PASSWORD = KafkaError(KafkaError._AUTHENTICATION, "Invalid username or password")


@pytest.mark.parametrize(
    "code",
    [
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ],
)
def test_a_denial_names_the_user_and_the_settings(code: int) -> None:
    words = denial(KafkaError(code, "no"), ADA)
    assert words is not None
    assert words.startswith("Kafka at b:1: access denied as user ada (no); check LEASEHOLD_KAFKA_")
    assert "LEASEHOLD_KAFKA_PASSWORD" in words
    assert ADA.password is not None
    assert ADA.password not in words


def test_a_right_that_is_missing_points_to_the_broker_too() -> None:
    words = denial(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "no"), ADA)
    assert words is not None
    assert words.endswith("access control lists")


def test_a_certificate_is_named_where_it_is_the_name() -> None:
    words = denial(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "no"), CERTIFIED)
    assert words is not None
    assert "the owner of certificate our.pem" in words
    assert "LEASEHOLD_KAFKA_CERTIFICATE" in words


@pytest.mark.parametrize(
    "code",
    [
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    ],
)
def test_what_waiting_or_creating_cures_is_no_denial(code: int) -> None:
    assert denial(KafkaError(code), ADA) is None


@pytest.mark.parametrize("why", ["Timed out", "Broker transport failure"])
def test_a_log_in_that_a_busy_broker_has_not_answered_is_no_denial(why: str) -> None:
    """librdkafka reports it as a refusal; a service would end by it, and not wait."""
    words = (
        f"sasl_ssl://b:1/1: SASL SCRAM-SHA-512 mechanism handshake failed: Local: {why}:"
        " broker's supported mechanisms: (n/a) (after 0ms in state DOWN)"
    )
    assert denial(KafkaError(KafkaError._AUTHENTICATION, words), ADA) is None


def test_a_time_out_after_a_denial_is_told_as_the_denial() -> None:
    """librdkafka tells a wrong password to a callback; the call itself only times out."""
    watch = ClientWatch(ADA, "c")
    assert type(watch.unavailable("asking", TIMED_OUT)) is BusUnavailable
    watch.error(WRONG_PASSWORD)
    watch.error(ALL_DOWN)  # follows from it
    told = watch.unavailable("asking", TIMED_OUT)
    assert isinstance(told, AccessDenied)
    assert "Invalid username or password" in told.message
    assert "user ada" in watch.words(KafkaError(KafkaError._MSG_TIMED_OUT))


def test_a_denial_ends_with_another_outcome() -> None:
    """A broker that dies in the middle of a handshake looks like one that denies access."""
    watch = ClientWatch(ADA, "c")
    watch.error(WRONG_PASSWORD)
    watch.error(REFUSED)
    assert type(watch.unavailable("asking", TIMED_OUT)) is BusUnavailable
    watch.error(WRONG_PASSWORD)
    watch.works()
    assert type(watch.unavailable("asking", TIMED_OUT)) is BusUnavailable


def test_a_denial_is_not_said_like_waiting(caplog: pytest.LogCaptureFixture) -> None:
    watch = ClientWatch(ADA, "c")
    for _ in range(100):
        watch.error(WRONG_PASSWORD)
        watch.error(ALL_DOWN)
    (line,) = [record.getMessage() for record in caplog.records]
    assert "access denied as user ada" in line


def test_why_no_broker_can_be_reached_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """The callback only knows how many are down; the log line before it says why."""
    watch = ClientWatch(KafkaSettings(bootstrap="b:1"), "c")
    hint = "Disconnected: might be caused by incorrect security.protocol configuration"
    watch.log(logging.WARNING, "%s [%s] %s", "FAIL", "c", hint)
    watch.error(ALL_DOWN)
    (line,) = [record.getMessage() for record in caplog.records]
    assert "can't be reached" in line
    assert hint in line


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """host:port of a TLS server with a certificate of its own, and another one's certificate."""
    for name in ("its", "other"):
        command = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
        names = ("-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")
        subprocess.run([*command, *names], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "its.pem", tmp_path / "its.key")
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                caller, _ = listener.accept()
            except OSError:
                return
            with caller:
                try:
                    context.wrap_socket(caller, server_side=True).close()
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"127.0.0.1:{listener.getsockname()[1]}", tmp_path / "other.pem"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def test_a_certificate_that_is_not_trusted(stranger: tuple[str, Path]) -> None:
    """Real librdkafka, no broker: the handshake before the protocol fails."""
    bootstrap, authority = stranger
    settings = KafkaSettings(bootstrap=bootstrap, security="SSL", ca=authority)
    reader = TopicReader(settings, "c")
    with pytest.raises(AccessDenied, match=r"no TLS connection.*check LEASEHOLD_KAFKA_CA"):
        reader.end_offset("log", 0, 2.0)
    reader.close()


def test_whoever_waits_for_a_broker_can_be_told_to_give_up() -> None:
    """Signals are heard between calls of librdkafka only, so none may be long."""
    asked = iter([False, False, True])
    reader = TopicReader(
        KafkaSettings(bootstrap="127.0.0.1:1"), "c", give_up=lambda: next(asked, True)
    )
    with pytest.raises(BusUnavailable, match=r"127\.0\.0\.1:1"):
        reader.end_offset("log", 0, timeout_s=3600.0)
    assert next(asked, None) is None, "it gave up without being told"
    reader.close()


def test_what_follows_from_a_denial_for_good_is_told_in_its_words() -> None:
    watch = ClientWatch(ADA, "c")
    purged = KafkaError(KafkaError._PURGE_QUEUE, "Purged in queue")
    assert watch.words(purged) == "Purged in queue"
    watch.error(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED, "no producer id", fatal=True))
    refused = KafkaError(KafkaError._FATAL, "Unable to produce message: Local: Fatal error")
    for error in (purged, refused):
        assert "access denied as user ada (no producer id)" in watch.words(error)
    other = ClientWatch(ADA, "c")
    other.error(KafkaError(KafkaError._FENCED, "out of order", fatal=True))
    assert other.words(refused) == "out of order"


class Ending:
    """A producer of two records, which ends at the second call."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    def flush(self, timeout_s: float) -> int:
        self.asked.append(timeout_s)
        if len(self.asked) == 2:
            raise KafkaException(KafkaError(KafkaError._FATAL, "it ends", fatal=True))
        return len(self)

    def __len__(self) -> int:
        return 0 if len(self.asked) > 2 else 2


def test_a_flush_goes_on_after_its_producer_has_ended_and_never_asks_for_long() -> None:
    """One call of 200 ms or more would lose what is told after the error (confluent_kafka 2.16)."""
    producer, ended = Ending(), list[KafkaException]()
    assert flush(cast(Producer, producer), 60.0, ended.append) == 0
    assert [error.args[0].str() for error in ended] == ["it ends"]
    assert len(producer.asked) == 3
    assert max(producer.asked) < 0.2


def test_a_flush_without_time_asks_once() -> None:
    producer, ended = Ending(), list[KafkaException]()
    assert flush(cast(Producer, producer), 0, ended.append) == 2
    assert producer.asked == [0]


# ---------------------------------------------------------------- a client without any broker


class Asked:
    """A client that answers a question as librdkafka does: at once, since nobody waits."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.questions = 0

    def list_topics(self, topic: str, timeout: float) -> None:
        assert (topic, timeout) == ("log", 0)
        self.questions += 1
        raise KafkaException(KafkaError(self.code, "no"))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Its only element are the seconds since boot."""
    now = [1_000.0]
    monkeypatch.setattr(kafka_client, "boottime_ns", lambda: int(now[0] * 1e9))
    return now


def lost_at(watch: ClientWatch, client: Asked, clock: list[float], seconds: int) -> list[int]:
    """When it was lost, asked every second."""
    begun, found = clock[0], []
    for second in range(1, seconds + 1):
        clock[0] = begun + second
        if watch.is_lost(cast(Producer, client), "log"):
            found.append(second)
    return found


def test_a_silent_client_without_a_broker_is_lost_and_the_next_one_has_twice_the_time(
    clock: list[float],
) -> None:
    watch, client = ClientWatch(ADA, "test"), Asked(KafkaError._TRANSPORT)
    assert lost_at(watch, client, clock, 300) == [10, 30, 70, 150, 230]
    assert client.questions == 5
    watch.works()
    assert lost_at(watch, client, clock, 30) == [10, 30]


def test_a_client_that_has_a_broker_is_not_lost_however_silent(clock: list[float]) -> None:
    watch, client = ClientWatch(ADA, "test"), Asked(KafkaError._TIMED_OUT)
    assert lost_at(watch, client, clock, 100) == []
    assert client.questions == 10, "one in ten seconds"


@pytest.mark.parametrize("error", [REFUSED, ALL_DOWN], ids=["refused", "all down"])
def test_a_client_that_looks_for_its_broker_is_not_lost(
    error: KafkaError, clock: list[float]
) -> None:
    watch, client = ClientWatch(ADA, "test"), Asked(KafkaError._TRANSPORT)
    for _ in range(20):
        assert lost_at(watch, client, clock, 9) == []
        watch.receive(error)
    assert client.questions == 0
    assert lost_at(watch, client, clock, 10) == [10]


def test_what_one_call_says_is_no_sign_that_a_client_looks_for_its_broker(
    clock: list[float],
) -> None:
    """A commit that times out is said every few seconds, with or without a broker."""
    watch, client = ClientWatch(ADA, "test"), Asked(KafkaError._TRANSPORT)
    assert lost_at(watch, client, clock, 9) == []
    watch.error(KafkaError(KafkaError._TIMED_OUT, "no"))
    assert lost_at(watch, client, clock, 1) == [1]
