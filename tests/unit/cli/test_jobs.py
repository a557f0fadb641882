"""What a person can ask of a job, as the master is told it."""

from __future__ import annotations

import argparse
from concurrent.futures import Future
from typing import Any

import pytest

from leasehold.cli import ddl, jobs
from leasehold.cli.command import seconds
from leasehold.cli.output import Output
from leasehold.model.errors import UnknownJob
from leasehold.model.records.requests import JobControl, Outcome
from leasehold.schema_change.job.control import LIMITS
from leasehold.settings.client import ClientSettings


def asked(*arguments: str) -> tuple[str, dict[str, int]]:
    parser = argparse.ArgumentParser()
    jobs.register(parser.add_subparsers())
    return jobs._read_wishes(parser.parse_args(["jobs", *arguments]))


@pytest.mark.parametrize(
    ("arguments", "action", "settings"),
    [
        (["pause", "7"], "pause", {}),
        (["resume", "7"], "resume", {}),
        (["cancel", "7"], "cancel", {}),
        (["postpone", "7"], "set", {"postpone": 1}),
        (["complete", "7"], "set", {"postpone": 0}),
        (["set", "7", "--rows-per-second", "0"], "set", {"rows_per_second": 0}),
        (["set", "7", "--chunk-rows", "10"], "set", {"chunk_rows": 10}),
        (["set", "7", "--gentle"], "set", {"gentle": 1}),
        (["set", "7", "--no-gentle"], "set", {"gentle": 0}),
        (
            ["set", "7", "--cancel-blockers-after", "30s"],
            "set",
            {"cancel_blockers_after_ms": 30_000},
        ),
        (["set", "7", "--cancel-blockers-after", "0"], "set", {"cancel_blockers_after_ms": 0}),
    ],
)
def test_an_action_is_what_the_master_knows(
    arguments: list[str], action: str, settings: dict[str, int]
) -> None:
    assert asked(*arguments) == (action, settings)
    assert settings.keys() <= LIMITS.keys()


@pytest.mark.parametrize(
    ("words", "outcome", "controls"),
    [
        (["--gentle"], Outcome(1, 9, 0, 0, True, answer={"job": 7}), [(7, "set", {"gentle": 1})]),
        ([], Outcome(1, 9, 0, 0, True, answer={"job": 7}), []),
        (["--gentle"], Outcome(1, 0, 0, 0, True, "42P01", "no such table"), []),
    ],
)
def test_ddl_may_be_gentle_from_its_beginning(
    words: list[str],
    outcome: Outcome,
    controls: list[tuple[int, str, dict[str, int]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[Any] = []

    class Producer:
        def __init__(self, _: object) -> None: ...
        def __enter__(self) -> Producer:
            return self

        def __exit__(self, *_: object) -> None: ...
        def submit(self, request: Any) -> Future[Outcome]:
            sent.append(request)
            told: Future[Outcome] = Future()
            told.set_result(outcome)
            return told

    monkeypatch.setattr(ddl, "ChangeProducer", Producer)
    parser = argparse.ArgumentParser()
    ddl.register(parser.add_subparsers())
    args = parser.parse_args(["ddl", "create index i on t (a)", "--no-wait", *words])
    args.run(args, ClientSettings(), Output(as_json=True))
    assert [request.control for request in sent[1:]] == [JobControl(*each) for each in controls]


@pytest.mark.parametrize("number", ["0", "-1", str(2**31)])
def test_a_number_that_no_job_has_is_not_sent(number: str) -> None:
    """Before anything is connected with: there is no Kafka at this address."""
    parser = argparse.ArgumentParser()
    jobs.register(parser.add_subparsers())
    args = parser.parse_args(["jobs", "pause", "--", number])
    with pytest.raises(UnknownJob, match=f"^job {number} does not exist$"):
        args.run(args, None, None)


@pytest.mark.parametrize(
    ("text", "value"), [("30", 30.0), ("30s", 30.0), ("500ms", 0.5), ("2m", 120.0), ("0", 0.0)]
)
def test_a_time_has_a_unit(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "s", "-1", "2h", "1e9", "nan", "ms5", "5sm"])
def test_what_is_no_time_is_refused(text: Any) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        seconds(text)
