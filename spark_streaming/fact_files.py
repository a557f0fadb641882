"""What a validation has read, in Parquet files: a folder for each micro-batch.

Workers write them themselves, since in Spark a fact would become a row of the JVM's and a record of
its own writer; Spark reads them when they are compared, and Arrow where they are few.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from leasehold.pipeline.facts import Fact

FACTS: Final = "element int, parent boolean, partition int, row binary, place long, value binary"
COLUMNS: Final = ("element", "parent", "partition", "row", "place", "value")
ROWS_AT_ONCE: Final = 50_000
"""Of a file's row group, which is built in memory: some MB."""


class FactFile:
    """A file that a task writes, a context: there when it ends, and whole, else not at all. The
    same one again takes the place of the first. `counts`: (element, parent) → how many facts."""

    def __init__(self, folder: str, number: int, rows_at_once: int = ROWS_AT_ONCE) -> None:
        self.counts: Counter[tuple[int, bool]] = Counter()
        self._path = Path(folder) / f"part-{number}.parquet"
        # A dot: nobody takes it for a file of facts. A task that a killed process has left behind,
        # on this machine or another one, writes one of its own.
        self._aside = self._path.with_name(f".{self._path.name}.{uuid.uuid4().hex}")
        self._rows_at_once = rows_at_once
        self._pending: list[Fact] = []

    def __enter__(self) -> FactFile:
        import pyarrow.parquet as pq

        self._writer = pq.ParquetWriter(self._aside, _schema(), use_dictionary=["element"])
        return self

    def add(self, facts: Iterable[Fact]) -> None:
        self._pending += facts
        if len(self._pending) >= self._rows_at_once:
            self._write()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._write()
            self._writer.close()
            if kind is None:
                self._aside.rename(self._path)
        finally:
            self._aside.unlink(missing_ok=True)

    def _write(self) -> None:
        if self._pending:
            self.counts.update(fact[:2] for fact in self._pending)
            self._writer.write_batch(batch_of(self._pending))
            self._pending = []


def batch_of(facts: Sequence[Fact]) -> Any:
    """Return some facts, of which there is one at least, as a batch of Arrow's."""
    import pyarrow as pa

    columns = zip(*facts, strict=True)
    schema = _schema()
    arrays = [pa.array(c, k) for c, k in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def fact_count(places: Sequence[str]) -> int:
    """Return how many facts the folders hold. By Arrow, here: a job of Spark's takes a quarter of a
    second for as little."""
    return sum(_dataset(folder).count_rows() for folder in places)


def facts_of(places: Sequence[str]) -> Iterator[Fact]:
    """Yield all that the folders hold, in no order."""
    for folder in places:
        columns = (column.to_pylist() for column in _dataset(folder).to_table().columns)
        yield from map(Fact._make, zip(*columns, strict=True))


def _dataset(folder: str) -> Any:
    from pyarrow import dataset  # of some 100 ms: only runs have a use for it

    return dataset.dataset(folder, schema=_schema(), format="parquet")


def _schema() -> Any:
    """Return FACTS as a schema of Arrow."""
    import pyarrow as pa

    kinds = (pa.int32(), pa.bool_(), pa.int32(), pa.binary(), pa.int64(), pa.binary())
    return pa.schema(zip(COLUMNS, kinds, strict=True))
