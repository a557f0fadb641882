"""What a master receives by the fast paths, acknowledgements and requests, through one connection:
it can wait for one socket only."""

from __future__ import annotations

from typing import Final, NamedTuple

from leasehold.adapters.redis.acks import ACK_BYTES_MAX
from leasehold.adapters.redis.acks import CHANNELS as ACKS
from leasehold.adapters.redis.pubsub import Channels, ChannelSubscriber
from leasehold.adapters.redis.requests import REQUESTS
from leasehold.replication.fast_path.log import NOBODY, Term
from leasehold.settings.environment import RedisSettings

BOTH: Final = (ACKS, REQUESTS)


class Received(NamedTuple):
    acks: list[bytes]
    requests: list[bytes]


NOTHING: Final = Received([], [])


class MasterSubscriber(ChannelSubscriber):
    """Receives what nodes and requesters publish to one term's master."""

    def __init__(
        self, settings: RedisSettings, database: str, kinds: tuple[Channels, ...] = BOTH
    ) -> None:
        """Prepare to listen to `kinds`; without any nothing is ever subscribed to."""
        super().__init__(settings, database, *(kinds or (ACKS,)))
        self._is_used = bool(kinds)
        self._requests = b""

    @property
    def hears_requests(self) -> bool:
        return self.listens_to(self._requests)

    def listen(self, term: Term) -> None:
        """Subscribe to that term's channels through a new connection, on which rights count that
        its user was given since; with NOBODY to none."""
        super().listen(NOBODY)
        self._requests = REQUESTS.of(self._database, term)
        super().listen(term if self._is_used else NOBODY)

    def end_requests(self) -> None:
        """Receive no requests that are published from now on; until `hears_requests` is over some
        that were published before may come."""
        self.end(self._requests)

    def received(self) -> Received:
        """Return what was published since the last call, whoever did it. To be called again and
        again."""
        messages = self.messages()
        if not messages:
            return NOTHING
        found = Received([], [])
        for channel, data in messages:
            if channel == self._requests:
                found.requests.append(data)
            elif len(data) <= ACK_BYTES_MAX:
                found.acks.append(data)
        return found
