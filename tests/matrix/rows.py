"""What the rows must be: the accepted writes played on a dictionary, as the end shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, Final, NamedTuple

from leasehold.catalog.elements import Column
from leasehold.catalog.job import Status
from leasehold.model.records.log import CatalogWrite, DescriptorWrite, MinVersion
from leasehold.values.numeric import decimal_of
from leasehold.values.storage import from_storage
from tests.matrix.definition import Cascades, Definition, Write
from tests.matrix.world import World
from tests.simulation.harm import demand

ROWS_MAX: Final = 1_000
CONVERSIONS: Final = {"int": int, "text": str}

Rows = dict[int, dict[str, Any]]


class Accepted(NamedTuple):
    """A committed write, the content that it was made under, and when it was committed; `used`:
    the contents that may have been in use then."""

    write: Write
    shift: int
    content: int
    commit_us: int = 0
    used: frozenset[int] = frozenset()


def demand_rows(world: World) -> None:
    """Every acknowledged write is there, and nothing else."""
    if not world.newest.names:
        return
    shown = _shown(world)
    succeeded = world.the_job.status is Status.SUCCEEDED
    began_us = world.the_job.created_us
    accepted = _accepted(world)
    expected = rows_after(world.definition, accepted, succeeded=succeeded, began_us=began_us)
    for column in world.definition.distinct:
        values = [row.pop(column) for row in shown.values() if column in row]
        demand(None not in values, "rows", f"column {column}: {values}")
        demand(len(set(values)) == len(values), "rows", f"column {column}: {values}")
    demand(shown.keys() == expected.keys(), "rows", f"rows {sorted(shown)}, not {sorted(expected)}")
    for key, row in shown.items():
        known = {name: _like(value, expected[key].get(name)) for name, value in row.items()}
        demand(row == known, "rows", f"row {key} is {row}, it should be {known}")


def _shown(world: World) -> Rows:
    """As the newest version shows them."""
    snapshot = world.reference.store.open_snapshot()
    newest = snapshot.newest(world.newest.name)
    rows = {}
    shown = newest.by_name.items()
    for _, row in snapshot.scan(newest, None, None, rows_max=ROWS_MAX):
        columns: dict[str, Any] = {
            name: _compared(column, row.values.get(column.element_id)) for name, column in shown
        }
        rows[int(columns.pop("id"))] = columns
    return rows


def _compared(column: Column, value: Any) -> Any:
    """Numbers are equal as numbers, and of an enum type labels are given; of other types the
    storage value is what was given."""
    if column.type.enum is not None:
        return from_storage(column.type, value)
    return decimal_of(value) if column.type.name == "numeric" and value is not None else value


def _like(found: Any, given: Any) -> Any:
    """What a write gave, as a number where the column has numbers."""
    return Decimal(given) if isinstance(found, Decimal) and given is not None else given


def _accepted(world: World) -> Iterator[Accepted]:
    """In the order of the log; a delete of nothing is one too."""
    used = _Used(world)
    for _lsn, commit in world.reference.every:
        used.take(commit.catalog)
        asked = world.asked.get(commit.request_id)
        write = None if asked is None else asked.write
        if write is not None and world.other(write.table) is None and commit.versions:
            assert asked is not None
            content = world.content(world.version_used(commit.versions))
            yield Accepted(write, asked.shift, content, commit.commit_us, used.contents)


class _Used:
    """The contents from `min_version` to the newest version, as the log goes on."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._low = self._newest = 1

    def take(self, writes: Iterable[CatalogWrite]) -> None:
        for write in writes:
            match write:
                case DescriptorWrite(table_id=self._world.table_id, version=version):
                    self._newest = version
                case MinVersion(table_id=self._world.table_id, version=version):
                    self._low = version

    @property
    def contents(self) -> frozenset[int]:
        return frozenset(self._world.content(v) for v in range(self._low, self._newest + 1))


def rows_after(
    definition: Definition, accepted: Iterable[Accepted], *, succeeded: bool, began_us: int = 0
) -> Rows:
    """By the names that the table shows at the end; names that it does not show may be among
    them. `began_us`: when the statement was taken."""
    played = _played(definition, accepted, began_us)
    if not succeeded:
        return played
    for row in played.values():
        for column, to in definition.converted.items():
            if row.get(column) is not None:
                row[column] = CONVERSIONS[to](row[column])
        for new, old in definition.renamed.items():
            row[new] = row.pop(old, None)
    return played


def _played(definition: Definition, accepted: Iterable[Accepted], began_us: int) -> Rows:
    """By the names from before the job; in rows that did not give a column, its backfill."""
    former = definition.renamed
    rows: Rows = {}

    def inserted(given: dict[str, Any], content: int, at_us: int) -> dict[str, Any]:
        filled: dict[str, Any] = {}
        filled |= {c: definition.filled(c, max(content, 0)) for c in definition.backfill}
        for column, since in definition.decided.items():
            filled[column] = at_us if content >= since else filled.get(column, began_us)
        return filled | {former.get(c, c): v for c, v in given.items()}

    rekeyed = definition.rekeyed

    for row in (*definition.rows, *definition.together):
        rows[row["id"]] = inserted({c: v for c, v in row.items() if c != "id"}, 0, 0)
        _compute(definition, rows[row["id"]], 0)
    if definition.anew:
        rows = {}
    for write, shift, content, at_us, used in accepted:
        if definition.anew and content < definition.anew:
            continue  # of the table that goes, and with it
        key, given = write.at(shift), write.given(shift)
        if write.op == "delete":
            _delete(rows, key, definition.cascades, used)
        elif key in rows:
            demand(write.op != "insert", "T1", f"row {key} was inserted twice")
            rows[key].update({former.get(c, c): v for c, v in given.items()})
        elif write.op != "update":
            same = {} if rekeyed is None or not rekeyed.column else {rekeyed.column: key}
            rows[key] = same | inserted(given, content, at_us)
        if key in rows:
            _compute(definition, rows[key], content)
    return rows


def _delete(rows: Rows, key: int, cascades: Cascades | None, used: frozenset[int]) -> None:
    rows.pop(key, None)
    if cascades is not None and any(cascades.since <= each < cascades.until for each in used):
        for child in [k for k, row in rows.items() if row.get(cascades.column) == key]:
            _delete(rows, child, cascades, used)


def _compute(definition: Definition, row: dict[str, Any], content: int) -> None:
    for column, computed in definition.computed.items():
        if content < computed.until:
            value = row.get(computed.of)
            row[column] = None if value is None else value + 1
