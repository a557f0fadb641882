"""Requests of many users of one process that travel together.

What a commit costs the master, the log and every node is nearly the same for one request and for
twenty that lie side by side. Users who each wait for their own answer would send them one by one,
a few at each station of the way; so while a group is under way the next requests gather, until the
group is answered and its users have had the time to come again. Whoever is alone waits for nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition, Lock, Thread
from typing import Final

from leasehold.client.pending import Pending

UNDER_WAY_S: Final = 0.1
"""Longest that requests wait for the answers of the group before them."""
COME_AGAIN_S: Final = 0.005
"""Longest that they wait then for its users, and for whoever came meanwhile."""


class RequestGroup:
    """`lock` is held for `joins` and `settled`, and not for `send`. Whoever gathers them is woken
    when there is something to do, and not for each request and each answer."""

    def __init__(self, lock: Lock, send: Callable[[list[Pending]], None]) -> None:
        self._changed = Condition(lock)
        self._send = send
        self._gathered: list[Pending] = []
        self._under_way: set[bytes] = set()
        self._users = 1  # of the last group
        self._wanted = 0  # those users again, and who had come when they had their answers
        self._stopping = False
        self._worker: Thread | None = None

    def joins(self, pending: Pending) -> bool:
        """True: it will be sent with others; False: it is its user's to send, now."""
        if not self._under_way and self._users <= 1:
            self._under_way.add(pending.request_id)
            return False
        if self._worker is None:
            self._worker = Thread(target=self._run, name="leasehold-group", daemon=True)
            self._worker.start()
        self._gathered.append(pending)
        if len(self._gathered) in (1, self._wanted):
            self._changed.notify()
        return True

    def settled(self, request_id: bytes) -> None:
        if request_id in self._under_way:
            self._under_way.remove(request_id)
            if not self._under_way:
                self._wanted = len(self._gathered) + (self._users if self._users > 1 else 0)
                self._changed.notify()

    def close(self) -> None:
        """What has gathered is sent before."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._worker is not None:
            self._worker.join()

    def _run(self) -> None:
        while group := self._next():
            self._send(group)

    def _next(self) -> list[Pending]:
        """[]: there will be no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._gathered or self._stopping)
            self._changed.wait_for(lambda: not self._under_way or self._stopping, UNDER_WAY_S)
            wanted = 0 if self._under_way else self._wanted
            self._changed.wait_for(
                lambda: len(self._gathered) >= wanted or self._stopping, COME_AGAIN_S
            )
            group, self._gathered = self._gathered, []
            self._users = len(group)
            self._under_way.update(pending.request_id for pending in group)
            return group
