"""The one job of a transaction: all that its statements say of tables that were there, with the
tables that it makes and those that it drops.

All of it is shown by one step, in one commit with the transaction's rows; before that step all of
it can be undone. So whatever becomes of the session, or of the master, there is all or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.edits import Kind
from leasehold.catalog.element_forms import COLUMN_FORM
from leasehold.catalog.elements import ForeignKey, Index
from leasehold.catalog.job import Hold, Job
from leasehold.model.errors import FeatureNotSupported
from leasehold.model.ids import is_sequence_id
from leasehold.schema_change.plan.dropped_along import delay_drop
from leasehold.schema_change.plan.joined_jobs import moves_rows
from leasehold.schema_change.plan.results import JobPlan
from leasehold.schema_change.steps.element_paths import ElementPath
from leasehold.schema_change.steps.steps import steps_of_tables
from leasehold.schema_change.steps.table_paths import add_table

KIND: Final = "transaction"


def join_tables(
    plans: Mapping[int, JobPlan], drops: Sequence[JobPlan], made: Iterable[Descriptor]
) -> Job:
    """Return the job, held until its transaction is committed: for `plans` of tables that were
    there, `drops` of tables, and tables and sequences that are made."""
    refuse_altered_sequences(plans.values())
    first, *others = plans.values()
    own = first.job.table_id
    numbered = {own: 0} | {each.job.table_id: each.job.table_id for each in others}
    groups = [(numbered[t], _name_tables(plans[t], own)) for t in order_tables(plans)]
    gone = {each.job.table_id for each in drops}
    changing = [path for each in plans.values() for path in each.paths]
    for each in drops:
        kept = [p for p in _name_tables(each, own) if p.table_id not in gone or p.name[1] == 0]
        kept = [replace(delay_drop(p, changing), table_id=p.table_id) for p in kept]
        groups.append((each.job.table_id, kept))
    made = tuple(made)
    groups += [(table.table_id, [add_table(table)]) for table in made]
    steps, point = steps_of_tables(groups)
    jobs = [each.job for each in (*plans.values(), *drops)]
    versions = {t: v for job in jobs for t, v in job.versions.items()}
    # What a column draws from, and tables, begin with the version that they were made with.
    versions |= {s.table_id: s.version for each in plans.values() for s in each.made}
    versions |= {table.table_id: table.version for table in made}
    looked = {t for t, paths in groups if t and any(_only_looks(path) for path in paths)}
    kinds = {job.kind for job in jobs}
    alone = len(jobs) == 1 and not made
    return replace(
        first.job,
        sql="; ".join(dict.fromkeys(job.sql for job in jobs)),
        kind=kinds.pop() if alone else KIND,
        subject=", ".join(dict.fromkeys(job.subject for job in jobs)),
        steps=steps,
        point=point,
        versions=versions,
        needs=tuple(sorted({t for job in jobs for t in job.needs} - versions.keys())),
        joins=tuple(sorted(versions.keys() - looked - {own})),
        hold=Hold.HELD,
    )


def order_tables(plans: Mapping[int, JobPlan]) -> tuple[int, ...]:
    """Return the tables in the order in which they are worked on. ⚠ The rows of one whose foreign
    key refers to what another one makes UNIQUE are looked up by that index, so it is filled before.

    Raises FeatureNotSupported where two need each other so."""
    made = {
        (table_id, path.name[1])
        for table_id, planned in plans.items()
        for path in planned.paths
        if path.new and isinstance(path.element, Index)
    }
    before: dict[int, list[int]] = {table_id: [] for table_id in plans}
    for table_id, planned in plans.items():
        for path in planned.paths:
            key = path.element
            if not path.new or not isinstance(key, ForeignKey) or key.parent == table_id:
                continue
            if (key.parent, key.parent_index) in made:
                before[table_id].append(key.parent)
    try:
        return tuple(TopologicalSorter(before).static_order())
    except CycleError as error:
        _, (one, other, *_) = error.args
        names = " and ".join(repr(plans[each].job.table) for each in (one, other))
        raise FeatureNotSupported(
            f"foreign keys between tables {names} refer to what the other one makes unique in the"
            " same transaction",
            hint="COMMIT one of the UNIQUE constraints first.",
            table=plans[one].job.table,
        ) from error


def refuse_in_transaction(planned: JobPlan) -> None:
    """Refuse what can't be a part of a transaction's job. Raises FeatureNotSupported."""
    if moves_rows(planned):
        made = (path.element for path in planned.paths if path.new)
        another_key = any(isinstance(each, Descriptor) and not each.sequence for each in made)
        words = (
            f"another primary key for table {planned.job.table!r}, whose rows go over into another"
            " table for that,"
            if another_key
            else f"a change of table {planned.job.table!r} that a sequence or a table goes with"
        )
        raise FeatureNotSupported(
            f"{words} is not supported inside a transaction block",
            hint=f"Move it out of the transaction: {planned.job.sql:.200}",
            table=planned.job.table,
        )


def find_made_sequences(job: Job) -> frozenset[int]:
    """Return the sequences that the transaction of a job makes by themselves, or with a table: they
    begin with its rows. One of a column that is added has numbered the rows there are."""
    edits = [edit for step in job.steps for edit in step.edits if edit.before is None]
    made = {edit.table_id for edit in edits if edit.kind is Kind.TABLE}
    bodies = [edit.after for edit in edits if edit.kind is Kind.COLUMN]
    drawn = {COLUMN_FORM.from_wire(body).draws_from for body in bodies if body is not None}
    return frozenset(filter(is_sequence_id, made - drawn))


def find_demanded_columns(job: Job) -> tuple[tuple[int, int], ...]:
    """Return the columns, (table id, element id), that every row has when the job, which is held,
    is released."""
    columns = (edit for edit in job.current.edits if edit.kind is Kind.COLUMN and edit.after)
    return tuple(
        (edit.table_id or job.table_id, edit.element_id)
        for edit in columns
        if edit.after is not None and COLUMN_FORM.from_wire(edit.after).demanded
    )


def refuse_altered_sequences(plans: Iterable[JobPlan]) -> None:
    """Refuse other options of a sequence, which goes on at the commit that has them.

    Raises FeatureNotSupported."""
    for planned in plans:
        for path in planned.paths:
            element = path.element
            if not isinstance(element, Descriptor) or element.sequence is None or path.new:
                continue
            if any("sequence" in (stage.change or {}) for stage in path.after_commit):
                raise FeatureNotSupported(
                    f"other options of sequence {element.name!r} beside changes of tables are not"
                    " supported inside a transaction block",
                    hint=f"Move it out of the transaction: {planned.job.sql:.200}",
                )


def _name_tables(planned: JobPlan, own: int) -> list[ElementPath]:
    """Return the paths of a plan with their tables' ids, 0 = that of the table `own`."""
    numbers = ((path, path.table_id or planned.job.table_id) for path in planned.paths)
    return [replace(path, table_id=0 if t == own else t) for path, t in numbers]


def _only_looks(path: ElementPath) -> bool:
    """Say whether a step looks at rows for an element that it leaves as it is: then its table needs
    a version all the same."""
    return any(stage.has_work and not stage.change for stage in path.before_commit)
