"""What is said to one client: it gathers, and is handed over at Sync and Flush, or once enough is
together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from leasehold.pgwire.messages import backend
from leasehold.pgwire.phases import Behind

HandOver: TypeAlias = Callable[[bytes], Behind | None]
"""Takes what is said and returns how far behind the client is, where it does not read. It may wait,
which is how a slow reader slows its own statement and nobody else's. Raises ClientGone."""


class ClientGone(Exception):
    """Raised where there is nobody to answer to any more."""


class Replies:
    """The answers that were not handed over yet. `rest` is called where the client is behind."""

    def __init__(self, hand_over: HandOver, bytes_max: int, rest: Callable[[Behind], None]) -> None:
        self._hand_over = hand_over
        self._bytes_max = bytes_max
        self._rest = rest
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._tag_at = -1  # where the last tag stands in what is gathered
        self.turn_bytes = 0
        """What was handed over in this turn; whoever gives turns sets it back to 0."""

    @property
    def is_empty(self) -> bool:
        return not self._gathered

    @property
    def holds_tag(self) -> bool:
        """Whether the last tag is still here, and can be replaced."""
        return self._tag_at >= 0

    def say(self, data: bytes) -> None:
        """Append a message; hand everything over if that is enough. Raises ClientGone."""
        self._gathered.append(data)
        self._gathered_bytes += len(data)
        if self._gathered_bytes >= self._bytes_max:
            self.flush()

    def say_tag(self, tag: str) -> None:
        """Append a CommandComplete, as `say` does."""
        at = len(self._gathered)
        self.say(backend.complete(tag))
        self._tag_at = at if self._gathered else -1

    def replace_tag(self, tag: str) -> None:
        """Put another tag in the place of the last one, if `holds_tag`."""
        if self._tag_at >= 0:
            self._gathered[self._tag_at] = backend.complete(tag)

    def flush(self) -> None:
        """Hand over what has gathered, and rest if the client is behind. Raises ClientGone."""
        if self._gathered:
            data = b"".join(self._gathered)
            self._gathered.clear()
            self._tag_at = -1
            self._gathered_bytes = 0
            self.turn_bytes += len(data)
            behind = self._hand_over(data)
            if behind is not None:
                self._rest(behind)
