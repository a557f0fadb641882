"""Loads rows of about 100 bytes as change requests: `python -m tests.bench.bulk_loader first
end`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

from leasehold.client.change_producer import ChangeProducer
from leasehold.settings.client import ClientSettings

TABLE: Final = "rows"
CREATE: Final = (
    f"CREATE TABLE {TABLE} (id bigint PRIMARY KEY, city text, words text, day date,"
    " n bigint NOT NULL DEFAULT 0)"
)
INDEX: Final = f"CREATE INDEX rows_city ON {TABLE} (city)"
DROP_INDEX: Final = "DROP INDEX rows_city"
ROWS_PER_REQUEST: Final = 100
CITIES: Final = 1_000
WORDS: Final = "the quick brown fox jumps over the lazy dog and is gone, "
TIMEOUT_S: Final = 600.0


def row(key: int) -> dict[str, Any]:
    """About 100 bytes: 8 key, 12 city, 65 words, 4 day, 8 n."""
    return {
        "city": f"city {key % CITIES:06d}",
        "words": f"{WORDS}{key:08d}",
        "day": "2013-01-01",
        "n": key,
    }


def requests(first: int, end: int) -> Iterator[dict[str, Any]]:
    for start in range(first, end, ROWS_PER_REQUEST):
        yield {
            "transaction": [
                {"table": TABLE, "op": "insert", "key": [key], "values": row(key)}
                for key in range(start, min(start + ROWS_PER_REQUEST, end))
            ]
        }


def main(first: int, end: int) -> None:
    with ChangeProducer(ClientSettings.read()) as producer:
        begin = time.monotonic()
        for request in requests(first, end):
            producer.submit(request)
        if not producer.wait(TIMEOUT_S):
            raise SystemExit(f"requests had no outcome after {TIMEOUT_S:g} s")
        took_s = time.monotonic() - begin
        counts = producer.statistics
    if counts.committed != counts.submitted:
        raise SystemExit(f"not every request was committed: {counts}")
    print(json.dumps({"rows": end - first, "seconds": took_s}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
