"""The rights of each kind of process, from their one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from infra.reference.markdown import code, table
from infra.reference.topics import DATABASE
from leasehold.model.process_rights import (
    ALL_TOPICS,
    CHANGEFEED_ID,
    CONNECTION,
    GROUP,
    INTAKE_ID,
    KINDS,
    LEDGER_READS,
    LEDGER_WRITES,
    SCRIPTS,
    TOPIC,
    TRANSACTIONAL_ID,
    ProcessKind,
)


def kafka_rights() -> str:
    """Return a table of the rights on Kafka of each kind of process."""
    heads = ("kind", "who", "reads", "writes", "besides")
    rows = [
        (code(kind.name), kind.who, _names(kind.reads), _names(kind.writes), _besides(kind))
        for kind in KINDS
    ]
    return table(heads, rows)


def redis_rights() -> str:
    """Return a table of the rights in Redis, and which commands their words stand for."""
    heads = ("kind", "ledger", "publishes on", "subscribes to")
    rows = [
        (code(kind.name), _ledger(kind), _channels(kind.publishes), _channels(kind.subscribes))
        for kind in KINDS
        if kind.redis_rules(DATABASE) is not None
    ]
    reads, writes = (_commands((*SCRIPTS, *LEDGER_READS)), _commands(LEDGER_WRITES))
    return (
        table(heads, rows)
        + f"\n\nTo read the ledger is {reads}, to change it also {writes}, on the keys"
        f" {code('~leasehold:{DATABASE}')} and {code('~leasehold:{DATABASE}:*')}. All have"
        f" {_commands(CONNECTION)}."
    )


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(code, names))


def _besides(kind: ProcessKind) -> str:
    grouped: dict[tuple[Sequence[str], str], list[str]] = {}
    for operations, name, resource in kind.besides:
        grouped.setdefault((operations, resource), []).append(_resource(name, resource))
    return "; ".join(
        f"{_joined(operations)} on {', '.join(names)}" for (operations, _), names in grouped.items()
    )


def _resource(name: str, resource: str) -> str:
    if resource == TRANSACTIONAL_ID:
        assert name in (CHANGEFEED_ID, INTAKE_ID), name
        return f"the transactional id {code(name.format(database=DATABASE))}"
    if resource == GROUP:
        return f"the group {code(name.format(database=DATABASE))}"
    assert resource == TOPIC, resource
    return code(f"{DATABASE}.*" if name == ALL_TOPICS else name)


def _joined(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _ledger(kind: ProcessKind) -> str:
    return "changes" if kind.changes_ledger else "reads" if kind.reads_ledger else ""


def _channels(names: Iterable[str]) -> str:
    return ", ".join(code(f"&leasehold:{{DATABASE}}:{name}:*") for name in names)


def _commands(names: Iterable[str]) -> str:
    return code(" ".join(f"+{name}" for name in sorted(names)))
