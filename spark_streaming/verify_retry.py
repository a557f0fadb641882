"""The retry stream: conflicts in, after their back-off the next attempts out.

R1 does not rest on this stream being exactly-once (it is at-least-once): a request keeps its id,
its attempts are counted, and the master decides attempt n + 1 once and only after attempt n (L5).
An attempt that is sent twice is answered with what was decided the first time.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.reader import STEADY_WAIT_MS, TopicReader
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.errors import BusUnavailable, LogStopped, Refused
from leasehold.model.signatures import NO_KEYS, RequestKeys
from leasehold.model.topics import Topics
from leasehold.model.traces import NO_SPANS, SpanSink
from leasehold.pipeline.attempt_child import ENDED_MAX, AttemptChild
from leasehold.pipeline.retry_state import (
    BUCKETS,
    Arrived,
    NextAttempts,
    Waiting,
    arrived_of,
    pack,
    step,
    unpack,
)
from leasehold.pipeline.retry_traces import retry_spans
from leasehold.settings.carried_kafka import carry
from leasehold.settings.environment import KafkaSettings
from leasehold.settings.traces import TraceSettings
from spark_streaming.failure_words import words_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log: Final = logging.getLogger(__name__)

CONFLICTS_PER_BATCH: Final = 5_000
IDLE_MS: Final = 5_000
"""After this long without a conflict and with empty state the query sleeps: with timers Spark runs
micro-batches all the time, which costs a fifth of a core for nothing."""
LOOK_MS: Final = 1_000
RESTART_MS: Final = 2_000
WATCHED_KBYTES_MAX: Final = 1_024  # that one has come is all that is wanted of them

OUTPUT: Final = "request_id binary, content_type string, body binary"
STATE: Final = "waiting binary"
QUERY: Final = "verify-retry"
NO_TRACES: Final = TraceSettings()
_NS: Final = 1_000_000


def retry(
    attempts_max: int,
    early_ms: int,
    keys: RequestKeys,
    database: str,
    traces: TraceSettings = NO_TRACES,
) -> Callable[[Any, Iterable[Any], Any], Iterator[Any]]:
    """Return the function that Python workers run per bucket: (key, frames, state) → frames."""

    def run(key: Any, frames: Iterable[Any], state: Any) -> Iterator[Any]:
        import pandas as pd

        codec = MessagePackCodec()
        arrived = [a for f in frames for v in f["value"] if (a := _arrived(codec, v)) is not None]
        now_ms = state.getCurrentProcessingTimeMs()
        waiting = unpack(state.get[0]) if state.exists else ()
        left, ready, next_due_ms = step(waiting, arrived, now_ms, early_ms)
        if next_due_ms is not None:
            state.update((pack(left),))
            state.setTimeoutDuration(max(1, next_due_ms - now_ms))
        elif state.exists:
            state.remove()
        spans = _spans(traces, database)
        if spans.is_on:
            for span in retry_spans(codec, ready, now_ms, boottime_ns()):
                spans.record(span)
        aside = _computing_aside(keys, database, attempts_max)
        rows = [row for row in aside(ready) if row is not None]
        if rows:
            yield pd.DataFrame(rows, columns=["request_id", "content_type", "body"])

    return run


@lru_cache(maxsize=1)
def _computing_aside(
    keys: RequestKeys, database: str, attempts_max: int
) -> Callable[[Iterable[Waiting]], Iterator[Any]]:
    """Return what computes next attempts in a child of this worker, which lives as long as it."""
    attempts = NextAttempts(MessagePackCodec(), keys, database, attempts_max)
    child = AttemptChild(partial(_encoded, attempts))
    return partial(child.results, give_up=partial(_given_up, attempts))


@lru_cache(maxsize=1)
def _spans(traces: TraceSettings, database: str) -> SpanSink:
    """Return where a worker's spans go, as long as it lives."""
    if traces.endpoint is None:
        return NO_SPANS
    try:
        from leasehold.adapters.tracing.otlp import OtlpSpans
    except ImportError:
        log.warning(
            "requests that wait for a retry have no spans: leasehold[traces] is not installed in"
            " the Python of Spark's executors"
        )
        return NO_SPANS
    return OtlpSpans(traces.endpoint, 0.0, "leasehold-spark", "retry", database)


def _arrived(codec: MessagePackCodec, value: bytes) -> Arrived | None:
    try:
        return arrived_of(codec, value)
    except Refused as error:
        # Only masters write here. One bad record must not hold up the others; without an id
        # there is nobody to tell but the operator.
        log.error("a record on the conflicts topic is left out: %s", error)
        return None


def _encoded(attempts: NextAttempts, fields: Sequence[Any]) -> tuple[bytes, str, bytes] | None:
    entry = Waiting(*fields)
    try:
        content_type, body, why = attempts.encode(entry)
    except Refused as error:
        _say(entry, "left out", error)
        return None
    if why:
        _say(entry, "given up", why)
    return entry.request_id, content_type, body


def _given_up(attempts: NextAttempts, entry: Waiting) -> tuple[bytes, str, bytes] | None:
    why = f"{ENDED_MAX} processes have ended, one after the other, while they computed it"
    try:
        content_type, body = attempts.give_up_unread(entry, why)
    except Refused as error:
        _say(entry, "left out", error)
        return None
    _say(entry, "given up", why)
    return entry.request_id, content_type, body


def _say(entry: Waiting, what: str, why: object) -> None:
    """Say in the log what has become of a request that waited, and why."""
    name = uuid.UUID(bytes=entry.request_id)
    words = "request %s is %s after attempt %d: %s"
    log.error(words, name, what, entry.attempt, why, extra={"request": name})


class RetryStream:
    """The stream that keeps its query running while there is something to retry. Used by the
    driver's thread.

    `trouble`: why it does not, in a line; empty when it does.
    """

    def __init__(
        self,
        session: SparkSession,
        kafka: KafkaSettings,
        topics: Topics,
        checkpoint: str,
        *,
        attempts_max: int,
        trigger_ms: int,
        carried: bool = False,
        keys: RequestKeys = NO_KEYS,
        traces: TraceSettings = NO_TRACES,
    ) -> None:
        """Make ready to start. `carried`: workers have none of the files that `kafka` names."""
        self._session = session
        self._kafka = kafka
        self._carried = carried
        self._topics = topics
        self._keys = keys
        self._traces = traces
        self._checkpoint = checkpoint
        self._attempts_max = attempts_max
        self._trigger_ms = trigger_ms
        self._early_ms = trigger_ms // 2  # so that nobody waits longer than half of that for it
        self._query: StreamingQuery | None = None
        self.trouble = ""
        self.waiting = 0
        """Buckets in which requests wait for their next attempt, as it was last looked."""
        self._ends: dict[int, int] = {}  # partition → offset read through
        self._busy_ns = self._looked_ns = time.monotonic_ns()
        self._start_ns = 0  # not to be started before
        # While the query sleeps: a conflict ends the fetch that the broker holds.
        self._watch = TopicReader(
            kafka,
            "leasehold-retry",
            read_committed=True,
            queued_kbytes_max=WATCHED_KBYTES_MAX,
            fetch_wait_ms=STEADY_WAIT_MS,
        )

    def start(self) -> None:
        """Start the query. Raises PySparkException if it can't be started."""
        self._busy_ns = time.monotonic_ns()
        self._query = self._started()
        self.trouble = ""

    def turn(self) -> None:
        """Start what ended with an error, wake up for new conflicts, sleep when there are none."""
        now_ns = time.monotonic_ns()
        try:
            if self._query is None:
                if now_ns >= self._start_ns and self._has_come():
                    self._stop_watching()
                    self.start()
            elif not self._query.isActive:
                self.trouble = words_of(self._query.exception())
                log.error("the retry stream ended and starts again: %s", self.trouble)
                self._query = None
                self._ends = {}
                self._start_ns = now_ns + RESTART_MS * _NS
            elif now_ns - self._looked_ns >= LOOK_MS * _NS:
                self._looked_ns = now_ns
                self._sleep_if_idle(now_ns)
        except (PySparkException, Py4JError, BusUnavailable) as error:
            self.trouble = words_of(error)
            log.error("the retry stream waits: %s", self.trouble)
            self._start_ns = now_ns + RESTART_MS * _NS

    def close(self) -> None:
        if self._query is not None:
            with suppress(PySparkException, Py4JError):  # with a JVM that is gone it has ended
                self._query.stop()
        self._watch.close()

    def _has_come(self) -> bool:
        if not self._ends:
            return True
        try:
            return bool(self._watch.read(1, 0))
        except LogStopped:
            return True  # the topic is not as the query left it: it says what that means

    def _watch_ends(self) -> None:
        for partition, end in self._ends.items():
            self._watch.start(self._topics.conflicts.name, partition, end)

    def _stop_watching(self) -> None:
        for partition in self._ends:
            self._watch.stop(self._topics.conflicts.name, partition)
        self._ends = {}  # also if the query can't be started now: nobody watches any more

    def _sleep_if_idle(self, now_ns: int) -> None:
        assert self._query is not None
        progress = self._query.lastProgress
        if progress is None:
            return
        ends = {
            int(partition): offset
            for partition, offset in json.loads(progress.sources[0].endOffset)[
                self._topics.conflicts.name
            ].items()
        }
        waits = sum(operator.numRowsTotal for operator in progress.stateOperators)
        self.waiting = waits
        if waits or ends != self._ends:
            self._busy_ns = now_ns
            self._ends = ends
        elif now_ns - self._busy_ns >= IDLE_MS * _NS:
            log.debug("nothing to retry; the query sleeps")
            self._query.stop()
            self._query = None
            self._watch_ends()

    def _started(self) -> StreamingQuery:
        options = (carry(self._kafka) if self._carried else self._kafka).spark_options()
        conflicts = (
            self._session.readStream.format("kafka")
            .options(**options)
            .option("subscribe", self._topics.conflicts.name)
            .option("startingOffsets", "earliest")
            .option("kafka.isolation.level", "read_committed")
            .option("maxOffsetsPerTrigger", CONFLICTS_PER_BATCH)
            .load()
            .selectExpr(f"coalesce(pmod(crc32(key), {BUCKETS}), 0) as bucket", "value")
        )
        requests = (
            conflicts.groupBy("bucket")
            .applyInPandasWithState(
                retry(
                    self._attempts_max,
                    self._early_ms,
                    self._keys,
                    self._topics.database,
                    self._traces,
                ),
                OUTPUT,
                STATE,
                "append",
                "ProcessingTimeTimeout",
            )
            .selectExpr(
                "request_id as key",
                "body as value",
                "array(struct('content-type' as key, encode(content_type, 'utf-8') as value))"
                " as headers",
                "0 as partition",
            )
        )
        return (
            requests.writeStream.queryName(f"{QUERY}-{self._topics.database}")
            .format("kafka")
            .options(**options)
            .option("topic", self._topics.requests.name)
            .option("checkpointLocation", self._checkpoint)
            .outputMode("append")
            .trigger(processingTime=f"{self._trigger_ms} milliseconds")
            .start()
        )
