"""What every Kafka client of ours shares: options, quiet logs, and errors in our own words.

librdkafka reports a broker that is away several times a second and on several roads (log lines,
the error callback, errors of single calls). Here one clear sentence comes every few seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

from leasehold.adapters.clock import boottime_ns
from leasehold.adapters.environment import KafkaSettings
from leasehold.model.errors import BusUnavailable, ConfigurationError

LINE_EVERY_S: Final = 10.0
RECONNECT_BACKOFF_MAX_MS: Final = 1_000

_CONNECTION_LINES: Final = frozenset({"FAIL", "ERROR"})  # said by the error callback, in words
_CONNECTION_CODES: Final = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
    }
)
LOG: Final = logging.getLogger("leasehold.kafka")


class ClientWatch:
    """Takes librdkafka's log lines and errors of one client; keeps what must not go unnoticed.

    `fatal` holds the words of an error after which the client is of no more use. Its methods are
    librdkafka callbacks and never raise.
    """

    def __init__(self, bootstrap: str, client_id: str) -> None:
        self.fatal: str | None = None
        self._bootstrap = bootstrap
        self._client_id = client_id
        self._said_ns: dict[str, int] = {}

    def log(self, level: int, template: str, *args: Any) -> None:
        """The one method of `logging.Logger` that confluent_kafka calls."""
        kind = str(args[0]) if args else template
        if kind not in _CONNECTION_LINES and self._may_say(kind):
            LOG.log(level, template, *args)

    def error(self, error: KafkaError) -> None:
        if error.fatal():
            self.fatal = error.str()
        if error.code() in _CONNECTION_CODES:
            if self._may_say("connection"):
                LOG.warning(
                    "%s: Kafka at %s can't be reached (%s); still trying",
                    self._client_id,
                    self._bootstrap,
                    error.str(),
                )
        elif self._may_say(error.name()):
            LOG.warning("%s: Kafka says %s: %s", self._client_id, error.name(), error.str())

    def note(self, kind: str, words: str) -> None:
        """Say `words` unless the same kind of thing was said a moment ago."""
        if self._may_say(kind):
            LOG.warning("%s: %s", self._client_id, words)

    def _may_say(self, kind: str) -> bool:
        now_ns = boottime_ns()
        said_ns = self._said_ns.get(kind)
        if said_ns is not None and now_ns - said_ns < LINE_EVERY_S * 1e9:
            return False
        self._said_ns[kind] = now_ns
        return True


def client_options(settings: KafkaSettings, client_id: str, watch: ClientWatch) -> dict[str, Any]:
    """Options of consumers and producers alike."""
    error: Callable[[KafkaError], None] = watch.error
    return {
        **settings.librdkafka(),
        "client.id": client_id,
        "logger": watch,
        "error_cb": error,
        "socket.nagle.disable": True,  # a hop costs half a millisecond; Nagle would add forty
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": RECONNECT_BACKOFF_MAX_MS,
        "log.connection.close": False,  # brokers close idle connections; that is no event
        "allow.auto.create.topics": False,
    }


ClientT = TypeVar("ClientT")


def made(client: Callable[[dict[str, Any]], ClientT], options: dict[str, Any]) -> ClientT:
    """`client(options)`. Raises ConfigurationError for options that librdkafka refuses, such as a
    certificate file that is not there."""
    try:
        return client(options)
    except (KafkaException, ValueError, TypeError) as error:
        words = error_of(error).str() if isinstance(error, KafkaException) else str(error)
        raise ConfigurationError(
            f"The settings for Kafka (LEASEHOLD_KAFKA…) can't be used: {words}"
        ) from error


def error_of(exception: KafkaException) -> KafkaError:
    error = exception.args[0]
    assert isinstance(error, KafkaError), error
    return error


def unavailable(doing: str, bootstrap: str, exception: Exception) -> BusUnavailable:
    """`doing` completes "Kafka at host:port: … failed"."""
    words = error_of(exception).str() if isinstance(exception, KafkaException) else str(exception)
    return BusUnavailable(f"Kafka at {bootstrap}: {doing} failed: {words}", bootstrap=bootstrap)
