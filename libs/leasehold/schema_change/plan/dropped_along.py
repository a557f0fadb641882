"""What others lose by a DROP … CASCADE, told as changes of their own tables: so it walks beside
what the same request says of them.

Where it can't, a drop takes it along in a job of its own (`drop_table.py`, `sequences.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.names import find_references
from leasehold.catalog.sequence_ownership import (
    User,
    find_drawing_users,
    find_existing,
    find_sequence,
    find_used_elsewhere,
    list_own_sequences,
)
from leasehold.model.errors import UnknownTable
from leasehold.model.ids import is_sequence_id
from leasehold.schema_change.plan.dependents import describe_constraint
from leasehold.schema_change.plan.results import JobPlan, NothingToDo, find_table
from leasehold.schema_change.steps.element_paths import ElementPath
from leasehold.schema_change.steps.table_paths import drop_sequence
from leasehold.sql.syntax.statements import (
    AlterTable,
    Change,
    DropConstraint,
    DropSequence,
    DropTable,
    SetDefault,
)


class LostAlong(NamedTuple):
    """What `table` loses, in `words`, and the change by which it does."""

    table: Descriptor
    words: str
    change: AlterTable


def find_lost_along(
    change: Change, catalog: Catalog, changed: Collection[int]
) -> Iterator[LostAlong]:
    """Yield the defaults that go along with sequences; and foreign keys, of tables that lose a
    default by it, or that the request has `changed`: one table is worked on once. Raises
    DependentObjects for the sequence of an identity column, and what `plan` raises for a name."""
    if isinstance(change, DropSequence) and change.cascade:
        try:
            sequence = find_sequence(catalog, change.name, change.position)
        except UnknownTable:
            return  # the plan says so
        yield from map(_lose_default, find_drawing_users(catalog, sequence, change.position))
    if not isinstance(change, DropTable) or not change.cascade:
        return
    table = find_table(catalog, change.name, replace(change, if_exists=True))
    if isinstance(table, NothingToDo):
        return
    columns = {column.element_id for column in table.columns}
    own = {each.table_id for each in find_existing(list_own_sequences(table), catalog)}
    users = find_used_elsewhere(catalog, table, columns, own, change.beside)
    yield from map(_lose_default, users)
    others = {*changed, *(user.table.table_id for user in users)} - {table.table_id}
    for child, key in find_references(catalog, table.table_id):
        if child.table_id in others and child.name not in change.beside:
            lost = AlterTable(child.name, (DropConstraint(key.name),))
            yield LostAlong(child, describe_constraint((child, key)), lost)


def _lose_default(user: User) -> LostAlong:
    lost = AlterTable(user.table.name, (SetDefault(user.column.name, None, lost=True),))
    return LostAlong(user.table, user.words, lost)


def lets_go(planned: JobPlan, needed: Collection[int], altered: Mapping[int, Descriptor]) -> bool:
    """Say whether a plan needs these only as long as a version is in use that draws from them: they
    are sequences, and its table, as it is `altered`, draws from none of them. Such a one may go in
    the same job (`delay_drop`)."""
    after = altered[planned.job.table_id]
    drawn = {column.draws_from for column in after.columns}
    return all(map(is_sequence_id, needed)) and drawn.isdisjoint(needed)


def delay_drop(path: ElementPath, others: Collection[ElementPath]) -> ElementPath:
    """Return the path of what a transaction drops as it walks beside `others`."""
    element = path.element
    if not isinstance(element, Descriptor) or element.sequence is None:
        return path
    return drop_sequence(element, count_steps_drawn(element.table_id, others))


def count_steps_drawn(sequence_id: int, paths: Iterable[ElementPath]) -> int:
    """Return for how many steps from the commit step on a sequence has to be there. ⚠ It is drawn
    from as long as a version writes a column that has its numbers from it."""
    drawing = (
        len(path.after_commit)
        for path in paths
        if isinstance(path.element, Column) and path.element.draws_from == sequence_id
    )
    return max(drawing, default=0)


def without_needs(planned: JobPlan, table_id: int) -> JobPlan:
    """Return a plan that needs no table, or sequence, which the request has made and taken back."""
    needs = tuple(each for each in planned.job.needs if each != table_id)
    return replace(planned, job=replace(planned.job, needs=needs))
