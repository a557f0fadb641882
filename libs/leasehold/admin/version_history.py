"""All versions of a table that `versions-history` still has, and what changed between two. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from leasehold.admin.view import TableView, VersionChange
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.states import State
from leasehold.events.version_diff import ElementChange, diff
from leasehold.model.errors import (
    MalformedRequest,
    SnapshotTooOld,
    StaleVersion,
    UnknownTable,
    UnknownVersion,
)
from leasehold.model.records.events import VersionEvent


class TableHistory(NamedTuple):
    """Events of one table in order of their versions, which have no gap (D2) but may begin late:
    whoever runs the brokers may have let old ones go."""

    events: tuple[VersionEvent, ...]

    @property
    def newest(self) -> VersionEvent:
        return self.events[-1]

    def descriptor(self, version: int) -> Descriptor:
        """Raises UnknownVersion, or StaleVersion for one that is no longer kept."""
        oldest, newest = self.events[0].version, self.newest.version
        if not 1 <= version <= newest:
            raise UnknownVersion(
                f"table {self.newest.name!r} has no version {version}; the newest is {newest}"
            )
        if version < oldest and self.events[0].body.get("replaces"):
            raise UnknownVersion(
                f"version {version} of {self.newest.name!r} was that of a table which was dropped;"
                f" this one begins with version {oldest}"
            )
        if version < oldest:
            raise StaleVersion(
                f"version {version} of table {self.newest.name!r} is no longer kept; the oldest"
                f" kept is {oldest}"
            )
        return from_wire(self.events[version - oldest].body)

    def between(self, version: int, other: int) -> tuple[ElementChange, ...]:
        """Raises as `descriptor` does. `other` may be the older one: what going back would do."""
        return diff(self.descriptor(version), self.descriptor(other))

    def changes(self) -> tuple[VersionChange, ...]:
        """Return each event with what it changed.

        What the oldest event kept has changed is not known, unless it is version 1: its elements
        are then shown as if they were new.
        """
        tables = [TableView(event) for event in self.events]
        return tuple(map(VersionChange, tables, (None, *tables[:-1])))


def _histories(events: Iterable[VersionEvent]) -> list[TableHistory]:
    by_id: dict[int, dict[int, VersionEvent]] = {}
    for event in events:
        by_id.setdefault(event.table_id, {})[event.version] = event
    return [_dense([of_one[v] for v in sorted(of_one)]) for of_one in by_id.values()]


def history_of(events: Iterable[VersionEvent], table: str) -> TableHistory:
    """Return the history of the table that has this name now, else of the last one that had it.

    Events may come more than once, as they do when a reader starts over. Raises UnknownTable.
    """
    known = {h.newest.table_id: h for h in _histories(events)}
    named = [h for h in known.values() if any(table in _names(event) for event in h.events)]
    if not named:
        raise UnknownTable(f"table {table!r} does not exist, and never did", table=table)

    def now(history: TableHistory) -> tuple[bool, bool, int]:
        has_it = table in _names(history.newest)
        return has_it, has_it and _is_public(history.newest), history.newest.table_id

    return _with_former(max(named, key=now), known)


def _is_public(event: VersionEvent) -> bool:
    return bool(event.body["state"] == State.PUBLIC.label)


def _with_former(history: TableHistory, known: Mapping[int, TableHistory]) -> TableHistory:
    """Put the versions of the tables whose place it took before its own. Each was made before the
    one that took its place, so its id is smaller: events that say otherwise are nobody's that we
    know, and would never come to an end."""
    line = [history]
    while (former := known.get(line[-1].newest.body.get("former", 0))) is not None:
        if former.newest.table_id >= line[-1].newest.table_id:
            break
        line.append(former)
    joined = line.pop()
    while line:
        joined = _joined(joined, line.pop())
    return joined


def _joined(former: TableHistory, history: TableHistory) -> TableHistory:
    """Return the history behind those versions of the former table that were in use until it took
    the place: its version numbers go on from them."""
    taken = next((event.version for event in history.events if _is_public(event)), None)
    if taken is None:
        return history
    before = [event for event in former.events if event.version < taken]
    return _dense([*before, *(event for event in history.events if event.version >= taken)])


def event_at(events: Iterable[VersionEvent], table: str, lsn: int) -> VersionEvent:
    """The version of the table that was called `table` at `lsn`, current then.

    Raises UnknownTable, and SnapshotTooOld where what was current then is no longer kept."""
    begins_later, found = [], []
    for history in _histories(events):
        then = [event for event in history.events if event.lsn <= lsn]
        if then and table in _names(then[-1]):
            found.append(then[-1])
        oldest = history.events[0]
        takes = oldest.body.get("former") or oldest.body.get("replaces")
        if not then and oldest.version > 1 and not takes:
            begins_later.append(oldest)
    if found:
        # Of two that follow each other under one name the one that is read.
        return next(filter(_is_public, found), found[0])
    if begins_later:
        oldest = min(begins_later, key=lambda event: event.lsn)
        raise SnapshotTooOld(
            f"versions-history begins at LSN {oldest.lsn:,} for table {oldest.name!r}: what was"
            f" called {table!r} at LSN {lsn:,} is no longer known",
            table=table,
        )
    raise UnknownTable(f"table {table!r} did not exist at LSN {lsn:,}", table=table)


def _names(event: VersionEvent) -> Sequence[str]:
    if event.body["state"] == State.ABSENT.label:
        return ()
    return (event.name, event.body.get("alias") or event.name)


def _dense(events: list[VersionEvent]) -> TableHistory:
    """Return the history that events in order are. ⚠ A topic that somebody else wrote to may have
    any: then MalformedRequest is raised."""
    for before, after in pairwise(events):
        if after.version != before.version + 1:
            raise MalformedRequest(
                f"the version events of table {after.name!r} do not follow each other: behind"
                f" version {before.version} comes {after.version}. Somebody else than the"
                " changefeed has written to versions-history, or a part of it was deleted."
            )
    return TableHistory(tuple(events))
