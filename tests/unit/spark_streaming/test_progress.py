"""What Spark tells of its queries, and how much of it is asked for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

from leasehold.pipeline.schedule import RunId
from spark_streaming.progress import QueryListener, RunsAlone, query_name

RUN: Final = RunId(7, 2)
OF_SPARK: Final = "0d9e0b8e-6a0f-4b43-8b0c-0f2f1f0f9c11"
OTHER: Final = "5f0c7d0e-6a0f-4b43-8b0c-0f2f1f0f9c12"


class Board:
    """Which runs were reported."""

    def __init__(self) -> None:
        self.told: list[RunId] = []
        self.batches: list[tuple[str, float]] = []
        self.failures = 0

    def report(self, run: RunId) -> None:
        self.told.append(run)

    def count_batch(self, stream: str, seconds: float) -> None:
        self.batches.append((stream, seconds))

    def count_failure(self) -> None:
        self.failures += 1


class OfJvm:
    """An object of the JVM: whatever is asked of it is a call to the other process, and counted."""

    def __init__(self, text: str, calls: list[str]) -> None:
        self._text = text
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        def call() -> Any:
            self._calls.append(name)
            if name == "batchDuration":
                return 250
            return self._text if name == "toString" else OfJvm(self._text, self._calls)

        return call


def started() -> tuple[QueryListener, Board]:
    board = Board()
    listener = QueryListener(board)  # type: ignore[arg-type]
    begun: Any = SimpleNamespace(name=query_name("demo", RUN), runId=OF_SPARK)
    listener.onQueryStarted(begun)
    assert board.told == [RUN]
    return listener, board


def test_of_a_micro_batch_only_its_run_and_its_time_are_read() -> None:
    listener, board = started()
    calls: list[str] = []
    RunsAlone(listener).onQueryProgress(OfJvm(OF_SPARK, calls))
    assert board.told == [RUN, RUN]
    assert calls == ["progress", "runId", "toString", "batchDuration"]
    assert board.batches == [("backfill", 0.25)]


def test_of_other_queries_nothing_is_told() -> None:
    listener, board = started()
    RunsAlone(listener).onQueryProgress(OfJvm(OTHER, []))
    assert board.told == [RUN]
    assert board.batches == [("retry", 0.25)]


def test_a_run_that_has_ended_is_told_of_once_more() -> None:
    listener, board = started()
    ended: Any = SimpleNamespace(runId=OF_SPARK, exception=None)
    listener.onQueryTerminated(ended)
    listener.report(OF_SPARK)
    assert board.told == [RUN, RUN]


def test_queries_that_broke_are_counted() -> None:
    listener, board = started()
    broken: Any = SimpleNamespace(runId=OTHER, exception="it broke")
    listener.onQueryTerminated(broken)
    assert listener.failures == board.failures == 1


def test_pyspark_gives_the_jvm_what_is_asked_for_here() -> None:
    """By this name; under another one it would read whole events again."""
    assert isinstance(StreamingQueryListener.__dict__["_jlistener"], property)
    assert "_jlistener" in QueryListener.__dict__
