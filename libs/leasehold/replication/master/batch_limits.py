"""How much a record of the log may hold, and each commit in it (L8)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final

from leasehold.catalog.catalog import Catalog
from leasehold.model.errors import RequestTooLarge
from leasehold.model.ports import Codec
from leasehold.model.records.log import Commit
from leasehold.model.topics import MESSAGE_BYTES_MAX, PUBLISHED_BYTES_MAX
from leasehold.replication.changefeed import row_images

RECORD_BYTES_MAX: Final = 900_000  # below Kafka's default message limit of 1 MiB, with its headers
LARGE_OPERATIONS: Final = 2_000
SLICE_OPERATIONS: Final = 1_000
OPERATIONS_MAX: Final = 4_000
LARGE_BYTES_MAX: Final = 32 * 1024 * 1024
LARGE_ZIPPED_BYTES_MAX: Final = MESSAGE_BYTES_MAX - 64 * 1024
CATALOG_BYTES_MAX: Final = PUBLISHED_BYTES_MAX // 2
"""What a schema change may write at first: its job is published whole at each step, with what it
finds on the way."""
RETRIES_MAX: Final = 10
IMAGES_LOOKED_AT: Final = 100
"""Of a commit's rows, between two looks at the clock."""
HEADER_BYTES: Final = 2_048
"""What a record takes beside its commits and refusals."""


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """The limits of a batch.

    `requests_max` are decided in well below a lease's renewal, since grants ride in the record, and
    in about the time that nodes and clients take for the record before, so that all have work.
    A commit that is larger than a record has one of its own, of at most `large_bytes_max`, and of
    at most `large_zipped_bytes_max` as it travels; one of more than `large_operations` is verified
    `slice_operations` at a time, or fewer where they take long, with heartbeats and grants between
    them; so is one of fewer that takes long. No further request is taken behind `operations_max`:
    what is refused takes time, too, and no bytes.
    """

    record_bytes_max: int = RECORD_BYTES_MAX
    large_operations: int = LARGE_OPERATIONS
    slice_operations: int = SLICE_OPERATIONS
    large_bytes_max: int = LARGE_BYTES_MAX
    large_zipped_bytes_max: int = LARGE_ZIPPED_BYTES_MAX
    operations_max: int = OPERATIONS_MAX
    requests_max: int = 150
    attempts_max: int = RETRIES_MAX


class CommitLimits:
    """Judges whether a commit may be in the log at all; changes nothing."""

    def __init__(self, settings: BatchSettings, codec: Codec) -> None:
        self._settings = settings
        self._codec = codec

    def needs_own_record(self, packed: bytes) -> bool:
        """Whether the commit is larger than a record that holds others, too."""
        return len(packed) + HEADER_BYTES > self._settings.record_bytes_max

    def find_excess(
        self, commit: Commit, packed: bytes, lsn: int, catalog: Catalog, *, alone: bool
    ) -> RequestTooLarge | None:
        """Return why the commit can't be in the log, or never be published; None where it can.
        `alone`: it has a record of its own."""
        looked = self.find_excess_in_slices(commit, packed, lsn, catalog, alone=alone)
        while True:
            try:
                next(looked)
            except StopIteration as end:
                found: RequestTooLarge | None = end.value
                return found

    def find_excess_in_slices(
        self, commit: Commit, packed: bytes, lsn: int, catalog: Catalog, *, alone: bool
    ) -> Generator[None, None, RequestTooLarge | None]:
        """Return what `find_excess` does, and yield behind some rows each."""
        excess = self._exceeds_record(packed) if alone else None
        if excess is not None:
            return excess
        return (yield from self._exceeds_message(commit, packed, lsn, catalog))

    def _exceeds_record(self, packed: bytes) -> RequestTooLarge | None:
        settings = self._settings
        words = f"the change composes to {len(packed)} bytes"
        if len(packed) > settings.large_bytes_max:
            return RequestTooLarge(
                f"{words}; at most {settings.large_bytes_max} are taken: split the request"
            )
        zipped = len(packed)
        if zipped > settings.large_zipped_bytes_max:
            zipped = self._codec.zipped_bytes(packed)
        if zipped > settings.large_zipped_bytes_max:
            return RequestTooLarge(
                f"{words}, {zipped} when packed; at most {settings.large_zipped_bytes_max} fit a"
                " record of the log: split the request"
            )
        return None

    def _exceeds_message(
        self, commit: Commit, packed: bytes, lsn: int, catalog: Catalog
    ) -> Generator[None, None, RequestTooLarge | None]:
        """Return why no message of the changefeed has room for a row or a schema change of the
        commit: those are published one by one, and as they are before zlib."""
        if 2 * len(packed) <= CATALOG_BYTES_MAX:  # a row's key is told twice
            return None
        written = sum(len(self._codec.encode(write)) for write in commit.catalog)
        if written > CATALOG_BYTES_MAX:
            return RequestTooLarge(
                f"the schema change is described in {written} bytes; at most {CATALOG_BYTES_MAX}"
                " are taken: make it in several, or with shorter defaults and expressions"
            )
        rows = max(len(commit.changes), 1)
        for start in range(0, rows, IMAGES_LOOKED_AT):
            part = commit._replace(
                changes=commit.changes[start : start + IMAGES_LOOKED_AT],
                backfills=() if start else commit.backfills,
            )
            excess = self._exceeds_of(part, lsn, catalog)
            if excess is not None:
                return excess
            yield
        return None

    def _exceeds_of(self, commit: Commit, lsn: int, catalog: Catalog) -> RequestTooLarge | None:
        most = PUBLISHED_BYTES_MAX
        images: list[Any] = []
        row_images(commit, lsn, images)
        for table_id, key, image in images:
            if image is None:
                continue
            head = self._codec.encode(image._replace(values={}, genids={}))
            size = len(self._codec.encode(image)) + len(head)
            if size > most:
                name = catalog.version(table_id, image.version).name
                return RequestTooLarge(
                    f"row {key!r:.200} of table {name!r} would have {size} bytes; at most {most}"
                    " are taken, since it is published as one message",
                    table=name,
                )
        return None
