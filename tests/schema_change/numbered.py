"""The model of sequences: who draws from one while it comes, goes or is called otherwise.

What is real: the statements' plans and steps, `next_descriptors`, `job_moves`, `verify` and the
numbers that it gives, `slice_chunk`, `first_row`, the store's key-value form, d ⊨ S, and a node's
blocks (`NodeSequenceValues`). Two nodes see the log up to where they have come, hence versions that
are adjacent, and hold blocks of numbers; rows are written under any version in use; a chunk of a
run that has begun comes at any later moment, again and again. A master that ends loses what is not
in the log, and answers: so a block may have been taken for nobody.

Of numbers in rows it matters only that they are there: which ones were handed out is `given`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.job import Job, Phase
from leasehold.catalog.sequence import EPOCH
from leasehold.catalog.sequence_ownership import set_operation
from leasehold.catalog.states import WRITTEN, State
from leasehold.model.errors import (
    DuplicateObject,
    MalformedRequest,
    NoMaster,
    OutcomeUnknown,
    Refused,
    SequenceExhausted,
    UnknownTable,
)
from leasehold.model.ports import Row
from leasehold.model.records.jobs import Chunk
from leasehold.model.records.log import (
    CatalogWrite,
    DescriptorWrite,
    JobWrite,
    MinVersion,
    RowChange,
)
from leasehold.model.records.requests import ChangeRequest, OnConflict, Operation, Outcome
from leasehold.replica.sequences import node_blocks as blocks
from leasehold.replica.sequences.node_blocks import NodeSequenceValues
from leasehold.replication.master.backfill import slice_chunk
from leasehold.schema_change.coordinator.verification import as_if_public
from leasehold.schema_change.job import transitions as go
from leasehold.schema_change.job.chunk_acceptance import accept_chunk
from leasehold.schema_change.job.next_versions import find_moving, is_moving, next_descriptors
from leasehold.schema_change.plan.statement_batch import StatementBatch
from leasehold.transaction.sequence_operations import rows_with_versions
from leasehold.transaction.verify import Decided, verify
from tests.schema_change.mirrors import Rows, _data, _rows_of, _store
from tests.schema_change.numbered_world import (
    ALTERED,
    CONTEXT,
    IDS,
    LAST_LSN,
    REQUEST,
    SETS_MAX,
    Move,
    Node,
    Position,
    Rules,
    World,
    applied,
    dead,
    drawn_in,
    epochs_of,
    gives,
    has_rows,
    held_by,
    in_use,
    is_kept,
    is_used_up,
    joined,
    lap_of,
    lapped,
    named_in,
    passed,
    restarted_between,
    row_operations,
    script_of,
    sequences_in,
    texts,
    with_blocks,
)
from tests.support.memory_store.consistency import violations
from tests.support.memory_store.store import MemoryStore


class _Reads:
    """What a node sees, for `NodeSequenceValues.find`."""

    def __init__(self, catalog: Catalog, epochs: dict[int, int]) -> None:
        self._catalog = catalog
        self._epochs = epochs

    @contextmanager
    def snapshot(self) -> Iterator[_Reads]:
        yield self

    def versions(self, table_id: int) -> tuple[Descriptor, ...]:
        return self._catalog.versions(table_id) if self._catalog.has(table_id) else ()

    def get(self, descriptor: Descriptor, key: Any) -> Any:
        return _Row({EPOCH: self._epochs.get(descriptor.table_id, 0)})


class _Row(NamedTuple):
    values: dict[int, Any]


@dataclass
class Numbered:
    """`given`: statements that were done before; `asked` one after the other. `by`: another way of
    the first one's job than the plan's."""

    given: str
    asked: tuple[str, ...]
    rules: Rules = Rules()
    by: Any = None
    cancel: bool = True
    sets: int = SETS_MAX
    reached: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.gives_back = any(ALTERED in text for text in self.asked)
        self.all: list[Position] = []
        self._numbers: dict[Any, int] = {}
        self._found: dict[Any, str] = {}
        self._memory: dict[Any, Any] = {}
        self._shapes: dict[Any, int] = {}
        self.seen: list[Catalog] = []
        script = script_of(self.given, Catalog())
        self._begin = self._keep(Position(0, applied(Catalog(), script.writes)))
        self._opening = script.opening

    def starts(self) -> Iterator[tuple[str, World]]:
        """The table is empty, or has a row of before."""
        columns = self.all[0].catalog.newest(1).columns
        row = (1, (1,), tuple((column.element_id, 1) for column in columns))
        for rows in ((), (row,)):
            empty = World(Rows(rows), self._begin, ())
            world = self._set("made", empty, self.all[0].catalog, self._opening).world
            yield f"{len(rows)} rows", world._replace(nodes=(Node(0, epochs_of(world.held)),) * 2)

    # ------------------------------------------------------------ invariants

    def invariant(self, world: World) -> str | None:
        position = self.all[world.at]
        self.reached.add(position.words)
        key = world.held, world.at
        if not world.harm and key not in self._found:
            self._found[key] = self._wrong(world.held, position)
        return world.harm or self._found[key] or None

    def _wrong(self, held: Rows, position: Position) -> str:
        catalog = position.catalog
        for table in in_use(catalog):
            for column in table.columns:
                if column.default_expression.startswith("nextval") and not column.draws_from:
                    return f"version {table.version}: column {column.name} draws from nothing"
                drawn = column.draws_from if column.state in WRITTEN else 0
                if column.draws_from and column.default_expression not in texts(catalog, column):
                    return f"version {table.version}: column {column.name} draws from another"
                if drawn and not gives(catalog, drawn):
                    return (
                        f"version {table.version}: column {column.name} draws from a sequence that"
                        " is gone"
                    )
            found = violations(_data(held, table.table_id), table, dead(catalog))
            if found:
                return f"version {table.version}: {found[0].words} at {found[0].key}"
        for sequence in sequences_in(catalog):
            if not any(table == sequence.table_id for table, _, _ in held.rows):
                return f"sequence {sequence.name} has no row"
        return ""

    # ------------------------------------------------------------ transitions

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        """What the master does has nothing to do with nodes, nor what one node does with others: so
        each is worked out once."""
        if world.harm:
            return
        position = self.all[world.at]
        drained = all(node.seen == position.shape for node in world.nodes)
        alone = world._replace(nodes=(), given=())
        for move in self._known(
            ("master", alone, drained), lambda: self._by_master(alone, drained)
        ):
            yield move.label, joined(world, move, world.nodes)
        for number, node in enumerate(world.nodes):
            others = (*world.nodes[:number], *world.nodes[number + 1 :])
            for move in self._known((alone, node), partial(self._by_node, alone, node)):
                yield move.label, joined(world, move, others)

    def _known(self, key: Any, make: Callable[[], Iterator[Move]]) -> tuple[Move, ...]:
        if key not in self._memory:
            self._memory[key] = tuple(make())
        found: tuple[Move, ...] = self._memory[key]
        return found

    def _by_master(self, world: World, drained: bool) -> Iterator[Move]:
        position = self.all[world.at]
        yield from self._rows(world, position)
        yield from self._setting(world, position)
        if position.job is None:
            yield from self._asked(world, position)
        else:
            yield from self._chunks(world, position, position.job)
            for label, after in self._job(world, position, position.job, drained):
                anew = restarted_between(position.catalog, self.all[after.at].catalog)
                yield Move(label, after, (), anew)

    def _rows(self, world: World, position: Position) -> Iterator[Move]:
        """By whoever may use a version, without a number, which the master gives then."""
        for table in in_use(position.catalog):
            for operation in row_operations():
                label = f"{operation.kind.name} for version {table.version}"
                operation = operation._replace(schema_version=table.version)
                request = ChangeRequest(REQUEST, (operation,), on_conflict=OnConflict.FAIL)
                store = _store(world.held)
                try:
                    decided = self._decided(request, position.catalog, store, world.lsn)
                except MalformedRequest as error:
                    yield Move(label, world._replace(harm=error.message))
                except Refused:
                    pass
                else:
                    yield from self._applied(label, world, position, store, decided.changes)

    def _decided(
        self, request: ChangeRequest, catalog: Catalog, store: MemoryStore, lsn: int
    ) -> Decided:
        def row(descriptor: Descriptor, key: Any) -> Row | None:
            found = store.row(descriptor, key)
            return None if found is None else found._replace(lsn=LAST_LSN)

        return verify(request, catalog, row, lsn, context=CONTEXT)

    def _applied(
        self,
        label: str,
        world: World,
        position: Position,
        store: MemoryStore,
        changes: tuple[RowChange, ...],
    ) -> Iterator[Move]:
        """Nothing, where a sequence has gone as far as the model looks."""
        drawn: list[tuple[int, int]] = []
        for number, change in enumerate(changes):
            descriptor = position.catalog.version(change.table_id, change.version)
            if descriptor.sequence is None:
                before = store.row(descriptor, change.key)
                known = {} if before is None else before.values
                drawn += drawn_in(descriptor, known, change.image or {})
            elif is_used_up(world, change.table_id):
                return
            elif not self.rules.moved_with_rows:
                continue
            store.change(descriptor, change, world.lsn, number, None)
        held = self._told(_rows_of(store), position.catalog)
        yield self._drawn(label, world, held, drawn)

    def _drawn(self, label: str, world: World, held: Rows, drawn: list[tuple[int, int]]) -> Move:
        """By the master: of one row, hence a number of each sequence at most."""
        assert len({sequence for sequence, _ in drawn}) == len(drawn), drawn
        for each in drawn:
            world = lapped(world, *each)
        told = tuple((sequence, lap_of(world, sequence), number) for sequence, number in drawn)
        moved = tuple(sequence for sequence, _ in drawn)
        return Move(label, world._replace(held=held), told, (), moved)

    def _told(self, held: Rows, catalog: Catalog) -> Rows:
        """Which number a row has matters no more; what nobody can see any more is removed."""
        rows = tuple(
            (t, key, pairs)
            if t != 1
            else (t, key, tuple((e, v if e == 1 else 1) for e, v in pairs if is_kept(catalog, e)))
            for t, key, pairs in held.rows
            if is_moving(catalog, t)
        )
        return Rows(rows, held.entries)

    # ------------------------------------------------------------ nodes

    def _by_node(self, world: World, node: Node) -> Iterator[Move]:
        position = self.all[world.at]
        now = node._replace(seen=position.shape, epochs=epochs_of(world.held))
        if now != node:
            yield Move("a node catches up", world._replace(nodes=(now,)))
        for sequence_id in sorted(named_in(position.catalog)):
            yield from self._draws(world, position, node, sequence_id)

    def _draws(
        self, world: World, position: Position, node: Node, sequence_id: int
    ) -> Iterator[Move]:
        """nextval of a session there, for a row or for nothing."""
        asked: list[ChangeRequest] = []
        reads = _Reads(self.seen[node.seen], dict(node.epochs))

        def submit(request: ChangeRequest, *_: Any) -> Outcome:
            asked.append(request)
            raise OutcomeUnknown("the master has it", request_id=b"")

        numbers = NodeSequenceValues(submit, lambda: reads)  # type: ignore[arg-type, return-value]
        numbers = with_blocks(numbers, node)
        try:
            found = numbers.find(sequence_id)
        except UnknownTable:
            return  # it has not come so far
        yield from self._given_back(world, position, node, numbers, found, asked)
        numbers = with_blocks(numbers, node)
        drawn = numbers.draw(found)
        if drawn is None:
            yield from self._filled(world, position, node, numbers, found, asked)
            return
        after = world._replace(nodes=(held_by(node, numbers),))
        if found.descriptor.state is State.ABSENT:
            yield Move("drawn", after._replace(harm="drawn from a sequence that was dropped"))
        elif found.epoch != dict(epochs_of(world.held)).get(sequence_id):
            yield Move("a node draws, not knowing that it was set", after)
        else:
            (lap,) = (block.lap for block in node.blocks if block.sequence == sequence_id)
            yield Move(f"a node draws {drawn}", after, ((sequence_id, lap, drawn),))

    def _given_back(
        self,
        world: World,
        position: Position,
        node: Node,
        numbers: NodeSequenceValues,
        found: blocks.Found,
        asked: list[ChangeRequest],
    ) -> Iterator[Move]:
        """Before ALTER SEQUENCE. The master gets it, now or after others, or never."""
        if not self.gives_back or world.backs:
            return
        numbers.give_back(found)
        if not asked:
            return
        nodes = (held_by(node, numbers),)
        world = world._replace(backs=1)
        request, store = asked.pop(), _store(world.held)
        yield Move("a node leaves its block", world._replace(nodes=nodes))
        try:
            decided = self._decided(request, position.catalog, store, world.lsn + 1)
        except Refused:
            return
        self._put(position.catalog, store, decided.changes, world.lsn + 1)
        held = self._told(_rows_of(store), position.catalog)
        back = world._replace(held=held, nodes=nodes, lsn=world.lsn + bool(decided.changes))
        yield Move("a node gives its block back", back)

    def _filled(
        self,
        world: World,
        position: Position,
        node: Node,
        numbers: NodeSequenceValues,
        found: blocks.Found,
        asked: list[ChangeRequest],
    ) -> Iterator[Move]:
        """It asks for a block: which comes, or the answer is lost. ⚠ Where an answer may come
        before the log has it, that is lost with the master instead."""
        with suppress(NoMaster):
            numbers.fill(found, 1)
        (request,) = asked
        store = _store(world.held)
        try:
            decided = self._decided(request, position.catalog, store, world.lsn)
        except SequenceExhausted:
            there = position.catalog.newest(found.descriptor.table_id).sequence
            if there is not None and there.cycles:
                yield Move("no number", world._replace(harm="one that cycles has no number left"))
            return
        except Refused:
            return  # it is gone, or set anew: the statement runs again
        self._put(position.catalog, store, decided.changes, world.lsn)
        if any(is_used_up(world, change.table_id) for change in decided.changes):
            return
        sequence_id, first, _, _ = decided.answer["numbers"]
        world = lapped(world, sequence_id, first)
        laps = {sequence_id: lap_of(world, sequence_id)}
        taken = world._replace(held=self._told(_rows_of(store), position.catalog))
        moved, mine = (sequence_id,), (passed(node, (sequence_id,)),)
        yield Move("a block is taken for nobody", taken._replace(nodes=mine), (), (), moved)

        def answer(*_: Any) -> Outcome:
            return Outcome(1, 1, 0, 0, True, answer=decided.answer)

        numbers._submit = answer
        numbers.fill(found, 1)
        mine = (held_by(node, numbers, laps),)
        yield Move("a node takes a block", taken._replace(nodes=mine), (), (), moved)
        if not self.rules.answered_from_log:
            yield Move("a node takes a block, and the master ends", world._replace(nodes=mine))

    # ------------------------------------------------------------ setval, statements

    def _setting(self, world: World, position: Position) -> Iterator[Move]:
        """setval, or RESTART: back to where it began."""
        if world.sets >= self.sets:
            return
        for sequence in sequences_in(position.catalog):
            if sequence.names:
                said = (set_operation(sequence, 1, called=False),)
                counted = world._replace(sets=world.sets + 1)
                yield self._set(f"{sequence.name} is set", counted, position.catalog, said)

    def _set(
        self, label: str, world: World, catalog: Catalog, operations: tuple[Operation, ...]
    ) -> Move:
        """What begins an epoch, in a commit of its own."""
        store = _store(world.held)
        anew: tuple[int, ...] = ()
        if operations:
            request = ChangeRequest(REQUEST, operations, on_conflict=OnConflict.FAIL)
            world = world._replace(lsn=world.lsn + 1)
            decided = self._decided(request, catalog, store, world.lsn)
            self._put(catalog, store, decided.changes, world.lsn)
            anew = tuple(change.table_id for change in decided.changes)
        held = self._told(_rows_of(store), catalog)
        return Move(label, world._replace(held=held), (), anew)

    @staticmethod
    def _put(
        catalog: Catalog, store: MemoryStore, changes: tuple[RowChange, ...], lsn: int
    ) -> None:
        for place, change in enumerate(changes):
            store.change(catalog.version(change.table_id, change.version), change, lsn, place, None)

    def _asked(self, world: World, position: Position) -> Iterator[Move]:
        if position.asked == len(self.asked):
            return
        text = self.asked[position.asked]
        try:
            script = script_of(text, position.catalog)
        except DuplicateObject:
            return  # its drop was cancelled
        at = self._in_state(("asked", world.at), lambda: self._after(position, script))
        catalog = self.all[at].catalog
        yield self._set(text, world._replace(at=at), catalog, script.opening)

    def _after(self, position: Position, script: StatementBatch) -> Position:
        catalog = applied(position.catalog, script.writes)
        jobs = [write.job_id for write in script.writes if isinstance(write, JobWrite)]
        job = catalog.jobs[jobs[0]] if jobs else None
        if job is not None and self.by is not None and not position.asked:
            job = self.by(job, position.catalog)
            catalog = applied(catalog, (JobWrite(job.job_id, job.to_wire()),))
        return Position(position.asked + 1, catalog, job)

    def _in_state(self, place: Any, make: Callable[[], Position]) -> int:
        if place not in self._numbers:
            self._numbers[place] = self._keep(make())
        return self._numbers[place]

    # ------------------------------------------------------------ the job

    def _chunks(self, world: World, position: Position, job: Job) -> Iterator[Move]:
        for run, element_id, version in position.runs:
            for key in IDS:
                chunk = Chunk(job.job_id, run, 1, version, element_id, ((key,),))
                if accept_chunk(position.catalog, chunk):
                    now = run == job.run and job.phase is Phase.BACKFILLING
                    todo = world.todo - {key} if now else world.todo
                    yield self._filled_by(world._replace(todo=todo), position, chunk)

    def _filled_by(self, world: World, position: Position, chunk: Chunk) -> Move:
        store, catalog = _store(world.held), position.catalog
        part = slice_chunk(chunk, 0, 1, catalog, store, CONTEXT, world.lsn)
        drawn: list[tuple[int, int]] = []
        for backfill in part.backfills:
            descriptor = catalog.version(1, backfill.version)
            for key, image in zip(backfill.keys, backfill.images, strict=True):
                row = store.row(descriptor, key)
                assert row is not None
                drawn += drawn_in(descriptor, row.values, image)
            store.backfill(descriptor, backfill)
        for place, change in enumerate(part.changes):
            if self.rules.moved_with_rows:
                made = catalog.version(change.table_id, change.version)
                store.change(made, change, world.lsn, place, None)
        held = self._told(_rows_of(store), catalog)
        return self._drawn(f"chunk of run {chunk.run}", world, held, drawn)

    def _job(
        self, world: World, position: Position, job: Job, drained: bool
    ) -> Iterator[tuple[str, World]]:
        if self.cancel and go.can_turn_back(job):
            yield "cancel", self._go(world, go.turn_back(job, 0))
        match job.phase:
            case Phase.PUBLISHING:
                made = next_descriptors(job, position.catalog)
                writes = [DescriptorWrite(d.table_id, d.version, d.to_wire()) for d in made]
                after = self._go(world, go.record_published(job, 0), *writes)
                standing = self.all[after.at].job
                if not self.rules.fence_before_backfill and standing and standing.current.backfills:
                    after = self._go(after, go.record_fenced(standing, 0))
                yield f"published: {job.current.label}", after
            case Phase.DRAINING if drained:
                tables = find_moving(job, position.catalog)
                fences = [MinVersion(t, job.versions[t]) for t in tables]
                yield "drained", self._go(world, go.record_fenced(job, 0), *fences)
            case Phase.BACKFILLING if not (world.todo and has_rows(world.held)):
                yield "filled", self._go(world, go.record_filled(job, 0))
            case Phase.VALIDATING:
                yield "validated", self._go(world, go.record_validated(job, 0))
            case Phase.VERIFYING:
                yield self._verified(world, position, job)

    def _verified(self, world: World, position: Position, job: Job) -> tuple[str, World]:
        elements, newest = job.current.verifies, position.catalog.newest(1)
        found = violations(_data(world.held, 1), as_if_public(newest, elements))
        wrong = [v.words for v in found if v.element_id in elements]
        if not wrong or not self.rules.verified:
            return "verified", self._go(world, go.record_verified(job, 0))
        return "verification", world._replace(harm=f"refuted without a reason: {wrong[0]}")

    def _go(self, world: World, job: Job, *writes: CatalogWrite) -> World:
        before = self.all[world.at]
        assert before.job is not None
        job = replace(job, marks=())
        place = (world.at, job.step, job.phase, job.status, job.backfill, job.run, job.error)
        at = self._in_state(place, lambda: self._moved(before, job, writes))
        store, lsn = _store(world.held), world.lsn + 1
        made = [*rows_with_versions(before.catalog, writes, store.row, lsn)]
        for move in made:
            store.change(move.descriptor, move.change, lsn, 0, None)
        lsn -= not made
        todo = world.todo
        if job.phase is Phase.BACKFILLING and job.run != before.job.run:
            todo = frozenset(key[0] for table, key, _ in world.held.rows if table == 1)
        elif job.phase is not Phase.BACKFILLING:
            todo = frozenset()
        held = self._told(_rows_of(store), self.all[at].catalog)
        return world._replace(held=held, at=at, lsn=lsn, todo=todo)

    def _moved(self, before: Position, job: Job, writes: tuple[CatalogWrite, ...]) -> Position:
        assert before.job is not None
        if not self.rules.drain:
            writes = tuple(w for w in writes if not isinstance(w, MinVersion))
        catalog = applied(before.catalog, (*writes, JobWrite(job.job_id, job.to_wire())))
        runs = before.runs
        if job.run != before.job.run and job.phase is Phase.BACKFILLING:
            runs = (*runs, (job.run, job.element_id, job.versions[1]))
        ended = job.phase is Phase.DONE
        # Chunks of a job that has ended are refused, whatever comes then.
        return Position(before.asked, catalog, None if ended else job, runs)

    def _keep(self, position: Position) -> int:
        tables = [t.table_id for t in position.catalog.leased_tables()]
        versions = tuple((t, position.catalog.newest(t).version) for t in tables)
        shape = position.asked, versions
        if shape not in self._shapes:
            self._shapes[shape] = len(self.seen)
            self.seen.append(position.catalog)
        self.all.append(replace(position, shape=self._shapes[shape]))
        return len(self.all) - 1
