"""Goal: a node that lets clients in without asking says so to those who look on, again and again,
and one that asks says nothing.

Method: acknowledgements at times that the test sets.
"""

from __future__ import annotations

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model.ports import Now
from leasehold.model.records.acks import AccessReport
from leasehold.model.records.log import LogPosition
from leasehold.model.time_units import NS_PER_S
from leasehold.replication.acknowledging import Acknowledger
from leasehold.replication.coherency import CoherencyLease
from leasehold.replication.effects import Send
from leasehold.replication.log.foreign import ForeignRecords
from leasehold.replication.node_settings import NodeSettings

WORDS = "open: who comes to 127.0.0.1:5432 is asked for no password"


def told(open_to: str, seconds: int) -> list[int]:
    """The seconds in which it says so."""
    settings, lease = NodeSettings("r1", open_to=open_to), CoherencyLease("r1", b"")
    made = Acknowledger(settings, b"", lease, ForeignRecords())
    found = []
    for second in range(1, seconds + 1):
        now = Now(second * NS_PER_S, second * 1_000_000)
        for effect in made.acknowledge(LogPosition(4, lsn=6), "replicant", now):
            if isinstance(effect, Send) and isinstance(effect.record, AccessReport):
                assert effect.record == AccessReport("r1", WORDS, now.wall_us)
                assert MessagePackCodec().decode(MessagePackCodec().encode(effect.record))
                found.append(second)
    return found


def test_an_open_node_says_so() -> None:
    assert told(WORDS, 15) == [1, 6, 11]
    assert told("", 15) == []
