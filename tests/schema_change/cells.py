"""What can happen to one row while the job stands where it does: writes and chunks that are on
their way and still accepted. Computed once per (row, place), so that exploring is looking up."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.states import READABLE
from leasehold.model.errors import Refused
from leasehold.model.records.requests import OperationKind
from leasehold.rows.filled_by_key import complete_new_row
from tests.schema_change.chunks import accepts, after_backfill, backfill
from tests.schema_change.rules import Rules
from tests.schema_change.timeline import Timeline
from tests.schema_change.versions import Version
from tests.schema_change.world import Cell, Row, World, Write, make_row, without, words_of
from tests.schema_change.writers import Outcome, Writers, lost

DELETE: Final = Write(OperationKind.DELETE)


class Move(NamedTuple):
    """What happened, the number of the cell after it, the harm done ("" for none). `others`: the
    numbers of the other cells, where it did something to them, too."""

    words: str
    cell: int
    harm: str = ""
    others: tuple[int, ...] | None = None


class Cells:
    """Cells by number, and their moves. `timeline` grows while positions are found."""

    def __init__(self, timeline: Timeline, writers: Writers, rules: Rules) -> None:
        self._timeline = timeline
        self._writers = writers
        self._rules = rules
        self.all: list[Cell] = []
        self._numbers: dict[Cell, int] = {}
        self._written: dict[tuple[object, ...], tuple[Move, ...]] = {}
        self._filled: dict[tuple[int, ...], tuple[Move, ...]] = {}
        self._accepted: dict[tuple[int, int], tuple[int, ...]] = {}
        self._together: dict[tuple[int, int], bool] = {}
        self._takes: dict[tuple[int, int], tuple[int, ...]] = {}

    def number(self, cell: Cell) -> int:
        if cell not in self._numbers:
            self._numbers[cell] = len(self.all)
            self.all.append(cell)
        return self._numbers[cell]

    # ------------------------------------------------------------ writes

    def written(self, world: World, cell: int, others: tuple[int, ...]) -> tuple[Move, ...]:
        """What the master can decide now on the row of `cell`, from a writer at any version."""
        _, at, held, low, _ = world
        accepted = self.accepted(at, low)
        key = cell, others if self._together[at, low] else (), at, held, low
        if key not in self._written:
            cells = tuple(self.all[number] for number in others)
            self._written[key] = tuple(self._try_writes(self.all[cell], cells, at, held, accepted))
        return self._written[key]

    def _try_writes(
        self, cell: Cell, others: tuple[Cell, ...], at: int, held: int, accepted: tuple[int, ...]
    ) -> Iterator[Move]:
        versions = self._timeline.all[at].used
        known: set[object] = set()
        rows = tuple(other.row for other in others)
        for below in accepted:
            made = versions[below]
            number = self._timeline.all[at].versions[-1 - below].version
            for outcome in self._writers.outcomes(cell.row, rows, made):
                outcome = self._completed(outcome, versions[0], made, number)
                # Who writes at a version that nobody should hold any more harms but himself.
                harm = outcome.harm or lost(cell.row, outcome, made, versions[: held + 1])
                harm = harm if below <= held else ""
                after = self._after(cell, outcome.row, number)
                mark = after, outcome.others
                if not harm and ((after == cell and outcome.others is None) or mark in known):
                    continue
                known.add(mark)
                words = f"row {words_of(cell.row, made.descriptor)}: {outcome.write.words}"
                beside = None
                if outcome.others is not None:
                    beside = tuple(
                        self.number(old if old.row == row else self._after(old, row, number))
                        for old, row in zip(others, outcome.others, strict=True)
                    )
                told = f"{words}, made under {made.words}"
                yield Move(told, self.number(after), harm, beside)

    def _completed(self, outcome: Outcome, newest: Version, made: Version, number: int) -> Outcome:
        """The outcome of a write under version `number` as the newest version has it, of which the
        writers' catalog knows nothing."""
        row = outcome.row
        if not row.exists:
            return outcome._replace(row=self._timeline.without_given(row, made.descriptor))
        if outcome.write.kind is not OperationKind.INSERT or not self._rules.new_completed:
            return outcome
        full = dict(complete_new_row(newest.descriptor, number, dict(row.pairs)))
        return outcome._replace(row=make_row(True, full, set(row.entries)))

    def given(self, cell: int, older: Descriptor, newest: Descriptor) -> int:
        """The cell when a version has brought columns of which every row has a value."""
        before = self.all[cell]
        brought = newest.missing.keys() - older.by_id.keys()
        values = {e: m.value for e, m in newest.missing.items() if m.at_once and e in brought}
        if not before.row.exists or not values:
            return cell
        row = make_row(True, {**dict(before.row.pairs), **values}, set(before.row.entries))
        told = tuple(sorted({*before.lacks, *values}))
        return self.number(before._replace(row=row, lacks=told))

    def _after(self, cell: Cell, row: Row, made: int) -> Cell:
        seen = cell.seen
        if not self._rules.own_row and row.exists:
            seen = tuple(sorted({*seen, row.pairs}, key=repr))
        newer = not self._rules.backfill_newer
        todo = cell.todo and row.exists
        return Cell(row, todo, newer, seen, (), self._timeline.made(row, made), cell.looked)

    def truncated(self, cell: int, version: Version) -> int:
        """The cell after a TRUNCATE: nothing is left of its row, whoever may see it."""
        before, row = self.all[cell], Row()
        if not self._rules.truncate_whole:
            known = version.descriptor.indexes
            public = {i.element_id for i in known if i.state in READABLE}
            row = Row(entries=tuple(e for e in before.row.entries if e[0] not in public))
        return self.number(self._after(before, row, 0))

    def cleaned(self, cell: Cell, dead: Collection[int]) -> Cell:
        """The cell when the store has removed what is dead; an image stays as it is."""
        gone = tuple((e, v) for e, v in cell.row.pairs if e in dead and e not in cell.lacks)
        kept = gone if cell.made and self._rules.image_kept else ()
        return Cell(without(cell.row, dead), lacks=cell.lacks, made=cell.made, gone=kept)

    def accepted(self, at: int, low: int) -> tuple[int, ...]:
        """How far below the newest the versions are whose requests the master still takes, by
        asking `verify` with one request per version that there ever was (D5)."""
        if (at, low) not in self._accepted:
            position = self._timeline.all[at]
            catalog = position.catalog(low)
            found = []
            for below, version in enumerate(reversed(position.versions)):
                asked = version.version
                try:
                    self._writers.decide(Row(), (), catalog, DELETE, asked, table=version.name)
                except Refused:
                    continue
                found.append(below)
            self._accepted[at, low] = tuple(found)
            together = any(position.used[below].looks_at_others for below in found)
            self._together[at, low] = together
        return self._accepted[at, low]

    # ------------------------------------------------------------ chunks

    def filled(self, world: World, cell: int) -> tuple[Move, ...]:
        """What chunks that the master takes now can do to the row of `cell`."""
        takes = self._taken(world.at, world.low)
        if not takes:
            return ()
        key = cell, world.at, world.held
        if key not in self._filled:
            self._filled[key] = tuple(self._try_backfills(world, self.all[cell], takes))
        return self._filled[key]

    def _taken(self, at: int, low: int) -> tuple[int, ...]:
        """Runs that have begun and whose chunks are taken."""
        if (at, low) not in self._takes:
            position = self._timeline.all[at]
            check = self._rules.chunk_check
            self._takes[at, low] = tuple(
                number
                for number, run in enumerate(position.runs)
                if not check or accepts(position, run, low)
            )
        return self._takes[at, low]

    def _try_backfills(self, world: World, cell: Cell, takes: tuple[int, ...]) -> Iterator[Move]:
        position = self._timeline.all[world.at]
        for number in takes:
            run = position.runs[number]
            made = position.used[position.newest.version - run.version]
            todo = cell.todo and run != position.runs[-1]
            for seen in (None,) if self._rules.own_row else cell.seen:
                row = cell.row
                if not cell.newer:
                    row = backfill(row, made, run.element_id, seen)
                told = self._timeline.made(row, run.version)
                filled = after_backfill(cell, row, made, run, told)._replace(todo=todo)
                if filled == cell:
                    continue
                stale = "" if seen is None else f", computed from an image {seen}"
                words = f"row {words_of(cell.row, made.descriptor)}: a chunk of run {run.number}"
                harm = self._shown(cell.row, row, world)
                yield Move(f"{words} arrives{stale}", self.number(filled), harm)

    def _shown(self, before: Row, after: Row, world: World) -> str:
        """Harm of a chunk that changes what readers see."""
        for version in self._timeline.all[world.at].used[: world.held + 1]:
            for column in version.public:
                if before.value(column.element_id) != after.value(column.element_id):
                    return f"a chunk changes column {column.name!r}, which is public"
        return ""
