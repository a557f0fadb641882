"""What rests on a column whose type changes, made anew over the column that takes its place.

Such a column is another one, with values of its own. So an index over it is another index, filled
and verified once the column is, and a CHECK another one: they have the same names, and take the
others' places in the step in which the column does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeAlias

from leasehold.catalog.descriptor import INDEXES_MAX, Descriptor
from leasehold.catalog.elements import Check, Column, Index
from leasehold.model.errors import OutOfRange
from leasehold.schema_change.plan.definitions import refuse_unordered
from leasehold.schema_change.plan.draft import TableDraft
from leasehold.schema_change.steps import element_paths
from leasehold.sql.expressions.expression import (
    compile_condition,
    refuse_labels,
    refuse_session_zone,
    type_of_expression,
)

Remade: TypeAlias = Index | Check
_CLASS: Final = "_ops"


def find_remade(draft: TableDraft, column: Column) -> list[Remade]:
    """Return the indexes and CHECKs that rest on a column and can be made anew. An index by which a
    foreign key finds rows is none of them, nor is one under an operator class of its own, nor what
    rests on a column whose type the same statement has changed where it stands, too."""
    own = column.element_id
    needed = {key.index for key in draft.table.foreign_keys}
    needed |= {key.parent_index for _, key in draft.references()}
    indexes = (i for i in draft.table.indexes if own in i.over and i.element_id not in needed)
    plain = (i for i in indexes if not any(_CLASS in order for order in i.orders))
    checks = (check for check in draft.table.checks if own in check.columns)
    found: list[Remade] = [*plain, *checks]
    changed = draft.widened.keys()
    return [
        each
        for each in found
        if each.element_id not in draft.dropped
        and changed.isdisjoint(each.over if isinstance(each, Index) else each.columns)
    ]


def remake(draft: TableDraft, found: list[Remade], old: Column, new: Column) -> None:
    """Add the paths of what is made anew over column `new`, and of what goes with `old`. Raises
    what the expressions raise with the other type, FeatureNotSupported for one that has no order,
    OutOfRange for too many indexes."""
    others = (c for c in draft.table.columns if c.element_id != old.element_id)
    table = replace(draft.table, columns=(*others, new))
    indexes = sum(isinstance(each, Index) for each in found)
    if len(table.indexes) + indexes > INDEXES_MAX:
        raise OutOfRange(
            f"table {table.name!r} has {len(table.indexes)} indexes, and {indexes} are made anew:"
            f" at most {INDEXES_MAX} stand beside each other"
        )
    for each in found:
        match each:
            case Index():
                _remake_index(draft, table, each, old, new)
            case Check():
                compile_condition(each.expression, table, each.zone)
                columns = tuple(sorted(_over(each.columns, old, new)))
                made = replace(each, element_id=draft.new_id(), columns=columns)
                for path in element_paths.remake_check(each, made):
                    draft.paths.append(path)
        draft.dropped.add(each.element_id)
        kind = "constraint" if isinstance(each, Check) or each.constraint else "index"
        draft.words.append(f"{kind} {each.name}")


def _remake_index(
    draft: TableDraft, table: Descriptor, index: Index, old: Column, new: Column
) -> None:
    if old.element_id in index.columns:
        refuse_unordered(new.type, f"column {new.name!r}", column=new.name)
    for text in index.expressions:
        refuse_unordered(type_of_expression(text, table), f"expression {text:.80}")
    if index.predicate:
        compile_condition(index.predicate, table)
    for text in filter(None, (*index.expressions, index.predicate)):
        refuse_labels(text, table)
        refuse_session_zone(text, table)
    made = replace(
        index,
        element_id=draft.new_id(),
        columns=_over(index.columns, old, new),
        included=_over(index.included, old, new),
        mentioned=tuple(sorted(_over(index.mentioned, old, new))),
    )
    for path in element_paths.remake_index(index, made):
        draft.paths.append(path)


def _over(columns: tuple[int, ...], old: Column, new: Column) -> tuple[int, ...]:
    return tuple(new.element_id if e == old.element_id else e for e in columns)
