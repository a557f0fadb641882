"""The gate between a run's chunks and the queue: how fast they pass, whether they still may, and
whether there should be more of them already."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Final

from leasehold.pipeline.chunks import CHUNK_ROWS_DEFAULT, rows_per_chunk
from leasehold.pipeline.pacing import Bucket, refill, take_rows, wait_ns

NEWS_S: Final = 10.0
"""Longest without a word of rows that were decided: a changefeed that is away holds nothing up."""


class RunStopped(Exception):
    """The job was paused or ended while its run was sending; what is unsent comes again."""


class RateLimiter:
    """Shared by the thread that follows the jobs topic (`follow`, `close`) and the one that sends.

    A change of rate or a stop takes effect at the next chunk, waking a sender that waits.
    """

    def __init__(self, settings: Mapping[str, int]) -> None:
        self._changed = threading.Condition()
        self._closed = False
        self._beside_users = False
        self._decided = 0
        self._settings: dict[str, int] = {}
        self._rows_per_second = 0
        self._chunk_rows = CHUNK_ROWS_DEFAULT
        self._bucket = Bucket(0.0, time.monotonic_ns())
        self._set(settings)

    def _set(self, settings: Mapping[str, int]) -> None:
        """Take a job's settings: rows_per_second (0 = no limit), chunk_rows."""
        with self._changed:
            self._settings = dict(settings)
            if self._rows_per_second > 0:  # what was gained so far was gained at the old rate
                self._bucket = refill(self._bucket, self._rows_per_second, time.monotonic_ns())
            else:
                self._bucket = Bucket(0.0, time.monotonic_ns())
            self._rows_per_second = max(0, settings.get("rows_per_second", 0))
            self._chunk_rows = settings.get("chunk_rows", 0) or CHUNK_ROWS_DEFAULT
            self._changed.notify_all()

    def follow(self, settings: Mapping[str, int], decided: int, *, beside_users: bool) -> None:
        """Take what the job's newest event tells. `decided`: rows of this run that the log has."""
        with self._changed:
            if settings != self._settings:
                self._set(settings)
            if (decided, beside_users) != (self._decided, self._beside_users):
                self._decided, self._beside_users = decided, beside_users
                self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait_closed(self, timeout_s: float) -> None:
        """Return when the gate is closed, or after `timeout_s`."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed, timeout_s)

    def is_closed(self) -> bool:
        with self._changed:
            return self._closed

    @property
    def beside_users(self) -> bool:
        with self._changed:
            return self._beside_users

    def wait_decided(self, rows: int) -> None:
        """Return, beside users, when the log has that many rows of this run: until then it has
        enough to do. Raises RunStopped once the gate is closed."""
        with self._changed:
            while not self._closed:
                enough = self._decided >= rows or not self._beside_users
                if enough or not self._changed.wait(NEWS_S):
                    return
            raise RunStopped

    @property
    def rows_per_second(self) -> int:
        with self._changed:
            return self._rows_per_second

    @property
    def rows_per_chunk(self) -> int:
        with self._changed:
            return rows_per_chunk(self._chunk_rows, self._rows_per_second)

    def wait_turn(self, rows: int) -> None:
        """Return when `rows` more may be sent. Raises RunStopped once the gate is closed."""
        with self._changed:
            while True:
                if self._closed:
                    raise RunStopped
                if self._rows_per_second == 0:
                    return
                now_ns = time.monotonic_ns()
                self._bucket = refill(self._bucket, self._rows_per_second, now_ns)
                pause_ns = wait_ns(self._bucket, self._rows_per_second)
                if pause_ns == 0:
                    self._bucket = take_rows(self._bucket, rows)
                    return
                self._changed.wait(pause_ns / 1e9)
