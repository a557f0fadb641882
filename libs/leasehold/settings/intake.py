"""Settings of an intake: which topics of others become change requests of which tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from leasehold.model.errors import ConfigurationError
from leasehold.settings.setting import choice, integer, name, setting

ROUTES_MAX: Final = 200
TOPIC_CHARACTERS_MAX: Final = 249
DEBEZIUM, ROWS = "debezium", "rows"
JSON, REGISTRY, AUTO = "json", "registry", "auto"
EARLIEST, LATEST = "earliest", "latest"
OFF, BEFORE = "off", "before"
REFUSE, IGNORE = "refuse", "ignore"


def routes(text: str) -> str:
    """Check `topic=table` with commas between them."""
    try:
        read_routes(text)
    except ConfigurationError as error:
        raise ValueError(error.message) from None
    return text


def read_routes(text: str) -> Mapping[str, str]:
    """Return tables by topic. Raises ConfigurationError."""
    found: dict[str, str] = {}
    wanted = "topic=table, several with commas between them, each topic once"
    for part in text.split(","):
        topic, equals, table = (each.strip() for each in part.partition("="))
        allowed = topic.replace(".", "").replace("_", "").replace("-", "")
        good = allowed.isascii() and (allowed.isalnum() or not allowed)
        if not (topic and equals and table and good) or len(topic) > TOPIC_CHARACTERS_MAX:
            raise ConfigurationError(wanted)
        if topic in found:
            raise ConfigurationError(wanted)
        found[topic] = table.removeprefix("public.")
    if len(found) > ROUTES_MAX:
        raise ConfigurationError(f"{wanted}; at most {ROUTES_MAX} of them")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeSettings:
    """What an intake reads and how. Several of them work beside each other under names of their
    own."""

    name: str = setting(
        "LEASEHOLD_INTAKE",
        "name of the intake, under which it keeps its places; a second one of the name takes over",
        default="intake",
        parse=name,
    )
    routes: str | None = setting(
        "LEASEHOLD_INTAKE_ROUTES",
        "what it reads: topic=table, several with commas between them",
        default=None,
        parse=routes,
    )
    layout: str = setting(
        "LEASEHOLD_INTAKE_LAYOUT",
        f"{DEBEZIUM}: changes in Debezium's envelope; {ROWS}: each message is a row as it is now,"
        " one without a value a row that is gone",
        default=DEBEZIUM,
        parse=choice(DEBEZIUM, ROWS),
    )
    encoding: str = setting(
        "LEASEHOLD_INTAKE_ENCODING",
        f"{JSON}, with or without schemas; {REGISTRY}: Confluent's wire format, Avro or JSON by"
        f" LEASEHOLD_REGISTRY; {AUTO}: the latter where a message begins with a zero byte",
        default=AUTO,
        parse=choice(AUTO, JSON, REGISTRY),
    )
    verify: str = setting(
        "LEASEHOLD_INTAKE_VERIFY",
        f"{OFF}: an event says how its row is from now on; {BEFORE}: it holds for a row that is as"
        " its `before` says, and is a dead letter for any other",
        default=OFF,
        parse=choice(OFF, BEFORE),
    )
    begin: str = setting(
        "LEASEHOLD_INTAKE_FROM",
        f"where a topic is begun that has no place yet: {EARLIEST} or {LATEST}",
        default=EARLIEST,
        parse=choice(EARLIEST, LATEST),
    )
    units: str = setting(
        "LEASEHOLD_INTAKE_UNITS",
        "unit of times of day and timestamps that are whole numbers in JSON without schemas:"
        " micros, millis or nanos",
        default="micros",
        parse=choice("micros", "millis", "nanos"),
    )
    unknown_columns: str = setting(
        "LEASEHOLD_INTAKE_UNKNOWN_COLUMNS",
        f"an event with a field that the table has no column for: {REFUSE} it, as a dead letter, or"
        f" {IGNORE} the field",
        default=REFUSE,
        parse=choice(REFUSE, IGNORE),
    )
    linger_ms: int = setting(
        "LEASEHOLD_INTAKE_LINGER_MS",
        "longest that events wait for more to share their transaction",
        default=50,
        parse=integer(0, 10_000, "milliseconds"),
    )
    events_max: int = setting(
        "LEASEHOLD_INTAKE_EVENTS_MAX",
        "events of one transaction",
        default=2_000,
        parse=integer(1, 20_000),
    )

    def tables(self) -> Mapping[str, str]:
        """Return tables by topic. Raises ConfigurationError where none are said."""
        if self.routes is None:
            raise ConfigurationError(
                "LEASEHOLD_INTAKE_ROUTES is not set: it says which topics are read, topic=table"
            )
        return read_routes(self.routes)
