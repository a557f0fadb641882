"""Copies the rows of planned tables: a worker a thread, each with a range at a time.

A worker reads the next batch while the target decides the one before. A batch and the place of its
range are one transaction (`progress.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from typing import Final, NamedTuple

from leasehold.adapters.postgres.source import Source, SourceConnection
from leasehold.model.errors import LeaseholdError, Refused
from leasehold.transfer.batches import Batch, gather, insert_rows
from leasehold.transfer.progress import (
    Part,
    insert_parts,
    move_part,
    part_of_range,
    remove_part,
)
from leasehold.transfer.quoting import quote_name, quote_text
from leasehold.transfer.ranges import (
    KeyRange,
    Place,
    copy_query,
    count_ranges,
    cut,
    read_place,
    sample_query,
)
from leasehold.transfer.schema_plan import PlannedTable
from leasehold.transfer.target import Sent, Target, is_moved_elsewhere

MOVES_MAX: Final = 3
"""How often a range may be found elsewhere than where this run left it: of a run that was killed
one request may be under way, not several."""
Tell = Callable[[str, int, int], None]
"""Hears of rows that have come to a table, and of their bytes."""


class Task(NamedTuple):
    """A range that isn't wholly there yet."""

    table: PlannedTable
    range: KeyRange
    place: Place
    part: Part


class _Under(NamedTuple):
    """A batch whose outcome isn't known yet, and its part as it is once it is there."""

    sent: Sent
    batch: Batch
    after: Part


class Copying:
    """The copying of one run. `name` is the import's, `schema` the source's."""

    def __init__(self, source: Source, target: Target, name: str, schema: str, tell: Tell) -> None:
        self._source, self._target = source, target
        self._name, self._schema = name, schema
        self._tell = tell
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._tasks: list[Task] = []

    def run(self, tasks: Iterable[Task], workers: int, snapshot: str) -> None:
        """Copy all `tasks`, reading by the exported `snapshot`. Raises the first error of a worker;
        the others end behind the batch that they are at."""
        # The largest first: no worker is then left alone with one for long.
        self._tasks = sorted(tasks, key=lambda task: task.table.bytes_about)
        with ThreadPoolExecutor(workers, thread_name_prefix="leasehold-import") as pool:
            running = [pool.submit(self._work, snapshot) for _ in range(workers)]
            try:
                for each in as_completed(running):
                    each.result()
            except BaseException:
                self._stopped.set()
                raise

    def _work(self, snapshot: str) -> None:
        with self._target.again() as target, self._source.connect() as source:
            _begin(source, snapshot)
            while (task := self._next()) is not None:
                self._copy(task, source, target, snapshot)

    def _next(self) -> Task | None:
        with self._lock:
            return self._tasks.pop() if self._tasks and not self._stopped.is_set() else None

    def _copy(self, task: Task, source: SourceConnection, target: Target, snapshot: str) -> None:
        """Copy a range to its end. What was under way when another run was killed may have come
        since its place was read: then the range goes on behind that."""
        for _ in range(MOVES_MAX):
            try:
                with closing(source.copy_out(self._query(task))) as lines:
                    self._send(task, lines, target)
                return
            except Refused as error:
                found = target.part(self._name, task.part.name)
                moved = found is not None and found.step > task.part.step
                if not is_moved_elsewhere(error) or not moved:
                    raise _explained(error, task) from error
                assert found is not None
                if not task.table.key:
                    found = begin_again(self._name, task.table, found, target)
                task = task._replace(part=found, place=read_place(0, found.place)[1])
            source.run("ROLLBACK")  # the copy that was left has ended its transaction
            _begin(source, snapshot)
        raise _mixed(task.table)

    def _query(self, task: Task) -> str:
        return copy_query(task.table, self._schema, task.range, task.place)

    def _send(self, task: Task, lines: Iterable[bytes], target: Target) -> None:
        part, under = task.part, None
        for batch in gather(task.table, lines):
            if under is not None:
                part = self._settle(task, under, target)
                under = None
            if self._stopped.is_set():
                return
            place = Place(batch.last if task.table.key else None)
            after = part.moved(place.to_text(task.range), len(batch.rows))
            operations = [insert_rows(task.table, batch), *move_part(self._name, part, after)]
            under = _Under(target.send(operations), batch, after)
        if under is not None:
            part = self._settle(task, under, target)
        target.apply(move_part(self._name, part, part.moved(part.place, 0, done=True)))

    def _settle(self, task: Task, under: _Under, target: Target) -> Part:
        try:
            target.settle(under.sent)
        except Refused as error:
            if is_moved_elsewhere(error):
                now = target.part(self._name, under.after.name)
                if now == under.after:  # by an earlier try whose answer was lost
                    return under.after
            raise
        self._tell(task.table.name, len(under.batch.rows), under.batch.bytes)
        return under.after


def _begin(source: SourceConnection, snapshot: str) -> None:
    source.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    source.run(f"SET TRANSACTION SNAPSHOT {quote_text(snapshot)}")


def _explained(error: LeaseholdError, task: Task) -> Refused:
    made = Refused(
        f"table {task.table.name!r}: the target refuses rows with {error.sqlstate}: {error.message}"
    )
    made.detail = error.detail
    return made


def plan_ranges(
    table: PlannedTable, sample: Callable[[str], Sequence[tuple[str, ...]]], schema: str
) -> list[KeyRange]:
    """Return the ranges of a table that is begun."""
    count = count_ranges(table)
    if count == 1:
        return [KeyRange(0, None, None)]
    return cut([tuple(row) for row in sample(sample_query(table, schema))], count)


def begin_ranges(table: PlannedTable, ranges: Sequence[KeyRange]) -> list[Part]:
    """Return the parts of a table that begins to be copied."""
    return [
        Part(part_of_range(table.name, each.number), 0, Place().to_text(each)) for each in ranges
    ]


def begin_again(name: str, table: PlannedTable, part: Part, target: Target) -> Part:
    """Empty a table without a key whose copying was cut off, since none of its rows tells how far
    it was; return its part. ⚠ What was under way then may come in between."""
    for _ in range(MOVES_MAX):
        after = Part(part.name, part.step + 1, Place().to_text(KeyRange(0, None, None)))
        operations = [remove_part(name, part), insert_parts(name, [after])]
        try:
            target.apply(operations, f"TRUNCATE {quote_name(table.name)}")
            return after
        except Refused as error:
            found = target.part(name, part.name)
            if not is_moved_elsewhere(error) or found is None or found.step <= part.step:
                raise
            part = found
    raise _mixed(table)


def _mixed(table: PlannedTable) -> Refused:
    return Refused(
        f"table {table.name!r}: another process imports under the same name; end it, or give this"
        " one a name of its own (--name)"
    )
