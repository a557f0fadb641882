"""Channels of Redis on which nodes and one term's master tell each other things (PUBLISH,
SUBSCRIBE): acknowledgements (`acks.py`), records of the log (`log.py`), requests and
their answers (`requests.py`).

Mostly a channel names the term by epoch and incarnation, 16 random bytes of the master's process.
So nobody but that master and its nodes meet there: not a deposed one whose connection Redis still
has, not the master of another cluster that shares this Redis, nor one of a restored copy of this
log (channels know no database numbers, and a copy has the same epochs).
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final, Generic, TypeVar

from leasehold.adapters.os.clock import boottime_ns
from leasehold.adapters.redis.connection import SILENCE_NS, Advice, KeptAlive, RedisLine
from leasehold.adapters.redis.resp import Failure, packed
from leasehold.replication.fast_path.log import NOBODY, Term
from leasehold.settings.environment import RedisSettings

UNANSWERED_MAX: Final = 1_000

T = TypeVar("T")


class Channels:
    """Of one thing that is told, `what` for people; `name` stands in the channels' names, and
    `setting` turns it off."""

    def __init__(self, name: str, what: str, setting: str) -> None:
        self._name = name
        self._setting = setting
        self.what = what

    def pattern(self, database: str) -> str:
        """What a Redis user has to be allowed, as ACL SETUSER takes it behind `&`."""
        return f"leasehold:{{{database}}}:{self._name}:*"

    def of(self, database: str, term: Term) -> bytes:
        """The term's channel."""
        epoch, incarnation = term
        return self.named(database, f"{epoch}:{incarnation.hex()}")

    def named(self, database: str, name: str) -> bytes:
        return self.pattern(database).replace("*", name).encode()

    def advice(self, failure: Failure, database: str) -> str:
        if failure.startswith("NOAUTH"):  # to connect without a password is no failure
            return Advice(f"{failure}; set LEASEHOLD_REDIS_PASSWORD")
        if not failure.startswith("NOPERM"):
            return failure
        return Advice(
            f"{failure}; give its user the channels &{self.pattern(database)} and the commands"
            f" +publish +subscribe +ping, or set {self._setting}=off"
        )


class ChannelPublisher(Generic[T]):
    """Publishes on one channel. `T` names what was published. For one thread at a time, which it
    never blocks."""

    def __init__(self, settings: RedisSettings, database: str, channels: Channels) -> None:
        self._line = RedisLine(settings, channels.what)
        self._database = database
        self._channels = channels
        self._told: deque[tuple[T, int]] = deque()  # and when; no reply yet

    @property
    def up(self) -> bool:
        return self._line.up

    def open(self) -> None:
        """Have the connection made, if it is not there."""
        if self._line.open():
            self._told.clear()

    def tell(self, channel: bytes, data: bytes, name: T) -> bool:
        """False: it was not told, and won't be. `outcomes` says what became of the others."""
        self.open()
        now_ns = boottime_ns()
        told = self._told
        if told and (len(told) >= UNANSWERED_MAX or now_ns - told[0][1] > SILENCE_NS):
            self._line.lost("it does not answer")
        if not self._line.send(packed(b"PUBLISH", channel, data)):
            return False
        told.append((name, now_ns))
        return True

    def outcomes(self) -> list[tuple[T, bool]]:
        """What Redis has answered for since, and whether somebody listened; to be called again and
        again."""
        told = self._told
        if not told:
            return []
        found: list[tuple[T, bool]] = []
        for reply in self._line.read():
            if not told:
                self._line.lost(f"an answer to nothing, {reply!r:.80}")
                break
            heard = isinstance(reply, int) and reply > 0
            found.append((told.popleft()[0], heard))
            if isinstance(reply, Failure):
                self._line.say(self._channels.advice(reply, self._database))
            elif heard:
                self._line.works()
        if not self._line.up:
            found += ((name, False) for name, _ in told)
            told.clear()
        return found

    def close(self) -> None:
        self._line.close()
        self._told.clear()


class ChannelSubscriber:
    """What is told on some channels, through one connection. For one thread, which it never holds
    up."""

    def __init__(self, settings: RedisSettings, database: str, channels: Channels) -> None:
        """`channels`: without those it would be of no use."""
        self._line = RedisLine(settings, channels.what)
        self._alive = KeptAlive(self._line)
        self._database = database
        self._wanted: tuple[tuple[bytes, Channels], ...] = ()
        self._asked: deque[tuple[bytes, Channels]] = deque()  # not answered yet
        self._main = channels
        self._listens: set[bytes] = set()

    @property
    def up(self) -> bool:
        return self._line.up

    def listens_to(self, channel: bytes) -> bool:
        """Whether Redis has said so."""
        return self._line.up and channel in self._listens

    def listen(self, term: Term, *channels: Channels) -> None:
        """To that term and no other; NOBODY: to none. `channels`: not to its own alone."""
        kinds = (channels or (self._main,)) if term != NOBODY else ()
        self.listen_to(*((kind.of(self._database, term), kind) for kind in kinds))

    def listen_to(self, *wanted: tuple[bytes, Channels]) -> None:
        if wanted != self._wanted:
            self._wanted = wanted
            self._line.close()

    def wait(self, timeout_s: float) -> None:
        """Until something may have come."""
        self._line.wait(timeout_s)

    def messages(self) -> list[bytes]:
        """What was told since the last call, whoever said it; to be called again and again."""
        return [data for _, data in self.of_channels()]

    def of_channels(self) -> list[tuple[bytes, bytes]]:
        """As `messages`, with the channel of each."""
        if not self._wanted:
            return []
        if self._line.open():
            self._asked.clear()
            self._listens.clear()
            for channel, kind in self._wanted:
                self._line.send(packed(b"SUBSCRIBE", channel))
                self._asked.append((channel, kind))
            self._alive.look(heard=True)
        if not self._line.up:
            return []
        replies = self._line.read()
        self._alive.look(heard=bool(replies))
        return [told for reply in replies if (told := self._message(reply)) is not None]

    def _message(self, reply: Any) -> tuple[bytes, bytes] | None:
        if isinstance(reply, Failure):
            _, kind = self._asked.popleft() if self._asked else (b"", self._main)
            self._line.say(kind.advice(reply, self._database), kind.what)
            if kind is self._main:
                self._line.lost(reply)
            return None
        if not isinstance(reply, list) or len(reply) != 3:
            return None
        word, channel, data = reply
        if word == b"subscribe" and self._asked and channel == self._asked[0][0]:
            _, kind = self._asked.popleft()
            self._listens.add(channel)
            self._line.works(kind.what)
            return None
        if word != b"message" or not isinstance(data, bytes):
            return None
        return (channel, data) if channel in self._listens else None

    def close(self) -> None:
        self._line.close()
