"""What a transaction tells the sessions that listen (NOTIFY), as requests and commits have it."""

from __future__ import annotations

from typing import Final, NamedTuple

from leasehold.model import byte_limits

CHANNEL_BYTES_MAX: Final = 63
"""Of a channel's name, as of any identifier."""
PAYLOAD_BYTES_MAX: Final = 7_999
NOTIFICATIONS_MAX: Final = 10_000
"""That one transaction sends, each once."""
NOTIFICATIONS_BYTES_MAX: Final = byte_limits.NOTIFIED
"""Channels and payloads of one transaction, with `NOTIFICATION_BYTES` for each."""
NOTIFICATION_BYTES: Final = 100
"""Of a notification, beside its texts: about what holds it."""


class Notification(NamedTuple):
    """What is told to everybody who listens to a channel."""

    channel: str
    payload: str

    @property
    def size(self) -> int:
        """Return about how many bytes it takes."""
        return NOTIFICATION_BYTES + len(self.channel.encode()) + len(self.payload.encode())


class Notifications(NamedTuple):
    """All that one transaction tells, in its order, each once. `node` and `process`: the session
    that sends it; "" and 0 where it is no session's."""

    sent: tuple[Notification, ...]
    node: str = ""
    process: int = 0
