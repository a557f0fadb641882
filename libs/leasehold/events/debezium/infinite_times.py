"""What Debezium's connector for PostgreSQL sends for infinity and -infinity: the days, the
microseconds and the text of the two moments that PostgreSQL's JDBC driver has for them."""

from __future__ import annotations

from typing import Final

from leasehold.values.dates import INFINITY

INFINITE_DATES: Final = {INFINITY: (1 << 31) - 1, -INFINITY: -(1 << 31)}
INFINITE_TIMESTAMPS: Final = {
    INFINITY: 9_223_372_036_825_200_000,
    -INFINITY: -9_223_372_036_832_400_000,
}
INFINITE_ZONED: Final = {
    INFINITY: "+292278994-08-16T23:00:00Z",
    -INFINITY: "-292275055-05-16T23:00:00Z",
}
