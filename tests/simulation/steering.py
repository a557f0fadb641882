"""The menu, and people who steer its jobs: pause, resume, cancel, postpone, rates and sizes of
chunks, in any order and at every place of every job.

A command is answered as the job stands where it is decided; a job that is paused or postponed
stays where it is; one that is cancelled ends so, as one that fails does, with descriptors as they
were before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.job import Job, Phase, Status
from leasehold.model.errors import OutOfRange, UnknownJob, WrongJobState
from leasehold.model.records.requests import Outcome
from tests.simulation.harm import demand
from tests.simulation.menu import Menu
from tests.simulation.reference import JobMove

OK: Final = ""
WRONG: Final = WrongJobState.sqlstate
COMMANDS_MAX: Final = 14
"""For one job; then it is let go."""
LOOK_MS: Final = 900
NUMBERS: Final = ("version", "next_element_id", "modified_us", "since_lsn")
SETTINGS: Final[tuple[dict[str, int], ...]] = (
    {"postpone": 1},
    {"postpone": 1},
    {"postpone": 0},
    {"rows_per_second": 3},
    {"rows_per_second": 40, "chunk_rows": 2},
    {"rows_per_second": 0},
    {"chunk_rows": 1},
    {"chunk_rows": 500, "postpone": 0},
    {"cancel_blockers_after_ms": 200},
    {"cancel_blockers_after_ms": 0},
    {"chunk_rows": 0},
)
NEXT: Final[Mapping[Status, frozenset[Status]]] = {
    Status.RUNNING: frozenset(Status),
    Status.PAUSED: frozenset({Status.RUNNING, Status.ROLLING_BACK, Status.CANCELLED}),
    Status.ROLLING_BACK: frozenset({Status.FAILED, Status.CANCELLED}),
}


class Command(NamedTuple):
    job: int
    action: str
    settings: Mapping[str, int]

    @property
    def fields(self) -> dict[str, Any]:
        return {"job": self.job, "action": self.action, **self.settings}


def before_point(job: Job) -> bool:
    """The version that can't be taken back is not out."""
    return job.step < job.point or (job.step == job.point and job.phase is Phase.PUBLISHING)


def postponed(job: Job) -> bool:
    """It stands before that version, which is to wait."""
    last = job.step == job.point and job.phase is Phase.PUBLISHING
    return bool(job.settings.get("postpone")) and last and job.status is Status.RUNNING


def foreseen(command: Command, job: Job | None) -> str:
    """The SQLSTATE that a command is refused with, OK where it is taken."""
    if job is None:
        return UnknownJob.sqlstate
    match command.action:
        case "pause":
            able = job.status is Status.RUNNING
        case "resume":
            able = job.status is Status.PAUSED
        case "cancel":
            able = job.status in (Status.RUNNING, Status.PAUSED) and before_point(job)
        case "dismiss":
            able = job.status is Status.FAILED
        case _:
            able = not job.status.ended
            if able and (wrong := _of_settings(command.settings)):
                return wrong
            if command.settings.get("postpone"):
                able = job.status in (Status.RUNNING, Status.PAUSED) and before_point(job)
    return OK if able else WRONG


def _of_settings(settings: Mapping[str, int]) -> str:
    return OutOfRange.sqlstate if settings.get("chunk_rows") == 0 else OK


class Steering(Menu):
    """`commands`: how many were taken or refused, by action, phase and answer."""

    def setup(self) -> None:
        self.states: dict[int, list[tuple[int, Job]]] = {}  # by job, with offsets of the log
        self.taken: dict[bytes, Command] = {}
        self.cancelled: set[int] = set()
        self.commands: Counter[tuple[str, str, str]] = Counter()
        self.kinds: set[tuple[str, str]] = set()
        self._before: dict[int, dict[int, Descriptor]] = {}
        self._spent: Counter[int] = Counter()
        self.sim.reference.on_jobs.append(self._moved)
        super().setup()

    def _begun(self, job: int) -> None:
        """They are seen in the log; see `_moved`."""
        self.jobs.append(job)

    # ------------------------------------------------------------ what the log says

    def _moved(self, offset: int, moves: tuple[JobMove, ...], catalog: Catalog) -> None:
        for move in moves:
            job = move.after
            states = self.states.setdefault(job.job_id, [])
            if move.before is None:
                there = (t for t in job.tables if catalog.has(t))
                self._before[job.job_id] = {t: catalog.newest(t) for t in there}
                self._look_after(job.job_id)
            else:
                self._judge(move, move.before)
            states.append((offset, job))
            ends = move.before is None or not move.before.status.ended  # not: is dismissed
            if ends and job.status in (Status.FAILED, Status.CANCELLED):
                self._judge_back(job, catalog)
            if move.before is None or place(move.before) != place(job):
                self._perhaps(job)

    def _judge(self, move: JobMove, before: Job) -> None:
        job = move.after
        words = f"{job.sql}: from {told(before)} to {told(job)}"
        demand(job.status in NEXT.get(before.status, frozenset()) | {before.status}, "jobs", words)
        command = self.taken.get(move.request_id)
        if command is not None:
            demand(foreseen(command, before) == OK, "jobs", f"{command} was taken; {words}")
            self._judge_command(command, before, job, words)
            return
        demand(job.settings == before.settings, "jobs", f"nobody set it; {words}")
        stands = before.status is Status.PAUSED or postponed(before)
        turned = job.status is Status.ROLLING_BACK or job.status.ended
        if stands and not turned:
            demand(place(job) == place(before), "59", f"nobody let it go on; {words}")
        if before.status is Status.PAUSED:
            demand(job.status is Status.PAUSED, "59", f"nobody resumed it; {words}")
        else:
            demand(job.status is not Status.PAUSED, "59", f"nobody paused it; {words}")
        if job.status is Status.CANCELLED or (job.status is Status.ROLLING_BACK and not job.error):
            demand(job.job_id in self.cancelled, "60", f"nobody cancelled it; {words}")
        if job.status is Status.ROLLING_BACK and before.status is not Status.ROLLING_BACK:
            demand(before_point(before), "62", words)

    def _judge_command(self, command: Command, before: Job, job: Job, words: str) -> None:
        self.kinds.add((before.kind, command.action))
        self.commands[command.action, before.phase.value, OK] += 1
        match command.action:
            case "pause":
                demand(place(job) == (*place(before)[:3], Status.PAUSED), "59", words)
            case "resume":
                demand(place(job) == (*place(before)[:3], Status.RUNNING), "59", words)
            case "cancel":
                ways = (Status.ROLLING_BACK, Status.CANCELLED)
                demand(job.status in ways and not job.error, "60", words)
                self.cancelled.add(job.job_id)
            case "set":
                wanted = {**before.settings, **command.settings}
                demand(job.settings == wanted, "jobs", f"{command}: {job.settings}")
                demand(place(job) == place(before), "jobs", f"{command}; {words}")

    def _judge_back(self, job: Job, catalog: Catalog) -> None:
        """What it has left is what it found."""
        before = self._before[job.job_id]
        for table, found in before.items():
            left = catalog.newest(table)
            now, then = plain(left), plain(found)
            other = {k: (then[k], now[k]) for k in now if now[k] != then[k]}
            demand(not other, "60", f"{job.sql} ended {job.status}, and of {left.name}: {other}")
            lowest = catalog.min_version(table)
            demand(lowest == left.version, "D5", f"{job.sql} ended, {lowest} of {left.name} live")
        for table in job.tables:
            made = table not in before and catalog.has(table)
            demand(
                not (made and catalog.newest(table).names),
                "60",
                f"{job.sql}: table {table} stays although the job has ended {job.status}",
            )

    # ------------------------------------------------------------ people

    def _perhaps(self, job: Job) -> None:
        if self.on and not job.status.ended and self.rng.random() < 0.35:
            for _ in range(self.rng.choice((1, 1, 2, 3))):
                delay = self.rng.choice((0, 0, 1, 3, 20, 300))
                self.later(delay, lambda: self._command(job.job_id))
        elif self.on and job.status.ended and self.rng.random() < 0.1:
            self.later(1, lambda: self._command(job.job_id))

    def _command(self, job: int) -> None:
        if not self.on or self._spent[job] >= COMMANDS_MAX:
            return
        kinds = ("pause", "pause", "resume", "resume", "set", "set", "set", "dismiss")
        chosen = "cancel" if self.rng.random() < 0.07 else self.rng.choice(kinds)
        if self.rng.random() < 0.01:
            job += 1_000
        self._send(Command(job, chosen, self.rng.choice(SETTINGS) if chosen == "set" else {}))

    def _send(self, command: Command) -> None:
        self._spent[command.job] += 1
        asked = self.client.ask(command.fields, done=lambda o: self._answered(asked.id, command, o))
        self.taken[asked.id] = command

    def _answered(self, request_id: bytes, command: Command, outcome: Outcome) -> None:
        """Refused by where the job stood in that record."""
        if outcome.lsn:
            return
        offset = self.sim.reference.decided_at[request_id, outcome.attempt]
        states = self.states.get(command.job, [])
        earlier = next((job for at, job in reversed(states) if at < offset), None)
        during = (job for at, job in states if at == offset)
        codes = {foreseen(command, job) for job in (earlier, *during)}
        words = f"{command} was refused with {outcome.code}: {outcome.message}"
        known = codes - {OK} | self._by_faults()
        demand(outcome.code in known, "jobs", f"{words}, foreseen {codes}")
        phase = earlier.phase.value if earlier is not None else ""
        self.commands[command.action, phase, outcome.code] += 1

    def _look_after(self, number: int) -> None:
        """Nobody forgets a job for ever."""

        def look() -> None:
            job = self.sim.reference.catalog.jobs[number]
            if job.status.ended:
                return
            if self._spent[number] >= COMMANDS_MAX or not self.on or self.rng.random() < 0.4:
                self._let_go(job)
            self._look_after(number)

        self.later(LOOK_MS, look)

    def _let_go(self, job: Job) -> None:
        if job.status is Status.PAUSED:
            self._send(Command(job.job_id, "resume", {}))
        elif any(job.settings.get(name) for name in ("postpone", "rows_per_second")):
            self._send(Command(job.job_id, "set", {"postpone": 0, "rows_per_second": 0}))


def place(job: Job) -> tuple[int, Phase, int, Status]:
    return job.step, job.phase, job.backfill, job.status


def told(job: Job) -> str:
    return (
        f"step {job.step} {job.phase.value} of fill {job.backfill}, {job.status.value} {job.error}"
    )


def plain(descriptor: Descriptor) -> dict[str, Any]:
    """Everything but version, next_element_id and the time of publication."""
    return {k: v for k, v in descriptor.to_wire().items() if k not in NUMBERS}
