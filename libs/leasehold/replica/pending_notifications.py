"""What a transaction is going to tell those who listen: NOTIFY, and pg_notify()."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from leasehold.model.budget import Budget
from leasehold.model.errors import InvalidArgument, RequestTooLarge
from leasehold.model.records.notifications import (
    CHANNEL_BYTES_MAX,
    NOTIFICATIONS_BYTES_MAX,
    NOTIFICATIONS_MAX,
    PAYLOAD_BYTES_MAX,
    Notification,
    Notifications,
)

Sent = Mapping[int, dict[Notification, None]]
NOTHING: Final[Sent] = {}


def checked_notification(channel: str, payload: str) -> Notification:
    """Return what is to be told. Raises InvalidArgument (22023)."""
    if not channel:
        raise InvalidArgument("channel name cannot be empty")
    if len(channel.encode()) > CHANNEL_BYTES_MAX:
        raise InvalidArgument("channel name too long")
    if len(payload.encode()) > PAYLOAD_BYTES_MAX:
        raise InvalidArgument("payload string too long")
    return Notification(channel, payload)


class PendingNotifications:
    """What each statement has told, by its place, each once.

    ⚠ A statement that runs again (T2) tells anew, in the place of what it has told before; what
    others have told stays, as their clients were answered so.
    """

    def __init__(self, budget: Budget) -> None:
        """Begin with nothing. `budget` holds what is told."""
        self._budget = budget
        self._sent: dict[int, dict[Notification, None]] = {}
        self._count = self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._count)

    def begin_statement(self, position: int) -> None:
        """Forget what the statement at that place has told in an earlier run."""
        if position in self._sent:
            self._set({place: told for place, told in self._sent.items() if place != position})

    def add(self, position: int, notification: Notification) -> None:
        """Tell something, of the statement at that place. Raises RequestTooLarge (54000),
        OutOfMemory."""
        told = self._sent.setdefault(position, {})
        if notification in told:
            return
        size = notification.size
        if self._count >= NOTIFICATIONS_MAX or self._bytes + size > NOTIFICATIONS_BYTES_MAX:
            raise RequestTooLarge(
                f"a transaction sends at most {NOTIFICATIONS_MAX} notifications, of"
                f" {NOTIFICATIONS_BYTES_MAX // 1024} KiB together: COMMIT more often"
            )
        self._budget.hold(size)
        told[notification] = None
        self._count += 1
        self._bytes += size

    def mark(self) -> Sent:
        """Return what `back_to` takes. What a statement has told does not grow once it is over."""
        return dict(self._sent) if self._sent else NOTHING

    def back_to(self, mark: Sent) -> None:
        """Forget what was told since the mark."""
        if self._sent:
            self._set(dict(mark))

    def take_over(self, other: PendingNotifications) -> None:
        """Begin with what another run of the same transaction has told."""
        self._set({place: dict(told) for place, told in other._sent.items()})

    def _set(self, sent: dict[int, dict[Notification, None]]) -> None:
        before = self._bytes
        self._sent = sent
        self._count = sum(map(len, sent.values()))
        self._bytes = sum(each.size for told in sent.values() for each in told)
        if self._bytes > before:
            self._budget.hold(self._bytes - before)
        else:
            self._budget.give_back(before - self._bytes)

    def of_session(self, node: str, process: int) -> Notifications | None:
        """Return what is sent with the request, in its order, each once; None: nothing. `node` and
        `process`: the session's."""
        if not self._count:
            return None
        told: dict[Notification, None] = {}
        for position in sorted(self._sent):
            told |= self._sent[position]
        return Notifications(tuple(told), node, process)
