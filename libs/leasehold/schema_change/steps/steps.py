"""The steps of a job, which the paths of its elements share.

Paths begin together at the first step; the commit step is behind the longest. All that move in one
step have moved when it is drained, so a step of several edits is as safe as each of them. ⚠ But a
constraint is enforced only in versions that show its columns: else writers would be refused for a
value that they can't give. So a constraint over a new column waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.edits import Edit, Kind, make_body
from leasehold.catalog.elements import ALL_ROWS, Column, Element
from leasehold.catalog.job import Step
from leasehold.schema_change.steps.element_paths import UNCHANGED, ElementPath, Stage


class Steps(NamedTuple):
    """The steps of a job. `point`: the step whose publication is the point of no return."""

    steps: tuple[Step, ...]
    point: int


@dataclass(slots=True)
class _ElementChanges:
    """An element as the steps so far leave it; None: it is not there."""

    base: Element | Descriptor
    now: Element | Descriptor | None
    changes: list[Stage] = field(default_factory=list)


_ElementPlace = tuple[int, Kind, int]
"""Table (0: the job's own), kind and id of an element."""


def _element_place(path: ElementPath) -> _ElementPlace:
    return (path.table_id, *path.name)


def steps_of(paths: Iterable[ElementPath]) -> Steps:
    """Return the steps of a job from the paths of its elements. Several paths may be one element's
    (a default and a NOT NULL): they change different fields of it."""
    paths = _show_columns_first(tuple(paths))
    steps, commit = _walk(paths)
    after = len(steps) - commit
    return Steps(steps, commit + min(min(path.irreversible_from for path in paths), after - 1))


def steps_of_tables(groups: Iterable[tuple[int, Iterable[ElementPath]]]) -> Steps:
    """Return the steps of a job on several tables from the paths of each, with its id, 0 = the
    job's own. All of it is shown in one step, which is the point of no return; before that one
    table after the other is worked on, so that a step works on the rows of one."""
    paths: list[ElementPath] = []
    works: list[int] = []
    for table_id, own in groups:
        shown = _show_columns_first(tuple(own))
        if any(stage.has_work for path in shown for stage in path.before_commit):
            shown = tuple(_delay(path, 0, len(works)) for path in shown)
            length = max(len(path.before_commit) for path in shown)
            works += [table_id] * (length - len(works))
        paths += shown
    steps, commit = _walk(tuple(paths))
    if len(steps) == commit:  # what is shown early leaves nothing for it
        steps += (Step(()),)
    tables = (*works, *(0,) * (len(steps) - len(works)))
    return Steps(
        tuple(
            replace(step, table_id=table if step.has_work else 0)
            for step, table in zip(steps, tables, strict=True)
        ),
        commit,
    )


def _walk(paths: tuple[ElementPath, ...]) -> Steps:
    """Return the steps side by side, and which of them is the commit step."""
    assert paths
    elements: dict[_ElementPlace, _ElementChanges] = {}
    for path in paths:
        elements.setdefault(
            _element_place(path), _ElementChanges(path.element, None if path.new else path.element)
        )
    commit = max(len(path.before_commit) for path in paths)
    count = commit + max(len(path.after_commit) for path in paths)
    return Steps(tuple(_step(number, commit, paths, elements) for number in range(count)), commit)


def _show_columns_first(paths: tuple[ElementPath, ...]) -> tuple[ElementPath, ...]:
    """Show new columns with the constraints over them: ⚠ in one step, before the commit step, the
    columns become public and the constraints are enforced. It can be undone, as all of a rise. (No
    other column has such a one's name then: `alteration` sees to it.)"""
    new = {t.name[1]: t for t in paths if t.new and isinstance(t.element, Column)}
    early = frozenset().union(*(path.over for path in paths)) & new.keys()
    if not early:
        return paths
    over = [path for path in paths if path.over & early]
    shown = max(*(len(new[e].before_commit) for e in early), *(path.enforced_at for path in over))
    shows = {id(new[e]) for e in early} | {id(t) for t in _select_sequences(new, early, paths)}
    made = []
    for path in paths:
        if path in over:
            path = _delay(path, path.enforced_at, shown)
        elif id(path) in shows:
            risen = replace(
                path,
                before_commit=(*path.before_commit, *path.after_commit[:1]),
                after_commit=path.after_commit[1:],
            )
            path = _delay(risen, len(path.before_commit), shown)
        made.append(path)
    return tuple(made)


def _select_sequences(
    new: Mapping[int, ElementPath], early: Iterable[int], paths: Iterable[ElementPath]
) -> Iterable[ElementPath]:
    """Return the paths of sequences that go public with the columns that draw from them."""
    columns = (new[element_id].element for element_id in early)
    drawn = {c.draws_from for c in columns if isinstance(c, Column)} - {0}
    return (path for path in paths if path.new and path.table_id in drawn)


def _delay(path: ElementPath, stage: int, step: int) -> ElementPath:
    """Return the path with one of its stages before the commit at a step that is not before it."""
    waits = (UNCHANGED,) * (step - stage)
    return replace(
        path, before_commit=(*path.before_commit[:stage], *waits, *path.before_commit[stage:])
    )


def _step(
    number: int,
    commit: int,
    paths: tuple[ElementPath, ...],
    elements: Mapping[_ElementPlace, _ElementChanges],
) -> Step:
    backfills: list[tuple[Kind, int]] = []
    verifies: list[int] = []
    for path in paths:
        stages, index = (
            (path.before_commit, number)
            if number < commit
            else (path.after_commit, number - commit)
        )
        if index >= len(stages):
            continue
        stage = stages[index]
        elements[_element_place(path)].changes.append(stage)
        if stage.backfill:
            backfills.append((path.name[0], _find_worked_on(path)))
        if stage.verify:
            verifies.append(_find_worked_on(path))
    places = sorted(elements, key=lambda index: (index[0], index[2]))
    edits = [_edit(index, elements[index]) for index in places]
    # Columns first: an index over a new column is filled from its pairs.
    backfills.sort(key=lambda name: (name[0] is not Kind.COLUMN, name[1]))
    return Step(
        tuple(edit for edit in edits if edit is not None),
        tuple(element_id for _, element_id in backfills),
        tuple(dict.fromkeys(verifies)),
    )


def _find_worked_on(path: ElementPath) -> int:
    """Return the id of the element that is filled or verified; a whole table by what stands for all
    its rows."""
    return ALL_ROWS if isinstance(path.element, Descriptor) else path.name[1]


def _edit(element_key: _ElementPlace, element: _ElementChanges) -> Edit | None:
    before = element.now
    for stage in element.changes:
        if stage.change is None:
            element.now = None
        elif stage.change:
            changes: dict[str, Any] = dict(stage.change)
            element.now = replace(element.now or element.base, **changes)
    element.changes.clear()
    if element.now == before:
        return None
    table_id, kind, element_id = element_key
    after = None if element.now is None else make_body(element.now)
    if before is None and isinstance(element.now, Descriptor):
        after = element.now.to_wire()  # a table that the job makes: all of it
    return Edit(kind, element_id, None if before is None else make_body(before), after, table_id)
