"""The fast way of acknowledgements (`replication/fast_acks.py`): PUBLISH at a node, SUBSCRIBE at
the master.

The channel names the master's term by epoch and incarnation, 16 random bytes of its process. So
nobody but that master is counted as a listener: not a deposed one whose connection Redis still has,
not the master of another cluster that shares this Redis, nor one of a restored copy of this log
(channels know no database numbers, and a copy has the same epochs). What listens may die unnoticed
all the same, which is why nothing relies on Redis's word for longer than `patience_ms`.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from leasehold.adapters.environment import RedisSettings
from leasehold.adapters.redis_line import KeptAlive, RedisLine
from leasehold.adapters.redis_replies import Failure, packed

WHAT: Final = "acknowledgements"
ACK_BYTES_MAX: Final = 1_024
UNANSWERED_MAX: Final = 1_000


def channel_pattern(database: str) -> str:
    """What a Redis user has to be allowed, as ACL SETUSER takes it behind `&`."""
    return f"leasehold:{{{database}}}:acks:*"


def channel(database: str, epoch: int, incarnation: bytes) -> bytes:
    return channel_pattern(database).replace("*", f"{epoch}:{incarnation.hex()}").encode()


def _advice(failure: Failure, database: str) -> str:
    if not failure.startswith("NOPERM"):
        return failure
    return (
        f"{failure}; give its user the channels &{channel_pattern(database)} and the commands"
        " +publish +subscribe +ping, or set LEASEHOLD_FAST_ACKS=off"
    )


class AckSpeaker:
    """Tells the master. For one thread, which it never holds up."""

    def __init__(self, settings: RedisSettings, database: str) -> None:
        self._line = RedisLine(settings, WHAT)
        self._database = database
        self._numbers: deque[int] = deque()
        self._term = (0, b"")
        self._channel = b""

    def tell(self, number: int, epoch: int, incarnation: bytes, data: bytes) -> bool:
        """False: it was not told, and won't be. `outcomes` says what became of the others."""
        if self._term != (epoch, incarnation):
            self._term = (epoch, incarnation)
            self._channel = channel(self._database, epoch, incarnation)
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
        heard = 0  # numbers begin with 1
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
                self._line.say(_advice(reply, self._database))
        if heard:
            self._line.works()
            told.append((heard, True))
        if not self._line.up:
            told += ((number, False) for number in numbers)
            numbers.clear()
        return sorted(told)

    def close(self) -> None:
        self._line.close()


class AckListener:
    """The master's ear. For one thread, which it never holds up."""

    def __init__(self, settings: RedisSettings, database: str) -> None:
        self._line = RedisLine(settings, WHAT)
        self._database = database
        self._channel = b""
        self._alive = KeptAlive(self._line)

    @property
    def up(self) -> bool:
        return self._line.up

    def listen(self, epoch: int, incarnation: bytes) -> None:
        self.stop()
        self._channel = channel(self._database, epoch, incarnation)

    def stop(self) -> None:
        self._channel = b""
        self._line.close()

    def wait(self, timeout_s: float) -> None:
        """Until something may have come."""
        self._line.wait(timeout_s)

    def messages(self) -> list[bytes]:
        """What was told since the last call, whoever said it; to be called again and again."""
        if not self._channel:
            return []
        if self._line.open():
            self._line.send(packed(b"SUBSCRIBE", self._channel))
            self._alive.look(heard=True)
        if not self._line.up:
            return []
        replies = self._line.read()
        self._alive.look(heard=bool(replies))
        return [data for reply in replies if (data := self._message(reply)) is not None]

    def _message(self, reply: Any) -> bytes | None:
        if isinstance(reply, Failure):
            self._line.say(_advice(reply, self._database))
            self._line.lost(reply)
            return None
        if not isinstance(reply, list) or len(reply) != 3 or reply[1] != self._channel:
            return None
        if reply[0] == b"subscribe":
            self._line.works()
        if reply[0] != b"message" or not isinstance(reply[2], bytes):
            return None
        return reply[2] if len(reply[2]) <= ACK_BYTES_MAX else None

    def close(self) -> None:
        self._line.close()
