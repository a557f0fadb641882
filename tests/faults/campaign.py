"""Many rounds: clusters started and used again, schedules drawn, failures kept and made smaller."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.faults.cluster import COMPILER, started
from tests.faults.mutations import BROKEN, mutated
from tests.faults.parts import Parts
from tests.faults.round import Report, Rounds
from tests.faults.schedule import Schedule, draw, kinds_of, smaller
from tests.faults.tally import Tally
from tests.support.cluster.preloaded import find_compiler
from tests.support.whole_file import write_whole_file

ROUNDS_OF_CLUSTER: Final = 40
"""Then it is started anew: logs and topics grow."""
SHOWN_MAX: Final = 20
"""Of what is wrong in a round; all of it is kept in a file."""
TRIES: Final = 3
"""Of a smaller schedule, before it counts as one that does not fail: timing is the machine's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What is to be run. `faults`: how many, about; `schedules`: these first, `repeat` times
    each; `events`: in each round, 0 = drawn; `in_turn`: one fault in each round, of each kind in
    its turn; `only`: of these kinds, () = of all; `mutation`: of the product, and the end once it
    is seen; `tally`: a file to add the figures to."""

    parts: Parts
    faults: int = 20
    seed: int = 0
    schedules: tuple[Schedule, ...] = ()
    repeat: int = 1
    in_turn: bool = False
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    events: int = 0
    shrink: bool = False
    tally: Path | None = None
    mutation: str | None = None


class Campaign:
    """Rounds as `wishes` says. What it keeps of those that fail stands in `folder`."""

    def __init__(self, wishes: Wishes, folder: Path, say: Callable[[str], None]) -> None:
        self._wishes = wishes
        self._folder = folder
        self._say = say
        self._stack = ExitStack()
        self._rounds: Rounds | None = None
        self._used = 0
        self._clusters = 0
        self.tally = Tally()
        self.failed: list[Report] = []

    def run(self) -> bool:
        """Run all of them; → whether nothing contradicts a promise."""
        seed = self._wishes.seed or time.time_ns() % 1_000_000
        self._say(f"seed {seed}")
        try:
            with self._stack:
                self._run(seed)
        finally:
            self._tell()  # also of what was interrupted
        return not self.failed

    def _run(self, seed: int) -> None:
        for schedule in self._schedules(seed):
            report = self._one(schedule)
            if report.wrong and self._wishes.mutation:
                self._say(f"{self._wishes.mutation}: seen after {self.tally.faults} faults")
                break
            if report.wrong and self._wishes.shrink:
                self._shrink(schedule)

    def _schedules(self, seed: int) -> Iterator[Schedule]:
        wishes = self._wishes
        for schedule in wishes.schedules:
            yield from [schedule] * wishes.repeat
        without = (*wishes.without, *(() if find_compiler() else (COMPILER,)))
        broken = BROKEN[wishes.mutation] if wishes.mutation else None
        kinds = broken.kinds if broken else wishes.only
        there = kinds_of(wishes.parts, without, kinds)
        while self.tally.faults < wishes.faults:
            if wishes.in_turn:
                kinds = (there[self.tally.rounds % len(there)],)
            count = 1 if wishes.in_turn else wishes.events
            drawn = draw(seed, wishes.parts, without, count, kinds)
            if broken is not None:
                events, levels = broken.events or drawn.events, broken.levels or drawn.levels
                drawn = replace(drawn, events=events, levels=levels)
            yield drawn
            seed += 1

    def _one(self, schedule: Schedule) -> Report:
        rounds = self._cluster()
        self._used += 1
        before = Counter(rounds.effects)
        report = rounds.run(schedule)
        befallen = Counter(rounds.effects)
        befallen.subtract(before)
        self.tally.add(report, befallen)
        self._say(_line(report))
        if report.wrong:
            self.failed.append(report)
            self._keep(schedule)
        return report

    def _cluster(self) -> Rounds:
        if self._rounds is None or self._used >= ROUNDS_OF_CLUSTER:
            self._leave()
            self._clusters += 1
            folder = self._folder / f"cluster-{self._clusters}"
            libs = self._stack.enter_context(mutated(self._wishes.mutation, folder))
            cluster = self._stack.enter_context(started(folder, self._wishes.parts, libs))
            self._rounds = Rounds(cluster, folder)
            self._stack.callback(self._rounds.close)
        return self._rounds

    def _leave(self) -> None:
        """End the cluster: the next round has one of its own."""
        self._stack.close()
        self._rounds, self._used = None, 0
        for old in self._folder.glob("cluster-*"):
            shutil.rmtree(old, ignore_errors=True)

    def _keep(self, schedule: Schedule) -> None:
        """Keep all that is known of a failed round, and leave its cluster, which may be ill."""
        place = self._folder / f"failed-{schedule.seed}-{len(self.failed)}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "schedule.json").write_text(schedule.to_json())
        (place / "wrong.txt").write_text("\n".join(self.failed[-1].wrong) + "\n")
        here = self._folder / f"cluster-{self._clusters}"
        for path in (*here.glob(f"round-{self._used}"), *here.glob("cluster/log")):
            shutil.copytree(path, place / path.name, dirs_exist_ok=True)
        self._leave()

    def _shrink(self, schedule: Schedule) -> None:
        """Run ever smaller schedules as long as one of them fails, too."""
        found = schedule
        while True:
            for less in smaller(found):
                if any(self._one(less).wrong for _ in range(TRIES)):
                    found = less
                    break
            else:
                break
        (self._folder / f"smallest-{schedule.seed}.json").write_text(found.to_json())
        self._say(f"smallest that failed:\n{found.to_json()}")

    def _tell(self) -> None:
        for line in self.tally.lines():
            self._say(line)
        path = self._wishes.tally
        if path is None:
            return
        whole = Tally()
        for text in ([path.read_text()] if path.exists() else []) + [self.tally.to_json()]:
            whole.take(text)
        write_whole_file(path, whole.to_json())
        self._say(f"with what {path} had:")
        for line in whole.lines():
            self._say(line)


def _line(report: Report) -> str:
    events = "; ".join(str(event) for event in report.schedule.events)
    waits = report.waits
    told = (
        "not judged"
        if waits is None
        else (
            f"writer {waits.writer_ms}, reader {waits.reader_ms}, coherent {waits.coherent_ms} ms"
        )
    )
    head = f"seed {report.schedule.seed}: {events}: {report.operations} operations, {told},"
    return f"{head} {report.took_s:.1f} s: {_verdict(report.wrong)}"


def _verdict(wrong: Sequence[str]) -> str:
    """Return what is wrong, a line each, or that nothing is."""
    if not wrong:
        return "ok"
    more = len(wrong) - SHOWN_MAX
    rest = [f"and {more} more"] if more > 0 else []
    return "\n  ".join(["WRONG", *wrong[:SHOWN_MAX], *rest])
