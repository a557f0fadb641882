"""The channels that one SQL session listens to, and what LISTEN and UNLISTEN of its transaction
make of them once it is committed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from leasehold.model.errors import RequestTooLarge
from leasehold.replica.notifications import (
    CHANNELS_MAX,
    Listener,
    NodeNotifications,
    Told,
    lost_notifications,
)


class SessionListening:
    """Called by the session's thread alone."""

    def __init__(self, node: NodeNotifications, process: int) -> None:
        """Listen to nothing. `process`: the session's."""
        self._node = node
        self._listener = Listener(process)
        self._channels: dict[str, None] = {}
        self._asked: list[tuple[str | None, bool]] = []
        """Channels (None: all), and whether they are listened to: those of the transaction."""
        self._is_prepared = False

    # ------------------------------------------------------------ statements

    @property
    def channels(self) -> Sequence[str]:
        """The channels that it listens to, in the order in which it began to."""
        return tuple(self._channels)

    @property
    def usage(self) -> float:
        """Return which part of the node's room is taken by what waits for its sessions."""
        return self._node.usage

    def listen(self, channel: str) -> None:
        """Listen to a channel from the commit on. Raises RequestTooLarge (54000)."""
        if len(self._channels) >= CHANNELS_MAX:
            raise RequestTooLarge(
                f"a session listens to at most {CHANNELS_MAX} channels: say more in the payload"
            )
        self._ask(channel, listens=True)

    def unlisten(self, channel: str | None) -> None:
        """Listen to a channel no more from the commit on; None: to none. Raises RequestTooLarge
        (54000)."""
        if self._channels or self._asked:
            self._ask(channel, listens=False)

    def _ask(self, channel: str | None, *, listens: bool) -> None:
        if len(self._asked) >= CHANNELS_MAX:
            raise RequestTooLarge(
                f"a transaction says LISTEN and UNLISTEN at most {CHANNELS_MAX} times: COMMIT"
            )
        self._asked.append((channel, listens))

    # ------------------------------------------------------------ the transaction

    @property
    def is_asked(self) -> bool:
        """Whether its commit changes what is listened to."""
        return bool(self._asked)

    def mark(self) -> int:
        """Return what `back_to` takes for a savepoint of now."""
        return len(self._asked)

    def back_to(self, mark: int) -> None:
        """Forget what was asked since."""
        del self._asked[mark:]

    def prepare(self) -> None:
        """Listen to what the commit is to listen to, too: ⚠ before it is sent, so that it hears of
        it itself, and of all that comes behind it."""
        if self._asked and not self._is_prepared:
            self._is_prepared = True
            self._node.listen(self._listener, {**self._channels, **self._after()})

    def _after(self) -> dict[str, None]:
        channels = dict(self._channels)
        for channel, listens in self._asked:
            if listens:
                channels[str(channel)] = None
            elif channel is None:
                channels.clear()
            else:
                channels.pop(channel, None)
        return channels

    def end_transaction(self, *, committed: bool) -> None:
        """Listen to what it has asked for, or to what was listened to before."""
        if not self._asked:
            return
        if committed:
            self._channels = self._after()
        self._asked.clear()
        self._is_prepared = False
        self._node.listen(self._listener, self._channels)

    # ------------------------------------------------------------ between transactions

    @property
    def waits(self) -> bool:
        """Whether something waits to be taken."""
        return self._listener.waits

    def take(self, bytes_max: int) -> Sequence[Told]:
        """Return what has come, as far as it is about so many bytes."""
        return self._node.take(self._listener, bytes_max) if self._listener.waits else ()

    def wait(self, timeout_s: float, stopped: Callable[[], bool]) -> bool:
        """Return whether something waits to be taken, after that time at the latest, or once it is
        `stopped`. Raises NotificationsLost."""
        found = self._node.wait(self._listener, timeout_s, stopped)
        self.check()
        return found

    def check(self) -> None:
        """Raises NotificationsLost once some were lost, from then on."""
        if self._listener.is_lost:
            raise lost_notifications()

    def close(self) -> None:
        """Listen to nothing any more."""
        self._node.leave(self._listener)
