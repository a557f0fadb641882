"""A conversation without a socket: what was said is gathered."""

from __future__ import annotations

from leasehold.pgwire.conversation import Conversation
from leasehold.pgwire.limits import Limits
from leasehold.pgwire.phases import Behind
from tests.support.pgwire.small_session import Shared, SmallSession

HURRIED_CALLS = 5


class Talk:
    """`defects`: exceptions that are not of the tree; a test that expects none checks it."""

    def __init__(self, limits: Limits | None = None, shared: Shared | None = None) -> None:
        self.shared = shared or Shared()
        self.session = SmallSession(self.shared)
        self.said: list[bytes] = []
        self.defects: list[Exception] = []
        self.behind: Behind | None = None
        self.conversation = Conversation(
            self.session, self._say, limits or Limits(), self.defects.append
        )
        self.conversation.begin(7, b"key!")

    def _say(self, data: bytes) -> Behind | None:
        self.said.append(data)
        return self.behind

    def send(self, *messages: bytes) -> bytes:
        """What is said to them."""
        before = len(self.said)
        for message in messages:
            self.conversation.receive(message)
        return b"".join(self.said[before:])

    def send_hurried(self, *messages: bytes) -> bytes:
        """The same, where every call may have to be made again: in a hurry some times, then not."""
        before = len(self.said)
        for message in messages:
            waits = self.conversation.receive(message, hurried=True)
            for left in range(HURRIED_CALLS, 0, -1):
                if waits is not None:
                    waits = self.conversation.receive(b"", hurried=left > 1)
            assert waits is None
        return b"".join(self.said[before:])
