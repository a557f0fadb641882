"""States of the schema-change model as plain tuples: rows as pairs, and where everybody is."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.model.ports import Row as StoredRow
from leasehold.model.records.requests import OperationKind

ID: Final = 1  # element id of the primary key
GENID: Final = 1  # of every stored row


class Row(NamedTuple):
    """One row's pairs: `pairs` (element id, value) without the primary key, which is the row's
    place; `entries` (index id, key values). Both sorted."""

    exists: bool = False
    pairs: tuple[tuple[int, Any], ...] = ()
    entries: tuple[tuple[int, tuple[Any, ...]], ...] = ()

    def stored(self, key: int) -> StoredRow | None:
        """As a store hands it out."""
        return StoredRow({ID: key, **dict(self.pairs)}, {0: GENID}, 1) if self.exists else None

    def value(self, element_id: int) -> Any:
        return dict(self.pairs).get(element_id)


class Cell(NamedTuple):
    """A row, and what is on its way to it. `todo`: the running backfill has yet to deliver its
    chunk; `newer`: written since that run began; `seen`: pairs of older images. The latter two
    stay empty where the rules make them irrelevant. `lacks`: elements whose pairs the row's last
    image has not, for a chunk put them by key; `made`: the version it was made under (0 where
    the image tells all); `gone`: pairs that the image still has of columns that are no more, and
    the store not. `looked`: a slice of the verification has passed the row's place."""

    row: Row = Row()
    todo: bool = False
    newer: bool = False
    seen: tuple[Any, ...] = ()
    lacks: tuple[int, ...] = ()
    made: int = 0
    looked: bool = False
    gone: tuple[Any, ...] = ()


class World(NamedTuple):
    """`cells`: numbers of Cells, sorted, since rows are alike; `at`: number of the job's Position.
    `held`, `low`: how far below the newest version the oldest is that somebody holds, and the
    fence (D5). `harm`: what went wrong on the way here."""

    cells: tuple[int, ...]
    at: int
    held: int = 0
    low: int = 0
    harm: str = ""


class Write(NamedTuple):
    """A row operation as a writer asks for it: `values` (column name, value)."""

    kind: OperationKind
    values: tuple[tuple[str, Any], ...] = ()

    @property
    def words(self) -> str:
        values = ", ".join(f"{name} = {'NULL' if v is None else v}" for name, v in self.values)
        return f"{self.kind.upper()} {values}".rstrip()


def make_row(
    exists: bool, pairs: dict[int, Any], entries: Iterable[tuple[int, tuple[Any, ...]]]
) -> Row:
    kept = sorted((e, v) for e, v in pairs.items() if v is not None and e != ID)
    return Row(exists, tuple(kept), tuple(sorted(set(entries), key=repr)))


def without(row: Row, dead: Collection[int]) -> Row:
    """The row after its pairs and entries of dead elements are removed physically."""
    return Row(
        row.exists,
        tuple(pair for pair in row.pairs if pair[0] not in dead),
        tuple(entry for entry in row.entries if entry[0] not in dead),
    )


class OneRow:
    """As much of a store as deciding one row of a chunk reads."""

    def __init__(self, stored: StoredRow | None) -> None:
        self._stored = stored

    def row(self, descriptor: Descriptor, key: tuple[int, ...]) -> StoredRow | None:
        return self._stored


def words_of(row: Row, descriptor: Descriptor) -> str:
    """A row in a few words, with the names of `descriptor`."""
    names = {c.element_id: c.name for c in descriptor.columns}
    pairs = ", ".join(f"{names.get(e, e)}={v}" for e, v in row.pairs)
    entries = "".join(f" entry{values}" for _, values in row.entries)
    return f"({pairs}){entries}" if row.exists else f"gone ({pairs}){entries}"
