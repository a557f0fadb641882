"""What a job changes for those who read a table's rows by names and types: of each column one fact,
as data. Whether that concerns a reader, such as a feed's, is for who knows what it reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.edits import apply_edits, create_from_edits
from leasehold.catalog.elements import Column
from leasehold.catalog.job import Job
from leasehold.catalog.states import State
from leasehold.values.types import holds_all_of


class ReaderChange(NamedTuple):
    """A change of one public column, or of the whole table (`column` empty). `words` say it;
    `breaks`: who reads by the version before can't go on as he did."""

    table_id: int
    column: str
    words: str
    breaks: bool

    def to_wire(self) -> dict[str, Any]:
        return self._asdict()


def reader_changes(job: Job, catalog: Catalog) -> tuple[ReaderChange, ...]:
    """Return what readers of the job's tables will find changed when it has ended, in the order of
    the columns."""
    pairs = _before_and_after(job, catalog)
    return tuple(change for before, after in pairs for change in _changes(before, after))


def tables_after(job: Job, catalog: Catalog) -> tuple[Descriptor, ...]:
    """Return the tables that are there when the job has ended, of those whose columns or keys are
    others then: of a table that another one takes over from, that one."""
    pairs = _before_and_after(job, catalog)
    changed = (after for before, after in pairs if _shape(before) != _shape(after))
    return tuple(after for after in changed if after.state is State.PUBLIC)


def _shape(table: Descriptor) -> list[Any]:
    columns = table.by_name.values()
    shown = [(each.element_id, each.name, each.type, each.nullable) for each in columns]
    return [table.primary_key, shown]


def _before_and_after(job: Job, catalog: Catalog) -> Iterator[tuple[Descriptor, Descriptor]]:
    ends = _last_versions(job, catalog)
    for table_id in job.tables:
        if not catalog.has(table_id):
            continue
        before, after = catalog.newest(table_id), ends[table_id]
        if before.state is not State.PUBLIC or before.sequence is not None:
            continue
        heirs = (each for each in ends.values() if each.former == table_id)
        if after.state is not State.PUBLIC:
            after = next((each for each in heirs if each.state is State.PUBLIC), after)
        yield before, after


def _last_versions(job: Job, catalog: Catalog) -> dict[int, Descriptor]:
    ends = {table_id: catalog.newest(table_id) for table_id in job.tables if catalog.has(table_id)}
    for number in range(job.step, len(job.steps)):
        at = replace(job, step=number)
        for table_id in filter(at.publishes, job.tables):
            edits = at.edits_of(table_id)
            if table_id in ends:
                ends[table_id] = apply_edits(ends[table_id], edits)
            elif edits:
                ends[table_id] = create_from_edits(edits, 1)
    return ends


def _changes(before: Descriptor, after: Descriptor) -> Iterator[ReaderChange]:
    def told(words: str, column: str = "", *, breaks: bool = True) -> ReaderChange:
        return ReaderChange(before.table_id, column, words, breaks)

    if after.state is not State.PUBLIC:
        yield told(f"table {before.name} goes")
        return
    if before.name != after.name:
        yield told(f"table {before.name} is named {after.name}", breaks=False)
    keys = [[column.name for column in table.key_columns] for table in (before, after)]
    if before.primary_key != after.primary_key:
        yield told(f"the key is ({', '.join(keys[1])}), and was ({', '.join(keys[0])})")
    for name, column in before.by_name.items():
        known = after.by_id.get(column.element_id)
        is_there = known is not None and column.element_id in after.public_ids
        heir = known if is_there else after.by_name.get(name)
        if heir is None:
            yield told(f"{name} goes", name)
            continue
        if heir.name != name:
            yield told(f"{name} is named {heir.name}", name)
        if heir.type != column.type:
            wider = holds_all_of(heir.type, column.type)
            yield told(f"{name} is {heir.type}, and was {column.type}", name, breaks=not wider)
        if heir.nullable and not column.nullable:
            yield told(f"{name} may be null", name)
    seen = {column.element_id for column in before.columns if column.state is State.PUBLIC}
    for name, column in after.by_name.items():
        if column.element_id not in seen and name not in before.by_name:
            yield told(f"{name} comes, {_words(column)}", name, breaks=False)


def _words(column: Column) -> str:
    return f"{column.type}{'' if column.nullable else ' not null'}"
