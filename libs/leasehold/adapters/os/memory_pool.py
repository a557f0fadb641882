"""The memory that all statements of one node may hold together."""

from __future__ import annotations

import threading


class MemoryPool:
    """The memory that all statements of one node may hold together. Used by many threads."""

    def __init__(self, bytes_max: int, setting: str = "") -> None:
        """Begin with nothing taken. `setting` is what `bytes_max` comes from."""
        self.bytes_max = bytes_max
        self.setting = setting
        self._held = 0
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """Return the bytes that are taken now."""
        return self._held

    def take(self, size: int) -> bool:
        """Take `size` bytes; return False, and take nothing, if there are not so many left."""
        with self._lock:
            if self._held + size > self.bytes_max:
                return False
            self._held += size
            return True

    def give_back(self, size: int) -> None:
        """Return `size` bytes that were taken."""
        with self._lock:
            self._held -= size
