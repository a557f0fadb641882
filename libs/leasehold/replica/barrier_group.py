"""A barrier that is shared by all who ask for one while none of theirs is on its way (T6)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

PlaceT = TypeVar("PlaceT")


class BarrierGroup(Generic[PlaceT]):
    """The barriers of a node. `ask` has one put into the log and returns where; it is called by one
    thread at a time, and never by two who could have shared the call.

    Who asks joins one that is *not yet sent*: one on its way may stand in the log before something
    that was answered since, and would prove nothing.
    """

    def __init__(self, ask: Callable[[], PlaceT]) -> None:
        self._ask = ask
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._next: _Shared[PlaceT] = _Shared()

    @property
    def waiting(self) -> int:
        """The number of those who share the next one."""
        return self._next.requesters

    def place(self) -> PlaceT:
        """Return where a barrier stands that was sent after this call began. Raises what `ask`
        raises."""
        with self._lock:
            mine = self._next
            mine.requesters += 1
            sends = mine.requesters == 1
        if sends:
            with self._turn:
                with self._lock:
                    self._next = _Shared()  # from here on, who asks waits for the next
                mine.settle(self._ask)
        return mine.result()


class _Shared(Generic[PlaceT]):
    """The first to ask sends it, for all who ask before he does."""

    def __init__(self) -> None:
        self.requesters = 0
        self._done = threading.Event()
        self._place: list[PlaceT] = []
        self._error: Exception | None = None

    def settle(self, ask: Callable[[], PlaceT]) -> None:
        try:
            self._place.append(ask())
        except Exception as error:  # noqa: BLE001 - raised to each who shares it
            self._error = error
        self._done.set()

    def result(self) -> PlaceT:
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._place[0]
