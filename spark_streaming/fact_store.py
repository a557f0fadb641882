"""Facts of a validation, from the workers that compute them to those that compare them, on whatever
file system the run's folder is.

On `file:` workers write files of their own (see `fact_files`), and few facts are read by Arrow: for
a single machine that is half of what a validation costs. On others nobody but Spark writes and
reads, by its own committers and with its credentials: a Python worker has neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from leasehold.pipeline.facts import Fact, FactExtractor
from leasehold.settings.environment import KafkaSettings
from spark_streaming.fact_files import (
    COLUMNS,
    FACTS,
    FactFile,
    batch_of,
    fact_count,
    facts_of,
)
from spark_streaming.range_reader import Range, Records, records_of
from spark_streaming.run_folder import ROUND

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOCAL: Final = "file:"
RANGES: Final = "number int, topic string, partition int, first long, until long"
ROWS_AT_ONCE: Final = 20_000
MakeExtractors: TypeAlias = Callable[[], Mapping[str, FactExtractor]]
Numbered: TypeAlias = tuple[int, Range]
Counts: TypeAlias = Mapping[tuple[int, bool], int]
"""(element, parent) → how many facts."""


def path_of(place: str) -> Path | None:
    """Return the path of a folder that any process on the machine may open; None where it is by
    Hadoop's API alone that one gets there."""
    if not place.startswith(LOCAL):
        return None
    path = place.removeprefix(LOCAL)
    return Path(path.removeprefix("//"))


def write_facts(
    session: SparkSession,
    kafka: KafkaSettings,
    make: MakeExtractors,
    place: str,
    numbered: Sequence[Numbered],
) -> Iterator[Counts]:
    """Write the facts of some ranges side by side, in the place of an earlier attempt's, and yield
    how many there are. Raises PySparkException."""
    spread = session.sparkContext.parallelize(numbered, len(numbered))
    path = path_of(place)
    if path is not None:
        yield from spread.mapPartitions(_filing(kafka, make, str(path))).collect()
        return
    part = f"{place}/{ROUND}{numbered[0][0]}"
    ranges = spread.map(_as_row).toDF(RANGES)
    ranges.mapInArrow(_converting(kafka, make), FACTS).write.mode("overwrite").parquet(part)
    sides = session.read.schema(FACTS).parquet(part).groupBy("element", "parent").count()
    yield {(row["element"], row["parent"]): row["count"] for row in sides.collect()}


def read_few(session: SparkSession, places: Sequence[str], most: int) -> list[Fact] | None:
    """Return all facts that the folders hold; None where there are more than that. Raises
    PySparkException."""
    paths = [str(path) for place in places if (path := path_of(place)) is not None]
    if len(paths) == len(places):
        return list(facts_of(paths)) if fact_count(paths) <= most else None
    found = frame_of(session, places).limit(most + 1).collect()
    if len(found) > most:
        return None
    return [
        Fact(element, parent, partition, bytes(row), at, None if value is None else bytes(value))
        for element, parent, partition, row, at, value in found
    ]


def frame_of(session: SparkSession, places: Sequence[str]) -> DataFrame:
    """Return all facts that the folders hold, for Spark."""
    return session.read.schema(FACTS).parquet(*places).select(*COLUMNS)


def extract(extractor: FactExtractor, partition: int, records: Records) -> Iterator[Fact]:
    """Yield what some images say."""
    for place, row, image in zip(*records, strict=True):
        yield from extractor.extract(row, partition, place, image)


def _as_row(numbered: Numbered) -> tuple[int, str, int, int, int]:
    number, wanted = numbered
    return number, *wanted


def _filing(
    kafka: KafkaSettings, make: MakeExtractors, folder: str
) -> Callable[[Iterable[Numbered]], Iterator[Counts]]:
    """Return what turns numbered ranges of topics into a file of facts for each in the folder
    `folder`, and how many those are."""

    def convert(numbered: Iterable[Numbered]) -> Iterator[Counts]:
        extractors = make()
        for number, wanted in numbered:
            extractor = extractors[wanted.topic]
            with FactFile(folder, number) as file:
                for records in records_of(kafka, wanted):
                    file.add(extract(extractor, wanted.partition, records))
            yield file.counts

    return convert


def _converting(
    kafka: KafkaSettings, make: MakeExtractors
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return what turns Arrow's batches of ranges into such of their facts."""

    def convert(batches: Iterable[Any]) -> Iterator[Any]:
        extractors = make()
        for batch in batches:
            for _, *parts in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                wanted = Range(*parts)
                facts = (
                    fact
                    for records in records_of(kafka, wanted)
                    for fact in extract(extractors[wanted.topic], wanted.partition, records)
                )
                while some := list(islice(facts, ROWS_AT_ONCE)):
                    yield batch_of(some)

    return convert
