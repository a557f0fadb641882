"""A small model of an upgrade: processes of two releases that come, are heard, read one log and
end; masters that follow each other; and an operator who finalizes at any time.

The older release does not read the newest feature, nor what finalizes the database up to it. A
process keeps its place in the log from one start to the next, whatever its release. What the master
asks is the library's own `FeatureGate`.

What is promised:

- G1: nobody comes to a form that he does not read: who can't read it has stopped before, at the
  record that finalizes, or was not started at all;
- G2: no finalization stops a process that has said that it is of the older release and lives.

The rules that make it so are methods, and `mutants/feature_level.py` breaks each.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

from leasehold.model.errors import Refused
from leasehold.model.features import NEWEST, FeatureGate

OLDER: Final = NEWEST - 1
RELEASES: Final = (OLDER, NEWEST)


class Record(Enum):
    FORM = auto()  # of the newest feature
    LEVEL = auto()  # the database is finalized up to the newest feature


class Process(NamedTuple):
    """`reads`: up to which feature, 0 = it does not run. `at`: records that it has read; `said`: it
    has acknowledged since its start; `stopped`: it has met what it refuses."""

    reads: int = 0
    at: int = 0
    said: bool = False
    stopped: bool = False

    @property
    def goes_on(self) -> bool:
        return self.reads > 0 and not self.stopped


class World(NamedTuple):
    """`heard`: up to which feature each process reads, by its place, as the master has heard it
    last (0: not); `waited`: the master has heard of everybody who was there before it."""

    log: tuple[Record, ...]
    processes: tuple[Process, ...]
    heard: tuple[int, ...]
    waited: bool = True
    starts: int = 0
    takeovers: int = 0
    harm: str = ""


class Bounds(NamedTuple):
    """So many of each at most."""

    processes: int = 2
    starts: int = 3
    takeovers: int = 1
    records: int = 3

    def words(self) -> str:
        return f"{self.processes} processes, {self.starts} starts, {self.takeovers} takeovers"


class Model:
    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds

    def starts(self) -> list[tuple[str, World]]:
        """A database of the older release, of whose processes each is there, or not yet."""
        nobody = (0,) * self.bounds.processes
        older = (Process(OLDER, said=True),) * self.bounds.processes
        return [
            ("all are there", World((), older, (OLDER,) * self.bounds.processes)),
            ("one is there", World((), (older[0], *(Process(),) * len(nobody[1:])), nobody, False)),
        ]

    def invariant(self, world: World) -> str | None:
        return world.harm or None

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        for number, process in enumerate(world.processes):
            yield from self._steps(world, number, process)
        if not world.waited and self.has_waited(world):
            yield "all were heard", world._replace(waited=True)
        if world.takeovers < self.bounds.takeovers:
            nobody = (0,) * len(world.processes)
            after = world._replace(heard=nobody, waited=False, takeovers=world.takeovers + 1)
            yield "another master", after
        if len(world.log) < self.bounds.records:
            yield from self._records(world)

    # ------------------------------------------------------------ a process

    def _steps(self, world: World, number: int, process: Process) -> Iterator[tuple[str, World]]:
        if not process.reads:
            if world.starts < self.bounds.starts:
                for reads in RELEASES:
                    after = self.started(world, process, reads)
                    begun = world._replace(starts=world.starts + 1)
                    yield f"{number} starts, reads {reads}", self._with(begun, number, after)
            if world.heard[number]:
                yield f"{number} was silent for long", self._heard(world, number, 0)
            return
        ended = process._replace(reads=0, said=False, stopped=False)
        yield f"{number} ends", self._with(world, number, ended)
        if not process.goes_on:
            return
        said = self._with(world, number, process._replace(said=True))
        yield f"{number} acknowledges", self._heard(said, number, process.reads)
        if process.at < len(world.log):
            yield f"{number} reads on", self._read(world, number, process)

    def started(self, world: World, process: Process, reads: int) -> Process:
        """Return a process with the store of the one before, which says what its database may
        have: one that knows less does not open it."""
        level = NEWEST if Record.LEVEL in world.log[: process.at] else 0
        return process._replace(reads=reads, stopped=self.refuses(reads, level))

    def refuses(self, reads: int, level: int) -> bool:
        """Whether a process stops where the database is finalized up to that level."""
        return level > reads

    def _read(self, world: World, number: int, process: Process) -> World:
        record = world.log[process.at]
        if record is Record.LEVEL and self.refuses(process.reads, NEWEST):
            return self._with(world, number, process._replace(stopped=True))
        if record is Record.FORM and process.reads < NEWEST:
            return world._replace(harm=f"G1: process {number} comes to a form that it can't read")
        return self._with(world, number, process._replace(at=process.at + 1))

    def _with(self, world: World, number: int, process: Process) -> World:
        others = world.processes
        return world._replace(processes=(*others[:number], process, *others[number + 1 :]))

    def _heard(self, world: World, number: int, reads: int) -> World:
        return world._replace(heard=(*world.heard[:number], reads, *world.heard[number + 1 :]))

    # ------------------------------------------------------------ the master

    def has_waited(self, world: World) -> bool:
        """Whether a new master has waited for as long as a process takes to acknowledge."""
        return all(
            not process.said or not process.goes_on or heard
            for process, heard in zip(world.processes, world.heard, strict=True)
        )

    def all_read(self, world: World, number: int) -> bool:
        return world.waited and all(not heard or heard >= number for heard in world.heard)

    def level(self, world: World) -> int:
        """Return the level that the master has read in the log."""
        return NEWEST if Record.LEVEL in world.log else 0

    def gate(self, world: World) -> FeatureGate:
        return FeatureGate(
            lambda number, _: self.all_read(world, number), lambda: self.level(world)
        )

    def _records(self, world: World) -> Iterator[tuple[str, World]]:
        gate = self.gate(world)
        if gate.is_written(NEWEST, 0):
            yield "a form is written", world._replace(log=(*world.log, Record.FORM))
        if gate.level < NEWEST and self.may_finalize(gate):
            stopped = [n for n, p in enumerate(world.processes) if self._is_surprised(p)]
            harm = f"G2: process {stopped[0]} is stopped" if stopped else ""
            yield "finalized", world._replace(log=self.finalized(world.log), harm=harm)

    def may_finalize(self, gate: FeatureGate) -> bool:
        try:
            gate.check_finalizes(NEWEST, 0)
        except Refused:
            return False
        return True

    def finalized(self, log: tuple[Record, ...]) -> tuple[Record, ...]:
        return (*log, Record.LEVEL)

    def _is_surprised(self, process: Process) -> bool:
        return process.goes_on and process.said and process.reads < NEWEST
