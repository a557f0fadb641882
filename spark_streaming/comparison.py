"""Facts → suspects by Spark SQL over files: the second pass of a validation.

It says what `find_suspects` says in memory. Exactly, it takes the newest fact of each row, and then
the values that two rows have: sorts of all rows by bytes, 25 µs a fact. But most rows have one
image, and most values one row. Which have, is told by counting 64-bit hashes, for 3 µs; only facts
that share a hash are sorted. Equal bytes have equal hashes, so nothing is missed, and what merely
shares one is found different when it is looked at exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple

from leasehold.model.closing import Closing
from leasehold.pipeline.facts import TRUNCATION, ConstraintGroups
from spark_streaming.fact_files import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTITION: Final = ("element", "parent", "partition")
ROW: Final = (*PARTITION, "row")
VALUE: Final = ("element", "value")
HASHES_MAX: Final = 500_000
"""So many shared hashes go to every task as a table of its own, 50 MB or so while it is made.
Beyond it all facts are compared exactly."""
VALUES_MAX: Final = 100_000
"""So many values of parents do, which are longer; beyond it both sides of the join are sorted."""


class _Told(NamedTuple):
    """The facts by hash: `alone`, those that nothing else can be equal to, and `shared`."""

    alone: DataFrame | None
    shared: DataFrame | None


class Comparison(Closing):
    """The comparison of `facts`, which have the columns of fact files. A context: it keeps things
    on disk until it ends."""

    def __init__(
        self, facts: DataFrame, hashes_max: int = HASHES_MAX, values_max: int = VALUES_MAX
    ) -> None:
        self._facts = facts
        self._hashes_max = hashes_max
        self._values_max = values_max
        self._kept: list[DataFrame] = []

    def close(self) -> None:
        while self._kept:
            self._kept.pop().unpersist()

    def find_suspects(
        self, wanted: ConstraintGroups, most: int
    ) -> tuple[int, list[tuple[int, bytes]]]:
        """Return how many rows seem to break a constraint, and the first of them. Raises
        PySparkException."""
        newest = self._newest(self._current_rows())
        rows = newest.where("NOT parent").select(*VALUE, "row")
        parts = []
        if wanted.uniques:
            shared = self._told(_of(rows, wanted.uniques), VALUE).shared
            if shared is not None:
                twice = shared.groupBy(*VALUE).count().where("count > 1").select(*VALUE)
                parts.append(shared.join(twice, list(VALUE), "left_semi"))
        if wanted.references:
            offered = self._few(self._keep(newest.where("parent").select(*VALUE)))
            parts.append(_of(rows, wanted.references).join(offered, list(VALUE), "left_anti"))
        if wanted.others:
            parts.append(_of(rows, wanted.others))
        if not parts:
            return 0, []
        found = self._keep(reduce(lambda one, other: one.unionByName(other), parts))
        total = found.count()
        first = found.orderBy(*VALUE, "row").limit(most).collect() if total else []
        return total, [(row["element"], bytes(row["row"])) for row in first]

    def _current_rows(self) -> DataFrame:
        """Return the facts without what was there before a truncation of its partition."""
        from pyspark.sql import functions as f

        truncates = f.col("row") == f.lit(TRUNCATION)
        cuts = self._facts.where(truncates).groupBy(*PARTITION).agg(f.max("place").alias("cut"))
        found = cuts.collect()
        if not found:
            return self._facts
        known = f.broadcast(self._facts.sparkSession.createDataFrame(found, cuts.schema))
        joined = self._facts.join(known, list(PARTITION), "left")
        return joined.where("cut IS NULL OR place > cut").select(*COLUMNS)

    def _newest(self, facts: DataFrame) -> DataFrame:
        """Return one fact of each row, if it says something."""
        from pyspark.sql import functions as f

        told = self._told(facts, ROW)
        parts = [] if told.alone is None else [told.alone.select(*ROW, "value")]
        if told.shared is not None:
            latest = told.shared.groupBy(*ROW).agg(f.max_by("value", "place").alias("value"))
            parts.append(self._keep(latest))
        return reduce(lambda one, other: one.unionByName(other), parts).where("value IS NOT NULL")

    def _told(self, facts: DataFrame, by: Sequence[str]) -> _Told:
        from pyspark.sql import functions as f

        hashed = facts.withColumn("hash", f.xxhash64(*by))
        many = self._keep(hashed.groupBy("hash").count().where("count > 1").select("hash"))
        count = many.count()
        if not count:
            return _Told(facts, None)
        if count > self._hashes_max:
            return _Told(None, facts)
        known = f.broadcast(many)
        return _Told(
            hashed.join(known, "hash", "left_anti").select(*facts.columns),
            hashed.join(known, "hash", "left_semi").select(*facts.columns),
        )

    def _few(self, frame: DataFrame) -> DataFrame:
        """Return the frame with a hint for the planner, which knows of no frame how large it is."""
        from pyspark.sql import functions as f

        return f.broadcast(frame) if frame.count() <= self._values_max else frame

    def _keep(self, frame: DataFrame) -> DataFrame:
        from pyspark import StorageLevel

        kept = frame.persist(StorageLevel.DISK_ONLY)
        self._kept.append(kept)
        return kept


def _of(facts: DataFrame, elements: Sequence[int]) -> DataFrame:
    from pyspark.sql import functions as f

    return facts.where(f.col("element").isin(*elements))
