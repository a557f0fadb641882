"""Whether users commit beside jobs, by what the jobs' own events tell."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from spark_streaming.log_users import RECENT_US, LogUsers


def told(events: Sequence[tuple[int, int]]) -> LogUsers:
    """After events by LSN and commit time."""
    return reduce(lambda users, event: users.after(*event), events, LogUsers())


@given(
    # Who commits next, a job or somebody else, and how long after the one before.
    st.lists(st.tuples(st.booleans(), st.integers(1, 2 * RECENT_US)), min_size=1),
    st.integers(1, 1_000_000),
)
def test_against_the_log_itself(commits: list[tuple[bool, int]], first: int) -> None:
    """Goal: it is what a reader of all commits would say: users are there while one of their
    commits, met between two events, has its next event less than a second before the newest."""
    us, expected, between, met = 1, 0, False, False
    events: list[tuple[int, int]] = []
    for lsn, (of_job, pause_us) in enumerate(commits, start=first):
        us += pause_us
        if not of_job:
            between = True
            continue
        events.append((lsn, us))
        if met and between:
            expected = us
        met, between = True, False
    newest = events[-1][1] if events else 0
    assert told(events).beside == (expected > 0 and newest - expected < RECENT_US)


def test_what_one_commit_tells_twice_is_one_event() -> None:
    """A commit that moves two jobs has an event for each; and an older one, read again, is none."""
    assert not told([(5, 10), (5, 10), (6, 20), (4, 5), (7, 30)]).beside
    assert told([(5, 10), (7, 20), (7, 20)]).beside


def test_a_second_later_they_have_gone() -> None:
    met = [(5, 10), (7, 20)]
    assert told([*met, (8, 19 + RECENT_US)]).beside
    assert not told([*met, (8, 20 + RECENT_US)]).beside


def test_before_a_second_event_nobody_is_there() -> None:
    assert not told([]).beside
    assert not told([(900, 1)]).beside
