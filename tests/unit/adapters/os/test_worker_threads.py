"""Goal: each piece of work is done once, by few threads, also where the machine has no more of
them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from leasehold.adapters.os import worker_threads
from leasehold.adapters.os.worker_threads import WorkerThreads

DEADLINE_S = 30.0
PIECES = 50


class Unstartable(threading.Thread):
    def start(self) -> None:
        raise RuntimeError("can't start new thread")


@pytest.fixture
def workers() -> Iterator[WorkerThreads]:
    made = WorkerThreads("test", 3)
    yield made
    assert made.stop(DEADLINE_S)


def test_each_piece_is_done_once_by_so_many_threads(workers: WorkerThreads) -> None:
    done = threading.Semaphore(0)
    names: list[str] = []

    def work() -> None:
        names.append(threading.current_thread().name)
        done.release()

    for _ in range(PIECES):
        workers.submit(work)
    assert all(done.acquire(timeout=DEADLINE_S) for _ in range(PIECES))
    assert len(names) == PIECES
    assert set(names) <= {"test-0", "test-1", "test-2"}


def test_work_waits_for_a_thread_that_is_there_where_no_other_can_be_had(
    workers: WorkerThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_busy, may_end, done = threading.Event(), threading.Event(), threading.Event()

    def be_busy() -> None:
        is_busy.set()
        may_end.wait(DEADLINE_S)

    workers.submit(be_busy)
    assert is_busy.wait(DEADLINE_S)

    with monkeypatch.context() as limited:
        limited.setattr(worker_threads, "Thread", Unstartable)
        workers.submit(done.set)
    assert not done.is_set()
    may_end.set()
    assert done.wait(DEADLINE_S)


def test_without_any_thread_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = WorkerThreads("test", 3)
    with monkeypatch.context() as limited:
        limited.setattr(worker_threads, "Thread", Unstartable)
        with pytest.raises(RuntimeError, match="new thread"):
            workers.submit(lambda: None)
    done = threading.Event()
    workers.submit(done.set)
    assert done.wait(DEADLINE_S), "it may have one again later"
    assert workers.stop(DEADLINE_S), "and knows of no thread that never began"
