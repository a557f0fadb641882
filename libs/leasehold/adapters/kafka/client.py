"""What every Kafka client of ours shares: options, quiet logs, and errors in our own words.

librdkafka reports a broker that is away several times a second and in several ways (log lines,
the error callback, errors of single calls). Here one clear sentence comes every few seconds.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from leasehold.adapters.kafka.access import AccessDenied, denial
from leasehold.adapters.os.clock import boottime_ns
from leasehold.adapters.os.live_objects import LiveObjects
from leasehold.model.errors import BusUnavailable, ConfigurationError
from leasehold.settings.environment import KafkaSettings

LINE_EVERY_S: Final = 10.0
RECONNECT_BACKOFF_MS: Final = 20
"""Also how long a new client waits between its connection to the bootstrap address and the one to
the broker that this turned out to be: half of it."""
RECONNECT_BACKOFF_MAX_MS: Final = 1_000
ASK_SLICE_S: Final = 0.5
"""Longest that one call waits inside librdkafka, where Python can't hear a signal: whoever waits
for a broker asks again and again, and a process that is told to stop does so within a second."""
FLUSH_SLICE_S: Final = 0.1
"""Below 0.2 s, which confluent_kafka 2.16 cuts a longer flush into: between its pieces it goes on
although an error that ends the client was raised. Callbacks run with that error already set, break
off in their middle (SystemError), and the record that they were called for is never told."""

LOST_AFTER_S: Final = 10.0
"""Of a client that hears nothing, neither of success nor of a connection that fails: after this it
is looked at whether it has a broker left (`ClientWatch.is_lost`). One whose broker is away tries
again every second at least, and hears of it."""
LOST: Final = "the client has lost all its brokers"
STATISTICS_MS: Final = 5_000
STUCK_LOOKS: Final = 3
"""In so many statistics in a row a partition is with a broker that does not lead it: to move it
takes milliseconds once librdkafka has heard who does."""
LOST_DOUBLINGS_MAX: Final = 3
"""Each new client in a row has twice the time: a connection may take librdkafka's 30 s to fail."""

FETCHED: Final = "active"
"""The state of a partition, in statistics, that is fetched."""
_CONNECTION_LINES: Final = frozenset({"FAIL", "ERROR"})  # said by the error callback, in words
# librdkafka has one code for a connection that was refused and for a second handshake that failed
# like the first; only its words name the state.
_NOT_EVEN_CONNECTED: Final = "in state CONNECT)"
_OUT_OF_TIME: Final = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
    }
)
_GIVEN_UP: Final = frozenset({KafkaError._FATAL, KafkaError._PURGE_QUEUE})
_SAYS_WHY: Final = frozenset({KafkaError._TRANSPORT, KafkaError._RESOLVE})
_CONNECTION_CODES: Final = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
    }
)
MISSING: Final = frozenset(
    {KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART}
)
"""What librdkafka says of a topic, or a partition, that it does not know; of one denied, too."""
LEADERLESS: Final = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,  # it has just become leader, and knows no end yet
    }
)
"""What it says of a partition whose leader the broker asked does not know just now, or is not, or
not long enough."""
TROUBLED_S: Final = 10.0
"""How long after its last error a client counts as troubled: one whose broker is away tries again
every second at least."""
LOG: Final = logging.getLogger("leasehold.kafka")
LIVE: Final[LiveObjects[ClientWatch]] = LiveObjects()
"""The watches of all clients of this process."""


class MessageTooLarge(BusUnavailable):
    """Kafka takes no message of that size, and never will."""


class TopicMissing(BusUnavailable):
    """Raised where there is no such topic, or no such partition of it."""


class LeaderMissing(BusUnavailable):
    """Raised where the broker asked knows no leader of a partition; that passes by itself."""


# ⚠ What went wrong is said by the class, not by `__cause__`: what a compiled module raises `from`
# another error has none.
_CLASSES: Final[Mapping[int, type[BusUnavailable]]] = {
    KafkaError.MSG_SIZE_TOO_LARGE: MessageTooLarge,
    **dict.fromkeys(MISSING, TopicMissing),
    **dict.fromkeys(LEADERLESS, LeaderMissing),
}


class ClientWatch:
    """Takes librdkafka's log lines and errors of one client; keeps what must not go unnoticed.

    `fatal` holds the words of an error after which the client is of no more use. `denied` holds a
    sentence while the last connection that was tried was refused us (access.py): calls that
    need one only time out then. `log`, `hear` and `error` are librdkafka callbacks and never raise.
    """

    def __init__(self, settings: KafkaSettings, client_id: str) -> None:
        self.fatal: str | None = None
        self.denied: str | None = None
        self._settings = settings
        self._client_id = client_id
        self._said_ns: dict[str, int] = {}
        self._reason = ""
        self._heard_ns = boottime_ns()
        self._losses = 0  # in a row
        self.errors = 0
        """How many librdkafka has told of."""
        self._error_ns = -int(TROUBLED_S * 1e9)
        self.stuck = ""
        """A partition of which nothing comes any more, in words; "" where there is none."""
        self._misplaced: dict[tuple[str, int], int] = {}  # how often in a row it was found so
        LIVE.add(self)

    @property
    def client_id(self) -> str:
        return self._client_id

    @property
    def is_troubled(self) -> bool:
        """Whether an error was told a moment ago."""
        return boottime_ns() - self._error_ns < TROUBLED_S * 1e9

    def log(self, level: int, template: str, *args: Any) -> None:
        """The one method of `logging.Logger` that confluent_kafka calls."""
        kind = str(args[0]) if args else template
        if kind in _CONNECTION_LINES:
            self._reason = str(args[-1]) if args else ""
        elif self._may_say(kind):
            LOG.log(level, template, *args)

    def receive(self, error: KafkaError) -> None:
        """Take what librdkafka tells by itself."""
        if error.code() in _CONNECTION_CODES:
            self._heard_ns = boottime_ns()
        self.error(error)

    def error(self, error: KafkaError) -> None:
        self.errors += 1
        self._error_ns = boottime_ns()
        if error.fatal():
            self.fatal = error.str()
        denied = denial(error, self._settings)
        if denied is not None:
            self.denied = denied
            self.note("denied", denied)
        elif error.code() in _CONNECTION_CODES:
            if error.code() in _SAYS_WHY:
                self._reason = error.str()
            if _NOT_EVEN_CONNECTED in error.str():
                self.denied = None  # there is nobody now who could deny us anything
            if self.denied is None:
                what = f"Kafka at {self._settings.bootstrap} can't be reached"
                self.note("connection", f"{what} ({self._reason or error.str()}); still trying")
        else:
            self.note(error.name(), f"Kafka says {error.name()}: {error.str()}")

    def look_at_statistics(self, text: str) -> None:
        """Take librdkafka's statistics (JSON) of a consumer, and set `stuck` where a partition that
        it fetches stays with a broker that does not lead it. librdkafka (2.16; its issues 5401 and
        5593) leaves it there when who leads changes twice within some milliseconds: every fetch is
        refused, and nobody is told."""
        misplaced = {}
        for topic, of_topic in json.loads(text).get("topics", {}).items():
            for seen in of_topic["partitions"].values():
                if seen["fetch_state"] == FETCHED and seen["broker"] != seen["leader"]:
                    place = (topic, seen["partition"])
                    misplaced[place] = self._misplaced.get(place, 0) + 1
        self._misplaced = misplaced
        found = [place for place, looks in misplaced.items() if looks >= STUCK_LOOKS]
        if found:
            topic, partition = min(found)
            self.stuck = f"partition {partition} of {topic} is asked of one that does not lead it"

    def works(self) -> None:
        """A call has succeeded: whatever was denied before no longer is."""
        self.denied = None
        self._heard_ns = boottime_ns()
        self._losses = 0

    @property
    def is_silent(self) -> bool:
        """Whether nothing was heard for long, of success or of a connection that failed."""
        return boottime_ns() - self._heard_ns >= LOST_AFTER_S * 1e9 * (1 << self._losses)

    def is_lost(self, client: Producer | Consumer | AdminClient, topic: str) -> bool:
        """Whether `client` has no broker and looks for none: it has to be recreated (librdkafka
        2.16; its issue 5301, see DESIGN.md). Cheap, so that it can be asked at every turn; whoever
        asks has run the client's callbacks, else a broker that is away looks the same. `topic`: any
        that the client uses."""
        if not self.is_silent:
            return False
        self._heard_ns = boottime_ns()
        try:
            client.list_topics(topic, timeout=0)  # nobody waits for what it answers
        except KafkaException as error:
            if error_of(error).code() == KafkaError._TRANSPORT:  # there is nobody to ask
                self._losses = min(self._losses + 1, LOST_DOUBLINGS_MAX)
                return True
        self._losses = 0
        return False

    def words(self, error: KafkaError) -> str:
        """Return what to say of an error of one call or record."""
        if self.fatal is not None and error.code() in _GIVEN_UP:
            return self.denied or self.fatal
        return self._denied_by(error) or error.str()

    def unavailable(self, doing: str, exception: KafkaException | TimeoutError) -> BusUnavailable:
        """Return the error to raise for one that a call raised: AccessDenied where it comes from
        that, or what else `_CLASSES` has of its kind.

        `doing` completes "Kafka at host:port: … failed".
        """
        bootstrap = self._settings.bootstrap
        error = KafkaError(KafkaError._TIMED_OUT)  # TimeoutError: a future's, without words
        if isinstance(exception, KafkaException):
            error = error_of(exception)
        denied = self._denied_by(error)
        if denied is not None:
            return AccessDenied(denied, bootstrap=bootstrap)
        words = f"Kafka at {bootstrap}: {doing} failed: {error.str()}"
        return _CLASSES.get(error.code(), BusUnavailable)(words, bootstrap=bootstrap)

    def _denied_by(self, error: KafkaError) -> str | None:
        """What was denied, if `error` says so or is only the time-out that follows from it."""
        denied = denial(error, self._settings)
        return self.denied if denied is None and error.code() in _OUT_OF_TIME else denied

    def starts_anew(self, why: str) -> None:
        """Say that the client is given up for a new one."""
        self.stuck = ""
        self._misplaced = {}
        self.note("anew", f"begins with a new connection to Kafka: {why}")

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


ANSWER_MS_SEVERAL: Final = 8_000
"""What a broker may take for an answer where there are several: one that stands still keeps its
connections, and librdkafka would wait a minute for it while another one leads. Longer than brokers
take to give a silent one up, which acknowledgements of all replicas wait for."""


def client_options(settings: KafkaSettings, client_id: str, watch: ClientWatch) -> dict[str, Any]:
    """Return the options that consumers and producers share."""
    error: Callable[[KafkaError], None] = watch.receive
    return {
        **settings.librdkafka(),
        "client.id": client_id,
        "logger": watch,
        "error_cb": error,
        "socket.nagle.disable": True,  # a hop costs half a millisecond; Nagle would add forty
        "reconnect.backoff.ms": RECONNECT_BACKOFF_MS,
        "reconnect.backoff.max.ms": RECONNECT_BACKOFF_MAX_MS,
        "log.connection.close": False,  # brokers close idle connections; that is no event
        "allow.auto.create.topics": False,
        **({"socket.timeout.ms": ANSWER_MS_SEVERAL} if settings.names_several else {}),
    }


ClientT = TypeVar("ClientT")


def make_client(client: Callable[[dict[str, Any]], ClientT], options: dict[str, Any]) -> ClientT:
    """Return `client(options)`. Raises ConfigurationError for options that librdkafka refuses, such
    as a certificate file that is not there."""
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


def prepare_producer(producer: Producer, topic: str) -> None:
    """Let a new producer have its id, and know of `topic`, before its first record; takes what two
    questions to a broker take, and half a second at most. An answer about any topic is what makes
    librdkafka 2.16 ask for the id. The first one may come by the connection to the bootstrap
    address, which is given up with it: then there is nobody to ask, for half a second. The second
    comes by the one that stays. Nothing depends on it: without a broker the id is asked for later.
    """
    with suppress(KafkaException):
        for _ in range(2):
            producer.list_topics(topic, timeout=ASK_SLICE_S)


def flush(producer: Producer, timeout_s: float, ended: Callable[[KafkaException], None]) -> int:
    """Wait for the outcome of everything that was produced, and return the number of records
    without one. `ended` is told of an error after which the producer is of no more use; then it
    goes on, since such an error brings the outcome of whatever still waits."""
    give_up_ns = boottime_ns() + int(timeout_s * 1e9)
    while True:
        left_s = max(0.0, (give_up_ns - boottime_ns()) / 1e9)
        try:
            left = producer.flush(min(left_s, FLUSH_SLICE_S))
        except KafkaException as error:
            ended(error)
            left = len(producer)
        if not left or left_s <= 0:
            return left
