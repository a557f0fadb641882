"""`python -m tests.faults [--faults N] [--seed S] [--schedule FILE] [--set light]`: rounds of drawn
faults on real parts, each judged.

Exit codes: 0 nothing contradicts, 1 something does, 2 wrong arguments or the machine lacks
something, 130 interrupted.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from infra.processes import ProcessFailure
from tests.faults.campaign import Campaign, Wishes
from tests.faults.mutations import BROKEN, MUTATIONS
from tests.faults.parts import SETS
from tests.faults.schedule import NotASchedule, Schedule, read_schedule


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the arguments; exits with 2 and a sentence on wrong ones."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--faults", type=int, default=20, metavar="N", help="how many, about")
    parser.add_argument("--seed", type=int, default=0, help="of the first round; 0: by the clock")
    parser.add_argument(
        "--schedule", type=Path, action="append", default=[], metavar="FILE", help="run these alone"
    )
    parser.add_argument("--repeat", type=int, default=1, help="how often, with --schedule")
    parser.add_argument("--set", choices=SETS, default="light", help="which processes")
    parser.add_argument("--without", action="append", default=[], metavar="KIND", help="leave out")
    parser.add_argument(
        "--events", type=int, default=0, help="in each round; 0: drawn; 1: for the table of waits"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="KIND", help="of these alone"
    )
    parser.add_argument(
        "--in-turn", action="store_true", help="one fault in each round, of each kind in its turn"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep histories and logs there")
    parser.add_argument("--shrink", action="store_true", help="make a failing schedule smaller")
    parser.add_argument("--tally", type=Path, metavar="FILE", help="add the figures to it")
    parser.add_argument(
        "--mutation", choices=MUTATIONS, help="break the product, in a set that has it"
    )
    return parser.parse_args(arguments)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(arguments: Sequence[str]) -> int:
    """Run what the arguments say; → the exit code."""
    wanted = parse(arguments)
    schedules: list[Schedule] = []
    for path in wanted.schedule:
        try:
            schedules.append(read_schedule(path.read_text()))
        except (OSError, NotASchedule) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 2
    of_set = BROKEN[wanted.mutation].parts if wanted.mutation else wanted.set
    parts = {schedule.parts for schedule in schedules} or {of_set}
    if len(parts) > 1:
        print(f"schedules of one set at a time, not of {sorted(parts)}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, _interrupted)
    wishes = Wishes(
        parts=SETS[parts.pop()],
        faults=0 if schedules else wanted.faults,
        seed=wanted.seed,
        schedules=tuple(schedules),
        repeat=wanted.repeat,
        without=tuple(wanted.without),
        events=wanted.events,
        in_turn=wanted.in_turn,
        only=tuple(wanted.only),
        shrink=wanted.shrink,
        tally=wanted.tally,
        mutation=wanted.mutation,
    )
    try:
        if wanted.keep is not None:
            return int(not Campaign(wishes, wanted.keep, print).run())
        with tempfile.TemporaryDirectory(prefix="leasehold-faults-") as folder:
            return int(not Campaign(wishes, Path(folder), print).run())
    except ProcessFailure as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
