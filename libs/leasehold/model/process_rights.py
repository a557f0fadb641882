"""The rights that each kind of process needs on Kafka and Redis, as one table.

`leasehold setup-acls` applies it, docs/how-to/secure.md shows it, and tests run processes with just
these rights on a broker and a Redis that deny all else. PURE: only values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from leasehold.model.topics import ACTIVITY_TABLES, Topics

TOPIC: Final = "topic"
GROUP: Final = "group"
TRANSACTIONAL_ID: Final = "transactional id"

READ: Final = "Read"
WRITE: Final = "Write"
CREATE: Final = "Create"
DELETE: Final = "Delete"
DESCRIBE: Final = "Describe"
DESCRIBE_CONFIGS: Final = "DescribeConfigs"

ROWS: Final = "rows.*"
FEEDS: Final = "feed.*"
HELD: Final = "held.*"
ALL_TOPICS: Final = "*"
NO_GROUP: Final = "leasehold-none"
"""What our consumers name as their group: nobody joins it, and librdkafka looks for its coordinator
all the same."""
CHANGEFEED_ID: Final = "leasehold-changefeed-{database}"
INTAKE_ID: Final = "leasehold-intake.{database}.*"
"""Of intakes of any name. A database's name has no dot, so that none begins as another's."""

ACTIVITY_GROUP: Final = "{database}.activity"
"""Of dashboards, one of which counts at a time."""

LEDGER_READS: Final = (
    *("exists", "hget", "hgetall", "hlen", "scard", "sismember", "smembers"),
    *("zcard", "zrange", "zrangebyscore"),
)
LEDGER_WRITES: Final = ("del", "hdel", "hset", "sadd", "srem", "zadd", "zrem")
SCRIPTS: Final = ("eval", "evalsha", "info")
"""The ledger is one script, which asks Redis for its run id."""
CONNECTION: Final = ("ping", "select")

ACKS: Final = "acks"
LOG: Final = "log"
REQUESTS: Final = "requests"
ANSWERS: Final = "answers"


class KafkaRight(NamedTuple):
    """An operation on a resource; `prefixed`: on each whose name begins with `name`."""

    resource: str
    name: str
    prefixed: bool
    operation: str


class RedisRules(NamedTuple):
    """What ACL SETUSER takes behind a user's name and password. Each of `selectors` allows commands
    on keys or channels of its own (Redis 7)."""

    commands: tuple[str, ...]
    selectors: tuple[tuple[str, ...], ...]


class Besides(NamedTuple):
    """Rights that are neither to read nor to write a topic."""

    operations: tuple[str, ...]
    name: str
    resource: str = TOPIC


@dataclass(frozen=True, slots=True)
class ProcessKind:
    """A kind of process and what it needs. Names of topics stand without the database's; `rows.*`
    are those of all tables."""

    name: str
    who: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    besides: tuple[Besides, ...] = ()
    reads_ledger: bool = False
    changes_ledger: bool = False
    publishes: tuple[str, ...] = ()
    subscribes: tuple[str, ...] = ()
    consumes: bool = True
    """Whether it has a consumer of ours, which names the group that nobody joins."""

    def kafka_rights(self, database: str) -> tuple[KafkaRight, ...]:
        """Return its rights on the topics of a database, each once, in a fixed order. Raises
        ConfigurationError for a name that can't be a database's."""
        Topics(database)
        return tuple(dict.fromkeys(self._kafka_rights(database)))

    def _kafka_rights(self, database: str) -> Iterator[KafkaRight]:
        for operation, names in ((READ, self.reads), (WRITE, self.writes)):
            for name in names:
                yield _on_topic(database, name, operation)
                yield _on_topic(database, name, DESCRIBE)
        for operations, name, resource in self.besides:
            for operation in operations:
                if resource == TOPIC:
                    yield _on_topic(database, name, operation)
                else:
                    yield _named(resource, name.format(database=database), operation)
        if self.consumes:
            yield KafkaRight(GROUP, NO_GROUP, False, DESCRIBE)

    def redis_rules(self, database: str) -> RedisRules | None:
        """Return what its user may do in Redis; None where it needs none."""
        selectors: list[tuple[str, ...]] = []
        ledger = f"leasehold:{{{database}}}"
        if self.reads_ledger:
            # The script is given the prefix itself as its key, and makes its keys from it.
            commands = (*SCRIPTS, *LEDGER_READS, *(LEDGER_WRITES if self.changes_ledger else ()))
            selectors.append((f"~{ledger}", f"~{ledger}:*", *(f"+{each}" for each in commands)))
        # A master ends to receive requests while it goes on receiving acknowledgements.
        subscribe = (
            ("+subscribe", "+unsubscribe") if REQUESTS in self.subscribes else ("+subscribe",)
        )
        for commands, names in ((("+publish",), self.publishes), (subscribe, self.subscribes)):
            if names:
                channels = (f"&{ledger}:{name}:*" for name in names)
                selectors.append((*commands, *channels))
        if not selectors:
            return None
        return RedisRules(tuple(f"+{each}" for each in CONNECTION), tuple(selectors))


def _named(resource: str, name: str, operation: str) -> KafkaRight:
    return KafkaRight(resource, name.removesuffix("*"), name.endswith("*"), operation)


def _on_topic(database: str, name: str, operation: str) -> KafkaRight:
    whole = f"{database}.{name}"
    return KafkaRight(TOPIC, whole.removesuffix("*"), whole.endswith("*"), operation)


ACTIVITY: Final = ("activity", *(f"activity-{table}-changelog" for table in ACTIVITY_TABLES))
FOR_STATUS: Final = ("log", "acks", "versions", "versions-history", "jobs", "notices")
ENDS_OF_ALL: Final = Besides((DESCRIBE,), ALL_TOPICS)
"""How many records are there is asked of every topic."""

KINDS: Final[tuple[ProcessKind, ...]] = (
    ProcessKind(
        "topics",
        "`leasehold topics`",
        besides=(Besides((CREATE, DESCRIBE, DESCRIBE_CONFIGS), ALL_TOPICS),),
        consumes=False,
    ),
    ProcessKind(
        "master",
        "candidates for master",
        reads=("log", "requests", "backfill", "acks"),
        writes=("log", "acks", "results", "conflicts", "notices", "audit"),
        besides=(
            # How acknowledged writes could be lost is looked at as it starts.
            Besides((DELETE, DESCRIBE_CONFIGS), "log"),
            Besides((DELETE, DESCRIBE_CONFIGS), "requests"),
            Besides((DELETE,), "backfill"),
        ),
        reads_ledger=True,
        changes_ledger=True,
        publishes=(ACKS, LOG, ANSWERS),
        subscribes=(ACKS, LOG, REQUESTS),
    ),
    ProcessKind(
        "replicant",
        "replicants, embedded replicas",
        reads=(
            *("log", "acks", "versions", "notices", "results", "jobs"),
            *("versions-history", "dead-letter"),
            "changefeed",  # which feeds a schema registry is to be asked about
        ),
        writes=("acks", "requests", "audit"),
        besides=(ENDS_OF_ALL,),  # `leasehold.nodes` and its like, in SQL
        reads_ledger=True,
        changes_ledger=True,
        publishes=(ACKS, REQUESTS),
        subscribes=(LOG, ANSWERS),
    ),
    ProcessKind(
        "changefeed",
        "changefeed",
        reads=("log", "jobs", "changefeed", "feeds", "versions", ROWS, HELD),
        writes=(
            *(ROWS, "versions", "versions-history", "jobs", "dead-letter", "changefeed"),
            *("acks", FEEDS, HELD),
        ),
        besides=(
            Besides((CREATE,), "changefeed"),
            Besides((CREATE,), "feeds"),
            Besides((CREATE,), FEEDS),
            Besides((CREATE, DELETE), ROWS),
            Besides((CREATE, DELETE), HELD),
            Besides((WRITE, DESCRIBE), CHANGEFEED_ID, TRANSACTIONAL_ID),
        ),
    ),
    ProcessKind(
        "spark",
        "Spark's driver",
        reads=("jobs", "conflicts", "versions", ROWS),
        writes=("backfill", "requests", "jobs", "acks"),
    ),
    ProcessKind(
        "producer",
        "`ChangeProducer`, `leasehold submit`, `ddl`",
        reads=("results",),
        writes=("requests",),
        publishes=(REQUESTS,),
        subscribes=(ANSWERS,),
    ),
    ProcessKind(
        "agent",
        "`Agent`",
        reads=("versions", "notices"),
        writes=("acks",),
        reads_ledger=True,
        changes_ledger=True,
    ),
    ProcessKind(
        "subscriber",
        "`Subscriber`",
        reads=("versions", "notices", ROWS),
        writes=("acks",),
        reads_ledger=True,
        changes_ledger=True,
    ),
    ProcessKind(
        "status",
        "`leasehold status`, `top`, `leases`, `versions`",
        reads=(*FOR_STATUS, "requests", "backfill"),  # how large these are
        besides=(ENDS_OF_ALL,),
        reads_ledger=True,
    ),
    ProcessKind(
        "dashboard",
        "dashboard",
        reads=(*FOR_STATUS, "requests", "backfill", "dead-letter", *ACTIVITY),
        writes=("acks", *ACTIVITY),
        besides=(
            ENDS_OF_ALL,
            *(Besides((CREATE,), name) for name in ACTIVITY),
            Besides((READ, DESCRIBE), ACTIVITY_GROUP, GROUP),
        ),
        reads_ledger=True,
    ),
    ProcessKind(
        "doctor",
        "`leasehold doctor`",
        reads=(*FOR_STATUS, "requests", "backfill"),
        besides=(ENDS_OF_ALL, Besides((DESCRIBE_CONFIGS,), ALL_TOPICS)),
        reads_ledger=True,
    ),
    ProcessKind(
        "operator",
        "`leasehold jobs`, `ddl`, `clock`, `upgrade`, `dead-letter`, `intake`",
        reads=(*FOR_STATUS, "dead-letter", "results", "changefeed", "intake"),
        writes=("requests",),
        besides=(ENDS_OF_ALL,),
        reads_ledger=True,
        publishes=(REQUESTS,),
        subscribes=(ANSWERS,),
    ),
    ProcessKind(
        "check",
        "`leasehold check`",
        reads=(*FOR_STATUS, "results"),
        writes=("requests",),
        besides=(ENDS_OF_ALL,),
        reads_ledger=True,
        publishes=(REQUESTS,),
        subscribes=(ANSWERS,),
    ),
    ProcessKind(
        "feeds",
        "`leasehold feed`, whoever signals for snapshots",
        reads=("changefeed",),
        writes=("feeds",),
    ),
    ProcessKind(
        "intake",
        "`leasehold intake run` (and Read on the topics that it reads)",
        reads=("versions", "intake"),
        writes=("requests", "dead-letter", "intake", "acks"),
        besides=(
            Besides((CREATE,), "intake"),
            Besides((WRITE, DESCRIBE), INTAKE_ID, TRANSACTIONAL_ID),
        ),
    ),
    ProcessKind("backup", "`leasehold backup create`", reads=("log", "acks")),
    ProcessKind(
        "restore",
        "`leasehold backup restore`, on the new database",
        writes=("log", "jobs", "versions", "versions-history", "changefeed", ROWS),
        # What it has made is removed again where it fails.
        besides=(Besides((CREATE, DELETE, DESCRIBE), ALL_TOPICS),),
        consumes=False,
        reads_ledger=True,  # is it one that nobody has used?
    ),
    ProcessKind("consumer", "a stream processor that reads feeds", reads=(FEEDS,), consumes=False),
    ProcessKind("audit", "`leasehold audit`", reads=("audit",)),
    ProcessKind(
        "follower",
        "a follower in any language",
        reads=("versions-history", "versions", ROWS),
    ),
)

KIND_NAMED: Final[Mapping[str, ProcessKind]] = {kind.name: kind for kind in KINDS}
"""By the name that `leasehold setup-acls` takes."""


def is_of_database(right: KafkaRight, database: str) -> bool:
    """Return whether a right is on resources of this database and of nothing else."""
    if right.resource == TRANSACTIONAL_ID:
        ids = {_named(right.resource, each, "") for each in (CHANGEFEED_ID, INTAKE_ID)}
        return right._replace(operation="") in {
            each._replace(name=each.name.format(database=database)) for each in ids
        }
    return right.resource in (TOPIC, GROUP) and right.name.startswith(f"{database}.")


def is_wider(right: KafkaRight, database: str) -> bool:
    """Return whether a right is on topics of this database and on others, too."""
    everything = not right.prefixed and right.name == "*"
    begins = right.prefixed and f"{database}.".startswith(right.name)
    return right.resource == TOPIC and (everything or (begins and right.name != f"{database}."))
