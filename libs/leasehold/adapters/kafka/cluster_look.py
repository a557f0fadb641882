"""What Kafka says of a database's topics to whoever looks whether all is as it should be: their
partitions, settings, what this client may do with them, what they still have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AclOperation, ConfigResource, OffsetSpec, ResourceType

from leasehold.adapters.kafka.acls import OPERATIONS
from leasehold.adapters.kafka.admin import AdminConnection, is_missing
from leasehold.adapters.kafka.client import error_of
from leasehold.adapters.kafka.topic_span import TopicSpan
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.topics import Topic, Topics
from leasehold.settings.environment import KafkaSettings

TIMEOUT_S: Final = 8.0
ROWS_TOPICS_MAX: Final = 500
"""So many rows topics are looked at; a database may have thousands of tables."""
_NAME_OF: Final[Mapping[Any, str]] = {operation: name for name, operation in OPERATIONS.items()}
_MAX_TIMESTAMP: Final[OffsetSpec] = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
_DENIED: Final = frozenset(
    {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
)


class PartitionSeen(NamedTuple):
    """A partition: `replicas` brokers are to keep it, and `insync` have all of it. `leader` -1:
    none."""

    leader: int
    replicas: int
    insync: int


class TopicSeen(NamedTuple):
    """A topic as the broker has it. `missing`: there is none of the name. `denied`: this client may
    not know whether there is. `settings` is None where they may not be asked for. `allowed`:
    operations that this client may do, None where the broker does not say."""

    missing: bool = False
    denied: bool = False
    partitions: tuple[PartitionSeen, ...] = ()
    settings: Mapping[str, str | None] | None = None
    allowed: frozenset[str] | None = None


class KafkaSeen(NamedTuple):
    """Topics by name: those of `Topics.all_static`, and of rows those that there are. `spans`:
    what some of them have, by name. `letter_us`: when the newest dead letter was written, 0 for
    none, None where it could not be asked."""

    brokers: int
    topics: Mapping[str, TopicSeen]
    spans: Mapping[str, TopicSpan]
    letter_us: int | None


def rows_topics(topics: Topics, names: Sequence[str]) -> list[Topic]:
    """Return the descriptions of the rows topics among `names`."""
    prefix = f"{topics.database}.rows."
    numbers = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
    ids = sorted(int(each) for each in numbers if each.isascii() and each.isdigit())
    return [topics.rows(table_id) for table_id in ids[:ROWS_TOPICS_MAX]]


class TopicLooker:
    """Asks through one connection, all answers within one time. Methods raise BusUnavailable."""

    def __init__(self, settings: KafkaSettings, timeout_s: float = TIMEOUT_S) -> None:
        self._connection = AdminConnection(settings, "leasehold-doctor")
        self._until_ns = boottime_ns() + int(timeout_s * 1e9)

    def close(self) -> None:
        self._connection.close()

    def brokers(self, topic: str) -> int:
        """Return how many brokers there are."""
        doing = "asking for brokers"
        return len(self._ask(doing, lambda c, s: c.list_topics(topic, timeout=s).brokers))

    def names(self, topic: str) -> list[str]:
        """Return the names of all topics that this client may know of."""
        doing = "asking for topics"
        return sorted(self._ask(doing, lambda c, s: c.list_topics(timeout=s).topics))

    def topics(self, names: Sequence[str]) -> dict[str, TopicSeen]:
        """Return what the broker says of each of `names`."""
        asked = self._ask(
            "asking for topics",
            lambda client, left_s: client.describe_topics(
                TopicCollection(list(names)),
                include_authorized_operations=True,
                request_timeout=left_s,
            ),
        )
        settings = self._settings(names)
        found: dict[str, TopicSeen] = {}
        for name, future in asked.items():
            try:
                told = future.result(timeout=self._left_s())
            except (KafkaException, TimeoutError) as error:
                denied = _is_denied(error)
                if not (denied or is_missing(error)):
                    raise self._connection.unavailable(f"asking for {name}", error) from error
                found[name] = TopicSeen(missing=not denied, denied=denied)
                continue
            partitions = tuple(_partition(each) for each in told.partitions)
            allowed = _allowed(told.authorized_operations)
            found[name] = TopicSeen(
                partitions=partitions, settings=settings.get(name), allowed=allowed
            )
        return found

    def newest_us(self, topic: str) -> int | None:
        """Return when the newest record of a topic was written (unix µs), 0 where it has none, None
        where this client may not ask."""
        partition = TopicPartition(topic, 0)
        asked = self._ask(
            f"asking for the newest record of {topic}",
            lambda _, left_s: self._connection.client_that_knows(topic, left_s).list_offsets(
                {partition: _MAX_TIMESTAMP}, request_timeout=left_s
            ),
        )
        try:
            told = asked[partition].result(timeout=self._left_s())
        except (KafkaException, TimeoutError):
            return None
        written_ms: int = told.timestamp
        return max(0, written_ms) * 1_000

    def _settings(self, names: Sequence[str]) -> dict[str, dict[str, str | None]]:
        """Return the settings of those of `names` of which they may be asked for."""
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        asked = self._ask(
            "asking for the settings of topics",
            lambda client, left_s: client.describe_configs(resources, request_timeout=left_s),
        )
        found: dict[str, dict[str, str | None]] = {}
        for resource, future in asked.items():
            try:
                told = future.result(timeout=self._left_s())
            except (KafkaException, TimeoutError):
                continue  # who may not know them is told so; a topic that is missing, too
            found[resource.name] = {name: entry.value for name, entry in told.items()}
        return found

    def _ask(self, doing: str, ask: Callable[[Any, float], Any]) -> Any:
        try:
            return ask(self._connection.client_for(""), self._left_s())
        except (KafkaException, TimeoutError) as error:
            raise self._connection.unavailable(doing, error) from error

    def _left_s(self) -> float:
        return max(0.1, (self._until_ns - boottime_ns()) / 1e9)


def _is_denied(error: BaseException) -> bool:
    return isinstance(error, KafkaException) and error_of(error).code() in _DENIED


def _partition(told: Any) -> PartitionSeen:
    leader = -1 if told.leader is None else told.leader.id
    return PartitionSeen(leader, len(told.replicas), len(told.isr))


def _allowed(operations: Sequence[Any] | None) -> frozenset[str] | None:
    """Return the names of operations that rights are made of."""
    if operations is None:
        return None
    if AclOperation.ALL in operations:
        return frozenset(OPERATIONS)
    return frozenset(_NAME_OF[each] for each in operations if each in _NAME_OF)
