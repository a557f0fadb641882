"""The topics of a database, from their one description."""

from __future__ import annotations

from typing import Any, Final

from infra.reference.markdown import amount, code, sentence, span, table
from leasehold.model.topics import Topic, Topics

DATABASE: Final = "demo"
_BY_TABLE: Final = 7
_WEEK_MS: Final = 7 * 24 * 3_600_000


def topics() -> str:
    """Return a table of the topics of a database called `demo`."""
    ours = Topics(DATABASE)
    rows: list[tuple[str, str, str, str]] = []
    for name, member in vars(Topics).items():
        if isinstance(member, property):
            topic: Any = getattr(ours, name)
        elif name == "rows":
            topic = ours.rows(_BY_TABLE)
        elif name == "feed":
            topic = ours.feed(f"{DATABASE}.feed.SCHEMA.TABLE", 1, _WEEK_MS)
        elif name == "held":
            topic = ours.held(f"{DATABASE}.feed.SCHEMA.TABLE")
        elif name == "activity_changelog":
            topic = ours.activity_changelog("TABLE")
        else:
            continue
        if isinstance(topic, Topic):
            rows.append((_name(topic), str(topic.partitions), _kept(topic), _words(member)))
    largest = int(ours.log.config["max.message.bytes"])
    return (
        table(("topic", "partitions", "kept", "what"), rows)
        + f"\n\nThe largest message of any of them: {amount(largest, 'bytes')}."
    )


def _name(topic: Topic) -> str:
    return code(topic.name.replace(str(_BY_TABLE), "TABLE_ID"))


def _words(member: Any) -> str:
    return sentence((member.fget if isinstance(member, property) else member).__doc__ or "")


def _kept(topic: Topic) -> str:
    if topic.config["cleanup.policy"] == "compact,delete":
        kept = span(int(topic.config["retention.ms"]))
        return f"the newest record of each key, and that for {kept}"
    if topic.config["cleanup.policy"] == "compact":
        absent = span(int(topic.config["delete.retention.ms"]))
        return f"the newest record of each key (that a key is gone: {absent})"
    retention_ms = int(topic.config["retention.ms"])
    if retention_ms >= 0:
        return span(retention_ms)
    by_offset = "retention.bytes" in topic.config
    return "until every reader has it (deleted by offset)" if by_offset else "for ever"
