"""The objects of one kind that live in this process, for whoever looks at it from outside."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar
from weakref import ref

T = TypeVar("T")
FORGOTTEN_EVERY = 32


class LiveObjects(Generic[T]):
    """Holds no object: those that are gone are forgotten. All methods may be called from any
    thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[ref[T]] = []
        self._added = 0

    def add(self, made: T) -> None:
        with self._lock:
            self._added += 1
            if self._added % FORGOTTEN_EVERY == 0:
                self._all = [each for each in self._all if each() is not None]
            self._all.append(ref(made))

    def list(self) -> list[T]:
        """Return those that live."""
        with self._lock:
            known = list(self._all)
        return [made for each in known if (made := each()) is not None]
