"""Goal: a node that lets clients in without asking says so to those who look on, again and again,
and one that asks says nothing. Who asks for leases says where it is as often as those are renewed,
who asks for none more seldom, and so often that a new master hears of it in time.

Method: acknowledgements at times that the test sets.
"""

from __future__ import annotations

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model.ports import Now
from leasehold.model.records.acks import AccessReport, Ack
from leasehold.model.records.log import LogPosition
from leasehold.model.time_units import NS_PER_MS, NS_PER_S
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


def acks(settings: NodeSettings, seconds: int) -> list[Ack]:
    """What it says on the topic without a word from anybody."""
    made = Acknowledger(settings, b"", CoherencyLease(settings.name, b""), ForeignRecords())
    times = (
        Now(ms * NS_PER_MS + NS_PER_S, ms * 1_000) for ms in range(10, seconds * 1_000 + 1, 10)
    )
    sent = [effect for now in times for effect in made.acknowledge(LogPosition(4, lsn=6), "", now)]
    records = [effect.record for effect in sent if isinstance(effect, Send)]
    return [record for record in records if isinstance(record, Ack)]


def test_who_asks_for_no_lease_says_where_it_is_more_seldom() -> None:
    serving, standby = NodeSettings("r1"), NodeSettings("m2", candidate=True, serving=False)
    coherency = serving.master.coherency
    assert len(acks(serving, 10)) == 10_000 // coherency.renewal_ms
    assert all(ack.asked_ns for ack in acks(serving, 1))
    told = acks(standby, 10)
    assert len(told) == 20
    assert not any(ack.asked_ns for ack in told)
    new_master_knows_ms = coherency.duration_ms + coherency.defer_ms
    assert 10_000 // len(told) < new_master_knows_ms, "`all_know`: each was heard by then"


def test_who_has_another_role_says_so_at_once() -> None:
    settings = NodeSettings("m1", candidate=True, serving=False)
    made = Acknowledger(settings, b"", CoherencyLease("m1", b""), ForeignRecords())
    roles = [(1_000, "standby"), (1_001, "standby"), (1_002, "master"), (1_003, "master")]
    said = []
    for ms, role in roles:
        sent = made.acknowledge(LogPosition(4), role, Now(ms * NS_PER_MS, ms * 1_000))
        records = [effect.record for effect in sent if isinstance(effect, Send)]
        said += [(ms, record.role) for record in records if isinstance(record, Ack)]
    assert said == [(1_000, "standby"), (1_002, "master")]
