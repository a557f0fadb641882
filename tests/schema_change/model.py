"""The schema-change model: one job against every writer, straggler, chunk and cancel.

What is real: the plan (`plan`, `steps_of`) and the descriptors of its steps (`next_descriptor`),
where the job goes (`job_moves`), the decision on each request (`verify`, with D5 inside), the pairs
it touches (`key_values`), the decision on each chunk (`accept_chunk`, `slice_chunk`) and on
findings (`accept_findings`, `confirm`), what verification finds (`as_if_public`), and d ⊨ S
(`violations`). What the model adds is the world around them: who holds which version, which
requests, chunks and findings are still on their way.

Requests on their way are not listed in the state. A writer may have prepared any number of them at
any version while it was in use, and each may be decided at any later moment; so "can be decided
now" is the same as "was made at a version that is not refused" (D5). The state space then covers
any number of operations and any delay. The same holds for chunks: each of a run that has begun may
arrive at any time, again and again. Writers' genid checks only ever *remove* behaviours (a request
that fails its check changes nothing), so unchecked writers cover checked ones. Somebody holds every
version that is not drained: letting go earlier than it must only hides harm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from leasehold.catalog.elements import Index
from leasehold.catalog.job import Phase, Status
from leasehold.catalog.states import READABLE, State
from tests.schema_change.cells import Cells
from tests.schema_change.changes import Change
from tests.schema_change.findings import accepts, verdict
from tests.schema_change.rules import EVERY_RULE, Rules
from tests.schema_change.timeline import Position, Timeline
from tests.schema_change.verdict import deserved, inconsistent, misread, names_harm, torn, verified
from tests.schema_change.versions import Version, version_of
from tests.schema_change.world import Cell, Row, World, words_of
from tests.schema_change.writers import Writers

EVERY_ROW: Final = -1


@dataclass
class Model:
    """`rows` and the change's domain bound the space; operations are unbounded. `public_only`:
    count only what queries see of the job's elements. `sliced`: what rows alone tell is verified
    in slices of one row each, between which everything goes on. `reached` counts states per place
    of the job, so that a test can tell that its model came where the rules matter."""

    change: Change
    rows: int = 2
    rules: Rules = EVERY_RULE
    cancel: bool = True
    public_only: bool = False
    sliced: bool = False
    reached: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.timeline = Timeline(self.change)
        self.writers = Writers(self.change.domain, self.rules)
        self.cells = Cells(self.timeline, self.writers, self.rules)
        self._verdicts: dict[tuple[object, ...], str] = {}
        self._readings: dict[tuple[int, Version], str] = {}
        self._places: dict[tuple[int, int, int], str] = {}
        self._checks: dict[tuple[tuple[int, ...], int, int], str] = {}

    def position(self, world: World) -> Position:
        return self.timeline.all[world.at]

    def rows_of(self, world: World) -> tuple[Row, ...]:
        return tuple(self.cells.all[number].row for number in world.cells)

    # ------------------------------------------------------------ starts

    def starts(self) -> list[tuple[str, World]]:
        """Every table of so many rows that writers can have made before the job, the empty one
        first."""
        first = self.change.base if self.change.origin is None else self.change.origin
        origin = version_of(first)
        seen = {(Row(),) * self.rows: None}
        todo = list(seen)
        while todo:
            rows = todo.pop(0)
            for place, row in enumerate(rows):
                others = (*rows[:place], *rows[place + 1 :])
                for outcome in self.writers.outcomes(row, others, origin):
                    beside = others if outcome.others is None else outcome.others
                    after = tuple(sorted((*beside, outcome.row), key=repr))
                    if after not in seen:
                        seen[after] = None
                        todo.append(after)
        words = ["; ".join(words_of(row, first) for row in rows) for rows in seen]
        return [(w, self.world(rows)) for w, rows in zip(words, seen, strict=True)]

    def world(self, rows: tuple[Row, ...]) -> World:
        """The job's first state with these rows."""
        keep = not self.rules.own_row
        first = self.change.base.version
        cells = [
            Cell(
                row,
                seen=(row.pairs,) if keep and row.exists else (),
                made=self.timeline.made(row, first),
            )
            for row in rows
        ]
        return World(tuple(sorted(map(self.cells.number, cells))), 0)

    # ------------------------------------------------------------ invariant

    def invariant(self, world: World) -> str | None:
        """d ⊨ S under every version that may be in use, names, and the writers' and job's harms."""
        cells, at, held, low, harm = world
        position = self.timeline.all[at]
        if (at, held, low) not in self._places:
            names = names_harm(position.versions, low, position.catalog(low))
            harms = names or self.timeline.harm(at) or self._cut_off(world)
            self._places[at, held, low] = harms or self._late(world)
        self.reached[position.words] += 1
        if self._places[at, held, low]:
            return self._places[at, held, low]
        for version in position.used[: held + 1]:
            if not self.public_only or self._is_public(version):
                found = self._inconsistent(cells, version, position.dead)
                found = found or ("" if harm else self._misread(cells, version))
                if found:
                    return found
        if held and not self.public_only:
            harm = harm or torn(self.rows_of(world), position.used[: held + 1])
        return harm or None

    def _cut_off(self, world: World) -> str:
        accepted = self.cells.accepted(world.at, world.low)
        used = self.position(world).used[: world.held + 1]
        for below, version in enumerate(used):
            if below not in accepted and version.descriptor.names:
                return f"a version that somebody holds is refused: {version.words}"
        return ""

    def _late(self, world: World) -> str:
        """Findings of a run count while it is under way, and never again."""
        position = self.position(world)
        now = position.job.run if position.job.phase is Phase.VALIDATING else 0
        taken = {run.number for run in position.looks if accepts(position, run, world.low)}
        taken -= {now} if position.job.status is Status.RUNNING else set()
        return f"late findings of run {min(taken)} are taken" if taken else ""

    def _inconsistent(self, cells: tuple[int, ...], version: Version, dead: frozenset[int]) -> str:
        for part in (cells,) if version.relates_rows else ((cell,) for cell in cells):
            key = part, version, dead
            if key not in self._verdicts:
                own = (self.cells.all[number].row for number in part)
                rows = tuple(self.timeline.without_given(r, version.descriptor) for r in own)
                self._verdicts[key] = inconsistent(rows, version, dead)
            if self._verdicts[key]:
                return self._verdicts[key]
        return ""

    def _misread(self, cells: tuple[int, ...], version: Version) -> str:
        """Does a subscriber that leases `version` see other values in the rows' last images?"""
        for number in cells:
            key = number, version
            if key not in self._readings:
                self._readings[key] = misread(self.cells.all[number], version, self.rules)
            if self._readings[key]:
                return self._readings[key]
        return ""

    def _is_public(self, version: Version) -> bool:
        elements = [version.descriptor.element(e) for e in self.timeline.elements if e]
        return all(e is not None and e.state is State.PUBLIC for e in elements)

    # ------------------------------------------------------------ transitions

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        cells, at, held, low, harm = world
        if harm:
            return
        for place, cell in enumerate(cells):
            if place and cell == cells[place - 1]:
                continue  # rows are alike
            others = (*cells[:place], *cells[place + 1 :])
            moves = self.cells.written(world, cell, others)
            if self.position(world).runs:
                moves = (*moves, *self.cells.filled(world, cell))
            for words, after, harm, beside in moves:
                rest = others if beside is None else beside
                yield words, World(tuple(sorted((*rest, after))), at, held, low, harm)
        if self.position(world).newest.state in READABLE:
            yield self._truncated(world)
        yield from self._job(world)

    def _truncated(self, world: World) -> tuple[str, World]:
        """A real one is refused while a job runs; here it may come at any moment, beside writers
        and chunks of any version, because no order of it and them does harm."""
        version = self.position(world).used[0]
        cells = [self.cells.truncated(cell, version) for cell in world.cells]
        return "TRUNCATE", world._replace(cells=tuple(sorted(cells)))

    def _job(self, world: World) -> Iterator[tuple[str, World]]:
        position = self.position(world)
        if self.cancel and position.can_turn_back:
            yield "the job is cancelled", self._go(world, "cancel")
        match position.job.phase:
            case Phase.PUBLISHING:
                yield self._published(world)
            case Phase.DRAINING:
                yield self._fenced(world)
            case Phase.BACKFILLING:
                if not any(self.cells.all[number].todo for number in world.cells):
                    words = "every chunk of the run is decided, the end marker too"
                    yield words, self._go(world, "filled")
                elif not any(row.exists for row in self.rows_of(world)):
                    # No chunk has to come for rows that are gone; late ones find another run.
                    yield "the master sees the table empty", self._go(world, "filled")
            case Phase.VALIDATING:
                yield "Spark finds nothing", self._go(world, "validated")
                yield self._confirmed(world)
            case Phase.VERIFYING if self.sliced and self._is_told_by_rows(position):
                yield from self._looked(world)
            case Phase.VERIFYING:
                yield self._verified(world)
            case Phase.DONE:
                if position.dead:
                    yield self._cleaned(world)

    def _go(self, world: World, move: str) -> World:
        """The job's move; where a run begins, every row that is there has an image to be read."""
        before = self.position(world)
        at = self.timeline.moved(world.at, move)
        after = self.timeline.all[at]
        begun = after.runs != before.runs
        cells = world.cells
        if begun or before.job.phase in (Phase.BACKFILLING, Phase.VERIFYING):
            old = [self.cells.all[n]._replace(newer=False, looked=False) for n in cells]
            new = [c._replace(todo=begun and c.row.exists) for c in old]
            cells = tuple(sorted(map(self.cells.number, new)))
        return world._replace(cells=cells, at=at)

    def _published(self, world: World) -> tuple[str, World]:
        held = 1 if self.rules.drain else world.held + 1
        low = 1 if self.rules.two_versions else world.low + 1
        after = self._go(world, "publish")._replace(held=held, low=low)
        position = self.position(after)
        if self.rules.given_at_once and position.job.status is Status.RUNNING:
            older, newest = position.versions[-2:]
            given = [self.cells.given(cell, older, newest) for cell in after.cells]
            after = after._replace(cells=tuple(sorted(given)))
        words = f"published: {position.used[0].words}"
        work = position.job.current.backfills or position.job.current.verifies
        if work and position.job.status is Status.RUNNING and not self.rules.fence_before_work:
            return f"{words}; its work begins before the fence", self._go(after, "fence")
        return words, after._replace(harm=self._unfilled(after))

    def _unfilled(self, world: World) -> str:
        """Nobody could write a column before it is shown: each row has its default then."""
        newest, *older = self.position(world).used
        shown = {column.element_id for version in older for column in version.public}
        for column in newest.public:
            own = older[0].descriptor.by_id.get(column.element_id)
            if column.element_id in shown or own is None or own.default is None or own.derived:
                continue
            if any(r.exists and r.value(own.element_id) is None for r in self.rows_of(world)):
                return f"column {column.name!r} becomes public, and a row lacks its default"
        return ""

    def _fenced(self, world: World) -> tuple[str, World]:
        """Drained, and min_version with it (D5): older requests are refused from here on."""
        after = self._go(world, "fence")
        words = "the wait for holders of older versions is left out"
        if self.rules.drain:
            words, after = "nobody holds an older version", after._replace(held=0)
        if self.rules.two_versions:
            words, after = f"{words}; min_version is in the log", after._replace(low=0)
        return words, after

    def _confirmed(self, world: World) -> tuple[str, World]:
        """Spark names every row, by whatever images it has met."""
        position, rows = self.position(world), self.rows_of(world)
        words = verdict(position, rows, world.low, self.rules)
        if not words:
            return "the master confirms no finding", self._go(world, "validated")
        found = verified(rows, position.newest, position.job.current.validates, position.dead)
        if not any(violation.condition in (2, 6) for violation in found):
            harm = f"the job is to fail for rows that are as they should be: {words}"
            return "findings", world._replace(harm=harm)
        return f"the master confirms: {words}", self._go(world, "refuted")

    def _verified(self, world: World) -> tuple[str, World]:
        """Every node compares the step's elements with what its rows imply."""
        if not self.rules.verify:
            return "verification is left out", self._go(world, "verified")
        words = self._find(world)
        if not words:
            return "verification: elements and rows agree", self._go(world, "verified")
        return self._refuted(world, words)

    def _refuted(self, world: World, words: str) -> tuple[str, World]:
        if words.startswith("verification finds"):
            return words, self._go(world, "refuted")
        return "verification", world._replace(harm=words)

    def _is_told_by_rows(self, position: Position) -> bool:
        elements = map(position.newest.element, position.job.current.verifies)
        return not any(e is None or isinstance(e, Index) for e in elements)

    def _looked(self, world: World) -> Iterator[tuple[str, World]]:
        """A slice of one row, at the position of its own record: every place is in one, in
        whatever order, since rows are alike."""
        cells = [self.cells.all[number] for number in world.cells]
        for place, cell in enumerate(cells):
            if cell.looked or (place and cell == cells[place - 1]):
                continue
            words = self._find(world, place)
            if words:
                yield self._refuted(world, words)
                continue
            passed = [*cells[:place], cell._replace(looked=True), *cells[place + 1 :]]
            numbers = tuple(sorted(map(self.cells.number, passed)))
            yield "a slice: its row is right", world._replace(cells=numbers)
        if all(c.looked for c in cells) or (not self.rules.slices_cover and cells[-1].looked):
            yield "verification: the last slice was right", self._go(world, "verified")

    def _find(self, world: World, place: int = EVERY_ROW) -> str:
        """Why verification refutes the job now, of the row at that place alone; "" when it
        doesn't."""
        key = world.cells, world.at, place
        if key not in self._checks:
            self._checks[key] = self._check(world, place)
        return self._checks[key]

    def _check(self, world: World, place: int) -> str:
        position = self.position(world)
        elements = position.job.current.verifies
        found = verified(self.rows_of(world), position.newest, elements, position.dead)
        if place != EVERY_ROW:
            found = tuple(v for v in found if v.key == (place,))
        if not found:
            return ""
        if not deserved(found, position.newest):
            return f"a job that did all it should is refuted: {found[0].words}"
        if not position.can_turn_back:
            return f"refuted past the point of no return: {found[0].words}"
        return f"verification finds: {found[0].words}"

    def _cleaned(self, world: World) -> tuple[str, World]:
        position = self.position(world)
        absent = position.newest.state is State.ABSENT
        old = [self.cells.all[number] for number in world.cells]
        kept = [Cell() if absent else self.cells.cleaned(cell, position.dead) for cell in old]
        cells = tuple(sorted(map(self.cells.number, kept)))
        after = self._go(world, "clean")
        return "history horizon: what is dead is removed", after._replace(cells=cells)

    def show(self, world: World) -> str:
        """A state in a line, for traces."""
        position = self.position(world)
        rows = "; ".join(words_of(row, position.newest) for row in self.rows_of(world))
        used = " / ".join(version.words for version in position.used[: world.held + 1])
        return f"{rows} | {position.words} | in use: {used}"
