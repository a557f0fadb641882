"""Goal: a log whose time, or whose id horizon, is days ahead comes back to the clock when somebody
says so; every node takes it alike, and what was decided is decided once.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model.errors import LogStopped
from leasehold.model.records.log import Commit, LogPosition, Refusal
from leasehold.replication.log.admission import admit
from tests.support.replication.clock_world import DAY_MS, HOUR_MS, Hosts, taken
from tests.support.replication.made_records import claim, decisions, digest
from tests.unit.replication.log.test_clock_faults import ADD, TABLE, insert, value

RESET: Final = {"clock": "reset"}


@pytest.fixture
def ahead() -> Hosts:
    """All clocks were ten days ahead for a week: so is the log's time; fresh ids are refused."""
    hosts = Hosts()
    hosts.ask(TABLE)
    hosts.ask(insert(1, a=0))
    hosts.set_clocks(10 * DAY_MS)
    hosts.take_over("m2")
    for _ in range(7 * 24):
        hosts.passes(HOUR_MS)
        hosts.ask(ADD, hosts.made_id(hosts.clock_ms("m1")))
    hosts.set_clocks(0)
    hosts.take_over("m1")
    return hosts


def answer_of(hosts: Hosts, number: bytes) -> Any:
    committed = hosts.last(number)
    assert isinstance(committed, Commit), committed
    return committed.answer


def test_l9_the_logs_time_is_set_back_when_somebody_says_so(ahead: Hosts) -> None:
    refused = ahead.last(ahead.ask(ADD))
    assert isinstance(refused, Refusal)
    assert refused.code == "LH001"
    before = value(ahead)
    told = answer_of(ahead, ahead.ask(RESET))
    assert told["reset"]
    assert abs(told["log_us"] - told["clock_us"] - 10 * DAY_MS * 1_000) < 60_000_000
    number = ahead.ask(ADD)
    committed = ahead.last(number)
    assert isinstance(committed, Commit), committed
    assert abs(committed.commit_us - ahead.clock_ms() * 1_000) < 1_000_000
    assert value(ahead) == before + 1
    ahead.ask(ADD, number)
    assert value(ahead) == before + 1, "asked again"
    ahead.check_nodes()


def test_l5_requests_of_before_the_reset_are_not_decided_after_it(ahead: Hosts) -> None:
    """Nothing is known of them any more: the horizon goes back to the clock and no further."""
    early = ahead.made_id(ahead.clock_ms() - 1_000)
    ahead.ask(RESET)
    refused = ahead.last(ahead.ask(ADD, early))
    assert isinstance(refused, Refusal)
    assert refused.code == "LH001"
    assert ahead.position.id_horizon_us <= ahead.clock_ms() * 1_000


def test_l9_where_nothing_is_ahead_a_reset_changes_nothing() -> None:
    hosts = Hosts()
    hosts.ask(TABLE)
    before = hosts.position
    assert answer_of(hosts, hosts.ask(RESET))["reset"] is False
    after = hosts.position
    assert (after.reset_us, after.id_horizon_us >= before.id_horizon_us) == (0, True)
    hosts.check_nodes()


def test_l9_a_reset_said_twice_is_one(ahead: Hosts) -> None:
    number = ahead.ask(RESET)
    position = ahead.position
    ahead.ask(RESET, number)
    ahead.ask(RESET)
    assert ahead.position.reset_us == position.reset_us
    assert ahead.position.commit_us > position.commit_us


def test_l9_a_reset_waits_for_a_record_of_its_own(ahead: Hosts) -> None:
    """What stands before it in the queue is decided by the time of before."""
    ids = [ahead.made_id(ahead.clock_ms("m1") + 10 * DAY_MS) for _ in range(3)]
    master = ahead.nodes["m1"].master
    assert master is not None
    for number, fields in zip(ids, (ADD, RESET, ADD), strict=True):
        ahead.queue.append(ahead.body(number, fields))
        ahead._hand_over(len(ahead.queue) - 1)
    for _ in range(4):
        ahead.ms += 300
        ahead.tick()
    records = [r for r in ahead.records if r.reset_us]
    assert len(records) == 1
    assert [commit.request_id for commit in records[0].commits] == [ids[1]]
    ahead.check_nodes()


def test_d8_the_past_of_before_the_reset_is_not_read(ahead: Hosts) -> None:
    store = ahead.stores["m1"]
    lsn = ahead.position.lsn
    ahead.ask(RESET)
    with store.open_snapshot() as snapshot:
        assert snapshot.lsn_at(ahead.position.reset_us - 1) == 0
        assert snapshot.lsn_at(ahead.position.reset_us) == lsn
    kept = store.kept_from(1)
    assert kept is not None
    assert kept >= lsn


def test_a_new_master_goes_on_from_the_reset(ahead: Hosts) -> None:
    ahead.ask(RESET)
    ahead.take_over("m2")
    committed = ahead.last(ahead.ask(ADD))
    assert isinstance(committed, Commit)
    assert abs(committed.commit_us - ahead.clock_ms() * 1_000) < 1_000_000
    assert taken(committed)
    ahead.check_nodes()


# ---------------------------------------------------------------- the rule


def test_l9_a_reader_takes_times_of_before_from_a_reset_on_alone() -> None:
    start = LogPosition(commit_us=900, closed_us=950, id_horizon_us=800)
    first = claim(start, b"m1")
    _, start = admit(start, 0, first, digest(first))
    back = decisions(start, commits=[501])
    with pytest.raises(LogStopped, match="L9"):
        admit(start, 1, back, digest(back))
    reset = back._replace(reset_us=500, closed_us=510, id_horizon_us=400)
    _, after = admit(start, 1, reset, digest(reset))
    assert after[6] == 501
    assert (after.closed_us, after.id_horizon_us, after.reset_us) == (510, 400, 500)
    assert after.time_us == 510
    closed = decisions(after, commits=[510])
    with pytest.raises(LogStopped, match="commit time 510 is not after 510"):
        admit(after, 2, closed, digest(closed))


def test_a_record_of_an_older_master_has_no_times() -> None:
    """Bytes of ten fields are read, and give what they gave."""
    codec = MessagePackCodec()
    record = decisions(LogPosition(epoch=1, incarnation=b"i"), commits=[5])
    assert (record.closed_us, record.id_horizon_us, record.reset_us) == (0, 0, 0)
    assert codec.decode_log(codec.encode(record)) == record
