"""Exit codes: what programs rely on."""

from __future__ import annotations

import pytest

from leasehold import __version__
from leasehold.cli.exit_code import ExitCode, exit_code_of
from leasehold.cli.main import main
from leasehold.cli.submit import exit_code
from leasehold.client.change_producer import Statistics
from leasehold.model.errors import (
    BackupUnavailable,
    BusUnavailable,
    ConfigurationError,
    DuplicateKey,
    LeaseholdError,
    LedgerUnavailable,
    NodeUnreachable,
    OutcomeUnknown,
    SnapshotUnavailable,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BusUnavailable("x"), 3),
        (LedgerUnavailable("x"), 3),
        (NodeUnreachable("x"), 3),
        (SnapshotUnavailable("x"), 3),
        (BackupUnavailable("x"), 3),
        (OutcomeUnknown("x"), 4),
        (ConfigurationError("x"), 2),
        (DuplicateKey("x"), 1),
    ],
)
def test_an_error_has_one_code(error: LeaseholdError, code: int) -> None:
    assert exit_code_of(error) == code


@pytest.mark.parametrize(
    ("told", "unknown", "malformed", "code"),
    [
        (Statistics(5, 5), 0, 0, ExitCode.OK),
        (Statistics(), 0, 0, ExitCode.OK),
        (Statistics(5, 4, 1), 0, 0, ExitCode.NOT_RIGHT),
        (Statistics(5, 4, 0, 1), 0, 0, ExitCode.NOT_RIGHT),
        (Statistics(5, 5), 0, 1, ExitCode.NOT_RIGHT),
        (Statistics(5, 3, 1), 1, 0, ExitCode.UNKNOWN),
    ],
)
def test_submit_is_ok_only_if_all_was_committed(
    told: Statistics, unknown: int, malformed: int, code: ExitCode
) -> None:
    assert exit_code(told, unknown, malformed) is code


def ended(arguments: list[str]) -> int | str | None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return end.value.code


def test_wrong_usage_is_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended([]) == 2
    assert ended(["ddl"]) == 2
    assert ended(["check", "--timeout", "0"]) == 2
    assert "more than 0" in capsys.readouterr().err


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["--version"]) == 0
    number, _, how = capsys.readouterr().out.partition(", ")
    assert number == f"leasehold {__version__}"
    assert how in ("compiled\n", "interpreted\n")
    assert ended(["--help"]) == 0
    told = capsys.readouterr().out
    commands = ("status", "versions", "leases", "jobs", "submit", "ddl", "check", "dead-letter")
    assert all(command in told for command in commands)


@pytest.mark.parametrize(
    "command",
    [["status"], ["versions"], ["jobs", "list"], ["dead-letter", "list"], ["ddl", "x"], ["check"]],
)
def test_without_a_broker_one_sentence_a_hint_and_three(
    command: list[str], nobody_listens: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 3
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("leasehold: Kafka at 127.0.0.1:1")
    _, hint = told.err.splitlines()
    assert hint.startswith("hint: ")
    assert "LEASEHOLD_KAFKA" in hint


def test_settings_that_are_wrong_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LEASEHOLD_KAFKA", "nowhere")
    assert main(["status"]) == 2
    assert "LEASEHOLD_KAFKA" in capsys.readouterr().err
