"""The changes that statements of one request make to one element again, as one path: what the later
one says counts, and an element that goes does not change before.

Such a request is one job, so nobody sees what stands between two of its statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column, ForeignKey, Index
from leasehold.schema_change.plan.results import JobPlan
from leasehold.schema_change.steps.element_paths import (
    UNCHANGED,
    ElementPath,
    Stage,
    drop_check,
    drop_column,
    drop_index,
    find_hiding_stage,
    make_valid,
    rename,
    stays_not_valid,
    validates,
)
from leasehold.schema_change.steps.table_paths import rename_key

DEFAULT_FIELDS: Final = frozenset(
    (
        *("default", "default_text", "default_expression", "moment", "moment_zone"),
        *("numbering", "owns"),
    )
)
_NULLABLE: Final = frozenset(("nullable", "not_null_enforced"))
_NAME: Final = frozenset(("name", "alias"))
_TABLE_NAME: Final = _NAME | {"key_name"}
_WORDING: Final = (
    frozenset(("expression",)),
    frozenset(("expressions", "predicate")),
    frozenset(("derived",)),
)


def join_repeated(first: JobPlan, more: JobPlan) -> tuple[JobPlan, JobPlan]:
    """Return both plans, of one table, with what the later one changes again said in it alone, as
    far as that can be."""
    left, added = [*first.paths], list[ElementPath]()
    before = {find_place(path): path.element for path in reversed(first.paths) if not path.new}
    for path in more.paths:
        place = find_place(path)
        if place in before:  # all paths of an element begin with it as it stands
            path = replace(path, element=before[place])
        retyped = next((p for p in left if find_place(p) == place and gives_type(p)), None)
        if retyped is not None and fields_of(path) == _NULLABLE:
            shown = _with_null(retyped, allowed=not path.before_commit)
            left = [shown if each is retyped else each for each in left]
            continue
        unproved = next((p for p in left if find_place(p) == place and stays_not_valid(p)), None)
        if unproved is not None and validates(path) and not _is_retyped(unproved, left):
            assert isinstance(unproved.element, Check | ForeignKey), "it can be NOT VALID"
            valid = make_valid(unproved, unproved.element)
            left = [valid if each is unproved else each for each in left]
            continue
        earlier = [each for each in left if find_place(each) == place]
        superseded, made = _supersede(earlier, path)
        left = [each for each in left if not any(each is other for other in superseded)]
        added += made
    return replace(first, paths=tuple(left)), replace(more, paths=tuple(added))


def gives_type(path: ElementPath) -> bool:
    """Say whether a path is of a column that takes the place of another, which has another type."""
    element = path.element
    new = path.new and isinstance(element, Column)
    return new and not getattr(element, "generated", False) and "derived" in fields_of(path)


def changes_default(path: ElementPath) -> bool:
    """Say whether a path changes a column's default alone."""
    return not path.new and fields_of(path) <= DEFAULT_FIELDS


def find_place(path: ElementPath) -> tuple[int, object, int]:
    """Return which element of which table a path is of."""
    return (path.table_id, *path.name)


def takes_away(path: ElementPath) -> bool:
    """Say whether the element is gone at the end of a path."""
    return any(stage.change is None for stage in stages_of(path))


def fields_of(path: ElementPath) -> frozenset[str]:
    """Return the fields that a path changes."""
    return frozenset(name for stage in stages_of(path) for name in stage.change or ())


def stages_of(path: ElementPath) -> tuple[Stage, ...]:
    """Return all stages of a path."""
    return (*path.before_commit, *path.after_commit)


def _is_retyped(path: ElementPath, paths: Sequence[ElementPath]) -> bool:
    """Say whether a constraint is over a column that takes another's place. ⚠ It can't be proved
    before that one is filled."""
    assert isinstance(path.element, Check | ForeignKey), "a constraint"
    return any(gives_type(each) and each.name[1] in path.element.columns for each in paths)


def _with_null(path: ElementPath, *, allowed: bool) -> ElementPath:
    """Return the path of a column of another type, that is shown with or without NOT NULL. ⚠ Where
    it goes nobody writes a NULL while readers of the old column rely on there being none; where it
    comes it is enforced with the conversion, so that the rows are looked through for both."""
    *early, strict = path.before_commit
    public, *others = path.after_commit
    enforced = bool((strict.change or {}).get("not_null_enforced"))
    if allowed:
        shown = {**(public.change or {}), "nullable": True, "not_null_enforced": enforced}
        others += [Stage({"not_null_enforced": False})] if enforced else []
    else:
        strict = strict._replace(change={**(strict.change or {}), "not_null_enforced": True})
        shown = {**(public.change or {}), "nullable": False, "not_null_enforced": False}
    after = (public._replace(change=shown), *others)
    return replace(path, before_commit=(*early, strict), after_commit=after)


def _supersede(
    earlier: Sequence[ElementPath], path: ElementPath
) -> tuple[Sequence[ElementPath], Sequence[ElementPath]]:
    """Return which of the earlier paths of an element end, and what stands for them and `path`."""
    unchanged: tuple[Sequence[ElementPath], Sequence[ElementPath]] = (), (path,)
    if not earlier or any(each.new or takes_away(each) for each in earlier):
        return unchanged
    before = earlier[0].element
    if takes_away(path):
        gone = _drop(before, path)
        return unchanged if gone is None else (earlier, (gone,))
    fields = fields_of(path)
    again = [each for each in earlier if fields_of(each) & fields]
    if len(again) != 1:
        return unchanged
    (other,) = again
    both = fields | fields_of(other)
    if both == _NULLABLE and other.before_commit != path.before_commit:
        return again, ()  # set and dropped, or dropped and set: it stays as it is
    if other.before_commit or path.before_commit:
        return unchanged
    if both <= _NAME and isinstance(before, Column | Index | Check | ForeignKey):
        return again, _rename(before, path)
    if both <= _TABLE_NAME and isinstance(before, Descriptor):
        return again, _rename_table(before, other, path)
    if both <= DEFAULT_FIELDS or both in _WORDING:
        return again, _change_once(before, other, path)
    return unchanged


def _drop(before: object, path: ElementPath) -> ElementPath | None:
    """Return the path of an element that goes, as it was before the request."""
    match before:
        case Column():
            made = drop_column(before, waits=find_hiding_stage(path))
        case Index():
            made = drop_index(before, waits=_count_waits(path))
        case Check() | ForeignKey():
            made = drop_check(before)
        case _:
            return None
    return replace(made, table_id=path.table_id)


def _rename(before: Column | Index | Check | ForeignKey, path: ElementPath) -> list[ElementPath]:
    (said,) = [
        stage.change["name"]
        for stage in path.after_commit
        if stage.change and "name" in stage.change
    ]
    return [] if said == before.name else [replace(rename(before, said), table_id=path.table_id)]


def _rename_table(before: Descriptor, other: ElementPath, path: ElementPath) -> list[ElementPath]:
    """Return the path of a table, and its primary key, by the names that two paths come to."""
    said = {
        name: value
        for each in (other, path)
        for stage in each.after_commit
        for name, value in (stage.change or {}).items()
    }
    name = said.get("name", before.name)
    key_name = said.get("key_name", before.key_name)
    if name != before.name:
        both = {"name": name, "alias": before.name, "key_name": key_name}
        after_commit = (Stage(both), Stage({"alias": ""}))
        return [replace(other, after_commit=after_commit)]
    kept = key_name in (before.key_name, before.key_constraint)
    return [] if kept else [replace(rename_key(before, key_name), table_id=path.table_id)]


def _change_once(before: object, other: ElementPath, path: ElementPath) -> list[ElementPath]:
    """Return the one change of an element's fields that two come to."""
    change = {
        name: value
        for each in (other, path)
        for stage in each.after_commit
        for name, value in (stage.change or {}).items()
    }
    if all(getattr(before, name) == value for name, value in change.items()):
        return []
    waits = max(map(_count_waits, (other, path)))
    return [
        replace(
            other,
            after_commit=(*(UNCHANGED,) * waits, Stage(change)),
            irreversible_from=min(other.irreversible_from, path.irreversible_from),
        )
    ]


def _count_waits(path: ElementPath) -> int:
    """Return how many stages after the commit change nothing yet."""
    return next(n for n, stage in enumerate(path.after_commit) if stage != UNCHANGED)
