"""A transaction's own reads: generated columns follow its writes, what the master decides is not
guessed.

Method: a write set over rows of a memory store, without a replica around it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.model.errors import DivisionByZero, FeatureNotSupported, GeneratedAlways
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.replica.reads import Reads
from leasehold.replica.write_set import WriteSet
from leasehold.transaction.binding import binding
from tests.schema_change.changes import standing

TABLE = standing(
    "CREATE TABLE t (id int PRIMARY KEY, a int, g int GENERATED ALWAYS AS (100 / a) STORED,"
    " d timestamptz DEFAULT now(),"
    " y date GENERATED ALWAYS AS ((d AT TIME ZONE 'UTC')::date) STORED)"
)
DAY_US = 86_400_000_000


class OneRow:
    """Row 1 has a = 5, at noon of 1970-01-02."""

    def pin(self, table: str) -> Descriptor:
        return TABLE

    def bound(self, descriptor: Descriptor, key: Any) -> None:
        return None

    def row(self, descriptor: Descriptor, key: Key) -> Row | None:
        image = {1: 1, 2: 5, 3: 20, 4: DAY_US + DAY_US // 2, 5: 1}
        return Row(image, {0: 7}, 1) if key == (1,) else None

    def scan(self, descriptor: Descriptor, *_: Any) -> Iterator[tuple[Key, Row]]:
        row = self.row(descriptor, (1,))
        assert row is not None
        yield (1,), row


@pytest.fixture
def tx() -> WriteSet:
    return WriteSet(cast("Reads", OneRow()))


def test_an_update_shows_what_follows_from_it(tx: WriteSet) -> None:
    assert tx.update("t", 1, {"a": 10})
    row = tx.get("t", 1)
    assert row is not None
    assert (row["a"], row["g"], str(row["y"])) == (10, 10, "1970-01-02")
    assert [r["g"] for r in tx.scan("t")] == [10]
    assert tx.update("t", 1, {"a": None})
    assert (tx.get("t", 1) or {})["g"] is None


def test_what_the_commit_would_refuse_is_refused(tx: WriteSet) -> None:
    with pytest.raises(GeneratedAlways):
        tx.update("t", 1, {"g": 1})
    with pytest.raises(GeneratedAlways):
        tx.insert("t", 2, {"g": 1})
    with pytest.raises(DivisionByZero):
        tx.update("t", 1, {"a": 0})


def test_what_the_master_decides_is_not_guessed(tx: WriteSet) -> None:
    """Nor is what follows from it."""
    tx.insert("t", 2, {"a": 50})
    assert tx.get("t", 2, ["a", "g"]) == {"a": 50, "g": 2}
    for columns in (None, ["d"], ["y"]):
        with pytest.raises(FeatureNotSupported, match="decided when this transaction commits"):
            tx.get("t", 2, columns)
    with pytest.raises(FeatureNotSupported):
        list(tx.scan("t"))
    tx.insert("t", 3, {"d": "1970-01-03T01:00:00+00:00"})
    row = tx.get("t", 3)
    assert row is not None
    assert str(row["y"]) == "1970-01-03"
    assert tx.update("t", 2, {"d": None})
    assert (tx.get("t", 2) or {})["y"] is None
    assert [operation.values for operation in tx.pending.operations[:1]] == [{"a": 50}]


class NoSamples:
    """An empty table whose key is a double."""

    def pin(self, table: str) -> Descriptor:
        return SAMPLES

    def bound(self, descriptor: Descriptor, key: Any) -> Key | None:
        return None if key is None else binding(descriptor).key_prefix((key,))

    def row(self, descriptor: Descriptor, key: Key) -> None:
        return None

    def scan(self, descriptor: Descriptor, *_: Any) -> Iterator[tuple[Key, Row]]:
        return iter(())


SAMPLES = standing("CREATE TABLE s (k double precision PRIMARY KEY)")


def test_own_rows_stand_in_the_order_of_a_store() -> None:
    tx = WriteSet(cast("Reads", NoSamples()))
    for key in (math.nan, 1.5, math.inf):
        tx.insert("s", key, {})

    def keys(*bounds: float) -> str:
        return repr([row["k"] for row in tx.scan("s", *bounds)])

    assert keys() == "[1.5, inf, nan]"
    assert (keys(2.0, math.nan), keys(math.nan)) == ("[inf]", "[nan]")
