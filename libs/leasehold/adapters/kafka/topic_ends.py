"""TopicEndsReader: where a database's topics end, asked while its owner reads on.

Two requests (first offsets, next offsets) a leader, however many tables there are. Asked partition
by partition, or through the consumer that reads, whose fetch each question waits for, the topics of
400 tables take 40 seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import ExitStack, closing
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Final

from confluent_kafka import KafkaError, KafkaException

from leasehold.adapters.kafka.client import ASK_SLICE_S
from leasehold.adapters.kafka.leader_wait import lacks_leader
from leasehold.adapters.kafka.reader import END, FIRST, TopicReader
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.errors import BusUnavailable, LeaseholdError
from leasehold.model.topics import Topic, Topics
from leasehold.settings.environment import KafkaSettings

ASK_EVERY_NS: Final = 1_000_000_000
ROWS_EVERY_NS: Final = 5_000_000_000
"""Rows topics grow in number with the tables, and people look at their ends only as "about"."""
ANSWER_TIMEOUT_S: Final = 3.0
"""A broker that has not answered for so long is said to be away."""


class TopicEndsReader:
    """Asks where topics end, and takes the answers later: `poll` never waits for a broker. For one
    thread; another one of its own waits."""

    def __init__(self, settings: KafkaSettings, topics: Topics, client_id: str) -> None:
        self._settings = settings
        self._topics = topics
        self._client_id = client_id
        self._closing = Event()
        self._questions: SimpleQueue[Mapping[str, Topic] | None] = SimpleQueue()  # by label
        self._answers: SimpleQueue[dict[str, int] | LeaseholdError] = SimpleQueue()
        self._thread: Thread | None = None
        self._is_asked = False
        self._asked_ns = 0
        self._rows_asked_ns = 0

    def poll(self, table_ids: Collection[int]) -> dict[str, int] | None:
        """Ask when it is time to, take the answers that have come, and return what they say.

        These are next offsets by "log", "requests", "backfill" and "dead-letter", and of
        `rows/<table id>` how many records are kept, about; None while nothing new is known. What a
        broker can't tell just now is left out, and a table without a topic (it never had a row).
        Raises what the question ran into, and asks again later: BusUnavailable when Kafka can't be
        reached, ConfigurationError for settings that its client refuses.
        """
        answered = None
        if self._is_asked:
            try:
                answer = self._answers.get_nowait()
            except Empty:
                return None
            self._is_asked = False
            if isinstance(answer, LeaseholdError):
                raise answer
            answered = answer
        now_ns = boottime_ns()
        if now_ns - self._asked_ns >= ASK_EVERY_NS:
            self._asked_ns = now_ns
            self._ask(self._wanted(table_ids, now_ns))
        return answered

    def close(self) -> None:
        """Give up what is under way; a broker that does not answer is not waited for."""
        self._closing.set()
        self._questions.put(None)
        if self._thread is not None:
            self._thread.join(2 * ASK_SLICE_S)

    def _wanted(self, table_ids: Collection[int], now_ns: int) -> Mapping[str, Topic]:
        """Return the topics whose ends are asked for now, by label."""
        topics = self._topics
        wanted: dict[str, Topic] = {
            "log": topics.log,
            "requests": topics.requests,
            "backfill": topics.backfill,
            "dead-letter": topics.dead_letter,
        }
        if table_ids and now_ns - self._rows_asked_ns >= ROWS_EVERY_NS:
            self._rows_asked_ns = now_ns
            wanted |= {f"rows/{table_id}": topics.rows(table_id) for table_id in table_ids}
        return wanted

    def _ask(self, wanted: Mapping[str, Topic]) -> None:
        if self._thread is None:
            name = "leasehold-topic-ends"
            self._thread = Thread(target=self._run, name=name, daemon=True)
            self._thread.start()
        self._is_asked = True
        self._questions.put(wanted)

    # ------------------------------------------------------------ in the thread

    def _run(self) -> None:
        """Answer each question, with an error too: who has asked would wait for ever."""
        give_up = self._closing.is_set
        with ExitStack() as opened:
            reader: TopicReader | None = None
            while (wanted := self._questions.get()) is not None and not give_up():
                try:
                    if reader is None:
                        reader = self._open(opened)
                    self._answers.put(_ends_of(reader, wanted))
                except LeaseholdError as error:
                    self._answers.put(error)
                except Exception as error:  # noqa: BLE001 - a fault of this program's, told as such
                    words = f"asking where topics end failed: {type(error).__name__}: {error}"
                    self._answers.put(BusUnavailable(words))

    def _open(self, opened: ExitStack) -> TopicReader:
        give_up = self._closing.is_set
        reader = TopicReader(self._settings, self._client_id, read_committed=True, give_up=give_up)
        return opened.enter_context(closing(reader))


def _ends_of(reader: TopicReader, wanted: Mapping[str, Topic]) -> dict[str, int]:
    """Return the ends of topics by label, of rows how many records are kept. Raises
    BusUnavailable."""
    places = {
        (topic.name, number): label
        for label, topic in wanted.items()
        for number in range(topic.partitions)
    }
    rows = {place: label for place, label in places.items() if label.startswith("rows/")}
    found: dict[str, int] = {}
    unknown: set[str] = set()
    for sign, spec, asked in ((-1, FIRST, rows), (1, END, places)):
        for place, offset in reader.offsets_of(asked, spec, ANSWER_TIMEOUT_S).items():
            label = places[place]
            if not isinstance(offset, KafkaError):
                found[label] = found.get(label, 0) + sign * offset
            elif place in rows or lacks_leader(KafkaException(offset)):
                # A table without a row yet has no topic; a missing leader comes back.
                unknown.add(label)
            else:
                raise reader.unavailable("asking where topics end", offset)
    return {label: max(0, count) for label, count in found.items() if label not in unknown}
