"""States of the F1-states model as plain tuples: rows as pairs, versions, holders, the job."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

from leasehold.model.ports import Row as StoredRow
from leasehold.model.records import OperationKind
from leasehold.schema.descriptor import Descriptor
from tests.schema_change.planned_change import NAMES


class Row(NamedTuple):
    """One row's pairs: `pairs` (element id, value), `entries` values of E's entries, sorted."""

    exists: bool = False
    pairs: tuple[tuple[int, Any], ...] = ()
    entries: tuple[tuple[Any, ...], ...] = ()

    @property
    def image(self) -> dict[int, Any]:
        return dict(self.pairs)


class Write(NamedTuple):
    """A row operation as a writer makes it."""

    kind: OperationKind
    changed: tuple[tuple[int, Any], ...] = ()

    @property
    def words(self) -> str:
        values = ", ".join(f"{NAMES[e]} = {'NULL' if v is None else v}" for e, v in self.changed)
        return f"{self.kind.upper()} {values}".rstrip()


class Stage(IntEnum):
    """Where the job stands; the names are those of `schema.job.Phase`, and two of the model."""

    PUBLISHING = 0
    DRAINING = 1
    BACKFILLING = 2
    VERIFYING = 3
    ENDED = 4
    CLEANED = 5  # physically removed, after the history horizon
    REFUTED = 6  # verification found a difference in a job that did all as it should


class World(NamedTuple):
    """`versions`: element state of every version so far, newest last; `low`: the place in it of
    min_version (D5). `held`: per writer how far below the newest its version is, sorted (writers
    are alike). `going_back`: cancelled. `step`: next step of the plan. `todo`: bit per row whose
    chunk is still to come. `dead`: E's pairs wait for the history horizon. `seen`: per row the
    values of A that images showed, `touched`: bit per row written since the run began; both stay
    empty where the rules make them irrelevant."""

    rows: tuple[Row, ...]
    versions: tuple[int, ...]
    low: int
    held: tuple[int, ...]
    going_back: bool
    step: int
    stage: int
    run: int
    todo: int
    dead: bool
    seen: tuple[tuple[Any, ...], ...]
    touched: int = 0


class OneRow:
    """As much of a store as deciding one row of a chunk reads."""

    def __init__(self, stored: StoredRow | None) -> None:
        self._stored = stored

    def row(self, descriptor: Descriptor, key: tuple[int, ...]) -> StoredRow | None:
        return self._stored


def make_row(exists: bool, pairs: dict[int, Any], entries: set[tuple[Any, ...]]) -> Row:
    kept = tuple(sorted((e, v) for e, v in pairs.items() if v is not None))
    return Row(exists, kept, tuple(sorted(entries, key=repr)))


def replaced(rows: tuple[Row, ...], number: int, row: Row) -> tuple[Row, ...]:
    return (*rows[:number], row, *rows[number + 1 :])


def begun(world: World) -> World:
    """A run of the backfill begins: every row that is there has an image that will be read."""
    todo = sum(1 << number for number, row in enumerate(world.rows) if row.exists)
    return world._replace(stage=Stage.BACKFILLING, run=world.run + 1, todo=todo, touched=0)
