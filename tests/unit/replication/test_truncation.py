"""The log is deleted only below what everybody who may still read it has."""

from __future__ import annotations

from leasehold.model.records import Ack, LogPosition
from leasehold.replication.truncation import LogTruncation, TruncationSettings

SETTINGS = TruncationSettings(kept_records=100, away_ms=10_000, every_ms=1_000)
MS = 1_000_000
MASTER = LogPosition(offset=5_000, answered_through=4_990)


def ack(node: str, offset: int, role: str = "replicant", serves: str = "127.0.0.1:1") -> Ack:
    return Ack(node, b"i", role, offset, 1, 1, 0, True, serves, 0)


def heard(*acks: Ack, at_ms: int = 10_000) -> LogTruncation:
    truncation = LogTruncation(SETTINGS, 0)
    for each in acks:
        truncation.acked(each, at_ms * MS)
    return truncation


FEED = ack("changefeed", 4_995, role="changefeed", serves="")


def test_below_the_slowest_reader() -> None:
    truncation = heard(FEED, ack("r1", 4_000), ack("r2", 3_000))
    assert truncation.floor(MASTER, 10_000 * MS) == 3_000


def test_a_margin_is_kept_and_answers_not_given_are_kept() -> None:
    assert heard(FEED, ack("r1", 4_999)).floor(MASTER, 10_000 * MS) == 4_900
    waiting = MASTER._replace(answered_through=70)
    assert heard(FEED, ack("r1", 4_999)).floor(waiting, 10_000 * MS) == 70


def test_a_new_master_waits_until_it_knows_who_is_there() -> None:
    assert heard(FEED, ack("r1", 4_000), at_ms=9_000).floor(MASTER, 9_999 * MS) is None


def test_one_that_is_away_too_long_is_not_waited_for() -> None:
    truncation = heard(FEED, ack("r1", 4_000), at_ms=20_000)
    truncation.acked(ack("gone", 7), 9_000 * MS)
    assert truncation.floor(MASTER, 18_000 * MS) == 7
    truncation.acked(ack("gone", 8), 9_000 * MS)
    assert truncation.floor(MASTER, 20_000 * MS) == 4_000


def test_nothing_is_deleted_without_a_changefeed_or_a_snapshot_to_begin_from() -> None:
    assert heard(ack("r1", 4_000)).floor(MASTER, 10_000 * MS) is None
    assert heard(FEED, ack("r1", 4_000, serves="")).floor(MASTER, 10_000 * MS) is None


def test_it_is_asked_now_and_then_and_goes_only_forward() -> None:
    truncation = heard(FEED, ack("r1", 4_000))
    assert truncation.floor(MASTER, 10_000 * MS) == 4_000
    truncation.acked(ack("r1", 4_500), 10_001 * MS)
    assert truncation.floor(MASTER, 10_500 * MS) is None
    assert truncation.floor(MASTER, 11_000 * MS) == 4_500
    truncation.acked(ack("r1", 4_200), 11_001 * MS)
    assert truncation.floor(MASTER, 12_000 * MS) is None
