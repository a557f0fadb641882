"""Which records count: every reader decides the same from the log alone (L1, L2, L9).

Goal: each way in which a record must not count, or must stop the reader. Method: records chained by
hand, admitted one by one.
"""

from __future__ import annotations

import pytest

from leasehold.model.errors import LogStopped
from leasehold.model.records.log import Attempt, Barrier, Grant, LogPosition, LogRecord
from leasehold.replication.log.admission import Verdict, admit
from tests.models.mutants.replication import LogRules, admit_under
from tests.support.replication.made_records import M1, M2, claim, decisions, digest


def read(position: LogPosition, record: LogRecord, offset: int | None = None) -> LogPosition:
    verdict, after = admit(
        position, position.offset if offset is None else offset, record, digest(record)
    )
    assert verdict in (Verdict.APPLY, Verdict.CLAIMED)
    return after


def judge(position: LogPosition, record: LogRecord) -> Verdict:
    return admit(position, position.offset, record, digest(record))[0]


@pytest.fixture
def mastered() -> LogPosition:
    """A log with a Claim of m1 and two records of two commits."""
    position = read(LogPosition(), claim(LogPosition(), M1))
    position = read(position, decisions(position, commits=(10, 11)))
    return read(position, decisions(position, commits=(12,)))


def test_l1_the_first_claim_for_an_epoch_wins(mastered: LogPosition) -> None:
    second = claim(mastered, M2, "m2")
    late = claim(mastered, M1)
    after = read(mastered, second)
    assert (after.epoch, after.incarnation) == (2, M2)
    assert judge(after, late) is Verdict.SKIP


def test_l1_a_claim_is_a_compare_and_set_on_what_its_node_has_applied(
    mastered: LogPosition,
) -> None:
    bid = claim(mastered, M2, "m2")
    after = read(mastered, decisions(mastered, commits=(13,)))
    assert judge(after, bid) is Verdict.SKIP
    # It costs the claimer one more try, and no reader stops.
    assert judge(after, claim(after, M2, "m2")) is Verdict.CLAIMED


def test_l1_a_deposed_masters_late_record_is_read_over(mastered: LogPosition) -> None:
    late = decisions(mastered, commits=(13,))
    after = read(mastered, claim(mastered, M2, "m2"))
    verdict, passed = admit(after, after.offset, late, digest(late))
    assert verdict is Verdict.SKIP
    assert passed == after._replace(offset=after.offset + 1)


def test_l1_an_earlier_process_of_the_same_node_does_not_count(mastered: LogPosition) -> None:
    again = read(mastered, claim(mastered, b"m1-again"))
    stale = decisions(again, commits=(13,), incarnation=M1)
    assert judge(again, stale) is Verdict.SKIP


def test_l1_a_reader_that_missed_a_claim_stops(mastered: LogPosition) -> None:
    with pytest.raises(LogStopped, match="missed a Claim"):
        judge(mastered, decisions(mastered, epoch=2, commits=(13,)))
    with pytest.raises(LogStopped, match="missed a Claim"):
        judge(mastered, claim(mastered, M2)._replace(epoch=3))


def test_l1_barriers_always_pass_and_are_outside_the_chain(mastered: LogPosition) -> None:
    verdict, after = admit(mastered, mastered.offset, Barrier(b"b"), b"whatever")
    assert verdict is Verdict.BARRIER
    assert after == mastered._replace(offset=mastered.offset + 1)
    assert judge(after, decisions(mastered, commits=(13,))) is Verdict.APPLY


def test_l2_the_same_record_again_is_skipped(mastered: LogPosition) -> None:
    """Scenario 33, `same_entry_twice`."""
    record = decisions(mastered, commits=(13,))
    after = read(mastered, record)
    assert judge(after, record) is Verdict.SKIP


def test_l2_another_record_in_the_same_place_stops_the_reader(mastered: LogPosition) -> None:
    after = read(mastered, decisions(mastered, commits=(13,)))
    with pytest.raises(LogStopped, match="L2"):
        judge(after, decisions(mastered, commits=(14,)))


def test_l2_a_gap_stops_the_reader(mastered: LogPosition) -> None:
    """Scenario 33, `gap_in_log`; on a broker, `test_kafka_clients.py`."""
    ahead = read(mastered, decisions(mastered, commits=(13,)))
    with pytest.raises(LogStopped, match="sequence"):
        judge(mastered, decisions(ahead, commits=(14,)))


def test_l2_a_lost_tail_that_grew_again_stops_the_reader(mastered: LogPosition) -> None:
    """The broker lost acknowledged records; the new ones have the right numbers (races 24)."""
    ours = read(mastered, decisions(mastered, commits=(13,)))
    theirs = read(mastered, decisions(mastered, commits=(14,)))
    with pytest.raises(LogStopped, match="L2"):
        judge(ours, decisions(theirs, commits=(15,)))


def test_l2_delivered_again_below_the_position_changes_nothing(mastered: LogPosition) -> None:
    verdict, after = admit(mastered, 0, claim(LogPosition(), M1), b"")
    assert (verdict, after) == (Verdict.SKIP, mastered)


def test_l2_lsns_are_dense(mastered: LogPosition) -> None:
    assert mastered.lsn == 3
    record = decisions(mastered, commits=(13,))._replace(first_lsn=5)
    with pytest.raises(LogStopped, match="LSN 5 follows LSN 3"):
        judge(mastered, record)


def test_l9_commit_time_rises_strictly(mastered: LogPosition) -> None:
    with pytest.raises(LogStopped, match="L9"):
        judge(mastered, decisions(mastered, commits=(12,)))


def test_c4_the_longest_grant_is_kept_with_the_position(mastered: LogPosition) -> None:
    long = Grant("r1", b"i", 5, 900)
    after = read(mastered, decisions(mastered, grants=(Grant("r1", b"i", 4, 100), long)))
    after = read(after, decisions(after, grants=(Grant("r1", b"i", 6, 500),)))
    assert after.longest_grant_ms == 900


def test_l10_what_masters_said_is_kept_until_the_message_is_decided(mastered: LogPosition) -> None:
    """By queue, whatever the epoch; what is said last counts, and what is said of one that is
    decided with it does not."""
    said = (Attempt("requests", 5, 0, 1), Attempt("backfill", 3, 0, 1))
    after = read(mastered, decisions(mastered)._replace(attempts=said))
    assert after.attempts == (said[1], said[0])
    after = read(after, claim(after, M2))
    assert after.attempts == (said[1], said[0])
    again = Attempt("requests", 5, 0, 2)
    after = read(after, decisions(after)._replace(attempts=(again,)))
    assert after.attempts == (said[1], again)
    through = {"requests": 5, "backfill": 4}
    after = read(after, decisions(after)._replace(decided_through=through))
    assert after.attempts == (again,)
    after = read(after, decisions(after)._replace(decided_through={"requests": 6}))
    assert after.attempts == ()


def test_l7_answered_through_only_rises(mastered: LogPosition) -> None:
    after = read(mastered, decisions(mastered, answered_through=2))
    assert read(after, decisions(after, answered_through=1)).answered_through == 2


def test_l1_off_a_late_claim_is_taken_although_a_record_stands_between(
    mastered: LogPosition,
) -> None:
    """The mutation: without the compare-and-set a claimer that has not applied the last record
    becomes master of it."""
    bid = claim(mastered, M2, "m2")
    after = read(mastered, decisions(mastered, commits=(13,)))
    broken = admit_under(LogRules(claim_is_compare_and_set=False))
    assert broken(after, after.offset, bid, digest(bid))[0] is Verdict.CLAIMED
