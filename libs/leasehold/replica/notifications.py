"""What transactions have told (NOTIFY), as a node applies them, for its sessions that listen.

The node's thread hands in records and says what is committed; each session takes what is its own
between two transactions. Who does not take it is ended before the node has no room.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple

from leasehold.model import metrics
from leasehold.model.errors import NotificationsLost
from leasehold.model.measures import Measures, Sample
from leasehold.model.records.log import Decisions
from leasehold.model.records.notifications import NOTIFICATION_BYTES, Notifications

LOG: Final = logging.getLogger("leasehold.notifications")
QUEUE_BYTES_MAX: Final = 64 << 20
"""What the sessions of a node have not taken, all together."""
CHANNELS_MAX: Final = 10_000
"""Of one session."""
LOST: Final = (
    "terminating connection because it has listened and taken none of its notifications: those of"
    " this node's sessions that wait came to more than it has room for, and most were this one's"
)


class Told(NamedTuple):
    """A notification as a session gets it. `process`: the session of this node that has sent it, 0:
    somebody elsewhere."""

    channel: str
    payload: str
    process: int


class Listener:
    """What one session has not taken yet. All of it is under the lock of its `NodeNotifications`,
    but for `waits` and `is_lost`, which any thread may look at."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.channels: frozenset[str] = frozenset()
        self.waiting: deque[Told] = deque()
        self.bytes = 0
        self.waits = False
        """Whether something waits for it."""
        self.is_lost = False
        """Whether it was ended, as it has taken nothing."""


class NodeNotifications:
    """The sessions of one node that listen. `applied` and `committed` are the node's, on its
    thread; all else is for any thread.

    N1: what a session that listens is not told stands in commits that its later statements see.
    """

    def __init__(
        self,
        node: str,
        wake: Callable[[Collection[int]], None],
        end_session: Callable[[int, str], bool],
        queue_bytes_max: int = QUEUE_BYTES_MAX,
    ) -> None:
        """Begin without sessions. `wake`: tells connections, by their processes, that something
        waits for them; `end_session`: ends one, with what it is told."""
        self._node = node
        self._wake, self._end_session = wake, end_session
        self._bytes_max = queue_bytes_max
        self._open: list[tuple[int, Notifications]] = []  # applied, not committed, by LSN
        self._turned = threading.Condition()
        self._by_channel: dict[str, dict[Listener, None]] = {}
        self._bytes = 0
        self._stopped = False
        self._measures = Measures()  # under the lock

    # ------------------------------------------------------------ the node

    def applied(self, record: Decisions) -> None:
        """Take a record that was applied, and is not committed yet. ⚠ Also while nobody listens:
        who begins to before it is committed does not see it yet (N1). What was applied in vain,
        by a node that went down before it was committed, is applied again."""
        while self._open and self._open[-1][0] >= record.first_lsn:
            self._open.pop()
        for lsn, commit in enumerate(record.commits, record.first_lsn):
            if commit.notifications is not None:
                self._open.append((lsn, commit.notifications))

    def committed(self, lsn: int) -> None:
        """Hand out what was applied: statements see it now."""
        if not self._open:
            return
        told, self._open = self._open, []
        woken: dict[Listener, None] = {}
        lost: list[Listener] = []
        with self._turned:
            for _, notifications in told:
                own = notifications.node == self._node
                process = notifications.process if own else 0
                for channel, payload in notifications.sent:
                    one = Told(channel, payload, process)
                    for listener in self._by_channel.get(channel, ()):
                        self._put(listener, one)
                        woken[listener] = None
                        self._measures.add(metrics.NOTIFIED)
                lost += self._make_room()
            if lost:
                self._measures.add(metrics.NOTIFY_LOST, len(lost))
            self._turned.notify_all()
        if woken:
            self._wake([each.process for each in woken])
        for each in lost:
            LOG.warning("ended SQL session %d, which took no notifications", each.process)
            self._end_session(each.process, LOST)

    def _put(self, listener: Listener, told: Told) -> None:
        size = _size_of(told)
        listener.waiting.append(told)
        listener.bytes += size
        listener.waits = True
        self._bytes += size

    def _make_room(self) -> list[Listener]:
        """Return whom to end, who have nothing any more: those with the most, until there is
        room."""
        lost: list[Listener] = []
        while self._bytes > self._bytes_max:
            listeners = {one: None for some in self._by_channel.values() for one in some}
            most = max(listeners, key=lambda one: one.bytes)
            most.is_lost = True
            self._forget(most)
            lost.append(most)
        return lost

    # ------------------------------------------------------------ sessions

    def listen(self, listener: Listener, channels: Collection[str]) -> None:
        """Let a session listen to these channels, and to no other ones."""
        with self._turned:
            if listener.is_lost:
                return
            wanted = frozenset(channels)
            gone = listener.channels - wanted
            for channel in gone:
                self._leave(listener, channel)
            if gone and listener.waiting:
                kept = [told for told in listener.waiting if told.channel in wanted]
                self._set_waiting(listener, kept)
            for channel in wanted - listener.channels:
                self._by_channel.setdefault(channel, {})[listener] = None
            listener.channels = wanted

    def _set_waiting(self, listener: Listener, told: Iterable[Told]) -> None:
        self._bytes -= listener.bytes
        listener.waiting = deque(told)
        listener.bytes = sum(map(_size_of, listener.waiting))
        listener.waits = bool(listener.waiting)
        self._bytes += listener.bytes

    def _leave(self, listener: Listener, channel: str) -> None:
        left = self._by_channel[channel]
        del left[listener]
        if not left:
            del self._by_channel[channel]

    def take(self, listener: Listener, bytes_max: int) -> list[Told]:
        """Return the oldest of what waits for a session, at least one if there is any; about so
        many bytes at most."""
        taken: list[Told] = []
        with self._turned:
            left = bytes_max
            while listener.waiting and left > 0:
                told = listener.waiting.popleft()
                size = _size_of(told)
                listener.bytes -= size
                self._bytes -= size
                left -= size
                taken.append(told)
            listener.waits = bool(listener.waiting)
        return taken

    def wait(self, listener: Listener, timeout_s: float, stopped: Callable[[], bool]) -> bool:
        """Return whether something waits for a session, once that is so, or it is to wait no more
        (`stopped`), or the time is over."""

        def ended() -> bool:
            return listener.waits or listener.is_lost or self._stopped or stopped()

        with self._turned:
            self._turned.wait_for(ended, timeout_s)
        return listener.waits

    def wake_waiters(self) -> None:
        """Let whoever waits look again."""
        with self._turned:
            self._turned.notify_all()

    def leave(self, listener: Listener) -> None:
        """Forget a session."""
        with self._turned:
            self._forget(listener)

    def _forget(self, listener: Listener) -> None:
        for channel in listener.channels:
            self._leave(listener, channel)
        listener.channels = frozenset()
        self._set_waiting(listener, ())

    @property
    def usage(self) -> float:
        """Return which part of the room is taken, between 0 and 1."""
        return min(1.0, self._bytes / self._bytes_max)

    def samples(self) -> Iterator[Sample]:
        """Yield what is counted here."""
        yield Sample(metrics.NOTIFY_QUEUE, (), self._bytes)
        yield from self._measures.samples()

    def close(self) -> None:
        """Let nobody wait any more."""
        with self._turned:
            self._stopped = True
            self._turned.notify_all()


def lost_notifications() -> NotificationsLost:
    """Return the error of a session that was ended, as it has taken nothing."""
    return NotificationsLost(LOST)


def _size_of(told: Told) -> int:
    return NOTIFICATION_BYTES + len(told.channel) + len(told.payload)
