"""Looks at the whole database for those who ask now and then: one watch, kept while it is asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Protocol

from leasehold.adapters.os.clock import boottime_ns, unix_us
from leasehold.admin.view import ClusterView
from leasehold.model.errors import BusUnavailable

FIRST_LOOK_S: Final = 15.0
CAUGHT_UP_S: Final = 1.0
"""For what this node has applied to come on the topics: milliseconds, as a rule."""
KEPT_S: Final = 60.0
"""After the last question: a watch reads the log's headers all the time, which not all need."""


Wanted = Callable[[ClusterView], bool]


class Watch(Protocol):
    """What `SharedWatch` shares: a `ClusterWatch`, in practice."""

    @property
    def view(self) -> ClusterView: ...

    def first_look(self, timeout_s: float) -> ClusterView: ...

    def wait_for(self, wanted: Wanted, timeout_s: float) -> bool: ...

    def close(self) -> None: ...


class SharedWatch:
    """A watch that several threads look through, and that is open only while somebody does.

    `opened` opens a watch; `view` and `close` may be called from any thread.
    """

    def __init__(self, opened: Callable[[], Watch], kept_s: float = KEPT_S) -> None:
        self._opened = opened
        self._kept_ns = int(kept_s * 1e9)
        self._changed = threading.Condition()
        self._watch: Watch | None = None
        self._closer: threading.Thread | None = None
        self._asking = 0
        self._asked_ns = 0
        self._closed = False

    def view(self, wanted: Wanted = lambda _: True) -> ClusterView:
        """The newest, which is `wanted` unless that takes too long: a caller should find what it
        has just done. Raises BusUnavailable when Kafka can't be reached, or what stands on the
        topics is not known (yet): half of it must not look like all of it."""
        watch = self._begin()
        try:
            view = watch.first_look(FIRST_LOOK_S)
            if not wanted(view) and not view.unreachable:
                watch.wait_for(wanted, CAUGHT_UP_S)
                view = watch.view
        finally:
            with self._changed:
                self._asking -= 1
                self._asked_ns = boottime_ns()
                self._changed.notify_all()
        why = view.unreachable.get("kafka")
        if why is not None:
            raise BusUnavailable(why)
        if gaps := view.gaps(unix_us()):
            raise BusUnavailable(f"the state of the database is not known: {'; '.join(gaps)}")
        return view

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            closer = self._closer
        if closer is not None:
            closer.join()

    def _begin(self) -> Watch:
        with self._changed:
            if self._closed:
                raise BusUnavailable("this node is stopping")
            if self._watch is None:
                self._watch = self._opened()
                name = "leasehold-looks"
                self._closer = threading.Thread(target=self._close_later, name=name, daemon=True)
                self._closer.start()
            self._asking += 1
            return self._watch

    def _close_later(self) -> None:
        with self._changed:
            while not self._closed or self._asking:
                left_ns = self._asked_ns + self._kept_ns - boottime_ns()
                if self._asking:
                    self._changed.wait()
                elif left_ns <= 0 and self._asked_ns:
                    break
                else:
                    self._changed.wait(max(left_ns, 0) / 1e9 or None)
            watch, self._watch, self._asked_ns = self._watch, None, 0
        assert watch is not None
        watch.close()
