"""Images → facts → findings: the newest image counts, equal means what the store finds equal."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.adapters.codec.records import MessagePackCodec, row_key
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column, ForeignKey, Index, Missing
from leasehold.model.records.events import RowImage, RowLeftOut, RowsTruncated
from leasehold.pipeline.facts import (
    BROKEN,
    FINDINGS_MAX,
    TRUNCATION,
    Fact,
    FactExtractor,
    FactSource,
    find_sources,
    find_suspects,
    find_told,
    group_constraints,
    make_findings,
    make_reader,
    select_counted,
)
from leasehold.schema_change.coordinator.verification import as_if_public
from leasehold.values.doubles import Stored
from leasehold.values.types import Type
from tests.support.memory_store.consistency import KeyValueData, violations
from tests.support.schema_change.made_job import index_job

CODEC = MessagePackCodec()
UNIQUE, CHECK, REFERENCE, REQUIRED, PARENT = 9, 10, 11, 3, 7
ELEMENTS = (UNIQUE, CHECK, REFERENCE, REQUIRED)
TABLE = Descriptor(
    1,
    "t",
    3,
    (
        Column(1, "id", Type("bigint"), nullable=False),
        Column(2, "a", Type("double precision")),
        Column(REQUIRED, "b", Type("bigint"), not_null_enforced=True),
    ),
    (1,),
    (Index(UNIQUE, "u", (2, 3), unique_enforced=True),),
    checks=(Check(CHECK, "c", "a < b", (2, 3)),),
    foreign_keys=(ForeignKey(REFERENCE, "f", (3,), PARENT, (1,)),),
    next_element_id=12,
)
SIDES = find_sources(TABLE, ELEMENTS)


def image(table_id: int, key: int, values: Mapping[int, Any]) -> bytes:
    kept = {1: key, **{e: v for e, v in values.items() if v is not None}}
    return CODEC.encode(RowImage(table_id, (key,), {0: 1}, 1, 3, 1, kept))


class Topic:
    """Facts of records in the order in which they were published."""

    def __init__(self, sources: tuple[FactSource, ...] = SIDES) -> None:
        self.extractors = {t: FactExtractor(TABLE, sources, t) for t in (TABLE.table_id, PARENT)}
        self.facts: list[Fact] = []
        self.places = itertools.count()

    def row(self, key: int, a: Stored | None, b: int | None) -> None:
        self._tell(TABLE.table_id, key, image(1, key, {2: a, 3: b}))

    def left_out(self, key: int) -> None:
        self._tell(1, key, CODEC.encode(RowLeftOut(1, (key,), {0: 1}, 1, 3, 1, 9_000_000)))

    def parent(self, key: int) -> None:
        self._tell(PARENT, key, image(PARENT, key, {}))

    def gone(self, key: int, table_id: int = 1) -> None:
        self._tell(table_id, key, None)

    def _tell(self, table_id: int, key: int, value: bytes | None) -> None:
        row = row_key((key,))
        self.facts += self.extractors[table_id].extract(row, key % 2, next(self.places), value)

    def truncated(self, table_id: int = 1) -> None:
        for partition in (0, 1):
            value = CODEC.encode(RowsTruncated(table_id, 1, 1))
            position = next(self.places)
            self.facts += self.extractors[table_id].extract(TRUNCATION, partition, position, value)

    def found(self, element_id: int) -> list[int]:
        given = reversed(self.facts)  # their order in files says nothing
        record = find_suspects(given, group_constraints(TABLE, ELEMENTS))
        told = make_findings(index_job(1, 1), 0, len(record), record).found
        return [key[0] for element, key in told if element == element_id]


def test_duplicates_are_named_value_by_value() -> None:
    topic = Topic()
    for key, (a, b) in enumerate([(1.5, 2), (0.0, 2), (1.5, 2), (-0.0, 2), (1.5, 3)]):
        topic.row(key, a, b)
    assert sorted(topic.found(UNIQUE)) == [0, 1, 2, 3]
    first = topic.found(UNIQUE)[:2]
    assert first in ([0, 2], [1, 3]), "rows of one value stand together"


def test_nan_equals_itself_and_is_less_than_nothing() -> None:
    topic = Topic()
    rows: list[tuple[Stored, int]] = [("NaN", 2), (1.5, 2), ("NaN", 2), ("NaN", 3)]
    for key, (a, b) in enumerate(rows):
        topic.row(key, a, b)
    assert topic.found(UNIQUE) == [0, 2]
    assert topic.found(CHECK) == [0, 2, 3]


def test_a_row_whose_image_was_too_large_is_looked_at_by_the_master() -> None:
    """By itself it may break a CHECK or a NOT NULL; what it has in common with others, or what it
    refers to, is left to the nodes' check."""
    topic = Topic()
    topic.row(1, 1.0, 2)
    topic.parent(2)
    topic.left_out(1)
    topic.left_out(3)
    assert topic.found(CHECK) == topic.found(REQUIRED) == [1, 3]
    assert topic.found(UNIQUE) == topic.found(REFERENCE) == []
    topic.row(1, 1.0, 2)
    topic.gone(3)
    assert topic.found(CHECK) == topic.found(REQUIRED) == []


def test_a_unique_index_tells_of_its_predicates_rows_what_its_expression_gives() -> None:
    index = Index(
        *(UNIQUE, "u", (0,), False),
        unique_enforced=True,
        expressions=("(b / 2)",),
        predicate="a > 0",
        included=(2,),
        mentioned=(2, REQUIRED),
    )
    say = make_reader(replace(TABLE, indexes=(index,)), FactSource(UNIQUE, False, 1))
    assert say({1: 1, 2: 1.5, 3: 4}) == say({1: 2, 2: 2.5, 3: 5}) != say({1: 2, 2: 2.5, 3: 6})
    assert say({1: 1, 2: 0.0, 3: 4}) is None, "it is outside"
    assert say({1: 1, 2: 1.5}) is None, "NULL equals nothing"
    divided = replace(index, expressions=("(1 / b)",))
    assert (
        make_reader(replace(TABLE, indexes=(divided,)), FactSource(UNIQUE, False, 1))(
            {2: 1.5, 3: 0}
        )
        is None
    )


def test_an_index_whose_texts_were_left_out_is_left_to_the_nodes() -> None:
    cut = replace(TABLE.indexes[0], mentioned=(2,))
    assert UNIQUE not in find_told(replace(TABLE, indexes=(cut,)), ELEMENTS)


def test_a_null_in_a_key_equals_nothing() -> None:
    topic = Topic()
    topic.row(1, None, 2)
    topic.row(2, None, 2)
    topic.row(3, 1.0, None)
    topic.row(4, 1.0, None)
    assert topic.found(UNIQUE) == []
    assert topic.found(REFERENCE) == [1, 2], "a NULL refers to nothing"
    assert topic.found(REQUIRED) == [3, 4]
    assert topic.found(CHECK) == [], "NULL is not false"


def test_rows_that_never_coexisted_are_no_duplicates() -> None:
    """Values 1 → 100 of one row, 100 → 1 of the next, one that is gone: stale images lose."""
    topic = Topic()
    topic.row(1, 1.0, 5)
    topic.row(2, 100.0, 5)
    topic.row(1, 100.0, 5)
    topic.row(2, 1.0, 5)
    topic.row(3, 1.0, 5)
    topic.gone(3)
    assert topic.found(UNIQUE) == []
    topic.row(3, 1.0, 5)
    assert topic.found(UNIQUE) == [2, 3]


def test_what_stood_before_a_truncation_is_gone() -> None:
    topic = Topic()
    topic.row(1, 1.0, 5)
    topic.row(2, 1.0, 5)
    topic.parent(5)
    assert (topic.found(UNIQUE), topic.found(REFERENCE)) == ([1, 2], [])
    topic.truncated()
    assert topic.found(UNIQUE) == []
    topic.row(2, 1.0, 5)
    assert topic.found(UNIQUE) == []
    topic.truncated(PARENT)
    assert topic.found(REFERENCE) == [2]
    topic.row(4, 1.0, 5)
    assert topic.found(UNIQUE) == [2, 4]


def test_a_reference_is_looked_up_among_the_parents_that_are_left() -> None:
    topic = Topic()
    topic.row(1, None, 20)
    topic.row(2, None, 21)
    topic.parent(20)
    topic.parent(21)
    assert topic.found(REFERENCE) == []
    topic.gone(21, PARENT)
    assert topic.found(REFERENCE) == [2]


def test_an_image_of_before_a_fill_by_key_is_read_as_the_row_is() -> None:
    """Images of this module are made under version 3."""
    for below, a in ((4, 7.0), (3, None)):
        filled = replace(TABLE.columns[1], missing=Missing(below, 7.0), not_null_enforced=True)
        table = replace(TABLE, columns=(TABLE.columns[0], filled, TABLE.columns[2]))
        said = FactExtractor(table, (FactSource(2, False, 1), FactSource(UNIQUE, False, 1)), 1)
        missing, entry = said.extract(b"row", 0, 0, image(1, 1, {3: 5}))
        assert missing.value == (BROKEN if a is None else None)
        assert entry.value == (None if a is None else msgpack.packb([a, 5]))


def test_a_parents_column_that_was_filled_by_key_is_read_as_its_row_is() -> None:
    """Images of before the backfill lack the value that a child may refer to, and offer it."""
    key = ForeignKey(REFERENCE, "f", (3,), PARENT, (2,), 5)
    child = replace(TABLE, foreign_keys=(key,))
    side = FactSource(REFERENCE, True, PARENT)
    for below, offered in ((4, msgpack.packb([7])), (3, None)):
        columns = (
            Column(1, "id", Type("bigint"), False),
            Column(2, "code", Type("integer"), missing=Missing(below, 7)),
        )
        parent = Descriptor(PARENT, "p", 4, columns, (1,), next_element_id=6)
        (fact,) = FactExtractor(child, (side,), PARENT, (parent,)).extract(
            b"row", 0, 0, image(PARENT, 1, {})
        )
        assert fact.value == offered
        (fact,) = FactExtractor(child, (side,), PARENT).extract(b"row", 0, 0, image(PARENT, 1, {}))
        assert fact.value is None, "of a parent that is not known"


def test_a_check_that_cannot_be_computed_is_broken() -> None:
    table = replace(TABLE, checks=(Check(CHECK, "c", "b / (b - 1) > 0", (3,)),))
    extractor = FactExtractor(table, (FactSource(CHECK, False, 1),), 1)
    for b, value in ((1, BROKEN), (3, None)):
        (fact,) = extractor.extract(b"row", 0, 0, image(1, 1, {3: b}))
        assert fact.value == value


@given(
    st.lists(
        st.tuples(
            st.integers(0, 4),
            st.sampled_from([None, 0.0, -0.0, 1.0, 2.0]),
            st.sampled_from([None, 0, 1, 2]),
        ),
        max_size=12,
    ),
    st.sets(st.integers(0, 2)),
)
def test_what_is_found_is_what_the_definition_finds(
    written: list[tuple[int, float | None, int | None]], parents: set[int]
) -> None:
    """Goal: on images that are all newest, findings are the violations of d ⊨ S as if the
    constraints were public, but that of a duplicate every row is named."""
    topic = Topic()
    for number in parents:
        topic.parent(number)
    rows: dict[int, tuple[float | None, int | None]] = {}
    for key, a, b in written:
        topic.row(key, a, b)
        rows[key] = a, b
    pairs = {
        ((key,), element): value
        for key, values in rows.items()
        for element, value in zip((2, 3), values, strict=True)
        if value is not None
    }
    data = KeyValueData({(key,) for key in rows}, pairs, set())
    public = as_if_public(TABLE, ELEMENTS)
    found = violations(data, public, parents=lambda _: {(p,) for p in parents})
    for element in (CHECK, REFERENCE, REQUIRED):
        wanted = sorted(v.key[0] for v in found if v.element_id == element and v.condition != 4)
        assert sorted(topic.found(element)) == wanted
    twice = {v.key[0] for v in found if v.element_id == UNIQUE and v.condition == 6}
    named = set(topic.found(UNIQUE))
    assert twice <= named
    assert bool(twice) == bool(named)


def test_which_tables_are_read_and_counted() -> None:
    assert [side.table_id for side in SIDES] == [1, 1, 1, PARENT, 1]
    counted = select_counted(SIDES)
    assert counted == {1: FactSource(UNIQUE, False, 1), PARENT: FactSource(REFERENCE, True, PARENT)}


def test_a_constraint_whose_text_was_left_out_is_left_to_the_nodes() -> None:
    cut = replace(TABLE, checks=(Check(CHECK, "c", "", (2, 3)),))
    assert find_told(cut, ELEMENTS) == (UNIQUE, REFERENCE, REQUIRED)


def test_findings_are_bounded_in_number_and_bytes() -> None:
    job = index_job(1, 1, run=4)
    many = [(UNIQUE, row_key((n,))) for n in range(FINDINGS_MAX + 5)]
    record = make_findings(job, 9, len(many), many)
    assert record[:6] == (1, 4, 1, 2, 9, len(many))
    assert len(record.found) == FINDINGS_MAX
    large = [(UNIQUE, row_key(("x" * 100_000, n))) for n in range(50)]
    record = make_findings(job, 9, len(large), large)
    assert 0 < len(record.found) < 5
    assert len(CODEC.encode(record)) < 500_000


@pytest.mark.parametrize("bad", [b"\xc1", b"", CODEC.encode(RowsTruncated(1, 1, 1)), {5: {}}])
def test_what_nobody_can_read_the_master_is_to_look_at(bad: bytes | dict[int, Any]) -> None:
    """As it is of a row whose image was left out."""
    image = bad if isinstance(bad, bytes) else CODEC.encode(RowImage(1, (1,), {}, 1, 1, 1, bad))
    left_out = CODEC.encode(RowLeftOut(1, (1,), {}, 1, 1, 1, 9))
    told = [
        {
            fact.element_id: fact.value
            for fact in FactExtractor(TABLE, SIDES, 1).extract(row, 0, 0, i)
        }
        for row, i in ((b"row", image), (b"row", left_out))
    ]
    assert told[0].keys() == told[1].keys()
    assert isinstance(bad, dict) or told[0] == told[1]


def test_findings_name_no_row_whose_key_is_none() -> None:
    found = make_findings(index_job(1, 1), 1, 2, [(UNIQUE, b"\xc1"), (UNIQUE, row_key((1,)))])
    assert found.found == ((UNIQUE, (1,)),)
