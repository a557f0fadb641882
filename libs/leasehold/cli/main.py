"""The `leasehold` command: reads its arguments and settings, and hands over to one subcommand."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from leasehold.adapters.os.compiled import version_line
from leasehold.adapters.os.garbage import collect_seldom
from leasehold.cli.command import SUMMARIES, module_of
from leasehold.cli.exit_code import ExitCode, exit_code_of
from leasehold.cli.hints import hint_for
from leasehold.cli.output import Output
from leasehold.model.errors import LeaseholdError
from leasehold.settings.client import ClientSettings

EPILOG = """\
exit codes: 0 ok · 1 the thing asked about is not right · 2 wrong usage or settings ·
            3 the broker, the ledger, a node or the place of backups can't be reached ·
            4 the outcome is not known

settings (environment): LEASEHOLD_KAFKA, LEASEHOLD_REDIS, LEASEHOLD_DATABASE, …
"""


def parser(chosen: str) -> argparse.ArgumentParser:
    """Return the parser of the chosen subcommand; of the others only the name is known. The files
    of all together take five times as long to import as those of `submit`, twice as long as those
    of `status`, each time."""
    root = argparse.ArgumentParser(
        prog="leasehold",
        description="Tables that many services share: look at them, change them, check them.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action="version", version=version_line())
    subparsers = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, summary in SUMMARIES.items():
        if name == chosen:
            import_module(module_of(name)).register(subparsers)
        else:
            subparsers.add_parser(name, help=summary)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Never raises for what the world does."""
    if arguments is None:  # a process of its own: what it imports and reads stays to its end
        collect_seldom()
    words = sys.argv[1:] if arguments is None else arguments
    # No option of `leasehold` itself has a value: the first word is the subcommand.
    chosen = next((word for word in words if not word.startswith("-")), "")
    args = parser(chosen).parse_args(words)
    output = Output(as_json=args.json)
    # A command says once what is wrong, itself; services log what goes on.
    logging.getLogger("leasehold").addHandler(logging.NullHandler())
    try:
        # One subcommand tells of settings that can't be read, and reads them itself.
        read = getattr(args, "read_settings", ClientSettings.read)
        return int(args.run(args, read(), output))
    except LeaseholdError as error:
        output.error(error.message, error.sqlstate, hint_for(error))
        return int(exit_code_of(error))
    except KeyboardInterrupt:
        output.note("stopped")
        return 130
    except BrokenPipeError:
        # Whoever read us (head, less) has seen enough; the interpreter must not complain of it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.OK)


if __name__ == "__main__":
    sys.exit(main())
