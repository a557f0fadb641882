"""TopicReader: partitions read from offsets that *we* keep (L3, L6); no consumer groups.

`auto.offset.reset=error`: an offset that the broker no longer has, or has not yet, means that one
of us has lost something, and going on at another place would hide it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from leasehold.adapters.kafka.client import (
    ASK_SLICE_S,
    LEADERLESS,
    LOST,
    MISSING,
    STATISTICS_MS,
    ClientWatch,
    TopicMissing,
    client_options,
    error_of,
    make_client,
)
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.errors import BusUnavailable, LogStopped
from leasehold.model.traces import TRACEPARENT
from leasehold.settings.environment import KafkaSettings

FETCH_WAIT_MS: Final = 100
"""Longest a broker holds an empty fetch. A partition that is started or resumed joins with the next
fetch only, so this bounds how long that takes; with data to send a broker answers at once."""
STEADY_WAIT_MS: Final = 500
"""`fetch_wait_ms` of who starts its partitions together, reads them on and on, and asks for nothing
meanwhile (a broker answers a connection's requests one after the other): a fetch in vain costs it
as much as one that finds something."""
TO_THE_END_MS: Final = 5
"""`fetch_wait_ms` of who reads as far as an end and no further: he asks once or twice in vain."""
QUEUED_KBYTES_MAX: Final = 32 * 1024
QUEUED_RECORDS_MIN: Final = 100_000
"""How many are fetched ahead: librdkafka's own."""
RECORDS_MAX: Final = 10_000
ASK_TIMEOUT_S: Final = 5.0
ASK_SEVERAL_S: Final = 15.0
"""Where there are several brokers: when the one dies that leads a partition, some seconds pass
until the others know, and then one of them answers."""
ASK_AGAIN_S: Final = 0.02
FIRST: Final = -2
END: Final = -1
"""The times by which the protocol asks for the first offset of a partition and the one behind its
last record."""

_OFFSET_GONE: Final = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})
_HOPELESS: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,
        KafkaError.UNSUPPORTED_VERSION,
    }
)
_PASSED_OVER: Final = frozenset({KafkaError.GROUP_AUTHORIZATION_FAILED})  # we never join one
_MAY_COME: Final = LEADERLESS | frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        # The question was on its way to a broker that metadata no longer names.
        KafkaError._DESTROY_BROKER,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._TRANSPORT,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.REPLICA_NOT_AVAILABLE,
    }
)
"""What passes by itself, where a question is asked again."""

AnswerT = TypeVar("AnswerT")


class Record(NamedTuple):
    """A Kafka record. `value` None is a tombstone."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    @property
    def content_type(self) -> str:
        """The content-type header, "" without one."""
        return self._header("content-type")

    @property
    def traceparent(self) -> str:
        """The header `traceparent`, "" without one."""
        return self._header(TRACEPARENT)

    def _header(self, wanted: str) -> str:
        for name, value in self.headers:
            if name == wanted and value is not None:
                return value.decode("ascii", "replace")
        return ""


class TopicReader:
    """A reader of any number of partitions through one connection. For one thread.

    A broker that is away is waited for (and told of in the log). What `read` raises will not pass
    by itself: LogStopped for an offset that is not there, AccessDenied.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        client_id: str,
        *,
        read_committed: bool = False,
        tell_ends: bool = False,
        queued_kbytes_max: int = QUEUED_KBYTES_MAX,
        fetch_wait_ms: int = FETCH_WAIT_MS,
        gather_ms: int = 0,
        give_up: Callable[[], bool] = lambda: False,
        may_lose: Collection[str] = (),
    ) -> None:
        """Connect, with nothing to read yet.

        With `read_committed` only records of finished transactions are read, and with `tell_ends`
        `ended` is kept. `queued_kbytes_max` says how far is read ahead, and `fetch_wait_ms` how
        long a broker holds a fetch that finds nothing; an end is not told before that. While a
        record that was fetched waits to be read, more are asked for every `gather_ms` only; with 0
        each record is fetched as soon as it is there, which is a request each where they come one
        by one. `give_up` is asked twice a second while a broker is waited for; then BusUnavailable
        is raised. An offset of the topics `may_lose` that is not there is noted in `lost`, and not
        raised.
        """
        self._bootstrap = settings.bootstrap
        self._asks_s = ASK_SEVERAL_S if settings.names_several else ASK_TIMEOUT_S
        self._watch = ClientWatch(settings, client_id)
        self._give_up = give_up
        self._pause = threading.Event()  # never set
        self._next: dict[tuple[str, int], int] = {}
        self._paused: set[tuple[str, int]] = set()
        self.ended: dict[tuple[str, int], int] = {}
        """Of each (topic, partition) that has been read to its end, where that was."""
        self._may_lose = frozenset(may_lose)
        self.lost: set[tuple[str, int]] = set()
        """Each (topic, partition) that can't be read on, since its next offset is not there."""
        self._options = {
            **client_options(settings, client_id, self._watch),
            "group.id": "leasehold-none",  # librdkafka wants one; it is never joined
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed" if read_committed else "read_uncommitted",
            "enable.partition.eof": tell_ends,
            "fetch.wait.max.ms": fetch_wait_ms,
            "fetch.min.bytes": 1,
            "queued.min.messages": 1 if gather_ms else QUEUED_RECORDS_MIN,
            "fetch.queue.backoff.ms": gather_ms or 1,
            "fetch.error.backoff.ms": 50,
            "queued.max.messages.kbytes": queued_kbytes_max,
        }
        if settings.names_several:  # else there is nobody else who could lead
            self._options |= {
                "statistics.interval.ms": STATISTICS_MS,
                "stats_cb": self._watch.look_at_statistics,
            }
        self._consumer = make_client(Consumer, self._options)

    def give_up_when(self, give_up: Callable[[], bool]) -> None:
        """Set the argument `give_up`, for an owner that learns only later what it stops for."""
        self._give_up = give_up

    @property
    def gives_up(self) -> bool:
        """Whether its owner no longer wants to wait."""
        return self._give_up()

    def start(self, topic: str, partition: int, offset: int) -> None:
        """Deliver this partition from `offset` on, wherever it was read before."""
        assert offset >= 0, offset
        self.stop(topic, partition)
        self._look(topic)
        self._next[topic, partition] = offset
        self._consumer.incremental_assign([TopicPartition(topic, partition, offset)])

    def stop(self, topic: str, partition: int) -> None:
        """Deliver no more of it, what is queued included."""
        if self._next.pop((topic, partition), None) is not None:
            self._consumer.incremental_unassign([TopicPartition(topic, partition)])
        self.ended.pop((topic, partition), None)
        self.lost.discard((topic, partition))
        self._paused.discard((topic, partition))

    def pause(self, topic: str, partition: int) -> None:
        """Hold a partition back: nothing of it is delivered until `resume`, and nothing is lost."""
        self._paused.add((topic, partition))
        self._consumer.pause([TopicPartition(topic, partition)])

    def resume(self, topic: str, partition: int) -> None:
        self._paused.discard((topic, partition))
        self._consumer.resume([TopicPartition(topic, partition)])

    def next_offset(self, topic: str, partition: int) -> int:
        """Return the next offset that will be delivered, as far as known."""
        return self._next[topic, partition]

    def known_end(self, topic: str, partition: int) -> int | None:
        """Return the partition's next offset as the broker told it with the last fetch, None where
        it is not read or nothing is known. From any thread; asks nobody."""
        if (topic, partition) not in self._next:
            return None
        try:
            ends: Any = self._consumer.get_watermark_offsets(
                TopicPartition(topic, partition), cached=True
            )
        except (KafkaException, RuntimeError, TypeError):  # closed, made anew, or nothing known
            return None
        return None if ends[1] < 0 else int(ends[1])

    def read(self, records_max: int, timeout_s: float) -> list[Record]:
        """Return what is there, at most `records_max`; waits up to `timeout_s` for the first
        record.

        Offsets of a partition rise; those of compacted and transactional topics have gaps.
        """
        return [
            Record(
                *topic_partition,
                offset,
                message.key(),
                message.value(),
                tuple(message.headers() or ()),
            )
            for topic_partition, offset, message in self._wanted(records_max, timeout_s)
        ]

    def messages(self, records_max: int, timeout_s: float) -> list[Any]:
        """Return what `read` does as librdkafka's own objects, for who wants only keys and values
        of many."""
        return [message for _, _, message in self._wanted(records_max, timeout_s)]

    def _wanted(
        self, records_max: int, timeout_s: float
    ) -> Iterator[tuple[tuple[str, int], int, Any]]:
        """Yield ((topic, partition), offset, message) of each record that is there and wanted."""
        assert 1 <= records_max <= RECORDS_MAX, records_max
        messages: list[Any] = []  # the stubs allow None where a good message has none
        try:
            first = self._consumer.poll(timeout_s)
            if self._watch.stuck:
                self._make_anew(self._watch.stuck)
                first = None  # it comes again
            if first is None:
                if self._next:
                    self._look(next(iter(self._next))[0])
                return
            messages.append(first)
            if records_max > 1:
                messages += self._consumer.consume(records_max - 1, 0)
        except KafkaException as fatal:
            raise self._watch.unavailable("reading", fatal) from fatal
        if messages[0].error() is None:
            self._watch.works()
        for message in messages:
            error = message.error()
            if error is not None:
                self._heed(message, error)
                continue
            topic_partition, offset = (message.topic(), message.partition()), message.offset()
            wanted = self._next.get(topic_partition)
            if wanted is None or offset < wanted:
                continue  # of a partition stopped or restarted while this was on its way
            self._next[topic_partition] = offset + 1
            yield topic_partition, offset, message

    def _look(self, topic: str) -> None:
        """Make a consumer that has lost all its brokers anew; it goes on where it was."""
        if self._watch.is_lost(self._consumer, topic):
            self._make_anew(LOST)

    def _make_anew(self, why: str) -> None:
        self._watch.starts_anew(why)
        self._consumer.close()
        self._consumer = make_client(Consumer, self._options)
        self._consumer.incremental_assign([TopicPartition(*p, o) for p, o in self._next.items()])
        self._consumer.pause([TopicPartition(*topic_partition) for topic_partition in self._paused])

    def _heed(self, message: Any, error: KafkaError) -> None:
        """Raise an error in the stream that will not pass, and tell of the others."""
        code, topic, partition = error.code(), message.topic(), message.partition()
        if code == KafkaError._PARTITION_EOF:
            self.ended[topic, partition] = message.offset()
            return
        if code in _PASSED_OVER:
            return
        where = f"partition {partition} of topic {topic!r}"
        if code in _OFFSET_GONE and topic in self._may_lose:
            if (topic, partition) in self._next:
                self.lost.add((topic, partition))
            return
        if code in _OFFSET_GONE:
            offset = self._next.get((topic, partition))
            raise LogStopped(
                f"Offset {offset} of {where} is not there ({error.str()}). It was deleted, or the "
                "broker has lost what it acknowledged: docs/how-to/recover-a-lost-log.md",
                topic=topic,
                offset=offset,
            )
        if code in _HOPELESS or error.fatal():
            raise self._watch.unavailable(f"reading {where}", KafkaException(error))
        self._watch.note(f"{error.name()} {topic}", f"{where}: {error.str()}; still trying")

    def end_offset(self, topic: str, partition: int, timeout_s: float | None = None) -> int:
        """Return the offset that the next record will get, asked of the leader now. Raises
        BusUnavailable."""
        return self.offsets(topic, partition, timeout_s)[1]

    def first_offset(self, topic: str, partition: int, timeout_s: float | None = None) -> int:
        """Return the first offset that has not been deleted. Raises BusUnavailable."""
        return self.offsets(topic, partition, timeout_s)[0]

    def offsets(
        self, topic: str, partition: int, timeout_s: float | None = None
    ) -> tuple[int, int]:
        """Return `first_offset` and `end_offset`, asked together, for `timeout_s` at most (default:
        as long as it may take to find the leader). Raises BusUnavailable; TopicMissing where there
        is no such topic or partition."""
        if timeout_s is None:
            timeout_s = self._asks_s
        give_up_ns = boottime_ns() + int(timeout_s * 1e9)
        topic_partition = TopicPartition(topic, partition)
        doing = f"asking for the end of {topic}"
        self._look(topic)

        def ask(slice_s: float) -> tuple[int, int]:
            found: Any = self._consumer.get_watermark_offsets(
                topic_partition, timeout=slice_s, cached=False
            )
            # ⚠ While a partition changes its leader librdkafka may answer without having heard of
            # one of them: with OFFSET_INVALID, by which a log would seem to have lost its end.
            if found is None or min(found) < 0:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            first, end = found
            return first, end

        try:
            return self._ask_leader(doing, ask, topic, timeout_s)
        except TopicMissing:
            # librdkafka says the same of a topic that is missing and of one denied to us, and of
            # one that it has once heard to be missing without asking again.
            self.partitions(topic, _left_s(give_up_ns))
        return self._ask_leader(doing, ask, topic, _left_s(give_up_ns))

    def offsets_of(
        self, places: Collection[tuple[str, int]], spec: int, timeout_s: float
    ) -> dict[tuple[str, int], int | KafkaError]:
        """Return the offsets FIRST or END of many (topic, partition), by one request a leader, or
        what a leader says is wrong with one of them. Raises BusUnavailable where none answers.

        ⚠ Not by an admin client, whose `list_offsets` works in two threads at once on a question
        about a partition whose leader it does not know yet, and may end the process by a
        segmentation fault (librdkafka 2.16; so may `delete_records`)."""
        if not places:
            return {}
        doing = "asking where topics begin and end"
        self._look(min(places)[0])
        topics = {topic for topic, _ in places}
        known = topics.pop() if len(topics) == 1 else None
        told = self._ask_leader(
            doing, lambda slice_s: self._offsets_of(places, spec, slice_s), known, timeout_s
        )
        missing = {place for place, offset in told.items() if _is_missing(offset)}
        if missing:
            # One that librdkafka has once heard to be missing it looks for again only among all.
            listed = self._ask(
                doing, lambda slice_s: self._consumer.list_topics(timeout=slice_s), timeout_s
            ).topics
            made = [place for place in missing if place[0] in listed]
            if made:
                told |= self._ask_leader(
                    doing, lambda slice_s: self._offsets_of(made, spec, slice_s), None, timeout_s
                )
        return told

    def _offsets_of(
        self, places: Collection[tuple[str, int]], spec: int, timeout_s: float
    ) -> dict[tuple[str, int], int | KafkaError]:
        """Return what `offsets_of` does, of topics that are known. Raises KafkaException."""
        wanted = [TopicPartition(*place, spec) for place in places]
        try:
            told = self._consumer.offsets_for_times(wanted, timeout=timeout_s)
        except KafkaException as error:
            if not _is_missing(error_of(error)):
                raise
            return dict.fromkeys(places, error_of(error))  # said where it holds for all of them
        return {
            (each.topic, each.partition): each.offset if each.error is None else each.error
            for each in told
        }

    def unavailable(self, doing: str, error: KafkaError) -> BusUnavailable:
        """Return the error to raise where a leader has refused `doing`."""
        return self._watch.unavailable(doing, KafkaException(error))

    def partitions(self, topic: str, timeout_s: float = ASK_TIMEOUT_S) -> int:
        """Return how many partitions the topic has. Raises BusUnavailable; TopicMissing for a topic
        that does not exist."""
        doing = f"asking for topic {topic}"
        self._look(topic)
        found = self._ask(
            doing, lambda slice_s: self._consumer.list_topics(topic, timeout=slice_s), timeout_s
        ).topics[topic]
        if found.error is not None and found.error.code() in _HOPELESS:
            raise self._watch.unavailable(doing, KafkaException(found.error))
        if not found.partitions:
            raise TopicMissing(f"Kafka at {self._bootstrap} has no topic {topic}; create it")
        return len(found.partitions)

    def _ask_leader(
        self, doing: str, ask: Callable[[float], AnswerT], topic: str | None, timeout_s: float
    ) -> AnswerT:
        """Return what `_ask` does of a question to those who lead `topic`, or any (None).

        ⚠ librdkafka asks whoever it has once heard to lead a partition, and for minutes nobody else
        if that one has died before a connection to it was made. So a question without an answer is
        followed by one to any broker: who leads now?"""

        def learn_leaders(slice_s: float) -> None:
            with suppress(KafkaException):  # the next question may have an answer
                if topic is None:
                    self._consumer.list_topics(timeout=slice_s)
                else:
                    self._consumer.list_topics(topic, timeout=slice_s)

        return self._ask(doing, ask, timeout_s, learn_leaders)

    def _ask(
        self,
        doing: str,
        ask: Callable[[float], AnswerT],
        timeout_s: float,
        between: Callable[[float], None] = lambda slice_s: None,
    ) -> AnswerT:
        """Return `ask(seconds)`, asked in slices until a broker answers, and `between(seconds)`
        before each time but the first. Raises BusUnavailable."""
        give_up_ns = boottime_ns() + int(timeout_s * 1e9)
        while True:
            left_s = (give_up_ns - boottime_ns()) / 1e9
            try:
                answer = ask(max(0.0, min(left_s, ASK_SLICE_S)))
            except KafkaException as error:
                waits = error_of(error).code() in _MAY_COME and left_s > ASK_SLICE_S
                if waits and not self._give_up():
                    self._pause.wait(ASK_AGAIN_S)  # what comes at once must not come in a loop
                    between(min(_left_s(give_up_ns), ASK_SLICE_S))
                    continue
                self._hear()
                raise self._watch.unavailable(doing, error) from error
            self._watch.works()
            self._hear()
            return answer

    def _hear(self) -> None:
        """Run the callbacks that tell why a call timed out, or of statistics, which would gather
        else. While something is read `read` does that, and a record must not be lost here."""
        if not self._next:
            self._consumer.poll(0)

    def close(self) -> None:
        self._consumer.close()


def _left_s(give_up_ns: int) -> float:
    return max(0.0, (give_up_ns - boottime_ns()) / 1e9)


def _is_missing(told: int | KafkaError) -> bool:
    return isinstance(told, KafkaError) and told.code() in MISSING
