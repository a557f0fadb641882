"""The fast way of acknowledgements (`replication/fast_path/acks.py`): PUBLISH at a node, SUBSCRIBE
at the master (`master_subscriber.py`).

Whom its channel keeps away: `pubsub.py`. What listens may die unnoticed all the same, which
is why nothing relies on Redis's word for longer than `patience_ms`.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from leasehold.adapters.redis.connection import RedisLine
from leasehold.adapters.redis.pubsub import Channels
from leasehold.adapters.redis.resp import Failure, packed
from leasehold.replication.fast_path.log import NOBODY
from leasehold.replication.fast_path.state_machine import NOT_PUBLISHED
from leasehold.settings.environment import RedisSettings

CHANNELS: Final = Channels("acks", "acknowledgements", "LEASEHOLD_FAST_ACKS")
ACK_BYTES_MAX: Final = 1_024
UNANSWERED_MAX: Final = 1_000


class AckPublisher:
    """Tells the master. For one thread, which it never holds up."""

    def __init__(self, settings: RedisSettings, database: str) -> None:
        self._line = RedisLine(settings, CHANNELS.what)
        self._database = database
        self._numbers: deque[int] = deque()
        self._term = NOBODY
        self._channel = b""

    def tell(self, number: int, epoch: int, incarnation: bytes, data: bytes) -> bool:
        """False: it was not told, and won't be. `outcomes` says what became of the others."""
        if self._term != (epoch, incarnation):
            self._term = (epoch, incarnation)
            self._channel = CHANNELS.of(self._database, self._term)
        if self._line.open():
            self._numbers.clear()
        if len(self._numbers) >= UNANSWERED_MAX:
            self._line.lost("it does not answer")
        if not self._line.send(packed(b"PUBLISH", self._channel, data)):
            return False
        self._numbers.append(number)
        return True

    def outcomes(self) -> list[tuple[int, bool]]:
        """(number, whether a master listened) of those that Redis has answered since; the last of
        them alone where all were well."""
        numbers = self._numbers
        if not numbers:
            return []
        told: list[tuple[int, bool]] = []
        heard = NOT_PUBLISHED
        for reply in self._line.read():
            if not numbers:
                self._line.lost(f"an answer to nothing, {reply!r:.80}")
                break
            number = numbers.popleft()
            if isinstance(reply, int) and reply > 0:
                heard = number
                continue
            told.append((number, False))
            if isinstance(reply, Failure):
                self._line.say(CHANNELS.advice(reply, self._database))
        if heard != NOT_PUBLISHED:
            self._line.works()
            told.append((heard, True))
        if not self._line.up:
            told += ((number, False) for number in numbers)
            numbers.clear()
        return sorted(told)

    def close(self) -> None:
        self._line.close()
