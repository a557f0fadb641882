"""Is it the log that was read (L2): at a start by what stands in it, later by its topic's id.

Goal: another log under the same name, empty, shorter or longer, stops whoever has read the first
one, in words that say what to do; the same log, brought back too, does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from leasehold.model.errors import LogStopped
from leasehold.model.records.log import Barrier, LogPosition, LogRecord
from leasehold.replication.log.admission import admit
from leasehold.replication.log.identity import FIRST_WINDOW, NO_ID, LogIdentity, check_log
from tests.support.replication.made_records import M1, M2, claim, decisions, digest

MS = 1_000_000
TOPIC = "demo.log"


class Log:
    """Records as a reader finds them, from offset `first` on; `read` keeps what was asked for."""

    def __init__(self, records: Sequence[LogRecord], first: int = 0) -> None:
        self.first = first
        self.end = first + len(records)
        self._digests = [digest(record) for record in records]
        self.read = 0

    def digests(self, begin: int, below: int) -> list[bytes]:
        assert self.first <= begin < below <= self.end
        self.read += below - begin
        return self._digests[begin - self.first : below - self.first]

    def check(self, position: LogPosition) -> None:
        check_log(TOPIC, position, self.first, self.end, self.digests)


def written(count: int, incarnation: bytes = M1) -> tuple[list[LogRecord], LogPosition]:
    """A Claim and `count` records behind it, and where a reader of them stands."""
    records: list[LogRecord] = []
    position = LogPosition()
    for number in range(count + 1):
        record = decisions(position, commits=[number]) if number else claim(position, incarnation)
        records.append(record)
        _, position = admit(position, position.offset, record, digest(record))
    return records, position


def beyond(records: list[LogRecord], position: LogPosition, count: int) -> LogPosition:
    """The reader has passed over `count` barriers more."""
    for number in range(count):
        record = Barrier(b"%d" % number)
        records.append(record)
        _, position = admit(position, position.offset, record, digest(record))
    return position


def test_l2_the_log_that_was_read_may_be_gone_on_in() -> None:
    records, position = written(40)
    log = Log(records)
    log.check(position)
    assert log.read == FIRST_WINDOW, "one look at its last records"
    more, _ = written(60)
    Log(more).check(position)  # it has grown meanwhile
    Log([]).check(LogPosition())


@pytest.mark.parametrize("count", [1, FIRST_WINDOW - 1, FIRST_WINDOW, 3 * FIRST_WINDOW, 500])
def test_l2_what_counts_nowhere_may_stand_between(count: int) -> None:
    records, position = written(40)
    position = beyond(records, position, count)
    Log(records).check(position)
    nothing_before = LogPosition()
    only_barriers: list[LogRecord] = []
    nothing_before = beyond(only_barriers, nothing_before, count)
    Log(only_barriers).check(nothing_before)


def test_l2_a_log_that_ends_before_what_was_read_is_another_one() -> None:
    records, position = written(40)
    for end in (0, 1, 40):
        words = rf"offset 41 .*'demo\.log' has only {end}: .*recover-a-lost-log"
        with pytest.raises(LogStopped, match=words):
            Log(records[:end]).check(position)


@pytest.mark.parametrize("first", [0, 17])
@pytest.mark.parametrize("grown", [0, 500])
def test_l2_another_log_that_has_grown_beyond_is_told_by_what_stands_in_it(
    first: int, grown: int
) -> None:
    """Its epochs are lower or the same, so `admit` alone would pass over its records for ever."""
    _, position = written(40)
    others, _ = written(40 + grown, M2)
    with pytest.raises(
        LogStopped, match=r"'demo\.log' before offset 41: .*recreated.*recover-a-lost-log"
    ) as told:
        Log(others[first:], first).check(position)
    assert told.value.detail["topic"] == TOPIC


def test_l2_a_log_brought_back_under_a_new_id_is_the_same_one() -> None:
    records, position = written(40)
    Log(records[30:], 30).check(position)  # what was deleted before was no longer needed


def test_what_was_deleted_can_t_be_compared() -> None:
    """The next record tells it: it names the digest of the one before (L2)."""
    records, position = written(40)
    Log([], position.offset).check(position)
    with pytest.raises(LogStopped, match="begins at offset 42"):
        Log([], position.offset + 1).check(position)
    assert records


def test_it_is_asked_now_and_then() -> None:
    identity = LogIdentity(0, look_ms=2_000)
    assert not identity.due(1_999 * MS)
    assert identity.due(2_000 * MS)
    assert not identity.due(2_001 * MS)
    assert not identity.due(3_999 * MS)
    assert identity.due(4_000 * MS)


def test_l2_another_topic_of_that_name_is_told_by_its_id() -> None:
    identity = LogIdentity(0)
    _, position = written(3)
    for topic_id in (NO_ID, "first", "first", NO_ID):
        identity.check_topic(TOPIC, topic_id, position)
    for _ in range(2):
        with pytest.raises(LogStopped, match=r"recreated.*offset 4 .LSN 3.*second.*first"):
            identity.check_topic(TOPIC, "second", position)
