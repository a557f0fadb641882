"""Commit times as they are kept, and rows of the past on every node of a running system."""

from __future__ import annotations

from leasehold.model.records.log import Commit
from leasehold.replication.log.retention import times_of


def commit(commit_us: int) -> Commit:
    return Commit(b"", 1, commit_us, {}, (), 0)


def test_a_line_where_the_time_does_not_just_rise_by_one() -> None:
    commits = [commit(us) for us in (100, 101, 102, 500, 501, 900)]
    assert times_of(7, commits) == [(7, 100), (10, 500), (12, 900)]
    assert times_of(7, commits[:1]) == [(7, 100)]
