"""The fast path of acknowledgements (`replication/fast_path/acks.py`): PUBLISH at a node, SUBSCRIBE
at the master (`master_subscriber.py`).

Whom its channel keeps away: `pubsub.py`. What listens may die unnoticed all the same, which
is why nothing relies on Redis's word for longer than `patience_ms`.
"""

from __future__ import annotations

from typing import Final

from leasehold.adapters.redis.pubsub import ChannelPublisher, Channels
from leasehold.replication.fast_path.log import Term
from leasehold.settings.environment import RedisSettings

CHANNELS: Final = Channels("acks", "acknowledgements", "LEASEHOLD_FAST_ACKS")
ACK_BYTES_MAX: Final = 1_024
LOOK: Final = b""
"""Says nothing: a master passes over it as over whatever else it can't decode."""


class AckPublisher(ChannelPublisher[int]):
    """Publishes a node's acknowledgements, each under a number that rises."""

    def __init__(self, settings: RedisSettings, database: str) -> None:
        super().__init__(settings, database, CHANNELS)

    def outcomes(self) -> list[tuple[int, bool]]:
        """Return (number, whether a master listened) of those that Redis has answered since the
        last call; of those to which one listened the last alone, which stands for all before."""
        found = super().outcomes()
        if not found:
            return found
        heard = [each for each in found if each[1]][-1:]
        return sorted([*(each for each in found if not each[1]), *heard])


class MasterLook(ChannelPublisher[Term]):
    """Asks Redis whether a term's master listens to acknowledgements: how many receive what is
    published there. Redis knows that a process has ended as soon as the kernel closes its
    connection."""

    def __init__(self, settings: RedisSettings, database: str) -> None:
        super().__init__(settings, database, CHANNELS)

    def ask(self, term: Term) -> bool:
        """Ask; return whether that could be done."""
        return self.publish_to_term(term, LOOK, term)

    def outcomes(self) -> list[tuple[Term, bool]]:
        """Return (term, whether anybody listens), as Redis has answered since the last call.
        Nothing is told of what it was asked through a connection that has gone."""
        found = super().outcomes()
        return found if self.up else []
