"""Checks that run beside the apply loop, each on a snapshot opened when it was asked for."""

from __future__ import annotations

from collections.abc import Sequence

from leasehold.adapters.sqlite_snapshot import Readers
from leasehold.model.records import CheckReport


class Checker:
    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    def start(self, subject: bytes, table_ids: Sequence[int], element_id: int | None) -> None:
        raise NotImplementedError

    def finished(self) -> Sequence[CheckReport]:
        return ()

    def close(self) -> None:
        pass
