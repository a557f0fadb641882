"""Many rounds: clusters started and used again, schedules drawn, failures kept and made smaller."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.faults.cluster import COMPILER, started
from tests.faults.mutations import BROKEN, mutated
from tests.faults.parts import Parts
from tests.faults.recovery import Recovery, lateness
from tests.faults.round import Report, Rounds
from tests.faults.schedule import Schedule, draw, smaller
from tests.support.cluster.preloaded import find_compiler

ROUNDS_OF_CLUSTER: Final = 40
"""Then it is started anew: logs and topics grow."""
TRIES: Final = 3
"""Of a smaller schedule, before it counts as one that does not fail: timing is the machine's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What is to be run. `faults`: how many, about; `schedule`: this one alone, `repeat` times;
    `events`: in each round, 0 = drawn; `mutation`: of the product, and the end once it is seen."""

    parts: Parts
    faults: int = 20
    seed: int = 0
    schedule: Schedule | None = None
    repeat: int = 1
    without: tuple[str, ...] = ()
    events: int = 0
    shrink: bool = False
    figures: Path | None = None
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
        self.recovery = Recovery()
        self.kinds: Counter[str] = Counter()
        self.effects: Counter[str] = Counter()
        """Of faults of disks, by their kind: the calls and pages that they have befallen."""
        self.failed: list[Report] = []
        self.late: list[str] = []
        self.faults = 0
        self.rounds = 0

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
                self._say(f"{self._wishes.mutation}: seen after {self.faults} faults")
                break
            if report.wrong and self._wishes.shrink:
                self._shrink(schedule)

    def _schedules(self, seed: int) -> Iterator[Schedule]:
        wishes = self._wishes
        if wishes.schedule is not None:
            yield from [wishes.schedule] * wishes.repeat
            return
        without = (*wishes.without, *(() if find_compiler() else (COMPILER,)))
        broken = BROKEN[wishes.mutation] if wishes.mutation else None
        kinds = broken.kinds if broken else ()
        while self.faults < wishes.faults:
            drawn = draw(seed, wishes.parts, without, wishes.events, kinds)
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
        self.effects.update(rounds.effects)
        self.effects.subtract(before)
        self.rounds += 1
        self.faults += len(schedule.events)
        self.kinds.update(event.kind for event in schedule.events)
        if report.waits is not None and not report.wrong:
            kinds = [event.kind for event in schedule.events]
            self.recovery.add(kinds, report.waits)
            words = lateness(kinds, report.waits)
            self.late += [f"seed {schedule.seed}: {words}"] if words else []
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
        self._say(f"smallest that failed:\n{found.to_json()}")

    def _tell(self) -> None:
        drawn = ", ".join(f"{kind} {count}" for kind, count in sorted(self.kinds.items()))
        self._say(f"{self.faults} faults in {self.rounds} rounds: {drawn}")
        befell = ", ".join(f"{kind} {count}" for kind, count in sorted(self.effects.items()))
        self._say(f"calls and pages that faults of disks befell: {befell or 'none'}")
        self._say(f"{len(self.failed)} rounds failed, {len(self.late)} took longer than promised")
        for words in self.late:
            self._say(f"late: {words}")
        figures = self._wishes.figures
        if figures is not None:
            if figures.exists():
                self.recovery.take(json.loads(figures.read_text()))
            unfinished = figures.with_suffix(f".{os.getpid()}")
            unfinished.write_text(json.dumps(self.recovery.as_json()))
            unfinished.replace(figures)
        for line in self.recovery.lines():
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
    verdict = "ok" if not report.wrong else "WRONG\n  " + "\n  ".join(report.wrong)
    return f"{head} {report.took_s:.1f} s: {verdict}"
