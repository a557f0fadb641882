"""A barrier that is shared by all who ask for one while none of theirs is on its way (T6)."""

from __future__ import annotations

import threading
from collections.abc import Callable


class BarrierGroup:
    """The barriers of a node. `append` puts one into the log and returns its offset; it is called
    by one thread at a time, and never by two who could have shared the call.

    Who asks joins an append that is *not yet sent*: one on its way may stand in the log before
    something that was answered since, and would prove nothing.
    """

    def __init__(self, append: Callable[[], int]) -> None:
        self._append = append
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._next = _Shared()

    @property
    def waiting(self) -> int:
        """The number of those who share the next one."""
        return self._next.requesters

    def offset(self) -> int:
        """Return the offset of a barrier that was sent after this call began. Raises what `append`
        raises."""
        with self._lock:
            mine = self._next
            mine.requesters += 1
            sends = mine.requesters == 1
        if sends:
            with self._turn:
                with self._lock:
                    self._next = _Shared()  # from here on, who asks waits for the next
                mine.settle(self._append)
        return mine.result()


class _Shared:
    """The first to ask sends it, for all who ask before he does."""

    def __init__(self) -> None:
        self.requesters = 0
        self._done = threading.Event()
        self._offset = -1
        self._error: Exception | None = None

    def settle(self, append: Callable[[], int]) -> None:
        try:
            self._offset = append()
        except Exception as error:  # noqa: BLE001 - raised to each who shares it
            self._error = error
        self._done.set()

    def result(self) -> int:
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._offset
