"""Tables, spans and JSON of the command; words of progress; requests from files."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import msgpack
import pytest

from leasehold.admin.durations import span
from leasehold.admin.troubles import failed_jobs
from leasehold.admin.troubles import troubles_of as status_troubles
from leasehold.cli.check import silent_on_roles, troubles_of
from leasehold.cli.job_watch import progress_words
from leasehold.cli.output import Output
from leasehold.cli.request_file import looks_like_json, read_requests
from leasehold.model.records.acks import ROLES_CHECKED, CheckReport


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (None, "–"),
        (0, "0 ms"),
        (999, "999 ms"),
        (1_500, "1.5 s"),
        (60_000, "1 min"),
        (250_000, "4 min 10 s"),
        (3_600_000, "1 h"),
        (7_500_000, "2 h 5 min"),
        (4 * 86_400_000, "4 d"),
    ],
)
def test_spans_are_short(milliseconds: float | None, words: str) -> None:
    assert span(milliseconds) == words


def test_a_table_in_a_pipe_is_plain_and_whole(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 300
    Output(as_json=False).table(["name", ">rows"], [["a", 1_000], [long, None]], "nothing")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["name", "rows"]
    assert lines[1].endswith("1,000")
    assert long in lines[2]
    assert "\x1b" not in "".join(lines)


def test_an_empty_table_is_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).table(["name"], [], "no table yet")
    assert capsys.readouterr().out == "no table yet\n"


def test_json_goes_out_alone(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(as_json=True)
    output.note("for people")
    output.json({"id": b"\x01", "text": "é"})
    told = capsys.readouterr()
    assert json.loads(told.out) == {"id": "\\x01", "text": "é"}
    assert told.err == ""


def test_what_json_has_no_number_for_goes_out_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"x": math.inf, "y": (-math.inf, 1.5)}, {"x": math.nan, "id": b"\x01", "n": None}]
    Output(as_json=True).json({"rows": rows})

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    assert json.loads(capsys.readouterr().out, parse_constant=refuse) == {
        "rows": [
            {"x": "Infinity", "y": ["-Infinity", 1.5]},
            {"x": "NaN", "id": "\\x01", "n": None},
        ]
    }


# --- files -------------------------------------------------------------------------------------


def read(data: bytes) -> list[tuple[str, Any, str]]:
    requests = read_requests(io.BytesIO(data), as_json=looks_like_json(data[:1]))
    return [(request.where, request.fields, request.error) for request in requests]


def test_json_lines_with_their_places() -> None:
    found = read(b'{"a": 1}\n\n[1]\n{bad\n{"b": 2}')
    assert [where for where, _, _ in found] == ["line 1", "line 3", "line 4", "line 5"]
    assert [fields for _, fields, _ in found] == [{"a": 1}, None, None, {"b": 2}]
    assert "no object" in found[1][2]
    assert "no JSON" in found[2][2]


def test_json_that_is_no_text_or_nested_too_deeply_is_told() -> None:
    found = read(b'{"a": "\xff"}\n' + b'{"a":' * 100_000 + b"\n" + b'{"b": 2}')
    assert [fields for _, fields, _ in found] == [None, None, {"b": 2}]


@pytest.mark.parametrize("number", [b"Infinity", b"-Infinity", b"NaN", b"1e999"])
def test_a_number_that_json_has_not_is_no_json(number: bytes) -> None:
    ((_, fields, error),) = read(b'{"a": ' + number + b"}")
    assert fields is None
    assert "no JSON" in error


def test_message_pack_one_after_another() -> None:
    data = msgpack.packb({"a": b"\x00"}) + msgpack.packb(7) + msgpack.packb({"b": 2})
    found = read(data)
    assert [fields for _, fields, _ in found] == [{"a": b"\x00"}, None, {"b": 2}]
    assert found[1][0] == "object 2"


def test_broken_message_pack_ends_the_reading() -> None:
    found = read(msgpack.packb({"a": 1}) + b"\xc1" + msgpack.packb({"b": 2}))
    assert [fields for _, fields, _ in found] == [{"a": 1}, None]
    assert "no MessagePack" in found[1][2]


def test_nothing_holds_no_request() -> None:
    assert read(b"") == []


# --- words -------------------------------------------------------------------------------------

JOB: dict[str, Any] = {
    "job": 2,
    "status": "running",
    "step": 2,
    "steps": 3,
    "to": "write-only",
    "doing": "filling rows",
    "phase": "backfilling",
    "rows": 500,
    "rows_total": 1_000,
    "rows_per_second": 250.0,
    "eta_s": 2.0,
    "ends_in_s": None,
    "attempts": 1,
    "waits_for": [],
    "error": "",
}


def test_progress_in_words() -> None:
    assert progress_words(JOB) == (
        "step 2/3 → write-only: filling rows, 500 of about 1,000 rows, 250/s, about 2.0 s left"
    )
    again = progress_words({**JOB, "attempts": 3, "ends_in_s": 5.0})
    assert "filling rows, try 3, 500 of" in again
    assert "about 2.0 s, in all 5.0 s left" in again
    waiting = {
        **JOB,
        "eta_s": None,
        "phase": "draining",
        "doing": "waiting",
        "waits_for": ["a", "b"],
    }
    assert progress_words(waiting) == "step 2/3 → write-only: waiting, waits: a and 1 more"
    failed = {**JOB, "status": "failed", "error": "3 findings"}
    assert progress_words(failed) == "failed: 3 findings"


NOW_US = 1_800_000_000_000_000


def failed(**more: Any) -> dict[str, Any]:
    """A job that failed a minute ago."""
    same = {"table": "t", "table_id": 1, "kind": "create index", "subject": "index i",
            "spark_fails": ""}  # fmt: skip
    ended = {"status": "failed", "error": "e", "ended_us": NOW_US - 60_000_000, "dismissed": False}
    return {"job": 7, **same, **ended, **more}


def log(**changes: Any) -> dict[str, Any]:
    return {
        "master": "m1",
        "master_silent_ms": 100,
        "master_clock_us": NOW_US,
        "ahead_ms": -80,
        "id_horizon_us": NOW_US - 86_400_000_000,
        **changes,
    }


FEEDS = [
    {"table": "public.a", "status": status, "words": ""} for status in ("on", "ended", "refused")
]
FAILED_FEED = {"table": "public.t", "status": "failed", "words": "column n is gone"}


def told(**changes: Any) -> dict[str, Any]:
    return {
        "now_us": NOW_US,
        "gaps": [],
        "log": log(),
        "nodes": [{"node": "r1", "role": "replicant", "coherency": "coherent", "for_ms": 1,
                   "lag_records": 0}],
        "ledger": {"state": "ready"},
        "spark": {"silent": False, "heard_ms": 100, "trouble": ""},
        "changefeed": {"silent": False, "heard_ms": 100, "lsn": 7, "feeds": FEEDS},
        "jobs": [{"status": "running", "ended_us": None, "spark_fails": ""}],
        **changes,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"log": log(master="", master_silent_ms=None)}, "no master"),
        ({"gaps": ["topic jobs is still being read"]}, "topic jobs is still being read"),
        (
            {"gaps": ["topic log is still being read"],
             "log": log(master="", master_silent_ms=None)},
            "topic log is still being read",
        ),
        ({"log": log(master_silent_ms=9_000)}, "written nothing"),
        ({"log": log(ahead_ms=61_000)}, "the log's time is 1 min 1 s ahead"),
        ({"log": log(id_horizon_us=NOW_US + 7_200_000_000)}, "for another 2 h, fresh ones too"),
        ({"ledger": {"state": "grace"}}, "ledger is grace"),
        ({"spark": {"silent": True, "heard_ms": 9_000, "trouble": ""}}, "Spark is silent"),
        ({"spark": {"silent": False, "heard_ms": 9, "trouble": "no rows"}}, "does not retry"),
        (
            {"changefeed": {"silent": True, "heard_ms": 9_000, "lsn": 7, "feeds": []}},
            "stop at LSN 7",
        ),
        (
            {"changefeed": {"silent": False, "heard_ms": 9, "lsn": 7, "feeds": [FAILED_FEED]}},
            "the feed of public.t has failed (leasehold feed list): column n is gone",
        ),
        (
            {"changefeed": {"silent": False, "heard_ms": 9, "lsn": 7,
                            "feeds": [{**FAILED_FEED, "status": "held"}]}},
            "the feed of public.t is held (leasehold feed list): column n is gone",
        ),
        ({"jobs": [failed()]}, "job 7"),
        (
            {"nodes": [{"node": "r9", "role": "replicant", "coherency": "silent", "for_ms": 5,
                        "lag_records": 3}]},
            "r9",
        ),
    ],
)  # fmt: skip
def test_status_names_what_is_not_right(changes: dict[str, Any], word: str) -> None:
    assert status_troubles(told()) == []
    (trouble,) = status_troubles(told(**changes))
    assert word in trouble


HOUR_US = 3_600_000_000


@pytest.mark.parametrize(
    ("jobs", "later_us", "known"),
    [
        ([failed(dismissed=True)], 0, 1),
        ([failed()], 2 * HOUR_US, 1),
        ([failed()], 25 * HOUR_US, 0),
        ([failed(), failed(job=9, status="succeeded")], 0, 1),
    ],
)
def test_a_failed_job_is_news_for_a_time(
    jobs: list[dict[str, Any]], later_us: int, known: int
) -> None:
    """It has left everything as it was, and can't be unfailed: exit code 1 for ever tells nobody
    of anything."""
    seen = told(jobs=jobs)
    seen["now_us"] += later_us
    assert status_troubles(seen) == []
    assert len(failed_jobs(seen)[1]) == known


@pytest.mark.parametrize(
    "more", [{"table_id": 2}, {"kind": "drop column"}, {"subject": "index j"}, {"job": 6}]
)
def test_another_change_that_succeeds_settles_nothing(more: dict[str, Any]) -> None:
    other = failed(**{"job": 9, **more, "status": "succeeded"})
    (trouble,) = status_troubles(told(jobs=[failed(), other]))
    assert "job 7" in trouble


def check(node: str, *, offset: int = 9, checksum: bytes = b"a", **more: Any) -> CheckReport:
    fields: dict[str, Any] = {"findings_total": 0, "findings": (), "error": "", **more}
    return CheckReport(
        b"s", node, b"", offset, 5, 1, 1, 10, {}, checksum, took_ms=1, **fields
    )  # fmt: skip


def test_l6_check_compares_checksums_at_equal_positions_only() -> None:
    wanted = {("r1", 1), ("r2", 1)}
    names = {1: "flights"}
    assert troubles_of([check("r1"), check("r2")], wanted, names) == []
    (differs,) = troubles_of([check("r1"), check("r2", checksum=b"b")], wanted, names)
    assert "flights differs at log offset 9: r1 against r2" in differs
    apart = [check("r1"), check("r2", checksum=b"b", offset=10)]
    (uncompared,) = troubles_of(apart, wanted, names)
    assert "flights at log offsets 9, 10" in uncompared
    assert "check again" in uncompared
    failed = [check("r1"), check("r2", error="disk", offset=0)]
    assert len(troubles_of(failed, wanted, names)) == 1, "it tells no place"


def test_check_compares_roles_too() -> None:
    roles = [check(node, checksum=node.encode())._replace(table_id=ROLES_CHECKED)
             for node in ("r1", "r2")]  # fmt: skip
    tables = [check("r1"), check("r2"), check("r3")]
    wanted = {(node, 1) for node in ("r1", "r2", "r3")}
    (differs,) = troubles_of([*roles, *tables], wanted, {1: "flights"})
    assert differs == "roles and privileges differs at log offset 9: r1 against r2"
    assert silent_on_roles([*roles, *tables]) == ["r3"], "of an earlier release"


def test_check_tells_of_findings_failures_and_silence() -> None:
    names = {1: "flights"}
    (missing,) = troubles_of([check("r1")], {("r1", 1), ("r2", 1)}, names)
    assert "r2 has not reported" in missing
    (found,) = troubles_of([check("r1", findings_total=3)], {("r1", 1)}, names)
    assert "3 findings" in found
    (failed,) = troubles_of([check("r1", error="disk")], {("r1", 1)}, names)
    assert "disk" in failed
    assert troubles_of([], set(), names) == ["no live node: nobody can check"]
