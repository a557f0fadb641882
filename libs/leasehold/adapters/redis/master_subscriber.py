"""What a master is told by the fast ways, acknowledgements and requests, through one connection: it
can wait for one socket only."""

from __future__ import annotations

from typing import Final, NamedTuple

from leasehold.adapters.redis.acks import ACK_BYTES_MAX
from leasehold.adapters.redis.acks import CHANNELS as ACKS
from leasehold.adapters.redis.pubsub import Channels, ChannelSubscriber
from leasehold.adapters.redis.requests import REQUESTS
from leasehold.replication.fast_path.log import NOBODY, Term
from leasehold.settings.environment import RedisSettings

BOTH: Final = (ACKS, REQUESTS)


class Heard(NamedTuple):
    acks: list[bytes]
    requests: list[bytes]


NOTHING: Final = Heard([], [])


class MasterSubscriber:
    """For one thread, which it never holds up."""

    def __init__(
        self, settings: RedisSettings, database: str, kinds: tuple[Channels, ...] = BOTH
    ) -> None:
        """`kinds`: what to listen to."""
        self._kinds = kinds
        self._database = database
        self._subscriber = ChannelSubscriber(settings, database, kinds[0] if kinds else ACKS)
        self._requests = b""

    @property
    def up(self) -> bool:
        return self._subscriber.up

    @property
    def hears_requests(self) -> bool:
        return self._subscriber.listens_to(self._requests)

    def listen(self, epoch: int, incarnation: bytes) -> None:
        self.stop()
        if self._kinds:
            term: Term = (epoch, incarnation)
            if REQUESTS in self._kinds:
                self._requests = REQUESTS.of(self._database, term)
            self._subscriber.listen(term, *self._kinds)

    def stop(self) -> None:
        self._subscriber.listen(NOBODY)

    def wait(self, timeout_s: float) -> None:
        """Until something may have come."""
        self._subscriber.wait(timeout_s)

    def messages(self) -> Heard:
        """What was told since the last call, whoever said it; to be called again and again."""
        told = self._subscriber.of_channels()
        if not told:
            return NOTHING
        heard = Heard([], [])
        for channel, data in told:
            if channel == self._requests:
                heard.requests.append(data)
            elif len(data) <= ACK_BYTES_MAX:
                heard.acks.append(data)
        return heard

    def close(self) -> None:
        self._subscriber.close()
