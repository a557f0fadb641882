"""Goal: of a record that lies across the target what belongs to it is applied, and nothing else; a
segment ends where it is known what counts.

Method: records made by hand, chained as a master chains them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.backup.chain import NEWEST, Target
from leasehold.backup.replay import LogFollower, Replay
from leasehold.model.errors import LogStopped
from leasehold.model.records.log import Decisions, Disposition, LogPosition, LogRecord, Refusal
from tests.support.replication.made_records import M1, claim, decisions, digest

IDS = [bytes((number,)) * 16 for number in range(10)]
REFUSED = Refusal(
    IDS[9], 1, Disposition.FINAL, "23505", "no", {}, 31, -1, "requests", 3, "", None, None
)


def with_ids(record: Decisions) -> Decisions:
    """Its commits answer requests whose ids are their LSNs'."""
    first = record.first_lsn
    named = (c._replace(request_id=IDS[first + at]) for at, c in enumerate(record.commits))
    return record._replace(commits=tuple(named))


@pytest.fixture
def log() -> list[LogRecord]:
    """A claim, three commits in one record with a refusal behind them, one commit."""
    follower = LogFollower(LogPosition())
    records: list[LogRecord] = []

    def add(record: LogRecord) -> None:
        follower.take(record, len(records), digest(record))
        records.append(record)

    add(claim(LogPosition(), M1))
    three = with_ids(decisions(follower.position, commits=(10, 20, 30)))
    add(three._replace(refusals=(REFUSED,)))
    add(with_ids(decisions(follower.position, commits=(40,))))
    assert (follower.position.lsn, follower.position.offset) == (4, 3)
    return records


def replayed(log: list[LogRecord], target: Target, path: Path) -> tuple[LogPosition, list[bytes]]:
    """The position, and ids that have outcomes."""
    with closing(SqliteStore(path)) as store:
        replay = Replay(store, target)
        for offset, record in enumerate(log):
            replay.take(record, offset, digest(record))
        replay.end()
        assert store.position() == replay.position
        assert replay.is_done == (target != NEWEST)
        return replay.position, [each for each in IDS if store.outcome(each) is not None]


def cases() -> Iterator[tuple[Target, int, list[bytes]]]:
    yield Target(), 4, [*IDS[1:5], IDS[9]]
    yield Target(lsn=4), 4, [*IDS[1:5], IDS[9]]
    yield Target(lsn=3), 3, [*IDS[1:4], IDS[9]]
    yield Target(lsn=2), 2, IDS[1:3]
    yield Target(lsn=1), 1, IDS[1:2]
    yield Target(time_us=40), 4, [*IDS[1:5], IDS[9]]
    yield Target(time_us=39), 3, [*IDS[1:4], IDS[9]]
    yield Target(time_us=30), 3, [*IDS[1:4], IDS[9]]
    yield Target(time_us=29), 2, IDS[1:3]
    yield Target(time_us=9), 0, []


def test_of_a_record_the_commits_up_to_the_target_are_applied(
    log: list[LogRecord], tmp_path: Path
) -> None:
    wrong = []
    for number, (target, lsn, ids) in enumerate(cases()):
        position, found = replayed(log, target, tmp_path / f"{number}.db")
        if (position.lsn, found) != (lsn, ids):
            wrong.append((target, position.lsn, found))
    assert wrong == []


def test_a_segment_does_not_end_behind_what_is_in_doubt(log: list[LogRecord]) -> None:
    """A record is missing before the last one; then another one follows that."""
    follower = LogFollower(LogPosition())
    follower.take(log[0], 0, digest(log[0]))
    follower.take(log[2], 1, digest(log[2]))
    assert follower.position.offset == 1
    follower.check()  # it may be somebody else's
    ahead = LogFollower(LogPosition())
    for offset, record in enumerate(log):
        ahead.take(record, offset, digest(record))
    chained = decisions(ahead.position, commits=(50,))
    follower.take(chained, 2, digest(chained))
    assert follower.position.offset == 1
    with pytest.raises(LogStopped):
        follower.check()
    follower.take(log[1], 3, digest(log[1]))
    assert (follower.position.offset, follower.position.lsn) == (4, 3)
