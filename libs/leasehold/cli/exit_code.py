"""What the command's exit codes mean; programs rely on them, so none is ever given anew."""

from __future__ import annotations

from enum import IntEnum

from leasehold.model.errors import (
    BackupUnavailable,
    BusUnavailable,
    ConfigurationError,
    LeaseholdError,
    LedgerUnavailable,
    NodeUnreachable,
    OutcomeUnknown,
    SnapshotUnavailable,
)


class ExitCode(IntEnum):
    OK = 0
    NOT_RIGHT = 1  # the thing asked about is not right: refused, failed, findings, no master
    USAGE = 2  # argparse's own code for arguments it can't read
    UNREACHABLE = 3  # the broker, the ledger, a node, or where backups lie
    UNKNOWN = 4  # it may have happened or not (T5)


def exit_code_of(error: LeaseholdError) -> ExitCode:
    """The exit code for an error that ended the command."""
    match error:
        case BusUnavailable() | LedgerUnavailable():
            return ExitCode.UNREACHABLE
        case NodeUnreachable() | SnapshotUnavailable() | BackupUnavailable():
            return ExitCode.UNREACHABLE
        case OutcomeUnknown():
            return ExitCode.UNKNOWN
        case ConfigurationError():
            return ExitCode.USAGE
        case _:
            return ExitCode.NOT_RIGHT
