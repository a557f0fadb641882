"""The log is deleted only below what everybody who may still read it has."""

from __future__ import annotations

from leasehold.model.records.acks import Ack
from leasehold.model.records.log import LogPosition
from leasehold.replication.log.truncation import (
    COPY_ROLE,
    READERS_MAX,
    LogTruncation,
    TruncationSettings,
    copy_name,
)

SETTINGS = TruncationSettings(
    kept_records=100, away_ms=10_000, every_ms=1_000, copy_away_ms=2_000, silence_ms=3_000
)
MS = 1_000_000
MASTER = LogPosition(offset=5_000, answered_through=4_990)


def ack(node: str, offset: int, role: str = "replicant", serves: str = "127.0.0.1:1") -> Ack:
    return Ack(node, b"i", role, offset, 1, 1, 0, True, serves, 0)


def heard(*acks: Ack, at_ms: int = 10_000) -> LogTruncation:
    """Return one that has heard everybody since 0."""
    truncation = LogTruncation(SETTINGS)
    truncation.take_history((), at_ms * MS, at_ms * MS)
    for each in acks:
        truncation.take_ack(each, at_ms * MS)
    return truncation


FEED = ack("changefeed", 4_995, role="changefeed", serves="")


def test_below_the_slowest_reader() -> None:
    truncation = heard(FEED, ack("r1", 4_000), ack("r2", 3_000))
    assert truncation.floor(MASTER, 10_000 * MS) == 3_000


def test_a_margin_is_kept_and_answers_not_given_are_kept() -> None:
    assert heard(FEED, ack("r1", 4_999)).floor(MASTER, 10_000 * MS) == 4_900
    waiting = MASTER._replace(answered_through=70)
    assert heard(FEED, ack("r1", 4_999)).floor(waiting, 10_000 * MS) == 70


def test_l11_a_master_waits_until_it_knows_who_is_there() -> None:
    truncation = heard(FEED, ack("r1", 4_000), at_ms=9_000)
    assert truncation.floor(MASTER, 9_999 * MS) is None
    assert truncation.floor(MASTER, 11_000 * MS) == 4_000
    assert LogTruncation(SETTINGS).floor(MASTER, 60_000 * MS) is None, "it has heard nobody at all"


def test_one_that_is_away_too_long_is_not_waited_for() -> None:
    truncation = heard(FEED, ack("r1", 4_000), at_ms=20_000)
    truncation.take_ack(ack("gone", 7), 9_000 * MS)
    assert truncation.floor(MASTER, 21_999 * MS) == 7
    assert truncation.floor(MASTER, 23_000 * MS) == 4_000, "10 s, and what may not be heard yet"


def test_nothing_is_deleted_without_a_changefeed_or_a_snapshot_to_begin_from() -> None:
    assert heard(ack("r1", 4_000)).floor(MASTER, 10_000 * MS) is None
    assert heard(FEED, ack("r1", 4_000, serves="")).floor(MASTER, 10_000 * MS) is None


def test_it_is_asked_now_and_then_and_goes_only_forward() -> None:
    truncation = heard(FEED, ack("r1", 4_000))
    assert truncation.floor(MASTER, 10_000 * MS) == 4_000
    truncation.take_ack(ack("r1", 4_500), 10_001 * MS)
    assert truncation.floor(MASTER, 10_500 * MS) is None
    assert truncation.floor(MASTER, 11_000 * MS) == 4_500
    truncation.take_ack(ack("r1", 4_200), 11_001 * MS)
    assert truncation.floor(MASTER, 12_000 * MS) is None


# ------------------------------------------------------------ who was heard


def test_l11_nothing_is_deleted_while_nobody_is_heard() -> None:
    """A reader that was heard a while before the others would seem to be away, and they not."""
    truncation = heard(FEED, ack("r1", 4_000), at_ms=20_000)
    truncation.take_ack(ack("r2", 3_000), 10_001 * MS)
    assert truncation.floor(MASTER, 23_001 * MS) is None, "r2 may have acknowledged since 20 s"
    truncation = heard(FEED, ack("r1", 4_000), at_ms=20_001)
    truncation.take_ack(ack("r2", 3_000), 10_001 * MS)
    assert truncation.floor(MASTER, 23_001 * MS) == 4_000, "it was silent for 10 s before that"


def test_l11_what_is_missed_is_waited_for_anew() -> None:
    """A process that was stopped finds some of it only behind what it reads first."""
    truncation = heard(FEED, ack("r1", 4_000))
    truncation.take_ack(FEED, 13_001 * MS)
    assert truncation.floor(MASTER, 13_001 * MS) is None
    for second in range(14, 24):
        truncation.take_ack(FEED, second * 1_000 * MS)
        truncation.take_ack(ack("r1", 4_000), second * 1_000 * MS)
    assert truncation.floor(MASTER, 23_000 * MS) is None
    assert truncation.floor(MASTER, 24_001 * MS) == 4_000


def test_l11_what_was_found_does_not_fill_a_gap_behind_it() -> None:
    truncation = LogTruncation(SETTINGS)
    truncation.take_ack(FEED, 0)
    truncation.take_ack(ack("r1", 4_000), 4_000 * MS)
    truncation.take_history((FEED,), 60_000 * MS, 4_500 * MS)
    assert truncation.floor(MASTER, 5_500 * MS) is None, "nobody knows of whom between 0 and 4 s"


def test_l11_readers_from_before_a_process_began_are_waited_for() -> None:
    """By what they said last, for as long as any from when they were found; who has said more
    since by that."""
    truncation = LogTruncation(SETTINGS)
    truncation.take_ack(FEED, 100_000 * MS)
    truncation.take_ack(ack("r1", 4_000), 100_000 * MS)
    truncation.take_history((ack("r1", 9), ack("r2", 3_000)), 9_000 * MS, 100_500 * MS)
    truncation.take_ack(FEED, 101_499 * MS)
    assert truncation.floor(MASTER, 101_499 * MS) is None, "9.999 s"
    assert truncation.floor(MASTER, 102_500 * MS) == 3_000
    for second in range(103, 114):
        truncation.take_ack(FEED, second * 1_000 * MS)
        truncation.take_ack(ack("r1", 4_000), second * 1_000 * MS)
    assert truncation.floor(MASTER, 113_499 * MS) is None, "r2 may come back"
    assert truncation.floor(MASTER, 114_500 * MS) == 4_000


def test_l11_more_readers_than_are_remembered_keep_the_log() -> None:
    truncation = heard(FEED, *(ack(f"r{number}", 4_000) for number in range(READERS_MAX)))
    assert truncation.floor(MASTER, 11_000 * MS) is None
    for second in range(12, 24):  # all but one are gone
        truncation.take_ack(FEED, second * 1_000 * MS)
        truncation.take_ack(ack("r1", 4_500), second * 1_000 * MS)
    assert truncation.floor(MASTER, 24_000 * MS) == 4_500


# ------------------------------------------------------------ a node that copies a snapshot


RECORDS_PER_S = 700
COPY_S = 1_000
S = 1_000 * MS


def test_a_copy_that_takes_longer_than_the_margin_is_not_outrun() -> None:
    """The new node would find that the log begins behind its copy, and copy again, for ever."""
    truncation = LogTruncation(TruncationSettings())
    truncation.take_history((), 3_600 * S, 3_600 * S)
    copy_at = floor = 0
    for second in range(3_600, 3_700 + COPY_S):
        now_ns, end = second * S, 1_000_000 + second * RECORDS_PER_S
        truncation.take_ack(ack("changefeed", end, "changefeed", ""), now_ns)
        truncation.take_ack(ack("r1", end), now_ns)
        if second == 3_700:
            copy_at = end
        if copy_at:
            truncation.take_ack(ack(copy_name("r1"), copy_at, COPY_ROLE, ""), now_ns)
        master = LogPosition(offset=end, answered_through=end)
        floor = truncation.floor(master, now_ns) or floor
    assert 0 < floor <= copy_at


def test_it_is_held_until_the_new_node_has_said_where_it_is_and_no_longer() -> None:
    truncation = heard(FEED, ack("r1", 4_900), ack(copy_name("r1"), 3_000, COPY_ROLE, ""))
    assert truncation.floor(MASTER, 10_000 * MS) == 3_000
    truncation.take_ack(ack("r2", 3_000), 11_000 * MS)  # it has its copy, and reads on from there
    assert truncation.floor(MASTER, 11_000 * MS) is None
    truncation.take_ack(ack("r2", 4_800), 13_000 * MS)
    assert truncation.floor(MASTER, 15_000 * MS) == 4_800


def test_a_copy_of_which_nothing_is_heard_any_more_does_not_hold_the_log_for_ever() -> None:
    truncation = heard(FEED, ack("r1", 4_900), ack(copy_name("r1"), 3_000, COPY_ROLE, ""))
    truncation.take_ack(ack("r1", 4_900), 12_500 * MS)
    assert truncation.floor(MASTER, 14_999 * MS) == 3_000
    truncation.take_ack(ack("r1", 4_900), 15_000 * MS)
    assert truncation.floor(MASTER, 16_000 * MS) == 4_900


def test_a_copy_serves_nobody() -> None:
    """It is no node that a new one could begin from."""
    copied = ack(copy_name("r1"), 3_000, COPY_ROLE, "")
    assert heard(FEED, copied).floor(MASTER, 10_000 * MS) is None
