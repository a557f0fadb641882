"""An import from a PostgreSQL: plan, tables, rows, indexes, numbers of sequences, verification."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from leasehold.adapters.postgres.source import Source, SourceConnection
from leasehold.model.errors import DuplicateObject, InvalidDefinition, Refused
from leasehold.transfer import comparison, progress
from leasehold.transfer.copying import (
    Copying,
    Task,
    begin_again,
    begin_ranges,
    plan_ranges,
)
from leasehold.transfer.progress import Part, move_part
from leasehold.transfer.quoting import quote_name, quote_names, quote_text
from leasehold.transfer.ranges import read_place, whole_query
from leasehold.transfer.schema_plan import Kind, Plan, PlannedTable, plan_schema
from leasehold.transfer.source_catalog import read_schema
from leasehold.transfer.target import Target, join_statements, look_pauses

MAKING: Final = "making tables"
COPYING: Final = "copying"
COPIED: Final = "copied"
READY: Final = "ready"
"""Rows, indexes, constraints and sequences are there."""
CUT_OVER: Final = "cut over"
MAKING_TRIES: Final = 3


class Options(NamedTuple):
    """What is imported, and how. `name`: of the import, under which it goes on."""

    name: str
    schema: str = "public"
    only: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    as_text: bool = False
    leave_out: bool = False
    workers: int = 4


class Told(Protocol):
    """Hears how an import goes."""

    def note(self, words: str) -> None: ...
    def rows(self, table: str, rows: int, bytes_: int) -> None: ...


class Compared(NamedTuple):
    """A table that was compared."""

    table: str
    source_rows: int
    target_rows: int
    source_checksum: str
    target_checksum: str
    differences: Sequence[comparison.Difference]
    equal: bool


class PlanRefused(InvalidDefinition, sqlstate="42P16"):
    """The plan has findings that the import may not begin with."""


class Whole(NamedTuple):
    """What is kept of an import itself. `digest`: of its plan."""

    part: Part
    phase: str
    digest: str
    more: dict[str, Any]

    @classmethod
    def read(cls, part: Part) -> Whole:
        kept = json.loads(part.place)
        return cls(part, kept.pop("phase"), kept.pop("digest"), kept)

    def place(self, phase: str, **more: Any) -> str:
        """Return what is kept once it is in `phase`."""
        return json.dumps({"phase": phase, "digest": self.digest, **self.more, **more})


def read_plan(connection: SourceConnection, options: Options) -> Plan:
    """Return what becomes of the source's schema. Raises ConfigurationError, SourceFailure."""
    return plan_schema(
        read_schema(connection, options.schema),
        only=options.only,
        exclude=options.exclude,
        as_text=options.as_text,
    )


def check_plan(plan: Plan, options: Options) -> None:
    """Raise PlanRefused where an import may not begin with this plan."""
    refused, left_out = plan.of_kind(Kind.REFUSED), plan.of_kind(Kind.LEFT_OUT)
    if refused:
        raise PlanRefused(
            f"{len(refused)} tables or columns can't be imported ({refused[0].what}:"
            f" {refused[0].words}; --plan lists all): take them out with --exclude TABLE, or see"
            " --as-text"
        )
    if left_out and not options.leave_out:
        raise PlanRefused(
            f"{len(left_out)} things would be left out ({left_out[0].what}: {left_out[0].words};"
            " --plan lists all): say --leave-out where that is right"
        )
    if not plan.tables:
        raise PlanRefused(f"schema {options.schema!r} has no table to import")


class PostgresImport:
    """The steps of an import; each may be done again after whatever has ended it."""

    def __init__(self, source: Source, target: Target, options: Options, told: Told) -> None:
        self.source, self.target, self.options, self.told = source, target, options, told

    # ------------------------------------------------------------ beginning

    def begin(self, plan: Plan) -> Whole:
        """Keep that this import has begun, or find that it had. Raises
        PlanRefused where it had by another plan, or tables are there already."""
        check_plan(plan, self.options)
        found = self.find()
        if found is not None:
            self.check_same_plan(found, plan)
            return found
        there = self.target.has_relations([table.name for table in plan.tables])
        if there:
            raise PlanRefused(
                f"the target has {', '.join(there)} already: drop it, or take it out with --exclude"
            )
        self.target.apply((), progress.CREATE)
        begun = Whole(Part(progress.WHOLE, 0, ""), MAKING, plan.digest, {})
        part = Part(progress.WHOLE, 0, begun.place(MAKING))
        self.target.begin_parts(self.options.name, [part])
        return Whole.read(part)

    def check_same_plan(self, whole: Whole, plan: Plan) -> None:
        """Raise PlanRefused where the import was begun by another plan."""
        if whole.digest != plan.digest:
            raise PlanRefused(
                f"import {self.options.name!r} was begun by another plan: give the same options; if"
                " tables of the source have changed since, begin anew with --abandon and empty"
                " tables, or under another --name"
            )

    def make_tables(self, plan: Plan) -> None:
        """Make the tables that aren't there yet. None of their names was taken when the import
        began, so those that are there are its own."""
        for attempt in range(MAKING_TRIES):
            there = self.target.has_relations([table.name for table in plan.tables])
            missing = [table.before for table in plan.tables if table.name not in there]
            try:
                for text in join_statements(missing):
                    self.target.apply((), text)
                return
            except DuplicateObject:
                # ⚠ Made by what was under way when another run was killed.
                if attempt + 1 == MAKING_TRIES:
                    raise

    def find(self) -> Whole | None:
        """Return this import as it is kept in the target, None where it has not begun."""
        part = self.target.parts(self.options.name).get(progress.WHOLE)
        return None if part is None else Whole.read(part)

    def move(self, whole: Whole, phase: str, **more: Any) -> Whole:
        """Keep that the import is in another phase."""
        after = whole.part.moved(whole.place(phase, **more), 0)
        try:
            self.target.apply(move_part(self.options.name, whole.part, after))
        except Refused:
            found = self.find()
            if found is None or found.phase != phase:
                raise
            return found
        return Whole.read(after)

    def check_follows(self, *, follows: bool) -> None:
        """Raise PlanRefused where the import was begun in the other way: whether the source keeps
        what changes is decided before the first row is read."""
        kept = self.target.parts(self.options.name)
        copied = any(progress.table_of(name) is not None for name in kept)
        if copied and follows != (progress.STREAM in kept):
            how = "without" if follows else "with"
            raise PlanRefused(
                f"import {self.options.name!r} was begun {how} --follow; give the command so, or"
                " begin anew with --abandon and empty tables"
            )

    def abandon(self) -> None:
        """Forget how far this import is."""
        parts = self.target.parts(self.options.name)
        if parts:
            name = self.options.name
            self.target.apply([progress.remove_part(name, part) for part in parts.values()])

    # ------------------------------------------------------------ rows

    def copy(self, plan: Plan, connection: SourceConnection, copying: Copying) -> None:
        """Copy all rows that aren't there yet, by one snapshot of the source."""
        connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            snapshot = connection.value("SELECT pg_export_snapshot()")
            tasks = self._tasks(plan, connection)
            copying.run(tasks, self.options.workers, snapshot)
        finally:
            connection.run("ROLLBACK")

    def _tasks(self, plan: Plan, connection: SourceConnection) -> list[Task]:
        kept = self.target.parts(self.options.name)
        tasks: list[Task] = []
        for table in plan.tables:
            parts = [part for part in kept.values() if _is_of(part, table)]
            if not parts:
                ranges = plan_ranges(table, connection.rows, self.options.schema)
                parts = begin_ranges(table, ranges)
                self.target.begin_parts(self.options.name, parts)
                kept = self.target.parts(self.options.name)
                parts = [part for part in kept.values() if _is_of(part, table)]
            elif not table.key and not parts[0].done and parts[0].rows:
                self.told.note(f"table {table.name} has no primary key: it is copied anew")
                parts = [begin_again(self.options.name, table, parts[0], self.target)]
            for part in parts:
                self.told.rows(table.name, part.rows, 0)
                if not part.done:
                    named = progress.table_of(part.name)
                    assert named is not None, part
                    tasks.append(Task(table, *read_place(named[1], part.place), part))
        return tasks

    # ------------------------------------------------------------ behind the rows

    def finish_schema(self, plan: Plan) -> None:
        """Make the indexes and constraints that aren't there yet; each is a job."""
        for table in plan.tables:
            there = self._names_at(table.name)
            for name, text in table.after.items():
                if name not in there:
                    self.told.note(f"table {table.name}: {name}")
                    self._make(table.name, name, text)

    def _make(self, table: str, name: str, text: str) -> None:
        """Make an index or constraint, unless a job of an import that was cut off has made it, or
        is making it: it is waited for then, and made here if that job comes to nothing."""
        was_idle = False
        for pause_s in look_pauses():
            try:
                self.target.run_schema_change(text, self.told.note)
            except DuplicateObject:
                idle = not self.target.has_job(table)  # ⚠ looked at before what it may have made
                if name in self._names_at(table):
                    return
                if idle and was_idle:
                    raise
                was_idle = idle
                time.sleep(pause_s)
            else:
                return

    def _names_at(self, table: str) -> set[str]:
        """Return the names of a table's indexes and constraints."""
        query = (
            "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " JOIN pg_class t ON t.oid = i.indrelid"
            f" WHERE t.relname = {quote_text(table)}"
            " UNION ALL SELECT k.conname FROM pg_constraint k JOIN pg_class t"
            f" ON t.oid = k.conrelid WHERE t.relname = {quote_text(table)}"
        )
        return {name for (name,) in self.target.rows(query) if name is not None}

    def set_sequences(self, plan: Plan, connection: SourceConnection) -> None:
        """Set each sequence to go on where the source's would."""
        for sequence in plan.sequences:
            name = f"{quote_name(self.options.schema)}.{quote_name(sequence.name)}"
            ((last, called),) = connection.rows(f"SELECT last_value, is_called FROM {name}")
            following = last + sequence.increment if called else last
            if not sequence.least <= following <= sequence.most:
                following = sequence.least if sequence.increment > 0 else sequence.most
            if sequence.identity:
                text = (
                    f"ALTER TABLE {quote_name(sequence.table)} ALTER COLUMN"
                    f" {quote_name(sequence.column)} RESTART WITH {following}"
                )
            else:
                text = f"ALTER SEQUENCE {quote_name(sequence.name)} RESTART WITH {following}"
            try:
                self.target.run_schema_change(text, self.told.note)
            except Refused as error:
                raise Refused(f"sequence {sequence.name!r}: {error.message}") from error

    # ------------------------------------------------------------ verification

    def compare(
        self, plan: Plan, connection: SourceConnection, told: Callable[[Compared], None]
    ) -> bool:
        """Compare each table by the connection's snapshot; return whether all are equal."""
        equal = True
        for table in plan.tables:
            compared = self._compare(table, connection)
            told(compared)
            equal = equal and compared.equal
        return equal

    def _compare(self, table: PlannedTable, connection: SourceConnection) -> Compared:
        read = whole_query(table, self.options.schema)
        names = [column.name for column in table.copied]
        names += [column.name for column in table.columns if column.computed]
        asked = f"SELECT {quote_names(names)} FROM {quote_name(table.name)}"
        keys = len(table.key)
        theirs = comparison.sum_up(comparison.lines_of(connection.copy_out(read)), keys)
        ours = comparison.sum_up(comparison.lines_of(self.target.copy_out(asked)), keys)
        ranges = comparison.differing(ours, theirs)
        found: Sequence[comparison.Difference] = ()
        if ranges:
            found = comparison.find_differences(
                comparison.lines_of(connection.copy_out(read)),
                comparison.lines_of(self.target.copy_out(asked)),
                keys,
                ranges,
            )
        return Compared(
            table.name,
            theirs.total,
            ours.total,
            theirs.checksum,
            ours.checksum,
            found,
            not ranges,
        )


def _is_of(part: Part, table: PlannedTable) -> bool:
    named = progress.table_of(part.name)
    return named is not None and named[0] == table.name
