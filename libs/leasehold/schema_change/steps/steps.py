"""The tracks of one job as its steps, which they share.

Rises begin together at the first step; the commit step is behind the longest. All that move in one
step have moved when it is drained, so a step of several edits is as safe as each of them. ⚠ But a
constraint is enforced only in versions that show its columns: else writers would be refused for a
value that they can't give. So a constraint over a new column waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.edits import Edit, Kind, body_of
from leasehold.catalog.elements import ALL_ROWS, Column, Element
from leasehold.catalog.job import Step
from leasehold.schema_change.steps.element_paths import UNCHANGED, ElementPath, Stage


class Steps(NamedTuple):
    """`point`: the step whose publication is the point of no return."""

    steps: tuple[Step, ...]
    point: int


@dataclass(slots=True)
class _Standing:
    """An element as the steps so far leave it; None: it is not there."""

    base: Element | Descriptor
    now: Element | Descriptor | None
    changes: list[Stage] = field(default_factory=list)


_Place = tuple[int, Kind, int]
"""Table (0: the job's own), kind and id of an element."""


def _place(track: ElementPath) -> _Place:
    return (track.table_id, *track.name)


def steps_of(tracks: Iterable[ElementPath]) -> Steps:
    """The steps of a job from the tracks of its elements. Several tracks may be one element's (a
    default and a NOT NULL): they change different fields of it."""
    tracks = _shown_first(tuple(tracks))
    assert tracks
    standing: dict[_Place, _Standing] = {}
    for track in tracks:
        standing.setdefault(
            _place(track), _Standing(track.element, None if track.new else track.element)
        )
    commit = max(len(track.rise) for track in tracks)
    count = commit + max(len(track.fall) for track in tracks)
    made = tuple(_step(number, commit, tracks, standing) for number in range(count))
    return Steps(made, commit + min(min(track.final for track in tracks), count - commit - 1))


def _shown_first(tracks: tuple[ElementPath, ...]) -> tuple[ElementPath, ...]:
    """⚠ With constraints over new columns: in one step, before the commit step, the columns become
    public and the constraints are enforced. It can be undone, as all of a rise. (No other column
    has such a one's name then: `alteration` sees to it.)"""
    new = {t.name[1]: t for t in tracks if t.new and isinstance(t.element, Column)}
    early = frozenset().union(*(track.over for track in tracks)) & new.keys()
    if not early:
        return tracks
    over = [track for track in tracks if track.over & early]
    shown = max(*(len(new[e].rise) for e in early), *(track.enforced_at for track in over))
    shows = {id(new[e]) for e in early} | {id(t) for t in _drawn_from(new, early, tracks)}
    made = []
    for track in tracks:
        if track in over:
            track = _delayed(track, track.enforced_at, shown)
        elif id(track) in shows:
            risen = replace(track, rise=(*track.rise, *track.fall[:1]), fall=track.fall[1:])
            track = _delayed(risen, len(track.rise), shown)
        made.append(track)
    return tuple(made)


def _drawn_from(
    new: Mapping[int, ElementPath], early: Iterable[int], tracks: Iterable[ElementPath]
) -> Iterable[ElementPath]:
    """Sequences that go public with the columns that draw from them."""
    columns = (new[element_id].element for element_id in early)
    drawn = {c.draws_from for c in columns if isinstance(c, Column)} - {0}
    return (track for track in tracks if track.new and track.table_id in drawn)


def _delayed(track: ElementPath, stage: int, step: int) -> ElementPath:
    """With that stage of its rise at a step that is not before it."""
    waits = (UNCHANGED,) * (step - stage)
    return replace(track, rise=(*track.rise[:stage], *waits, *track.rise[stage:]))


def _step(
    number: int,
    commit: int,
    tracks: tuple[ElementPath, ...],
    standing: Mapping[_Place, _Standing],
) -> Step:
    fills: list[tuple[Kind, int]] = []
    verifies: list[int] = []
    validates: list[int] = []
    for track in tracks:
        stages, place = (track.rise, number) if number < commit else (track.fall, number - commit)
        if place >= len(stages):
            continue
        stage = stages[place]
        standing[_place(track)].changes.append(stage)
        if stage.fill:
            fills.append((track.name[0], _worked_on(track)))
        if stage.verify:
            verifies.append(_worked_on(track))
        if stage.validate:
            validates.append(track.name[1])
    places = sorted(standing, key=lambda place: (place[0], place[2]))
    edits = [_edit(place, standing[place]) for place in places]
    # Columns first: an index over a new column is filled from its pairs.
    fills.sort(key=lambda name: (name[0] is not Kind.COLUMN, name[1]))
    return Step(
        tuple(edit for edit in edits if edit is not None),
        tuple(element_id for _, element_id in fills),
        tuple(dict.fromkeys(verifies)),
        tuple(dict.fromkeys(validates)),
    )


def _worked_on(track: ElementPath) -> int:
    """The element that is filled or verified; a whole table by what stands for all its rows."""
    return ALL_ROWS if isinstance(track.element, Descriptor) else track.name[1]


def _edit(place: _Place, element: _Standing) -> Edit | None:
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
    table_id, kind, element_id = place
    after = None if element.now is None else body_of(element.now)
    if before is None and isinstance(element.now, Descriptor):
        after = element.now.to_wire()  # a table that the job makes: all of it
    return Edit(kind, element_id, None if before is None else body_of(before), after, table_id)
