"""Channels of Redis on which nodes and one term's master publish to each other (PUBLISH,
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
from leasehold.adapters.redis.resp import Failure, pack_command
from leasehold.replication.fast_path.log import NOBODY, Term
from leasehold.settings.environment import RedisSettings

UNANSWERED_MAX: Final = 1_000

T = TypeVar("T")


class Channels:
    """The channels of one kind of message. `what` says to people what is published there, `name`
    stands in the channels' names, and `setting` is the variable that turns the kind off."""

    def __init__(self, name: str, what: str, setting: str) -> None:
        self._name = name
        self._setting = setting
        self.what = what

    def pattern(self, database: str) -> str:
        """Return what a Redis user has to be allowed, as ACL SETUSER takes it behind `&`."""
        return f"leasehold:{{{database}}}:{self._name}:*"

    def of(self, database: str, term: Term) -> bytes:
        """Return the name of the term's channel."""
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
            f" +publish +subscribe +unsubscribe +ping, or set {self._setting}=off"
        )


class ChannelPublisher(Generic[T]):
    """Publishes messages of one kind. `T` names what was published. For one thread at a time, which
    it never blocks."""

    def __init__(self, settings: RedisSettings, database: str, channels: Channels) -> None:
        self._line = RedisLine(settings, channels.what)
        self._database = database
        self._channels = channels
        self._term = NOBODY
        self._channel = b""  # the term's
        self._unanswered: deque[tuple[T, int]] = deque()  # each with the time it was published

    @property
    def up(self) -> bool:
        return self._line.up

    def open(self) -> None:
        """Connect in the background, if there is no connection."""
        if self._line.open():
            self._unanswered.clear()

    def publish_to_term(self, term: Term, data: bytes, name: T) -> bool:
        """Publish on the channel of a master's term; returns what `publish` does."""
        if self._term != term:
            self._term = term
            self._channel = self._channels.of(self._database, term)
        return self.publish(self._channel, data, name)

    def publish(self, channel: bytes, data: bytes, name: T) -> bool:
        """Send a message. False means that it was not published, and won't be; what became of the
        others `outcomes` says."""
        self.open()
        now_ns = boottime_ns()
        waiting = self._unanswered
        if waiting and (len(waiting) >= UNANSWERED_MAX or now_ns - waiting[0][1] > SILENCE_NS):
            self._line.lost("it does not answer")
        if not self._line.send(pack_command(b"PUBLISH", channel, data)):
            return False
        waiting.append((name, now_ns))
        return True

    def outcomes(self) -> list[tuple[T, bool]]:
        """Return the names of what Redis has answered for since the last call, each with whether
        somebody listened. To be called again and again."""
        waiting = self._unanswered
        if not waiting:
            return []
        found: list[tuple[T, bool]] = []
        for reply in self._line.read():
            if not waiting:
                self._line.lost(f"an answer to nothing, {reply!r:.80}")
                break
            heard = isinstance(reply, int) and reply > 0
            found.append((waiting.popleft()[0], heard))
            if isinstance(reply, Failure):
                self._line.say(self._channels.advice(reply, self._database))
            elif heard:
                self._line.works()
        if not self._line.up:
            found += ((name, False) for name, _ in waiting)
            waiting.clear()
        return found

    def close(self) -> None:
        self._line.close()
        self._unanswered.clear()


class ChannelSubscriber:
    """Receives what is published on some channels, through one connection. For one thread, which it
    never blocks."""

    def __init__(self, settings: RedisSettings, database: str, *kinds: Channels) -> None:
        """Prepare to listen to channels of these kinds. Where the first one is refused, the
        connection is of no use, and is given up."""
        self._line = RedisLine(settings, kinds[0].what)
        self._alive = KeptAlive(self._line)
        self._database = database
        self._kinds = kinds
        self._wanted: tuple[tuple[bytes, Channels], ...] = ()
        self._asked: deque[tuple[bytes, Channels]] = deque()  # not answered yet
        self._listens: set[bytes] = set()

    @property
    def up(self) -> bool:
        return self._line.up

    def listens_to(self, channel: bytes) -> bool:
        """Whether Redis has confirmed the subscription."""
        return self._line.up and channel in self._listens

    def listen(self, term: Term) -> None:
        """Subscribe to that term's channels and no others; with NOBODY to none."""
        kinds = self._kinds if term != NOBODY else ()
        self.listen_to(*((kind.of(self._database, term), kind) for kind in kinds))

    def listen_to(self, *wanted: tuple[bytes, Channels]) -> None:
        if wanted != self._wanted:
            self._wanted = wanted
            self._line.close()

    def end(self, channel: bytes) -> None:
        """Subscribe to that channel no longer. What was published there before Redis confirms it
        is received still; until then `listens_to` says so."""
        self._wanted = tuple(each for each in self._wanted if each[0] != channel)
        if channel in self._listens or any(asked == channel for asked, _ in self._asked):
            self._line.send(pack_command(b"UNSUBSCRIBE", channel))

    def wait(self, timeout_s: float) -> None:
        """Wait until something may have come, at most `timeout_s`."""
        self._line.wait(timeout_s)

    def messages(self) -> list[tuple[bytes, bytes]]:
        """Return (channel, message) of what was published since the last call, whoever did it. To
        be called again and again: it also keeps the connection there."""
        if not self._wanted and not (self._listens and self._line.up):
            return []  # nothing more comes, and nobody wants another connection
        if self._line.open():
            self._asked.clear()
            self._listens.clear()
            for channel, kind in self._wanted:
                self._line.send(pack_command(b"SUBSCRIBE", channel))
                self._asked.append((channel, kind))
            self._alive.look(heard=True)
        if not self._line.up:
            return []
        replies = self._line.read()
        self._alive.look(heard=bool(replies))
        return [found for reply in replies if (found := self._message(reply)) is not None]

    def _message(self, reply: Any) -> tuple[bytes, bytes] | None:
        if isinstance(reply, Failure):
            main = self._kinds[0]
            _, kind = self._asked.popleft() if self._asked else (b"", main)
            self._line.say(kind.advice(reply, self._database), kind.what)
            if kind is main:
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
        if word == b"unsubscribe" and isinstance(channel, bytes):
            self._listens.discard(channel)
            return None
        if word != b"message" or not isinstance(data, bytes):
            return None
        return (channel, data) if channel in self._listens else None

    def close(self) -> None:
        self._line.close()
