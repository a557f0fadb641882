"""Token bucket in rows per second, whose rate may change between any two takes. PURE.

A take never has to fit: it is let through as soon as the bucket is not in debt, and the debt it
leaves makes the next one wait. So a chunk larger than a second's worth of rows still passes, and
the average keeps to the rate (a leaky bucket with deferred payment; Turner, 1986, as a meter).
"""

from __future__ import annotations

from typing import Final, NamedTuple

BURST_MS: Final = 200
"""What an idle bucket may save up: short, so that a run never floods the queue after a pause."""

_SECOND_NS: Final = 1_000_000_000


class Bucket(NamedTuple):
    """The bucket: `rows` that may pass now (negative: in debt), as of `at_ns` on a monotonic
    clock."""

    rows: float
    at_ns: int


def refill(bucket: Bucket, rows_per_second: int, now_ns: int) -> Bucket:
    """Return the bucket at `now_ns`, with the rate that held since `bucket.at_ns`."""
    assert rows_per_second > 0, rows_per_second
    assert now_ns >= bucket.at_ns, (now_ns, bucket.at_ns)
    gained = (now_ns - bucket.at_ns) * rows_per_second / _SECOND_NS
    most = rows_per_second * BURST_MS / 1_000
    return Bucket(min(max(most, 1.0), bucket.rows + gained), now_ns)


def wait_ns(bucket: Bucket, rows_per_second: int) -> int:
    """Return how long until the next take may pass at this rate; 0 = now."""
    if bucket.rows >= 0:
        return 0
    return int(-bucket.rows * _SECOND_NS / rows_per_second) + 1


def take_rows(bucket: Bucket, rows: int) -> Bucket:
    """Return the bucket after `rows` have passed. Only allowed when `wait_ns` is 0."""
    assert rows >= 0, rows
    assert bucket.rows >= 0, bucket
    return Bucket(bucket.rows - rows, bucket.at_ns)
