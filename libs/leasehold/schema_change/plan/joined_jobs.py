"""The changes of one table that several statements of a request ask for, as one job.

Each statement is planned on the table as those before it will leave it; the paths of its elements
then walk beside theirs, as those of one ALTER TABLE do. So all of it is public in one version, and
what fails before that takes all of it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.edits import apply_edits
from leasehold.catalog.elements import Check, Column, ForeignKey, Index
from leasehold.catalog.job import Job
from leasehold.catalog.states import State
from leasehold.model.errors import FeatureNotSupported, Refused, UnknownColumn
from leasehold.rows.check_constraints import condition_of
from leasehold.rows.generated import derive
from leasehold.rows.index_entries import exact_entry
from leasehold.schema_change.plan.renamed_columns import Renamed, find_renamed, name_as_before
from leasehold.schema_change.plan.repeated_changes import (
    changes_default,
    fields_of,
    find_place,
    gives_type,
    join_repeated,
    takes_away,
)
from leasehold.schema_change.plan.results import JobPlan
from leasehold.schema_change.steps.element_paths import (
    ElementPath,
    delay_behind,
    delay_default,
    demand,
    is_shown_late,
    show_behind,
)
from leasehold.schema_change.steps.steps import steps_of

_DEFAULT: Final = "default_expression"


def join_plans(
    first: JobPlan,
    more: JobPlan,
    demanded: frozenset[int] = frozenset(),
    *,
    with_rows: bool = False,
) -> JobPlan | None:
    """Return the plan of one job for both, of one table, `more` being planned on what `first`
    leaves; None: it takes back all of that. `with_rows`: those of a transaction are committed when
    all of it is shown, so that they can fill a column which is NOT NULL then. `demanded`: columns
    that were there and that they fill.

    Raises FeatureNotSupported where the two can't walk side by side."""
    assert first.job.table_id == more.job.table_id, "one table"
    first, more = join_repeated(*_without_taken_back(first, more))
    _refuse_crossing(first, more)
    new = {path.name[1] for path in first.paths if path.new and isinstance(path.element, Column)}
    # ⚠ Whoever is at the version before the new column is public goes by its first default.
    indexes = {path.name[1]: path for path in first.paths if isinstance(path.element, Index)}
    paths = list(first.paths)
    filled = (_find_blank(first) if with_rows else frozenset()) | demanded
    renamed = find_renamed(first.paths)
    for path in more.paths:
        path = _demand(path, filled)
        if path.new:
            path = _name_as_before(more, path, renamed)
        if path.name[1] in new and _DEFAULT in fields_of(path):
            path = delay_default(path)
        if path.new and isinstance(path.element, ForeignKey):
            needed = _find_needed_indexes(path.element, first.job.table_id)
            path = delay_behind(path, (indexes[each] for each in needed & indexes.keys()))
        paths.append(path)
    if not paths:
        return None
    paths = _show_behind_former(paths)
    steps, point = steps_of(paths)
    kinds = {first.job.kind, more.job.kind}
    job = replace(
        first.job,
        sql="; ".join(dict.fromkeys((first.job.sql, more.job.sql))),
        kind=first.job.kind if len(kinds) == 1 else "alter table",
        subject=", ".join(dict.fromkeys((first.job.subject, more.job.subject))),
        steps=steps,
        point=point,
        versions={**first.job.versions, **more.job.versions},
        needs=tuple(sorted({*first.job.needs, *more.job.needs})),
        joins=tuple(sorted({*first.job.joins, *more.job.joins})),
    )
    return JobPlan(
        job,
        more.notices,
        (*first.made, *more.made),
        (*first.within, *more.within),
        tuple(paths),
    )


def _show_behind_former(paths: Sequence[ElementPath]) -> list[ElementPath]:
    """Return the paths with each new column behind the one that had its name."""
    going = _find_going(paths)
    pairs = ((path, _find_former(path, going)) for path in paths)
    return [path if former is None else show_behind(path, former) for path, former in pairs]


def _find_former(path: ElementPath, going: Mapping[str, ElementPath]) -> ElementPath | None:
    """Return the path of the column that had the name of a new one, which has it now; None: nobody
    had it, or `path` is of something else."""
    element = path.element
    if not path.new or not isinstance(element, Column) or gives_type(path):
        return None
    former = going.get(element.name)
    # One that is added and renamed by the same request has had the name itself.
    return None if former is None or former.name == path.name else former


def _find_going(paths: Iterable[ElementPath]) -> dict[str, ElementPath]:
    """Return the paths of columns that go, or get another name, by the name that they had."""
    return {
        path.element.name: path
        for path in paths
        if isinstance(path.element, Column)
        and not (path.new or path.table_id)
        and fields_of(path) & {"state", "name"}
    }


def _find_needed_indexes(key: ForeignKey, table_id: int) -> set[int]:
    """Return the indexes of a foreign key's own table by which rows are found for it."""
    return {key.index, key.parent_index} if key.parent == table_id else {key.index}


def _name_as_before(
    more: JobPlan, path: ElementPath, renamed: Mapping[int, Renamed]
) -> ElementPath:
    made = name_as_before(path, renamed)
    if made is None:
        # ⚠ Before the commit step a column has its old name yet, and no expression finds it.
        raise _refusal(more, f"of which a column that {_words(path)} names gets another name")
    return made


def demand_filled(planned: JobPlan, columns: frozenset[int]) -> JobPlan:
    """Return a plan that sets those columns NOT NULL when rows of its transaction have filled
    them."""
    if columns.isdisjoint(find_set_not_null(planned)):
        return planned
    paths = tuple(_demand(path, columns) for path in planned.paths)
    steps, point = steps_of(paths)
    return replace(planned, job=replace(planned.job, steps=steps, point=point), paths=paths)


def find_set_not_null(planned: JobPlan) -> frozenset[int]:
    """Return the columns that were there and are set NOT NULL."""
    new = {path.name[1] for path in planned.paths if path.new and isinstance(path.element, Column)}
    own = (path for path in planned.paths if isinstance(path.element, Column))
    return frozenset(path.name[1] for path in own if _is_not_null(path)) - new


def _demand(path: ElementPath, columns: frozenset[int]) -> ElementPath:
    """Return the path of a NOT NULL that rows of the transaction see to, where it is of one of
    those columns."""
    element = path.element
    if path.name[1] in columns and isinstance(element, Column) and _is_not_null(path):
        return demand(element)
    return path


def _without_taken_back(first: JobPlan, more: JobPlan) -> tuple[JobPlan, JobPlan]:
    """Return both without what the first makes and the other takes away again: it never comes."""
    made = {find_place(path) for path in first.paths if path.new}
    back = {find_place(path) for path in more.paths if takes_away(path)} & made
    left, added = (
        replace(
            planned, paths=tuple(path for path in planned.paths if find_place(path) not in back)
        )
        for planned in (first, more)
    )
    return left, added


def table_after(table: Descriptor, job: Job) -> Descriptor:
    """Return a table as a job will leave it, under the number of the version that it has now."""
    made = table
    for step in job.steps:
        made = apply_edits(made, job.edits_in(step, table.table_id))
    return replace(made, version=table.version)


def is_joinable(planned: JobPlan) -> bool:
    """Say whether more can be said of a table that a job changes: it stays the table that it is,
    and gets no sequence."""
    return not planned.made and not moves_rows(planned)


def moves_rows(planned: JobPlan) -> bool:
    """Say whether rows go over into another table, or go."""
    there = [
        path
        for path in planned.paths
        if isinstance(path.element, Descriptor) and not (path.element.sequence and path.new)
    ]
    names = {"name", "alias", "key_name", "key_included", "schema", "lock_moves", "sequence"}
    return any(path.new or not fields_of(path) <= names for path in there)


def find_demanded(planned: JobPlan) -> frozenset[int]:
    """Return the columns that rows of the transaction have to fill."""
    return frozenset(path.name[1] for path in planned.paths if "demanded" in fields_of(path))


def _find_blank(planned: JobPlan) -> frozenset[int]:
    """Return the new columns that are NULL in all rows that are there."""
    new = (path.element for path in planned.paths if path.new and isinstance(path.element, Column))
    blank = (c for c in new if not c.required and c.derived is None and c.nullable)
    return frozenset(column.element_id for column in blank)


def _is_not_null(path: ElementPath) -> bool:
    return path.enforced_at >= 0 and "not_null_enforced" in fields_of(path)


def check_versions(table: Descriptor, planned: JobPlan) -> None:
    """Check that each version which a joined job publishes can be used: its columns have names of
    their own, and its expressions find them. Raises FeatureNotSupported."""
    made = table
    for step in planned.job.steps:
        made = apply_edits(made, planned.job.edits_in(step, table.table_id))
        shown = [c.name for c in made.columns if c.state is State.PUBLIC and not c.hidden]
        if len({*shown}) != len(shown):
            raise _refusal(planned, "which would have two columns of one name for a while")
        try:
            for check in made.enforced_checks:
                condition_of(made, check)
            for index in made.indexes:
                exact_entry(made, index)
            derive(made, None, {})
        except UnknownColumn as error:
            why = f"of which an expression would not hold for a while: {error.message}"
            raise _refusal(planned, why) from error
        except Refused:
            continue  # of a row of no values, which there is none of


def _refuse_crossing(first: JobPlan, more: JobPlan) -> None:
    """Refuse a statement that changes what an earlier one of the request is changing already, but
    for other fields of it."""
    before = {find_place(path): path for path in first.paths}
    retyped = {path.name[1] for path in first.paths if gives_type(path)}
    going = _find_going(first.paths)
    late = {path.name[1] for path in (*first.paths, *more.paths) if is_shown_late(path)}
    late |= {path.name[1] for path in more.paths if _find_former(path, going) is not None}
    if not is_joinable(more):
        raise _refusal(more, "which gets another primary key by it, or a sequence")
    for path in more.paths:
        element = path.element
        sources = getattr(getattr(element, "derived", None), "sources", ())
        over = (path.name[1], *path.over, *sources)
        if not changes_default(path) and not retyped.isdisjoint(over):
            raise _refusal(more, "of which a column gets another type by an earlier one")
        other = before.get(find_place(path))
        if other is not None and not _can_share(other, path):
            raise _refusal(more, f"whose {_words(path)} an earlier one changes already")
        if not late.isdisjoint(_rests_on(path)):
            words = "of which a column has a name that another one has until this job has ended"
            raise _refusal(more, words)


def _rests_on(path: ElementPath) -> set[int]:
    """Return the columns of the job's table that a path is of or rests on; of a new one itself only
    where its values follow others or come from a sequence."""
    if path.table_id:
        return set()
    match path.element:
        case Index(over=columns) | Check(columns=columns) | ForeignKey(columns=columns):
            return {*columns}
        case Column() as column:
            sources = () if column.derived is None else column.derived.sources
            plain = path.new and column.derived is None and not column.draws_from
            return {*sources} if plain else {column.element_id, *sources}
    return set()


def _can_share(first: ElementPath, more: ElementPath) -> bool:
    return not (takes_away(first) or takes_away(more) or fields_of(first) & fields_of(more))


def _words(path: ElementPath) -> str:
    kind, _ = path.name
    return f"{kind.value} {path.element.name!r}"


def _refusal(more: JobPlan, why: str) -> FeatureNotSupported:
    return FeatureNotSupported(
        f"two statements of one request change table {more.job.table!r}, {why}: send the second one"
        " when the first has ended",
        hint=f"Move it out of the transaction: {more.job.sql:.200}",
        table=more.job.table,
    )


def take_all_steps(table: Descriptor, job: Job) -> Descriptor:
    """Take all steps of a job on a table that nobody can have used and that has no rows."""
    for step in job.steps:
        table = apply_edits(table, job.edits_in(step, table.table_id))
    # No row is older than its locks, so they have nothing to take over, nor than its columns.
    columns = tuple(
        replace(column, missing=None, moment=None, moment_zone="") for column in table.columns
    )
    return replace(table, modified_us=0, lock_moves=(), columns=columns)


def only_adds(planned: JobPlan) -> bool:
    """Say whether a job only adds to its table, so that what others rest on stays as it is."""
    return all(path.new and not isinstance(path.element, Descriptor) for path in planned.paths)


def find_joining(planned: JobPlan) -> set[int]:
    """Return the tables that a job changes beside its own, but for what it makes."""
    return {*planned.job.tables[1:]} - {made.table_id for made in planned.made}
