"""Row images → facts about constraints → findings. PURE of Spark and Kafka.

A fact is what one image says to one constraint, as bytes: of a unique index its entry, of a foreign
key the values that a child refers to or a parent offers, of a CHECK or a NOT NULL that the row
breaks it. None says nothing: a NULL in the key, a row that is as it should be, a row that is gone.
Of each key only the newest fact counts, and none from before a truncation. Then:

    UNIQUE              the rows of a value that more than one row has
    FOREIGN KEY         the rows of a value that no parent has
    CHECK, NOT NULL     every row that says so

What an image says is computed by the functions that decide writes (`entry_of`, `condition_of`), so
that Spark means by a constraint what the master means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

import msgpack

from leasehold.adapters.codec.records import restore_row_key, row_key
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column, ForeignKey, Index
from leasehold.catalog.job import Job
from leasehold.model.errors import MalformedRequest
from leasehold.model.keys import Key
from leasehold.model.records.events import Image
from leasehold.model.records.jobs import FOUND_MAX, Findings
from leasehold.pipeline.chunks import CHUNK_BYTES_MAX, image_fields
from leasehold.rows.check_constraints import condition_of, explain_violation
from leasehold.rows.filled_by_key import complete_image
from leasehold.rows.index_entries import entry_of, key_of
from leasehold.transaction.foreign_keys import values_of

FINDINGS_MAX: Final = FOUND_MAX
"""Findings that a job is told of: the master looks each one up between two users' requests."""
BROKEN: Final = b"\x01"
TRUNCATION: Final = row_key(())
"""The key of the record that says that all rows before it on its partition are gone."""

About: TypeAlias = tuple[int, bool, int, bytes]
FactReader: TypeAlias = Callable[[Image], bytes | None]


class FactSource(NamedTuple):
    """The rows of one table as a constraint looks at them; `parent`: at those that a key refers
    to."""

    element_id: int
    parent: bool
    table_id: int


class Fact(NamedTuple):
    """A fact about a constraint. `row`: the record key of the row, TRUNCATION for all rows of the
    table; `place`: where its image stands on the partition that all images of the row are on, so
    that the highest one is the newest."""

    element_id: int
    parent: bool
    partition: int
    row: bytes
    position: int
    value: bytes | None

    @property
    def about(self) -> About:
        return self[:4]


class ConstraintGroups(NamedTuple):
    """Elements of a validation by how their facts are judged."""

    uniques: tuple[int, ...]
    references: tuple[int, ...]
    others: tuple[int, ...]


def find_told(descriptor: Descriptor, elements: Iterable[int]) -> tuple[int, ...]:
    """Return those of `elements` that a version event tells all of. A long expression may have been
    left out of one: the constraint is then left to the nodes' check."""
    found = []
    for element_id in elements:
        match descriptor.element(element_id):
            case Check(expression=""):
                continue
            case Index(mentioned=(_, *_), computed=False):
                continue
        found.append(element_id)
    return tuple(found)


def find_sources(descriptor: Descriptor, elements: Iterable[int]) -> tuple[FactSource, ...]:
    """Return which tables' rows have to be read for the constraints, and for which of them."""
    found = []
    for element_id in elements:
        found.append(FactSource(element_id, False, descriptor.table_id))
        element = descriptor.element(element_id)
        if isinstance(element, ForeignKey):
            found.append(FactSource(element_id, True, element.parent))
    return tuple(found)


def group_constraints(descriptor: Descriptor, elements: Sequence[int]) -> ConstraintGroups:
    kinds = {e: type(descriptor.element(e)) for e in elements}
    return ConstraintGroups(
        tuple(e for e in elements if kinds[e] is Index),
        tuple(e for e in elements if kinds[e] is ForeignKey),
        tuple(e for e in elements if kinds[e] not in (Index, ForeignKey)),
    )


def make_reader(descriptor: Descriptor, side: FactSource) -> FactReader:
    """Return a function from an image to what it says. Compile once: it may be a compiled
    expression."""
    match descriptor.element(side.element_id):
        case Index() as index:
            entry = entry_of(descriptor, index)
            return lambda image: _value(key_of(index, entry(image)), equal_nulls=index.equal_nulls)
        case ForeignKey() as key:
            if side.parent:
                return lambda image: _value(values_of(image, key.parent_columns))
            # What is broken is no parent's value.
            return lambda image: (
                BROKEN if key.is_mixed(image) else _value(values_of(image, key.columns))
            )
        case Check() as check:
            holds = condition_of(descriptor, check)
            return lambda image: BROKEN if explain_violation(holds, image) else None
        case Column(element_id=element_id):
            return lambda image: BROKEN if image.get(element_id) is None else None
    raise AssertionError(f"element {side.element_id} of {descriptor.name!r} is no constraint")


def _value(values: Key | None, *, equal_nulls: bool = False) -> bytes | None:
    """Return equal bytes for values that the store finds equal; None where a NULL makes it equal
    none, unless `equal_nulls`."""
    if values is None or (None in values and not equal_nulls):
        return None
    # 0.0 and -0.0 are one value in two forms.
    plain = [value + 0.0 if type(value) is float else value for value in values]
    packed: bytes = msgpack.packb(plain)
    return packed


class FactExtractor:
    """The extractor of facts from one table's records; one per process, since it compiles what is
    kept."""

    def __init__(
        self,
        descriptor: Descriptor,
        sources: Iterable[FactSource],
        table_id: int,
        parents: Iterable[Descriptor] = (),
    ) -> None:
        """Compile what the rows of table `table_id` are asked. `parents`: other tables of
        `sources`, whose images may lack what was filled by key; of one that is not there a row is
        at worst named to the master in vain."""
        sources = tuple(sources)
        known = {table.table_id: table for table in (*parents, descriptor)}
        self._read_as = known.get(table_id)
        # Elements of constraints that a row breaks by itself.
        self._alone = frozenset(
            side.element_id
            for side in sources
            if isinstance(descriptor.element(side.element_id), Check | Column)
        )
        self._says = [
            (side.element_id, side.parent, make_reader(descriptor, side))
            for side in sources
            if side.table_id == table_id
        ]

    def extract(
        self, row: bytes, partition: int, position: int, image: bytes | None
    ) -> Iterator[Fact]:
        """Yield the facts of one record of the rows topic, a tombstone or truncation too: what is
        gone says nothing. Of a row whose image was left out the master is to look at its own
        wherever one row may break the constraint by itself; what it has in common with others, the
        nodes' check finds. So it is of an image that can't be read, whoever wrote it."""
        gone = image is None or row == TRUNCATION
        values = None if image is None or gone else self._values_of(image)
        for element_id, parent, say in self._says:
            value, unread = None, values is None
            if values is not None:
                try:
                    value = say(values)
                except Exception:  # noqa: BLE001 - of no row of this table, whatever it is
                    unread = True
            if not gone and unread and element_id in self._alone:
                value = BROKEN
            yield Fact(element_id, parent, partition, row, position, value)

    def _values_of(self, image: bytes) -> Image | None:
        try:
            _, _, version, values = image_fields(image)
            if self._read_as is None or values is None:
                return values
            return complete_image(self._read_as, version, values)
        except Exception:  # noqa: BLE001 - whatever it is: nobody can read this image
            return None


# ------------------------------------------------------------------ findings


def select_newest(facts: Iterable[Fact]) -> dict[About, Fact]:
    found: dict[About, Fact] = {}
    for fact in facts:
        known = found.get(fact.about)
        if known is None or known.position < fact.position:
            found[fact.about] = fact
    return found


def find_suspects(facts: Iterable[Fact], wanted: ConstraintGroups) -> list[tuple[int, bytes]]:
    """Return (element id, record key) of rows that seem to break a constraint, those of one value
    together: in memory what `validation.py` asks of Spark."""
    rows: dict[tuple[int, bytes], list[bytes]] = {}
    offered: set[tuple[int, bytes]] = set()
    known = select_newest(facts)
    for fact in known.values():
        cut = known.get((*fact[:3], TRUNCATION))
        if fact.value is None or (cut is not None and fact.position < cut.position):
            continue
        if fact.parent:
            offered.add((fact.element_id, fact.value))
        else:
            rows.setdefault((fact.element_id, fact.value), []).append(fact.row)
    found = []
    for (element_id, value), having in sorted(rows.items()):
        if element_id in wanted.uniques and len(having) < 2:
            continue
        if element_id in wanted.references and (element_id, value) in offered:
            continue
        found += [(element_id, row) for row in sorted(having)]
    return found


def make_findings(job: Job, rows: int, total: int, first: Iterable[tuple[int, bytes]]) -> Findings:
    """Return the record that ends a job's run: the first of `total` suspects, bounded in number and
    bytes. `rows`: images that were looked at."""
    found: list[tuple[int, Key]] = []
    size = 0
    for element_id, row in first:
        size += len(row) + 8
        if len(found) >= FINDINGS_MAX or size > CHUNK_BYTES_MAX:
            break
        with suppress(MalformedRequest):  # under that key nobody has a row
            found.append((element_id, restore_row_key(row)))
    table_id = job.worked_table
    version = job.versions[table_id]
    return Findings(job.job_id, job.run, table_id, version, rows, total, tuple(found))


def select_counted(sources: Iterable[FactSource]) -> Mapping[int, FactSource]:
    """Return table id → the source whose facts are counted, so that an image that several look at
    counts once."""
    found: dict[int, FactSource] = {}
    for side in sources:
        found.setdefault(side.table_id, side)
    return found
