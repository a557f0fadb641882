"""Goal: while nodes merge what a backfill by range has read, people see who does, how far the
slowest is, and since when; what stands still is told from what goes on.

Method: acknowledgements and reports of nodes by hand, folded into a view.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from leasehold.admin.fold import MERGING_MAX
from leasehold.admin.report import report
from leasehold.admin.view import ClusterView
from leasehold.catalog.elements import ALL_ROWS
from leasehold.catalog.job import Phase, Status, Step
from leasehold.cli.job_watch import progress_words
from leasehold.model.records.acks import MergeReport, TableMerged
from leasehold.model.records.jobs import JobProgress
from tests.support.admin.view_events import NOW, SECOND, ack, job, log, seen

TOLD = {"m1": (1, 400), "r1": (2, 250), "r2": (0, 1_000), "r4": (1, 0), "r5": (0, 0)}
"""Ranges left, and rows merged."""


def merging(**changes: Any) -> ClusterView:
    """A view of a run that began 20 s ago and was read 10 s ago. r3 has told nothing since it was
    started anew, r4 isn't coherent, and r5 has not applied the record that ends the run."""
    run = {"step": 1, "phase": Phase.BACKFILLING, "run": 1, "rows": 1_000, "rows_read": 900}
    mark = (1, Phase.BACKFILLING.value, NOW - 20 * SECOND)
    fields = {**run, "by_range": True, "chunks_ended": True, "marks": (mark,), **changes}
    acks = [ack("m1", role="master", lsn=9, coherent=False), ack("r5", lsn=6)]
    acks += [ack(name, lsn=9, coherent=name != "r4") for name in ("r1", "r2", "r3", "r4")]
    reports = [
        MergeReport(name, b"", 5, ranges, (TableMerged(7, 3, 1), TableMerged(1, ranges, rows)))
        for name, (ranges, rows) in TOLD.items()
    ]
    reports.append(MergeReport("r3", b"another", 5, 0, (TableMerged(1, 0, 1_000),)))
    end = job(**fields)._replace(lsn=7, commit_us=NOW - 10 * SECOND)
    # What Spark tells of its run is how far it has read.
    return seen(log(4), end, JobProgress(2, 1, 900, 7, 100.0, "reading", NOW), *acks, *reports)


def told_of(view: ClusterView) -> dict[str, Any]:
    told: dict[str, Any]
    (told,) = report(view, NOW)["jobs"]
    return told


def test_who_merges_is_told_with_what_is_left_and_since_when() -> None:
    view = merging()
    assert told_of(view)["waits_for"] == [
        "node r3 has not told how far it has merged what was read, for 10.0 s",
        "node r5 merges what was read, for 10.0 s: 0 of about 1,000 rows, 0 ranges left",
        "node r1 merges what was read, for 10.0 s: 250 of about 1,000 rows, 2 ranges left",
        "node m1 merges what was read, for 10.0 s: 400 of about 1,000 rows, 1 range left",
    ]
    assert told_of(view)["rows"] == 900, "one has told nothing: how far Spark has read"
    assert "every coherent node merges what was read" in told_of(view)["doing"]


def test_a_job_is_as_far_as_the_node_that_is_slowest() -> None:
    view = merging()
    nodes = {name: node for name, node in view.nodes.items() if name not in ("r3", "r5")}
    told = told_of(replace(view, nodes=nodes))
    assert [tuple(each.values()) for each in told["merging"]] == [("r1", 2, 250), ("m1", 1, 400)]
    assert (told["rows"], told["rows_total"], told["rows_per_second"]) == (250, 1_000, 12.5)
    assert told["eta_s"] == 60.0
    words = progress_words(told)
    assert "250 of about 1,000 rows" in words
    assert words.endswith("1,000 rows, 2 ranges left and 1 more")
    reading = told_of(replace(merging(chunks_ended=False, rows_read=300), nodes=nodes))
    assert (reading["rows"], reading["rows_read"]) == (250, 900), "Spark is ahead of all nodes"
    done = told_of(replace(view, nodes={"r2": nodes["r2"]}))
    assert (done["merging"], done["waits_for"], done["rows"]) == ([], [], 900)


def test_nobody_is_told_of_where_it_is_not_the_nodes_that_are_waited_for() -> None:
    for changes in (
        {"by_range": False},
        {"phase": Phase.VERIFYING},
        {"chunks_ended": False},
        {"status": Status.ROLLING_BACK},
    ):
        told = told_of(merging(**changes))
        assert "merge" not in f"{told['waits_for']} {told['doing']}", changes
        assert bool(told["merging"]) == ("chunks_ended" in changes), changes


def test_of_how_many_nodes_the_word_is_kept_has_a_limit() -> None:
    reports = [MergeReport(f"r{n}", b"", 5, 1) for n in range(MERGING_MAX + 5)]
    view = seen(*reports, reports[-1]._replace(waiting=2))
    assert len(view.merging) == MERGING_MAX
    assert view.merging[reports[-1].node].waiting == 2


def test_rows_that_are_copied_are_as_many_as_the_log_says() -> None:
    """No node merges them, and Spark tells nothing of them."""
    step = Step((), backfills=(ALL_ROWS,), verifies=(ALL_ROWS,))
    told = told_of(merging(chunks_ended=False, rows_read=600, steps=(Step(()), step)))
    assert (told["merging"], told["waits_for"]) == ([], [])
    assert (told["rows"], told["rows_total"], told["rows_per_second"]) == (600, 1_000, 30.0)
    assert told["doing"] == "rows are copied under the other key"
