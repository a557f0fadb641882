"""`python -m tests.bench [--only GROUP]… [--list] [--trial]`: `metric value unit` lines on standard
output.

Exit codes: 0 measured, 1 a measurement failed, 2 wrong arguments or settings, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import FrameType

from infra.processes import ProcessFailure
from leasehold.model.errors import ConfigurationError, LeaseholdError
from leasehold.settings.setting import from_environment
from tests.bench.bench_settings import BenchSettings
from tests.bench.child import ChildFailure
from tests.bench.figure import Figure, table
from tests.bench.groups import GROUPS, SUMMARIES, measure
from tests.bench.stand import BenchFailure

FAILURES = (
    BenchFailure,
    ChildFailure,
    ProcessFailure,
    LeaseholdError,
    OSError,
    subprocess.SubprocessError,
    ValueError,  # a percentile of nothing
)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """`only`: group names, all when none is given. Exits with 2 and a sentence on wrong ones."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description=__doc__,
        epilog="\n".join(["groups:", *(f"  {name:<12}{SUMMARIES[name]}" for name in GROUPS)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", action="append", metavar="GROUP", help="this group (repeatable)")
    parser.add_argument("--list", action="store_true", help="print the groups and their metrics")
    parser.add_argument(
        "--trial", action="store_true", help="as small as it works: whether it runs, in seconds"
    )
    wanted = parser.parse_args(arguments)
    unknown = [name for name in wanted.only or () if name not in GROUPS]
    if unknown:
        parser.error(f"there is no group {unknown[0]!r}; the groups are {', '.join(GROUPS)}")
    wanted.only = [name for name in GROUPS if not wanted.only or name in wanted.only]
    return wanted


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    """SIGTERM as Ctrl-C: every block that started something ends it."""
    raise KeyboardInterrupt


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    wanted = parse(arguments)
    if wanted.list:
        for name in wanted.only:
            print(f"{name}: {' '.join(GROUPS[name])}")
        return 0
    try:
        settings = from_environment(BenchSettings, environ)
    except ConfigurationError as error:
        print(f"bench: {error.message}", file=sys.stderr)
        return 2
    if wanted.trial:
        settings = settings.for_trial()
    figures: list[Figure] = []
    try:
        for figure in measure(wanted.only, settings):
            print(figure.line(), flush=True)
            figures.append(figure)
    except FAILURES as error:
        print(f"bench: failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: interrupted; everything it started has been ended", file=sys.stderr)
        return 130
    print(table(figures), file=sys.stderr)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupted)
    sys.exit(main(sys.argv[1:], os.environ))
