"""Settings of the changefeed alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from leasehold.settings.setting import integer, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangefeedSettings:
    """How much is published in one Kafka transaction. None of it touches what is published."""

    linger_ms: int = setting(
        "LEASEHOLD_CHANGEFEED_LINGER_MS",
        "longest that images wait for more to share their transaction",
        default=100,
        parse=integer(0, 10_000, "milliseconds"),
    )
    messages_max: int = setting(
        "LEASEHOLD_CHANGEFEED_MESSAGES_MAX",
        "messages of one transaction, reached by whole log records",
        default=20_000,
        parse=integer(1, 100_000),
    )
    position_every_ms: int = setting(
        "LEASEHOLD_CHANGEFEED_POSITION_EVERY_MS",
        "how often the position is stored while nothing is published",
        default=1_000,
        parse=integer(10, 600_000, "milliseconds"),
    )
    rows: Path | None = setting(
        "LEASEHOLD_CHANGEFEED_ROWS",
        "file for the rows of tables that have feeds; without it one that goes with the process,"
        " which each start fills anew from the rows topics",
        default=None,
        parse=Path,
    )
    held_mb: int = setting(
        "LEASEHOLD_FEED_HELD_MB",
        "MB of events that are kept of a feed while its schema registry is away; with more of them"
        " the feed has failed",
        default=1_024,
        parse=integer(1, 1 << 20),
    )
    held_hours: int = setting(
        "LEASEHOLD_FEED_HELD_HOURS",
        "how long they are kept, in hours; after that the feed has failed",
        default=7 * 24,
        parse=integer(1, 24 * 366, "hours"),
    )

    @property
    def held_bytes_max(self) -> int:
        return self.held_mb << 20
