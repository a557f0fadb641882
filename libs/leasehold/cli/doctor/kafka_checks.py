"""Checks of the topics, of what they keep, and of rights on them. PURE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from leasehold.adapters.kafka.cluster_look import KafkaSeen, TopicSeen, rows_topics
from leasehold.adapters.kafka.durability import UNCLEAN, WRITES_ACKNOWLEDGED, find_weaknesses
from leasehold.cli.doctor.facts import Facts
from leasehold.cli.doctor.finding import Check, Problem, Unseen, fail, unseen, warn
from leasehold.cli.output import clock_time
from leasehold.model.process_rights import TOPIC
from leasehold.model.topics import Topic, Topics

LETTERS_RECENT_US: Final = 24 * 3600 * 1_000_000
MIB: Final = 1 << 20
WARN_PERCENT: Final = 80
"""Of a budget."""
_KEEP_WHOLE: Final = ("cleanup.policy", "retention.ms", "retention.bytes")
_UPPER: Final = ("retention.ms", "retention.bytes", "max.message.bytes", WRITES_ACKNOWLEDGED)
"""Settings of which more than is declared does no harm; -1 is without a limit."""
MAKE: Final = "leasehold topics makes it"
SAID_MAX: Final = 20
"""Of so many topics each thing is told by name."""


def _kafka(facts: Facts) -> KafkaSeen:
    assert not isinstance(facts.kafka, Unseen), "the check needs it"
    return facts.kafka


def described(facts: Facts) -> list[Topic]:
    """Return the declarations of all topics that were looked at."""
    names = sorted(_kafka(facts).topics)
    return [*facts.topics.all_static(), *rows_topics(facts.topics, names)]


def judge_topics(facts: Facts) -> Iterator[Problem]:
    """Yield where topics are not as they are declared in model/topics.py."""
    seen, kept_whole = _kafka(facts).topics, _kept_whole(facts.topics)
    hidden: list[str] = []
    for topic in described(facts):
        found = seen.get(topic.name, TopicSeen(missing=True))
        if found.denied:
            hidden.append(topic.name)
            continue
        if found.missing:
            yield fail(
                f"there is no topic {topic.name}",
                f"{MAKE}; if it was there before, docs/how-to/recover-a-lost-log.md first",
            )
            continue
        if len(found.partitions) != topic.partitions:
            yield fail(
                f"{topic.name} has {len(found.partitions)} partitions, not {topic.partitions}",
                "delete and make it anew while nothing runs; a partition can't be taken away",
            )
        if found.settings is None:
            hidden.append(topic.name)
            continue
        yield from _drift(topic, found.settings, whole=topic.name in kept_whole)
    if hidden:
        yield unseen(
            f"not allowed to look at {_some(hidden)} or their settings",
            "run this as somebody who may Describe and DescribeConfigs (leasehold setup-acls"
            " --doctor PRINCIPAL)",
        )


def _kept_whole(topics: Topics) -> frozenset[str]:
    return frozenset(each.name for each in (topics.log, topics.requests, topics.backfill))


def _drift(topic: Topic, settings: Mapping[str, str | None], *, whole: bool) -> Iterator[Problem]:
    """Yield settings that differ from those declared, with what comes of it."""
    for name, wanted in topic.config.items():
        found = settings.get(name)
        if name in (UNCLEAN, WRITES_ACKNOWLEDGED) or found == wanted or found is None:
            continue  # those two are for `durability`
        if name in _UPPER and _is_more(found, wanted):
            continue
        change = (
            "kafka-configs.sh --alter --entity-type topics --entity-name"
            f" {topic.name} --add-config {name}={wanted}"
        )
        words = f"{topic.name} has {name}={found}, not {wanted}"
        if name in _KEEP_WHOLE and (whole or name == "cleanup.policy"):
            yield fail(f"{words}: the broker may delete what is still needed", change)
        elif name == "max.message.bytes":
            yield fail(f"{words}: records that the master makes may be refused", change)
        else:
            yield warn(words, change)


def _is_more(found: str, wanted: str) -> bool:
    try:
        have, want = int(found), int(wanted)
    except ValueError:
        return False
    return have == -1 or (want != -1 and have >= want)


def judge_replicas(facts: Facts) -> Iterator[Problem]:
    """Yield partitions that no broker leads, and those that lack a replica now."""
    headless: list[str] = []
    behind: list[str] = []
    for name, topic in sorted(_kafka(facts).topics.items()):
        if any(part.leader < 0 for part in topic.partitions):
            headless.append(name)
        elif any(part.insync < part.replicas for part in topic.partitions):
            behind.append(name)
    if headless:
        yield fail(
            f"no broker leads a partition of {_some(headless)}: nobody reads or writes it",
            "start the brokers that keep it (docs/how-to/runbooks/kafka-away.md)",
        )
    if behind:
        yield warn(
            f"a replica of {_some(behind)} is away or behind: one broker less is in between",
            "look at the brokers' logs and disks",
        )


def judge_kafka_durability(facts: Facts) -> Iterator[Problem]:
    """Yield how a write that was acknowledged could be lost."""
    topics, kafka = facts.topics, _kafka(facts)
    for topic in (topics.log, topics.requests):
        seen = kafka.topics.get(topic.name)
        if seen is not None and seen.partitions:
            yield from durability_of(topic.name, seen, kafka.brokers)


def durability_of(name: str, seen: TopicSeen, brokers: int) -> Iterator[Problem]:
    """Yield how records of one topic could be lost that were acknowledged."""
    for weakness in find_weaknesses(name, seen, brokers):
        yield warn(*weakness)


def judge_rights(facts: Facts) -> Iterator[Problem]:
    """Yield rights on topics that this user lacks for his kind of process."""
    kind, database = facts.kind, facts.topics.database
    seen = _kafka(facts).topics
    unsaid: list[str] = []
    for right in kind.kafka_rights(database):
        if right.resource != TOPIC:
            continue
        for name, topic in sorted(seen.items()):
            of_it = name.startswith(right.name) if right.prefixed else name == right.name
            if not of_it or topic.missing:
                continue
            if topic.denied or (topic.allowed is not None and right.operation not in topic.allowed):
                yield fail(
                    f"{right.operation} on {name} is not allowed to this user, and"
                    f" {kind.who.replace('`', '')} needs it",
                    f"leasehold setup-acls --{kind.name} PRINCIPAL",
                )
            elif topic.allowed is None:
                unsaid.append(name)
    if unsaid:
        yield unseen(
            f"the brokers do not say what is allowed on {_some(sorted(set(unsaid)))}",
            "Kafka says it from release 2.3 on",
        )


def judge_log(facts: Facts) -> Iterator[Problem]:
    """Yield a log, and queues, that are larger than their budget."""
    kafka, budget = _kafka(facts), facts.log_budget_bytes
    log = facts.topics.log.name
    for name, span in kafka.spans.items():
        since = f" since {clock_time(span.first_us)}" if span.first_us else ""
        words = (
            f"{name} has {span.records:,} records, about {span.bytes_about // MIB:,} MiB,"
            f"{since} from offset {span.first:,} on"
        )
        to_do = (
            "who holds it: a node or changefeed that was away for less than an hour, a copy of a"
            " store, no snapshot server (leasehold status); or raise LEASEHOLD_LOG_BUDGET_MB"
            if name == log
            else "is there a master, and does it decide (leasehold status)?"
        )
        if budget and span.bytes_about >= budget:
            yield fail(f"{words}: more than LEASEHOLD_LOG_BUDGET_MB", to_do)
        elif budget and span.bytes_about * 100 >= budget * WARN_PERCENT:
            yield warn(f"{words}: more than {WARN_PERCENT} % of LEASEHOLD_LOG_BUDGET_MB", to_do)


def judge_letters(facts: Facts) -> Iterator[Problem]:
    """Yield that there are new dead letters."""
    at_us = _kafka(facts).letter_us
    if at_us is None:
        yield unseen(
            "not allowed to ask when the newest dead letter was written",
            "leasehold setup-acls --doctor PRINCIPAL",
        )
    elif at_us and facts.now_us - at_us < LETTERS_RECENT_US:
        yield warn(
            f"a request became a dead letter at {clock_time(at_us)}: it was not applied",
            "leasehold dead-letter list; then resubmit it, or leave it",
        )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SAID_MAX} more" if len(names) > SAID_MAX else ""
    return ", ".join(names[:SAID_MAX]) + more


KAFKA_CHECKS: Final = (
    Check("topics", "topics and their settings against model/topics.py", ("kafka",), judge_topics),
    Check("replicas", "leaders and replicas of each partition", ("kafka",), judge_replicas),
    Check("rights", "what this user may do with each topic", ("kafka",), judge_rights),
    Check(
        "log",
        "begin, age and size of the log and of the queues (LEASEHOLD_LOG_BUDGET_MB)",
        ("kafka",),
        judge_log,
    ),
    Check("dead letters", "requests of the last day that were given up", ("kafka",), judge_letters),
)
DURABILITY: Final = Check(
    "log's durability",
    "whether an acknowledged write could be lost with a broker",
    ("kafka",),
    judge_kafka_durability,
)
