"""What rests on a column whose type changes, made anew over the column that takes its place.

Such a column is another one, with values of its own. So an index over it is another index, filled
and verified once the column is, and a CHECK another one: they have the same names, and take the
others' places in the step in which the column does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeAlias

from leasehold.catalog.definitions import without_parentheses
from leasehold.catalog.descriptor import INDEXES_MAX, Descriptor
from leasehold.catalog.elements import EXPRESSION, Check, Column, Index
from leasehold.model.errors import OutOfRange, Refused
from leasehold.schema_change.plan.definitions import refuse_unordered
from leasehold.schema_change.plan.draft import TableDraft
from leasehold.schema_change.steps import element_paths
from leasehold.sql.expressions.expression import (
    compile_condition,
    enums_of,
    name_enums_for_good,
    refuse_labels,
    refuse_session_zone,
    type_of_expression,
    with_exact_numbers,
)
from leasehold.sql.expressions.plain_words import with_plain_words
from leasehold.sql.system_catalog.expression_text import show_expression

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


def find_again(draft: TableDraft, column: Column) -> list[Remade]:
    """Return what the same statement makes anew already, over another column, and that rests on
    this one, too."""
    return [each for each, _ in draft.remade if column.element_id in _resting_on(each)]


def check_again(draft: TableDraft, column: Column) -> None:
    """Check what is made anew over another column and rests on this one, which keeps its type.
    Raises what `remake` raises."""
    table = _as_replaced(draft)
    for each, path in draft.remade:
        if column.element_id in _resting_on(each):
            assert isinstance(path.element, Index | Check), path
            _check(draft, table, path.element)


def _as_replaced(draft: TableDraft) -> Descriptor:
    kept = (c for c in draft.table.columns if c.element_id not in draft.replaced)
    return replace(draft.table, columns=(*kept, *draft.replaced.values()))


def remake(draft: TableDraft, found: list[Remade], old: Column, new: Column) -> None:
    """Add the paths of what is made anew over column `new`, and of what goes with `old`; what is
    made anew already gets it, too. Raises what the expressions raise with the other type,
    FeatureNotSupported for one that has no order, OutOfRange for too many indexes."""
    table = _as_replaced(draft)
    anew = [each for each, _ in draft.remade] + found
    indexes = sum(isinstance(each, Index) for each in anew)
    if len(table.indexes) + indexes > INDEXES_MAX:
        raise OutOfRange(
            f"table {table.name!r} has {len(table.indexes)} indexes, and {indexes} are made anew:"
            f" at most {INDEXES_MAX} stand beside each other"
        )
    for each, path in draft.remade:
        if old.element_id in _resting_on(each):
            assert isinstance(path.element, Index | Check), path
            path.element = _over_column(path.element, old, new)
            _check(draft, table, path.element)
    for each in found:
        said = _as_kept(each, draft.table) if isinstance(each, Check) else each
        made = _over_column(replace(said, element_id=draft.new_id()), old, new)
        _check(draft, table, made)
        match each, made:
            case Index(), Index():
                paths = element_paths.remake_index(each, made)
            case Check(), Check():
                paths = element_paths.remake_check(each, made)
            case _:
                raise AssertionError((each, made))
        draft.paths += paths
        draft.remade.append((each, paths[0]))
        draft.dropped.add(each.element_id)
        kind = "constraint" if isinstance(each, Check) or each.constraint else "index"
        draft.words.append(f"{kind} {each.name}")


def _as_kept(check: Check, table: Descriptor) -> Check:
    """Return a CHECK with the casts that its columns' types of before ask for, which PostgreSQL
    keeps: of `a > 0` over a numeric column that is a > (0)::numeric, whatever a becomes. One whose
    form is not known, or can't be kept, stays as it was written."""
    shown = show_expression(check.expression, table, short=False)
    if shown is None:
        return check
    find = enums_of(table)
    try:
        text = name_enums_for_good(
            with_exact_numbers(with_plain_words(without_parentheses(shown))), find
        )
        compile_condition(text, table, check.zone)
    except Refused:
        return check
    return replace(check, expression=text)


def _resting_on(element: Remade) -> tuple[int, ...]:
    return tuple(element.over if isinstance(element, Index) else element.columns)


def _over_column(element: Remade, old: Column, new: Column) -> Remade:
    """Return the element over another column."""
    if isinstance(element, Check):
        return replace(element, columns=tuple(sorted(_over(element.columns, old, new))))
    return replace(
        element,
        columns=_over(element.columns, old, new),
        included=_over(element.included, old, new),
        mentioned=tuple(sorted(_over(element.mentioned, old, new))),
    )


def _check(draft: TableDraft, table: Descriptor, made: Remade) -> None:
    """Check that an element can be what it is over the columns of `table`; not yet where another
    one gets its type by a later action of the statement."""
    rests = [table.by_id[column] for column in _resting_on(made)]
    if any(column.name in draft.retyping for column in rests):
        return
    if isinstance(made, Check):
        compile_condition(made.expression, table, made.zone)
        return
    for column in made.columns:
        if column != EXPRESSION:
            found = table.by_id[column]
            refuse_unordered(found.type, f"column {found.name!r}", column=found.name)
    for text in made.expressions:
        refuse_unordered(type_of_expression(text, table), f"expression {text:.80}")
    if made.predicate:
        compile_condition(made.predicate, table)
    for text in filter(None, (*made.expressions, made.predicate)):
        refuse_labels(text, table)
        refuse_session_zone(text, table)


def _over(columns: tuple[int, ...], old: Column, new: Column) -> tuple[int, ...]:
    return tuple(new.element_id if e == old.element_id else e for e in columns)
