"""When a candidate bids (the road before its Claim): time-outs, the log's end, second thoughts."""

from __future__ import annotations

import pytest

from leasehold.model.errors import LogStopped
from leasehold.model.records.log import LogPosition
from leasehold.replication.election import Election, ElectionSettings, Stage

SETTINGS = ElectionSettings(timeout_ms=1_000, stagger_ms=300, bid_ms=5_000)
SECOND_RANK = ElectionSettings(timeout_ms=1_000, stagger_ms=300, bid_ms=5_000, rank=1)
MS = 1_000_000
LED = LogPosition(offset=10, epoch=3)


def test_nobody_bids_while_the_master_is_heard() -> None:
    election = Election(SETTINGS, 0)
    for now in range(0, 10_000, 900):
        election.note_master(now * MS)
        assert election.tick(LED, (now + 899) * MS) is None


TERM = (3, b"m1")
LOOKED = LED._replace(incarnation=b"m1")


def looked(election: Election, now_ms: int, *, listens: bool) -> None:
    """Look when it is due at that time, and have the answer at once."""
    assert election.look_is_due(TERM, now_ms * MS)
    election.take_look(TERM, now_ms * MS, listens=listens)


def test_who_follows_learns_that_the_master_listens_and_looks_again_when_it_is_silent() -> None:
    election = Election(SETTINGS, 0)
    assert not election.look_is_due((0, b""), 0), "there is no master"
    looked(election, 0, listens=False)
    assert not election.look_is_due(TERM, 499 * MS)
    election.note_master(499 * MS)
    looked(election, 500, listens=True)
    assert not election.look_is_due(TERM, 898 * MS)
    assert election.deadline_ns(TERM) == 899 * MS
    looked(election, 899, listens=True)
    assert not election.look_is_due(TERM, 948 * MS)
    assert election.deadline_ns(TERM) == 949 * MS
    assert election.look_is_due(TERM, 949 * MS)
    assert election.tick(LOOKED, 1_400 * MS) is None, "it is busy, and is there"


def test_a_silent_master_on_whose_channel_nobody_listens_any_more_is_gone() -> None:
    election = Election(SETTINGS, 0)
    looked(election, 0, listens=True)
    looked(election, 400, listens=False)
    assert election.tick(LOOKED, 499 * MS) is None
    assert election.tick(LOOKED, 500 * MS) is None, "it was not looked again"
    looked(election, 500, listens=False)
    assert election.tick(LOOKED, 500 * MS) == "ask"


def test_standbys_do_not_find_out_at_once() -> None:
    election = Election(SECOND_RANK, 0)
    looked(election, 0, listens=True)
    looked(election, 400, listens=False)
    looked(election, 450, listens=False)
    assert election.tick(LOOKED, 549 * MS) is None
    assert election.tick(LOOKED, 550 * MS) == "ask"


@pytest.mark.parametrize("what", ["never listened", "writes", "is back", "is of another term"])
def test_a_master_is_not_gone_that(what: str) -> None:
    election = Election(SETTINGS, 0)
    looked(election, 0, listens=what != "never listened")
    followed = LOOKED
    election.take_look(TERM, 400 * MS, listens=False)
    if what == "writes":
        election.note_master(410 * MS)
    elif what == "is back":
        election.take_look(TERM, 410 * MS, listens=True)
    elif what == "is of another term":
        followed = LOOKED._replace(epoch=4, incarnation=b"m3")
    election.look_is_due(TERM, 500 * MS)
    assert election.tick(followed, 999 * MS) is None
    later_ms = 1_410 if what == "writes" else 1_000
    assert election.tick(followed, later_ms * MS) == "ask", "by time it is"


def test_a_look_of_an_earlier_term_says_nothing_of_this_one() -> None:
    election = Election(SETTINGS, 0)
    looked(election, 0, listens=True)
    election.take_look((2, b"m0"), 400 * MS, listens=False)
    assert election.look_is_due(TERM, 500 * MS)
    assert election.tick(LOOKED, 500 * MS) is None


def test_a_master_that_was_just_heard_is_not_gone() -> None:
    election = Election(SETTINGS, 0)
    looked(election, 0, listens=True)
    election.take_look(TERM, 100 * MS, listens=False)
    looked(election, 400, listens=False)
    assert election.tick(LOOKED, 400 * MS) == "ask"
    election = Election(SETTINGS, 300 * MS)
    looked(election, 300, listens=True)
    election.take_look(TERM, 400 * MS, listens=False)
    election._looked_ns = 600 * MS
    assert election.tick(LOOKED, 699 * MS) is None
    assert election.tick(LOOKED, 700 * MS) == "ask"


def test_an_old_impression_of_the_log_is_no_reason_to_bid() -> None:
    """A node waking from a pause: its timer ran out before it read its socket (races 28)."""
    election = Election(SETTINGS, 0)
    assert election.tick(LED, 60_000 * MS) == "ask"
    assert election.take_end(12, LED, 60_001 * MS) is None
    assert election.tick(LED._replace(offset=11), 60_002 * MS) is None
    # What it reads on its way to the end is the living master's: it follows again.
    election.note_master(60_003 * MS)
    assert election.tick(LED._replace(offset=12), 60_004 * MS) is None
    assert election.stage is Stage.FOLLOWING


def test_at_the_logs_end_it_bids() -> None:
    election = Election(SETTINGS, 0)
    assert election.tick(LED, 1_000 * MS) == "ask"
    assert election.take_end(12, LED, 1_001 * MS) is None
    assert election.tick(LED._replace(offset=12), 1_002 * MS) == "claim"
    assert election.tick(LED._replace(offset=12), 1_003 * MS) is None


def test_an_end_that_is_reached_already_is_bid_at_once() -> None:
    election = Election(SETTINGS, 0)
    election.tick(LED, 1_000 * MS)
    assert election.take_end(10, LED, 1_001 * MS) == "claim"


def test_an_answer_nobody_asked_for_is_ignored() -> None:
    assert Election(SETTINGS, 0).take_end(10, LED, 1 * MS) is None


def test_standbys_do_not_bid_at_once() -> None:
    assert Election(SECOND_RANK, 0).tick(LED, 1_299 * MS) is None
    assert Election(SECOND_RANK, 0).tick(LED, 1_300 * MS) == "ask"


def test_in_a_log_without_a_claim_only_the_first_rank_need_not_wait() -> None:
    assert Election(SETTINGS, 0).tick(LogPosition(), 0) == "ask"
    assert Election(SECOND_RANK, 0).tick(LogPosition(), 0) is None


def test_a_bid_that_is_not_read_back_is_given_up_and_made_again_later() -> None:
    election = Election(SETTINGS, 0)
    election.tick(LED, 1_000 * MS)
    election.take_end(10, LED, 1_001 * MS)
    assert election.tick(LED, 6_001 * MS) is None
    assert election.stage is Stage.FOLLOWING
    assert election.tick(LED, 6_900 * MS) is None
    assert election.tick(LED, 7_001 * MS) == "ask"


def test_l4_a_master_that_gave_its_epoch_up_bids_without_waiting() -> None:
    election = Election(SETTINGS, 0)
    assert election.bid_again(LED, 5 * MS) == "ask"
    assert election.take_end(10, LED, 6 * MS) == "claim"


def test_l2_a_log_that_ends_before_what_was_read_is_not_bid_in() -> None:
    election = Election(SETTINGS, 0)
    assert election.tick(LED, 1_000 * MS) == "ask"
    with pytest.raises(LogStopped, match="up to offset 10, and it ends at 9"):
        election.take_end(9, LED, 1_001 * MS)
    election = Election(SETTINGS, 0)
    assert election.bid_again(LED, 5 * MS) == "ask"
    with pytest.raises(LogStopped, match="up to offset 10, and it ends at 0"):
        election.take_end(0, LED, 1_001 * MS)


def test_an_end_may_be_behind_what_was_read_since_it_was_asked_for() -> None:
    election = Election(SETTINGS, 0)
    assert election.tick(LED, 1_000 * MS) == "ask"
    assert election.take_end(10, LED._replace(offset=12), 1_001 * MS) == "claim"


def test_a_farewell_is_bid_upon_once_what_stands_before_its_end_is_read() -> None:
    election = Election(SECOND_RANK, 0)
    election.take_farewell(3, 12)
    assert election.tick(LED, 1 * MS) is None
    election.note_master(2 * MS)
    assert election.tick(LED._replace(offset=12), 2 * MS) == "claim"
    assert election.tick(LED._replace(offset=12), 3 * MS) is None, "it is on its way"


def test_l1_a_bid_upon_a_farewell_that_is_overtaken_is_made_again() -> None:
    """The last record of the master that left has landed after all; unless somebody else's Claim
    has: then nobody has left."""
    election = Election(SETTINGS, 0)
    election.take_farewell(3, 10)
    assert election.tick(LED, 1 * MS) == "claim"
    election.give_up_bid(2 * MS)
    assert election.tick(LED._replace(offset=11, epoch=4), 2 * MS) is None
    assert election.tick(LED._replace(offset=11), 2 * MS) == "claim"


def test_l4_a_bid_upon_a_farewell_whose_fate_is_unknown_is_made_again_after_the_time() -> None:
    election = Election(SETTINGS, 0)
    election.take_farewell(3, 10)
    assert election.tick(LED, 1 * MS) == "claim"
    election.fail_bid(2 * MS)
    assert election.tick(LED, 1_001 * MS) is None
    assert election.tick(LED, 1_002 * MS) == "ask"
