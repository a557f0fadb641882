"""States of the model of sequences as plain tuples, and what follows from a catalog or a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, CommitContext
from leasehold.catalog.job import Job
from leasehold.catalog.sequence import CALLED, EPOCH, LAST
from leasehold.catalog.sequence_ownership import nextval_text
from leasehold.catalog.states import State
from leasehold.model.records.log import CatalogWrite
from leasehold.model.records.requests import Operation, OperationKind
from leasehold.replica.sequences import node_blocks as blocks
from leasehold.replica.sequences.node_blocks import NodeSequenceValues
from leasehold.schema_change.plan.statement_batch import StatementBatch
from leasehold.sql.ddl.schema_statements import parse_statements
from tests.models.mutants.client import SequenceValueRules
from tests.models.mutants.transaction import VerifyRules
from tests.schema_change.mirrors import Rows

IDS: Final = (1,)
BLOCK: Final = 2
"""Numbers of a block."""
TAKEN_MAX: Final = 3
"""As far a sequence goes, then nobody takes of it any more."""
LAPS_MAX: Final = 2
"""As often one that cycles begins again."""
SETS_MAX: Final = 1
LAST_LSN: Final = 7
"""Of every row: which commit has moved a sequence last, blocks say."""
BOUNDS: Final = f"{len(IDS)} row, 2 nodes, blocks of {BLOCK}, numbers to {TAKEN_MAX}"
ALTERED: Final = "increment"
"""In statements before which nodes give their numbers back."""
CONTEXT: Final = CommitContext(0, b"a request's")
REQUEST: Final = bytes(16)


class Block(NamedTuple):
    """What a node has of a sequence, the epoch under which it was taken, and in which lap; `last`:
    nobody has moved the sequence since."""

    sequence: int
    epoch: int
    next: int
    left: int
    first: int
    lap: int = 0
    last: bool = False


class Node(NamedTuple):
    """`seen`: number of the versions that it has applied; `epochs` of sequences' rows there."""

    seen: int
    epochs: tuple[tuple[int, int], ...]
    blocks: tuple[Block, ...] = ()


class World(NamedTuple):
    """`nodes` are alike, hence sorted. `given`: (sequence, lap, number) handed out since it was set
    last, as far as it could come again: in its lap no block and no sequence goes back. `laps`: how
    often a sequence that cycles has begun again since; `sets`: how often one was set, `backs`: a
    block given back; `lsn` counts what begins epochs."""

    held: Rows
    at: int
    nodes: tuple[Node, ...]
    given: tuple[tuple[int, int, int], ...] = ()
    laps: tuple[tuple[int, int], ...] = ()
    lsn: int = 1
    sets: int = 0
    backs: int = 0
    todo: frozenset[Any] = frozenset()
    harm: str = ""


class Move(NamedTuple):
    """`world`: afterwards, without the nodes that have no part in it. `drawn`: what is handed out;
    `anew`: sequences that start over; `moved`: that have given numbers."""

    label: str
    world: World
    drawn: tuple[tuple[int, int, int], ...] = ()
    anew: tuple[int, ...] = ()
    moved: tuple[int, ...] = ()


@dataclass(frozen=True)
class Position:
    """`asked`: as many of the statements were. `runs` of fills that have begun: (run, element,
    version). `shape`: which versions there are."""

    asked: int
    catalog: Catalog
    job: Job | None = None
    runs: tuple[tuple[int, int, int], ...] = ()
    shape: int = 0

    @property
    def words(self) -> str:
        if self.job is None:
            return f"{self.asked} statements"
        return f"{self.job.status.value}, step {self.job.step} {self.job.phase.value}"


@dataclass(frozen=True)
class Rules:
    """What is to be found when it is off. `answered_from_log`: a block is a node's when its commit
    is in the log. `moved_with_rows`: one commit has rows, and how far their sequence went."""

    verify: VerifyRules = VerifyRules()
    node: SequenceValueRules = SequenceValueRules()
    drain: bool = True
    fence_before_backfill: bool = True
    verified: bool = True
    answered_from_log: bool = True
    moved_with_rows: bool = True


# ------------------------------------------------------------------ parts


def script_of(text: str, catalog: Catalog) -> StatementBatch:
    script = StatementBatch.on(catalog)
    for statement, sql in parse_statements(text):
        script.take(statement, sql, REQUEST, CONTEXT, lambda _: -1)  # type: ignore[arg-type]
    return script


def applied(catalog: Catalog, writes: tuple[CatalogWrite, ...]) -> Catalog:
    made = catalog.copy()
    for write in writes:
        made.apply(write, 0, 0)
    return made


def row_operations() -> tuple[Operation, ...]:
    """Of a row, by who leaves to the master what is drawn."""
    kinds, made = OperationKind, []
    for key in ({"id": row} for row in IDS):
        made += [Operation(kind, "t", key, {"v": 1}) for kind in (kinds.INSERT, kinds.UPDATE)]
        made.append(Operation(kinds.DELETE, "t", key, {}))
    return tuple(made)


def versions_of(catalog: Catalog, table_id: int) -> list[Descriptor]:
    """Those that may be in use, of which only the newest ones matter where nobody is waited for."""
    kept = catalog.versions(table_id) if catalog.has(table_id) else ()
    return [d for d in kept if d.version >= catalog.min_version(table_id)][-3:]


def in_use(catalog: Catalog) -> list[Descriptor]:
    return [table for table in versions_of(catalog, 1) if "t" in table.names]


def sequences_in(catalog: Catalog) -> list[Descriptor]:
    return [table for table in catalog.tables() if table.sequence is not None]


def gives(catalog: Catalog, sequence_id: int) -> bool:
    """To whomever it should: a table that goes along may have its last numbers by the master."""
    stays = catalog.newest(1).state is State.PUBLIC
    there = (State.PUBLIC, State.WRITE_ONLY) if stays else (State.PUBLIC, State.DELETE_ONLY)
    return catalog.has(sequence_id) and catalog.newest(sequence_id).state in there


def texts(catalog: Catalog, column: Column) -> set[str]:
    """What a default may say of the sequence that it draws from: also before anybody else may."""
    if not catalog.has(column.draws_from):
        return set()
    known = catalog.versions(column.draws_from)
    return {nextval_text(name) for d in known for name in (d.name, *d.names)}


def named_in(catalog: Catalog) -> set[int]:
    """Sequences that somebody may draw from: by name, or by a column's default."""
    columns = (column for table in in_use(catalog) for column in table.by_name.values())
    drawn = {column.draws_from for column in columns} - {0}
    leased = (t.table_id for t in catalog.leased_tables() if t.sequence is not None)
    return drawn | {s for s in leased if any(d.names for d in versions_of(catalog, s))}


def drawn_in(descriptor: Descriptor, before: Any, image: Any) -> list[tuple[int, int]]:
    """Numbers that the master has put into a row."""
    return [
        (column.draws_from, image[column.element_id])
        for column in descriptor.columns
        if column.draws_from
        and image.get(column.element_id) is not None
        and before.get(column.element_id) is None
    ]


def is_kept(catalog: Catalog, element_id: int) -> bool:
    """Does a version in use have it? Else it is removed at once."""
    return any(table.element(element_id) is not None for table in versions_of(catalog, 1))


def dead(catalog: Catalog) -> frozenset[int]:
    """Elements that go: their pairs wait for those who still see them."""
    known = {e.element_id for version in versions_of(catalog, 1) for e in version.elements}
    return frozenset(known - {e.element_id for e in catalog.newest(1).elements})


def has_rows(held: Rows) -> bool:
    return any(table == 1 for table, _, _ in held.rows)


def epochs_of(held: Rows) -> tuple[tuple[int, int], ...]:
    return tuple((t, dict(pairs)[EPOCH]) for t, _, pairs in held.rows if t != 1)


def last_of(held: Rows, table_id: int) -> int:
    return next((dict(pairs)[LAST] for t, _, pairs in held.rows if t == table_id), 0)


def passed(node: Node, moved: tuple[int, ...]) -> Node:
    """Somebody else has moved these sequences."""
    if not moved or not any(block.last for block in node.blocks):
        return node
    kept = (b._replace(last=b.last and b.sequence not in moved) for b in node.blocks)
    return node._replace(blocks=tuple(kept))


def joined(world: World, move: Move, others: tuple[Node, ...]) -> World:
    """With what was handed out before, and who else is there. Once for each transition, where the
    rest is worked out once for many: so it makes nothing anew that stays as it is."""
    if move.moved:
        others = tuple(passed(node, move.moved) for node in others)
    nodes = tuple(sorted((*others, *move.world.nodes)))
    given, laps, harm = world.given, move.world.laps, move.world.harm
    if move.anew:
        given = tuple(each for each in given if each[0] not in move.anew)
        laps = tuple(each for each in laps if each[0] not in move.anew)
    for each in move.drawn:
        if each in given:
            harm = f"number {each[2]} of a sequence is given twice"
        given = (*given, each)
    if given and not harm:
        given = pruned(given, move.world.held, nodes, dict(laps))
    return move.world._replace(nodes=nodes, given=given, laps=laps, harm=harm)


def pruned(
    given: tuple[tuple[int, int, int], ...],
    held: Rows,
    nodes: tuple[Node, ...],
    laps: dict[int, int],
) -> tuple[tuple[int, int, int], ...]:
    first = {(t, laps.get(t, 0)): dict(pairs)[LAST] for t, _, pairs in held.rows if t != 1}
    for node in nodes:
        for block in node.blocks:
            place = block.sequence, block.lap
            first[place] = min(first.get(place, block.next), block.next)
    kept = (each for each in given if each[:2] in first and each[2] >= first[each[:2]])
    return tuple(sorted(kept))


def lap_of(world: World, sequence_id: int) -> int:
    return dict(world.laps).get(sequence_id, 0)


def lapped(world: World, sequence_id: int, number: int) -> World:
    """`number` is the first that is taken where `world` still says where the sequence stood."""
    row = next((dict(pairs) for t, _, pairs in world.held.rows if t == sequence_id), None)
    if row is None or not row[CALLED] or number > row[LAST]:
        return world
    laps = {**dict(world.laps), sequence_id: lap_of(world, sequence_id) + 1}
    return world._replace(laps=tuple(sorted(laps.items())))


def is_used_up(world: World, sequence_id: int) -> bool:
    """As far as the model looks."""
    return last_of(world.held, sequence_id) >= TAKEN_MAX or lap_of(world, sequence_id) >= LAPS_MAX


def held_by(node: Node, numbers: NodeSequenceValues, laps: dict[int, int] | None = None) -> Node:
    """`laps`: of sequences of which it has taken a block just now."""
    known = {block.sequence: (block.lap, block.last) for block in node.blocks}
    known |= {sequence: (lap, True) for sequence, lap in (laps or {}).items()}
    kept = (
        Block(s, b.epoch, b.next, b.left, b.first, *known[s])
        for s, b in numbers._blocks.items()
        if b.left
    )
    return node._replace(blocks=tuple(sorted(kept)))


def with_blocks(numbers: NodeSequenceValues, node: Node) -> NodeSequenceValues:
    for block in node.blocks:
        at = LAST_LSN if block.last else LAST_LSN - 1
        kept = blocks._Block(block.epoch, block.next, block.left, block.first, at)
        numbers._blocks[block.sequence] = kept
    return numbers


def restarted_between(before: Catalog, after: Catalog) -> tuple[int, ...]:
    """Sequences whose new version begins them anew."""
    there = (s for s in sequences_in(after) if before.has(s.table_id))
    other = (s for s in there if s.sequence != before.newest(s.table_id).sequence)
    return tuple(s.table_id for s in other if s.sequence and s.sequence.begins is not None)
