"""The copies of a node's store that others take now, and from where the log is kept for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock


class CopiesUnderWay:
    """Log positions of the copies that are being made and sent. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._count = 0
        self._copies: dict[int, tuple[str, int]] = {}

    @contextmanager
    def of(self, offset: int, taker: str = "") -> Iterator[None]:
        """Count a copy whose log position is `offset` or later as under way, while the context
        lasts. `taker`: the node that takes it, "" = not known."""
        with self._lock:
            self._count += 1
            number = self._count
            self._copies[number] = taker, offset
        try:
            yield
        finally:
            with self._lock:
                del self._copies[number]

    def by_taker(self) -> Mapping[str, int]:
        """Return what each node that takes a copy needs next of the log; the oldest of several."""
        oldest: dict[str, int] = {}
        with self._lock:
            for taker, offset in self._copies.values():
                oldest[taker] = min(offset, oldest.get(taker, offset))
        return oldest
