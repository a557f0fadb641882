"""Goal: a job that rests is looked at again when something new is there for it, and not before,
however many others run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.job import Job, Status
from leasehold.schema_change.coordinator.due_jobs import DueJobs
from tests.support.schema_change.made_job import index_job


def job_of(number: int) -> Job:
    """A running job of the table of the same number."""
    return index_job(number, number, request_id=bytes(16), step=0, versions={number: 2})


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog()
    for number in (1, 2, 3):
        made.put_job(job_of(number))
    return made


def resting(catalog: Catalog) -> DueJobs:
    due = DueJobs(catalog)
    for number in due.take(0):
        due.rest(number)
    assert due.take(0) == []
    return due


def test_all_are_due_at_first_and_until_they_rest(catalog: Catalog) -> None:
    due = DueJobs(catalog)
    assert due.take(0) == [1, 2, 3]
    due.rest(2)
    assert due.take(0) == [1, 3]


def test_one_that_changes_or_begins_is_due(catalog: Catalog) -> None:
    due = resting(catalog)
    catalog.put_job(replace(catalog.jobs[2], step=1))
    catalog.put_job(job_of(4))
    assert due.take(0) == [], "nobody has said so yet"
    assert due.follow() == ([2, 4], [])
    assert due.take(0) == [2, 4]
    assert due.follow() == ([], [])


def test_one_that_ends_is_told_once_and_never_due_again(catalog: Catalog) -> None:
    due = resting(catalog)
    due.wake_at(3, 50)
    due.wake(3)
    catalog.put_job(replace(catalog.jobs[3], status=Status.CANCELLED))
    assert due.follow() == ([], [3])
    assert due.follow() == ([], [])
    due.wake(3)
    assert due.take(100) == []


def test_a_time_wakes_once(catalog: Catalog) -> None:
    due = resting(catalog)
    due.wake_at(1, 50)
    due.wake_at(1, 80)  # it is looked at before
    due.wake_at(2, 70)
    due.wake_at(2, 60)
    assert due.next_ns() == 50
    assert due.take(49) == []
    assert due.take(60) == [1, 2]
    due.rest(1)
    due.rest(2)
    due.wake_at(1, 80)
    assert due.next_ns() in (70, 80)
    assert 1 in due.take(80)


def test_a_time_that_is_said_again_and_again_is_kept_once(catalog: Catalog) -> None:
    due = resting(catalog)
    for _ in range(1_000):
        due.wake_at(1, 50)
    assert due.take(50) == [1]
    assert due.next_ns() is None
