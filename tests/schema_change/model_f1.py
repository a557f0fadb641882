"""F1-states model: one schema change against every writer, straggler, chunk and cancel.

What is real: the plan of the DDL and its descriptors (`plan`, `next_descriptor`), the decision on
each request (`verify`, with D5 inside), the pairs it touches (`key_values`), the decision on each
chunk (`accept_chunk`, `slice_chunk`), and d ⊨ S (`violations`). What the model adds is the world
around them: who holds which version, which requests and chunks are still on their way, how far
the job is.

Requests on their way are not listed in the state. A writer may have prepared any number of them at
any version while it was in use, and each may be decided at any later moment; so "can be decided
now" is the same as "was made at a version that is not refused" (D5). The state space then covers
any number of operations and any delay. The same holds for chunks: each of a run that has begun may
arrive at any time, again and again. Writers' genid checks only ever *remove* behaviours (a request
that fails its check changes nothing), so unchecked writers cover checked ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from leasehold.model.errors import Refused
from leasehold.model.ports import Row as StoredRow
from leasehold.model.ports import StoreWriter
from leasehold.model.records import (
    ChangeKind,
    ChangeRequest,
    Chunk,
    DescriptorWrite,
    Image,
    JobWrite,
    MinVersion,
    Operation,
    OperationKind,
)
from leasehold.replication.fill import slice_chunk
from leasehold.schema.catalog import Catalog
from leasehold.schema.chunk_gate import accept_chunk
from leasehold.schema.consistency import KeyValueData, Violation, violations
from leasehold.schema.descriptor import Descriptor, Index
from leasehold.schema.job import Job, Phase, Status
from leasehold.schema.key_values import entry_of, key_values
from leasehold.schema.states import State
from leasehold.transaction.verify import VerifyRules, verify
from tests.schema_change.planned_change import ID, NAMES, A, B, Change, E, table
from tests.schema_change.world import OneRow, Row, Stage, World, Write, begun, make_row, replaced

RUNS_MAX: Final = 2
JOB: Final = 1
PHASES: Final = {
    Stage.PUBLISHING: Phase.PUBLISHING,
    Stage.DRAINING: Phase.DRAINING,
    Stage.BACKFILLING: Phase.BACKFILLING,
    Stage.VERIFYING: Phase.VERIFYING,
}


@dataclass(frozen=True, slots=True)
class Rules:
    """Every rule on is the design; a test turns one off and expects the harm to be found."""

    drain: bool = True  # D2, D4: the next step waits until nobody holds an older version
    fence: bool = True  # D5: what was made below min_version is refused
    fence_before_backfill: bool = True  # images are read only after the fence
    chunk_check: bool = True  # ⚠ a chunk counts only for its job's run, step and element
    write_missing: bool = True  # ⚠ write-only: any update writes what the row still lacks
    own_row: bool = True  # V3: a chunk's entry is derived from the node's row, not from its image
    fill_newer: bool = True  # P12: a row written since its image was read is filled all the same
    verify: bool = True  # count and content are compared before public


EVERY_RULE: Final = Rules()


@dataclass
class Model:
    """`rows` and `values` of column A bound the space; operations are unbounded. `reached` counts
    states per stage, so that a test can tell that its model came where the rules matter."""

    change: Change
    rows: int = 2
    values: tuple[Any, ...] = (0, 1)
    rules: Rules = EVERY_RULE
    writers: int = 2
    cancel: bool = True
    public_only: bool = False  # count only harm that a query can see: in a version with E public
    reached: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        first = table()
        path = (State.DELETE_ONLY, State.WRITE_ONLY, State.PUBLIC)
        self.at = {State.ABSENT: first}
        for state in path:
            first = self.at[state] = self.change.descriptor(first, state)
        self._catalogs = {state: self._catalog(at) for state, at in self.at.items()}
        self._writes = {state: self._writes_at(state) for state in State}
        self._effects: dict[tuple[Row, int, int], tuple[tuple[str, Row], ...]] = {}
        self._verdicts: dict[tuple[Row, int, int, bool], str | None] = {}
        self._chunks: dict[tuple[Row, int, Any], Row] = {}
        self._takes: dict[tuple[Any, ...], bool] = {}
        self._accepted: dict[tuple[tuple[int, ...], int], tuple[int, ...]] = {}

    @staticmethod
    def _catalog(descriptor: Descriptor) -> Catalog:
        catalog = Catalog()
        catalog.apply(DescriptorWrite(1, descriptor.version, descriptor.to_wire()), 0, 0)
        return catalog

    # ------------------------------------------------------------ writers

    def _writes_at(self, state: State) -> tuple[Write, ...]:
        """Everything a writer at a version with E in `state` can ask for one row."""
        insert, update = OperationKind.INSERT, OperationKind.UPDATE
        element = self.change.element
        delete = Write(OperationKind.DELETE)
        other = Write(update, ((B, 0),))
        if isinstance(element, Index):
            inserts = [Write(insert, ((A, value), (B, 0))) for value in self.values]
            updates = [Write(update, ((A, value),)) for value in self.values]
            return (*inserts, *updates, other, delete)
        plain = ((A, self.values[0]), (B, 0))
        writes = [Write(insert, plain), other, delete]
        if state is State.PUBLIC:
            named = [None, 7, 8] if element.default is not None else [None, 8]
            writes += [Write(insert, (*plain, (E, value))) for value in named]
            writes += [Write(update, ((E, value),)) for value in named]
        return tuple(writes)

    def decide(
        self,
        row: Row,
        number: int,
        catalog: Catalog,
        version: int | None,
        write: Write,
        seen: int | None = None,
    ) -> Row | None:
        """The row after the master has decided `write` on it; None when it was refused (with the
        errors of `verify`) or met no row. The row has genid 1; `seen` is the one its writer saw."""
        operation = Operation(
            write.kind,
            "t",
            (number,),
            {NAMES[e]: value for e, value in write.changed},
            expect=seen,
            schema_version=version,
        )
        stored = StoredRow(row.image, {0: 1}, 1) if row.exists else None
        rules = VerifyRules(min_version_fences=self.rules.fence)
        request = ChangeRequest(b"", (operation,))
        try:
            decided = verify(request, catalog, lambda _, __: stored, 2, rules)
        except Refused:
            return None
        if not decided.changes:
            return None
        change = decided.changes[0]
        descriptor = catalog.version(1, change.version)
        changed = {**dict(write.changed), **({ID: number} if stored is None else {})}
        after = self._apply(row, descriptor, change.kind, changed, write)
        # The image that the log carries and the pairs that the states allow are the same row
        # (left-overs of a dead column apart, which a store keeps elsewhere).
        if change.image is not None and self.rules.write_missing and (row.exists or not row.pairs):
            assert after.image == change.image, (row, change, after)
        return after

    def _apply(
        self,
        row: Row,
        descriptor: Descriptor,
        kind: ChangeKind,
        changed: dict[int, Any],
        write: Write | None = None,
    ) -> Row:
        """Pair by pair, as F1 counts: what a version can't see, it leaves alone."""
        before: Image | None = row.image if row.exists else None
        result = key_values(descriptor, kind, before, changed)
        put, put_entries = dict(result.put), {e.put for e in result.entries if e.put is not None}
        element = descriptor.element(E)
        writing = element is not None and element.state is State.WRITE_ONLY
        if not self.rules.write_missing and writing and kind is ChangeKind.UPDATE:
            put = {e: value for e, value in put.items() if e in changed}
            put_entries = {e.put for e in result.entries if e.put and e.remove is not None}
        pairs = {e: value for e, value in row.image.items() if e not in result.delete} | put
        removed = {e.remove for e in result.entries}
        kept = {e for e in row.entries if e not in removed}
        return make_row(result.exists, pairs, kept | put_entries)

    def effects(self, row: Row, number: int, state: int) -> tuple[tuple[str, Row], ...]:
        """(words, row after) of every write at a version with E in `state` that is accepted and
        changes something."""
        key = row, number, state
        found = self._effects.get(key)
        if found is None:
            label = State(state).label
            catalog = self._catalogs[State(state)]
            made = [
                (f"{w.words}, made under {label}", self.decide(row, number, catalog, None, w))
                for w in self._writes[State(state)]
            ]
            found = self._effects[key] = tuple(
                (words, after)
                for words, after in made
                if after is not None and (after != row or not self._silent)
            )
        return found

    def accepted(self, versions: tuple[int, ...], low: int) -> tuple[int, ...]:
        """States of the versions whose requests the master still takes, by asking `verify` with
        one request per version that there ever was (D5)."""
        key = versions, low
        found = self._accepted.get(key)
        if found is None:
            catalog = self.catalog(versions, low)
            row = self.full(State(self.change.begin), 0)
            write = Write(OperationKind.DELETE)
            taken = [
                state
                for number, state in enumerate(versions, start=1)
                if self.decide(row, 0, catalog, number, write) is not None
            ]
            found = self._accepted[key] = tuple(dict.fromkeys(taken))
        return found

    def catalog(self, versions: tuple[int, ...], low: int) -> Catalog:
        """The catalog as the log has made it."""
        newest = replace(self.at[State(versions[0])], version=1)
        catalog = self._catalog(newest)
        for state in versions[1:]:
            moved = newest.element(E) is not None or state == State.DELETE_ONLY
            # An order that the plan never makes has no descriptor of its own.
            newest = (
                self.change.descriptor(newest, State(state))
                if moved
                else replace(self.at[State(state)], version=newest.version + 1)
            )
            catalog.apply(DescriptorWrite(1, newest.version, newest.to_wire()), 0, 0)
        catalog.apply(MinVersion(1, low + 1), 0, 0)
        return catalog

    def full(self, state: State, number: int) -> Row:
        row = self.decide(Row(), number, self._catalogs[state], None, self._writes[state][0])
        assert row is not None
        return row

    @property
    def _silent(self) -> bool:
        """Does a write that leaves the row as it was change nothing at all?"""
        return self.rules.fill_newer

    # ------------------------------------------------------------ chunks

    def fill(self, row: Row, number: int, seen: Any) -> Row:
        """The row after an accepted chunk that names it; `seen` is A in the image Spark had."""
        key = row, number, seen
        known = self._chunks.get(key)
        if known is None:
            known = self._chunks[key] = self._fill(row, number, seen)
        return known

    def _fill(self, row: Row, number: int, seen: Any) -> Row:
        descriptor = self.at[State.WRITE_ONLY]
        stored = StoredRow(row.image, {0: 1}, 1) if row.exists else None
        chunk = Chunk(1, 1, 1, descriptor.version, E, (((number,), 1),))
        catalog = self._catalogs[State.WRITE_ONLY]
        part = slice_chunk(chunk, 0, 1, catalog, cast(StoreWriter, OneRow(stored)))
        element = self.change.element
        if part.entries and row.exists:
            assert isinstance(element, Index)
            image = row.image if self.rules.own_row else {**row.image, A: seen}
            return make_row(True, row.image, {*row.entries, entry_of(element, image)})
        for change in part.changes:
            assert change.image is not None
            row = self._apply(row, descriptor, change.kind, {E: change.image[E]})
        return row

    def accepts(self, world: World, run: int) -> bool:
        """Does the master take a chunk of `run` now? `accept_chunk` on the catalog as it is."""
        if not self.rules.chunk_check:
            return True
        key = world.versions, world.going_back, world.stage, world.run, run
        found = self._takes.get(key)
        if found is None:
            catalog = self.catalog(world.versions, world.low)
            catalog.apply(JobWrite(JOB, self._job_now(world).to_wire()), 0, 0)
            # It names the version that was write-only when its run began.
            version = self._write_only_version(world.versions)
            found = accept_chunk(catalog, Chunk(JOB, run, 1, version, E, ()))
            self._takes[key] = found
        return found

    @staticmethod
    def _write_only_version(versions: tuple[int, ...]) -> int:
        return 1 + (versions.index(State.WRITE_ONLY) if State.WRITE_ONLY in versions else 0)

    def _job_now(self, world: World) -> Job:
        """The job's record as the coordinator would have it at this point."""
        status = Status.ROLLING_BACK if world.going_back else Status.RUNNING
        if world.stage >= Stage.ENDED:
            status = Status.CANCELLED if world.going_back else Status.SUCCEEDED
        phase = PHASES.get(Stage(world.stage), Phase.DONE)
        return replace(
            self.change.job, job_id=JOB, phase=phase, status=status, run=world.run, step=0
        )

    # ------------------------------------------------------------ consistency

    def verdict(self, row: Row, key: int, state: int, dead: bool) -> str | None:
        """None when the row's pairs ⊨ the version with E in `state`, else the harm in words."""
        mark = row, key, state, dead
        if mark not in self._verdicts:
            found = self.check(((key, row),), State(state), dead)
            self._verdicts[mark] = (
                None
                if not found
                else f"version with {self.change.name} {State(state).label}: condition "
                f"{found[0].condition} ({found[0].anomaly} anomaly), row {key}: {found[0].words}"
            )
        return self._verdicts[mark]

    def check(
        self, rows: tuple[tuple[int, Row], ...], state: State, dead: bool
    ) -> tuple[Violation, ...]:
        data = KeyValueData(
            exists={(key,) for key, row in rows if row.exists},
            columns={((key,), e): v for key, row in rows for e, v in row.pairs},
            entries={(E, values, (key,)) for key, row in rows for values in row.entries},
        )
        return violations(data, self.at[state], frozenset({E}) if dead else frozenset())

    def invariant(self, world: World) -> str | None:
        """d ⊨ S for the newest version and for every version that a writer still holds."""
        self.reached[f"{'back ' if world.going_back else ''}{Stage(world.stage).name}"] += 1
        if world.stage == Stage.REFUTED:
            return "verification before public finds a difference in a job that kept every rule"
        in_use = {world.versions[-1], *(world.versions[-1 - below] for below in world.held)}
        for state in sorted(in_use):
            if self.public_only and state != State.PUBLIC:
                continue
            for key, row in enumerate(world.rows):
                harm = self.verdict(row, key, state, world.dead)
                if harm is not None:
                    return harm
        return None

    # ------------------------------------------------------------ transitions

    def starts(self) -> list[tuple[str, World]]:
        """Empty table, or every row there; whatever lies between is reached by writes."""
        state = self.change.begin
        empty = (Row(),) * self.rows
        full = tuple(self.full(state, number) for number in range(self.rows))
        return [
            (
                f"table with {words}, {self.change.name} is {state.label}",
                World(
                    rows,
                    (int(state),),
                    0,
                    (0,) * self.writers,
                    False,
                    0,
                    Stage.PUBLISHING,
                    0,
                    0,
                    False,
                    self._see(((),) * self.rows, rows),
                ),
            )
            for words, rows in (("no rows", empty), (f"{self.rows} rows", full))
        ]

    def _see(
        self, seen: tuple[tuple[Any, ...], ...], rows: tuple[Row, ...]
    ) -> tuple[tuple[Any, ...], ...]:
        """What old images may still show; only needed where a chunk's own image counts."""
        if self.rules.own_row:
            return ()
        return tuple(
            tuple(sorted({*old, row.image.get(A)}, key=repr)) if row.exists else old
            for old, row in zip(seen, rows, strict=True)
        )

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        yield from self._written(world)
        yield from self._filled(world)
        yield from self._moved(world)
        yield from self._job(world)

    def _written(self, world: World) -> Iterator[tuple[str, World]]:
        for state in self.accepted(world.versions, world.low):
            for number, row in enumerate(world.rows):
                for words, after in self.effects(row, number, state):
                    rows = replaced(world.rows, number, after)
                    todo = world.todo if after.exists else world.todo & ~(1 << number)
                    seen = world.seen if self.rules.own_row else self._see(world.seen, rows)
                    touched = 0 if self._silent else world.touched | 1 << number
                    yield (
                        f"the master decides on row {number}: {words}",
                        world._replace(rows=rows, todo=todo, seen=seen, touched=touched),
                    )

    def _filled(self, world: World) -> Iterator[tuple[str, World]]:
        for run in range(1, world.run + 1):
            if not self.accepts(world, run):
                continue
            for number, row in enumerate(world.rows):
                todo = world.todo & ~(1 << number) if run == world.run else world.todo
                images = (None,) if self.rules.own_row else world.seen[number]
                for image in images:
                    newer = not self._silent and world.touched >> number & 1
                    after = row if newer else self.fill(row, number, image)
                    if after == row and todo == world.todo:
                        continue
                    stale = "" if self.rules.own_row else f", computed from an image with a={image}"
                    yield (
                        f"a chunk of run {run} arrives for row {number}{stale}",
                        world._replace(rows=replaced(world.rows, number, after), todo=todo),
                    )

    def _moved(self, world: World) -> Iterator[tuple[str, World]]:
        for below in dict.fromkeys(world.held):
            if below:
                held = list(world.held)
                held[held.index(below)] = 0
                label = State(world.versions[-1 - below]).label
                yield (
                    f"a writer lets go of its version ({label}) and holds the newest",
                    world._replace(held=tuple(sorted(held))),
                )

    def _job(self, world: World) -> Iterator[tuple[str, World]]:
        current = State(world.versions[-1])
        if self._may_cancel(world, current):
            steps = self.change.back(current)
            stage = Stage.DRAINING if steps else Stage.ENDED
            yield "the job is cancelled", world._replace(going_back=True, stage=stage, todo=0)
        match world.stage:
            case Stage.PUBLISHING:
                yield from self._publish(world, current)
            case Stage.DRAINING:
                if world.held[-1] == 0 or not self.rules.drain:
                    yield self._drained(world, current)
            case Stage.BACKFILLING:
                if world.todo == 0:
                    yield self._end_marker(world)
                if world.run < RUNS_MAX:
                    again = begun(world)
                    yield f"paused and resumed: run {again.run} begins", again
            case Stage.VERIFYING:
                yield self._verified(world)
            case Stage.ENDED:
                if current is State.ABSENT and world.dead:
                    rows = tuple(
                        make_row(r.exists, {e: v for e, v in r.pairs if e != E}, set())
                        for r in world.rows
                    )
                    after = world._replace(rows=rows, dead=False, stage=Stage.CLEANED)
                    yield "history horizon: the dead element is removed physically", after

    def _may_cancel(self, world: World, current: State) -> bool:
        """Before the point of no return: adding, until public is published; dropping, until the
        first step is."""
        if not self.cancel or world.going_back or world.stage >= Stage.ENDED:
            return False
        return current is not State.PUBLIC if self.change.adds else world.step == 0

    def _publish(self, world: World, current: State) -> Iterator[tuple[str, World]]:
        steps = self.change.back(current) if world.going_back else self.change.steps[world.step :]
        nobody_below = world.held[-1] == 0 or not self.rules.drain
        fenced = world.low == len(world.versions) - 1 or not self.rules.drain
        if not (nobody_below and fenced):
            return
        state = steps[0]
        after = world._replace(
            versions=(*world.versions, int(state)),
            held=tuple(below + 1 for below in world.held),
            step=world.step if world.going_back else world.step + 1,
            stage=Stage.DRAINING,
            dead=world.dead or state is State.ABSENT,
        )
        if self._fills(after, state) and not self.rules.fence_before_backfill:
            after = begun(after)
        yield f"published: {self.change.name} is {state.label}", after

    def _fills(self, world: World, state: State) -> bool:
        return self.change.fills(state) and not world.going_back

    def _drained(self, world: World, current: State) -> tuple[str, World]:
        """Drained, and min_version with it (D5): older requests are refused from here on."""
        words = f"nobody holds an older version; min_version = {current.label} is in the log"
        after = world._replace(low=len(world.versions) - 1)
        if not self.rules.drain:
            words = "the wait for holders of older versions is left out"
            after = world
        if world.going_back:
            done = not self.change.back(current)
            return words, after._replace(stage=Stage.ENDED if done else Stage.PUBLISHING)
        if world.step == len(self.change.steps):
            return words, after._replace(stage=Stage.ENDED)
        if self._fills(world, current) and self.rules.fence_before_backfill:
            after = begun(after)
            return f"{words}; backfill run {after.run} begins", after
        return words, after._replace(stage=Stage.PUBLISHING)

    def _end_marker(self, world: World) -> tuple[str, World]:
        words = "every chunk of the run is decided, the end marker too"
        if self.rules.verify:
            return words, world._replace(stage=Stage.VERIFYING)
        return words, world._replace(stage=self._after_backfill())

    def _after_backfill(self) -> Stage:
        return Stage.PUBLISHING if self.rules.fence_before_backfill else Stage.DRAINING

    def _verified(self, world: World) -> tuple[str, World]:
        """Every node compares E with what its rows imply, as if E were public already."""
        found = self.check(tuple(enumerate(world.rows)), State.PUBLIC, dead=False)
        if found:
            return "verification: element and rows differ", world._replace(stage=Stage.REFUTED)
        return "verification: element and rows agree", world._replace(stage=self._after_backfill())

    def show(self, world: World) -> str:
        """A state in a line, for traces."""
        rows = []
        for number, row in enumerate(world.rows):
            pairs = ", ".join(f"{NAMES[e]}={v}" for e, v in row.pairs if e != ID)
            entries = "".join(f" entry{v}" for v in row.entries)
            there_words = f"({pairs}){entries}" if row.exists else f"gone ({pairs}){entries}"
            rows.append(f"row {number} {there_words}")
        live = " ".join(State(s).label for s in self.accepted(world.versions, world.low))
        held = " ".join(State(world.versions[-1 - b]).label for b in world.held)
        return f"{'; '.join(rows)} | accepted: {live} | held: {held}"
