"""Expressions over a column that an earlier statement of the same request renames: until the commit
step the column has its old name, so they say it until then, and the new one from then on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from leasehold.catalog.elements import Check, Column, Index
from leasehold.schema_change.steps.element_paths import ElementPath, Stage
from leasehold.sql.expressions.expression import columns_of_expression, rename_column_in


class Renamed(NamedTuple):
    """The names of a column before and after."""

    before: str
    after: str


def find_renamed(paths: Iterable[ElementPath]) -> dict[int, Renamed]:
    """Return the columns that get another name, by id."""
    found: dict[int, Renamed] = {}
    for path in paths:
        if not isinstance(path.element, Column) or path.new:
            continue
        for stage in path.after_commit:
            if stage.change and "name" in stage.change:
                found[path.name[1]] = Renamed(path.element.name, stage.change["name"])
    return found


def name_as_before(path: ElementPath, renamed: Mapping[int, Renamed]) -> ElementPath | None:
    """Return the path of a new CHECK or index whose expressions name columns as they are called at
    each of its stages; None: that can't be, since another column has such a name by then."""
    names = [renamed[column] for column in find_named(path) if column in renamed]
    if not names or not path.before_commit:
        return path  # it comes with the step that renames
    match path.element:
        case Check(expression=said):
            before = _rename_back(said, names)
            if before is None:
                return None
            made: Check | Index = replace(path.element, expression=before)
            change: dict[str, object] = {"expression": said}
        case Index(expressions=expressions, predicate=predicate):
            texts = [_rename_back(text, names) for text in (*expressions, predicate)]
            if None in texts:
                return None
            *worded, condition = (text or "" for text in texts)
            made = replace(path.element, expressions=tuple(worded), predicate=condition)
            change = {"expressions": expressions, "predicate": predicate}
        case _:
            return None
    first, *others = path.after_commit
    shown = Stage({**(first.change or {}), **change}, *first[1:])
    return replace(path, element=made, after_commit=(shown, *others))


def find_named(path: ElementPath) -> tuple[int, ...]:
    """Return the columns that an element names in an expression."""
    match path.element:
        case Check(columns=columns):
            return columns
        case Index(over=over) as index:
            return tuple(over) if index.computed else ()
        case Column(derived=derived):
            return () if derived is None else derived.sources
    return ()


def _rename_back(text: str, names: Iterable[Renamed]) -> str | None:
    if not text:
        return text
    for name in names:
        if name.before in columns_of_expression(text):
            return None
        text = rename_column_in(text, name.after, name.before)
    return text
