"""What every process tells of itself: its version, its clients of Kafka and Redis, its log."""

from __future__ import annotations

from collections.abc import Iterator

from leasehold.adapters.kafka import client as kafka_client
from leasehold.adapters.os.compiled import version_line
from leasehold.adapters.os.log_lines import line_handler
from leasehold.adapters.redis import connection as redis_connection
from leasehold.model import metrics
from leasehold.model.measures import Sample


def process_samples() -> Iterator[Sample]:
    """Yield what is known now. A client stands for all of its name: one that is troubled counts."""
    version, _, how = version_line().removeprefix("leasehold ").partition(", ")
    yield Sample(metrics.BUILD_INFO, (version, how), 1)
    handler = line_handler()
    if handler is not None:
        yield from handler.samples()
    up: dict[str, bool] = {}
    errors: dict[str, int] = {}
    for watch in kafka_client.LIVE.list():
        name = watch.client_id
        up[name] = up.get(name, True) and not watch.is_troubled
        errors[name] = errors.get(name, 0) + watch.errors
    for name, works in up.items():
        yield Sample(metrics.KAFKA_UP, (name,), float(works))
        yield Sample(metrics.KAFKA_TROUBLES, (name,), errors[name])
    carried: dict[str, bool] = {}
    for line in redis_connection.LIVE.list():
        if line.up or line.is_troubled:  # else nobody wants it now
            works = line.up and not line.is_troubled
            carried[line.what] = carried.get(line.what, True) and works
    for what, works in carried.items():
        yield Sample(metrics.REDIS_UP, (what,), float(works))
