"""Channels of Redis on which nodes and one term's master tell each other things (PUBLISH,
SUBSCRIBE): acknowledgements (`redis_acks.py`), records of the log (`redis_log.py`).

A channel names the term by epoch and incarnation, 16 random bytes of the master's process. So
nobody but that master and its nodes meet there: not a deposed one whose connection Redis still has,
not the master of another cluster that shares this Redis, nor one of a restored copy of this log
(channels know no database numbers, and a copy has the same epochs).
"""

from __future__ import annotations

from typing import Any

from leasehold.adapters.environment import RedisSettings
from leasehold.adapters.redis_line import KeptAlive, RedisLine
from leasehold.adapters.redis_replies import Failure, packed
from leasehold.replication.fast_log import NOBODY, Term


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
        return self.pattern(database).replace("*", f"{epoch}:{incarnation.hex()}").encode()

    def advice(self, failure: Failure, database: str) -> str:
        if not failure.startswith("NOPERM"):
            return failure
        return (
            f"{failure}; give its user the channels &{self.pattern(database)} and the commands"
            f" +publish +subscribe +ping, or set {self._setting}=off"
        )


class ChannelEar:
    """What is told on a term's channel. For one thread, which it never holds up."""

    def __init__(self, settings: RedisSettings, database: str, channels: Channels) -> None:
        self._line = RedisLine(settings, channels.what)
        self._alive = KeptAlive(self._line)
        self._database = database
        self._channels = channels
        self._term = NOBODY
        self._channel = b""

    @property
    def up(self) -> bool:
        return self._line.up

    def listen(self, term: Term) -> None:
        """To that term and no other; NOBODY: to none."""
        if term != self._term:
            self._term = term
            self._line.close()
            self._channel = self._channels.of(self._database, term) if term != NOBODY else b""

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
            self._line.say(self._channels.advice(reply, self._database))
            self._line.lost(reply)
            return None
        if not isinstance(reply, list) or len(reply) != 3 or reply[1] != self._channel:
            return None
        word, _, data = reply
        if word == b"subscribe":
            self._line.works()
        return data if word == b"message" and isinstance(data, bytes) else None

    def close(self) -> None:
        self._line.close()
