"""Requests of many users of one process that travel together.

What a commit costs the master, the log and every node is nearly the same for one request and for
twenty that lie side by side. Users who each wait for their own answer would send them one by one,
a few at each station of the way; so while a group is under way the next requests gather, until the
group is answered and its users have had the time to come again. Whoever is alone waits for nobody.

The last of those who are awaited sends for all of them, where that waits for nothing (`tell`). A
thread that sends has to be woken, and wants the interpreter's lock from them while they work: of
sixteen wire sessions' processor time that was a fifteenth. There is one for what can't be sent so,
and for when somebody does not come.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition, Lock, Thread
from typing import Final

from leasehold.adapters.os.clock import boottime_ns
from leasehold.client.pending import Pending

UNDER_WAY_S: Final = 0.1
"""Longest that requests wait for the answers of the group before them."""
COME_AGAIN_S: Final = 0.005
"""Longest that they wait then for its users, and for whoever came meanwhile."""
LOOKS_MAX: Final = 200
"""The thread wakes by itself every `COME_AGAIN_S` while users send for themselves, to see whether
some wait in vain, and rests again after so many looks that found nobody."""


class RequestGroup:
    """Requests of several users that are sent together, by a thread or by the last one who comes.

    `lock` is held for `joins`, `settled` and `tell`, and not for `send`. `tell` sends a group if it
    can do so without waiting for anything; False: nothing was sent.
    """

    def __init__(
        self,
        lock: Lock,
        send: Callable[[list[Pending]], None],
        tell: Callable[[list[Pending]], bool],
    ) -> None:
        self._changed = Condition(lock)
        self._send = send
        self._tell = tell
        self._gathered: list[Pending] = []
        self._due_ns = 0  # when those that gathered go at the latest
        self._under_way: set[bytes] = set()
        self._users = 1  # of the last group
        self._wanted = 0  # those users again, and who had come when they had their answers
        self._looks = 0  # left, of the thread
        self._stopping = False
        self._worker: Thread | None = None

    def joins(self, pending: Pending) -> bool:
        """Return whether it is sent with others; if not, its user has to send it, now."""
        if not self._under_way and self._users <= 1:
            self._under_way.add(pending.request_id)
            return False
        if self._worker is None:
            self._worker = Thread(target=self._run, name="leasehold-group", daemon=True)
            self._worker.start()
        gathered = self._gathered
        gathered.append(pending)
        if self._are_all() and self._tell(gathered):
            self._looks = LOOKS_MAX
            self._go()
        elif self._are_all():
            self._changed.notify()
        elif len(gathered) == 1:
            self._wait(UNDER_WAY_S if self._under_way else COME_AGAIN_S)
            if not self._looks:
                self._changed.notify()
        return True

    def settled(self, request_id: bytes) -> None:
        if request_id in self._under_way:
            self._under_way.remove(request_id)
            if not self._under_way:
                self._wanted = len(self._gathered) + (self._users if self._users > 1 else 0)
                self._wait(COME_AGAIN_S)
                if self._gathered and (not self._looks or self._are_all()):
                    self._changed.notify()

    def close(self) -> None:
        """What has gathered is sent before."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._worker is not None:
            self._worker.join()

    def _are_all(self) -> bool:
        return not self._under_way and len(self._gathered) >= self._wanted

    def _wait(self, longest_s: float) -> None:
        self._due_ns = boottime_ns() + int(longest_s * 1e9)

    def _go(self) -> list[Pending]:
        group, self._gathered = self._gathered, []
        self._users = len(group)
        self._under_way.update(pending.request_id for pending in group)
        return group

    # ------------------------------------------------------------ the thread

    def _run(self) -> None:
        while group := self._next():
            self._send(group)

    def _next(self) -> list[Pending]:
        """Return the requests that nobody else sends, once there are some; [] when there will be no
        more."""
        with self._changed:
            while True:
                wait_s: float | None = None
                if self._gathered:
                    wait_s = (self._due_ns - boottime_ns()) / 1e9
                    if self._stopping or self._are_all() or wait_s <= 0:
                        self._looks = 0
                        return self._go()
                elif self._stopping:
                    return []
                elif self._looks:
                    self._looks -= 1
                    wait_s = COME_AGAIN_S
                self._changed.wait(wait_s)
