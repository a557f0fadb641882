"""Goal: an event becomes the operations that bring its row to what the source says, and nothing
where it says nothing; verified, they hold for the row that the source has seen.

Method: events of each kind in both layouts; a random history of a source, folded by the operations,
comes to the source's rows.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.events.foreign.row_events import Decoded, Layout, RowEvent, read_event
from leasehold.events.foreign.row_operations import Rules, operations_of
from leasehold.model.errors import LeaseholdError, MalformedRequest, UnknownColumn
from leasehold.model.records.requests import ANY_GENID, Operation, OperationKind
from leasehold.values.types import Type

TABLE: Final = Descriptor(
    1,
    "t",
    1,
    (
        Column(1, "id", Type("bigint"), False),
        Column(2, "n", Type("bigint")),
        Column(3, "note", Type("text")),
    ),
    (1,),
)
NAMELESS: Final = Descriptor(
    2,
    "log",
    1,
    (Column(1, "", Type("uuid"), False, hidden=True), Column(2, "n", Type("bigint"))),
    (1,),
)
VERIFY: Final = Rules(verify=True)
NOT_SENT: Final = "__debezium_unavailable_value"
INSERT, UPDATE = OperationKind.INSERT, OperationKind.UPDATE
UPSERT, DELETE = OperationKind.UPSERT, OperationKind.DELETE


def event(op: str, before: Any = None, after: Any = None, key: Any = None) -> RowEvent:
    value = Decoded({"op": op, "before": before, "after": after, "source": {}})
    found = read_event(value, None if key is None else Decoded(key), Layout.DEBEZIUM)
    assert found is not None
    return found


def taken(value: Decoded | None, key: Decoded | None, layout: Layout) -> tuple[Operation, ...]:
    found = read_event(value, key, layout)
    assert found is not None
    return operations_of(found, TABLE, Rules())


def row(number: int, n: Any = 1, note: Any = "a") -> dict[str, Any]:
    return {"id": number, "n": n, "note": note}


def test_an_event_is_how_its_row_is_from_now_on() -> None:
    for op in "cru":
        assert operations_of(event(op, None, row(7)), TABLE, Rules()) == (
            Operation(UPSERT, "t", {"id": 7}, {"n": 1, "note": "a"}),
        )
    gone = (Operation(DELETE, "t", {"id": 7}, {}),)
    assert operations_of(event("d", row(7)), TABLE, Rules()) == gone
    assert operations_of(event("d", None, None, {"id": 7}), TABLE, Rules()) == gone
    assert operations_of(event("d", {"n": 1}, None, {"id": 7}), TABLE, Rules()) == gone


def test_verified_it_holds_for_the_row_that_was_seen() -> None:
    before = {"n": 1, "note": "a"}
    assert operations_of(event("c", None, row(7)), TABLE, VERIFY) == (
        Operation(INSERT, "t", {"id": 7}, {"n": 1, "note": "a"}),
    )
    assert operations_of(event("r", None, row(7)), TABLE, VERIFY)[0].kind is UPSERT
    assert operations_of(event("u", row(7), row(7, 2)), TABLE, VERIFY) == (
        Operation(UPDATE, "t", {"id": 7}, {"n": 2, "note": "a"}, ANY_GENID, before=before),
    )
    assert operations_of(event("u", None, row(7, 2)), TABLE, VERIFY) == (
        Operation(UPDATE, "t", {"id": 7}, {"n": 2, "note": "a"}, ANY_GENID),
    )
    assert operations_of(event("d", row(7)), TABLE, VERIFY) == (
        Operation(DELETE, "t", {"id": 7}, {}, ANY_GENID, before=before),
    )
    assert operations_of(event("u", row(7), row(8)), TABLE, VERIFY) == (
        Operation(UPDATE, "t", {"id": 7}, {**before, "id": 8}, ANY_GENID, before=before),
    )


def test_a_row_under_another_key_leaves_the_old_one() -> None:
    assert operations_of(event("u", row(7), row(8)), TABLE, Rules()) == (
        Operation(DELETE, "t", {"id": 7}, {}),
        Operation(UPSERT, "t", {"id": 8}, {"n": 1, "note": "a"}),
    )
    partly = event("u", row(7, note=NOT_SENT), row(8, note=NOT_SENT))
    assert operations_of(partly, TABLE, Rules()) == (
        Operation(UPDATE, "t", {"id": 7}, {"n": 1, "id": 8}, ANY_GENID),
    )


def test_a_value_that_was_not_sent_stays_as_it_is() -> None:
    for rules in (Rules(), VERIFY):
        (found,) = operations_of(
            event("u", row(7, note=NOT_SENT), row(7, 2, NOT_SENT)), TABLE, rules
        )
        assert found.kind is UPDATE
        assert found.values == {"n": 2}
        assert found.expect == ANY_GENID
        assert found.before == ({"n": 1} if rules.verify else None)


def test_a_table_without_a_key_takes_inserts_alone() -> None:
    assert operations_of(event("c", None, {"n": 1}), NAMELESS, Rules()) == (
        Operation(INSERT, "log", {}, {"n": 1}),
    )
    for op in ("u", "d"):
        with pytest.raises(LeaseholdError, match="no primary key"):
            operations_of(event(op, {"n": 1}, {"n": 2}), NAMELESS, Rules())


def test_columns_that_are_not_there_are_refused_or_ignored() -> None:
    strange = event("c", None, {**row(7), "new": 5, "__source_ts_ms": 1})
    with pytest.raises(UnknownColumn, match="'new'"):
        operations_of(strange, TABLE, Rules())
    (found,) = operations_of(strange, TABLE, Rules(ignore_unknown=True))
    assert found.values == {"n": 1, "note": "a"}


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (5, None),
        ("a", None),
        ([], None),
        ({}, None),
        ({"op": 1}, None),
        ({"op": "x"}, None),
        ({"op": "c"}, None),
        ({"op": "c", "after": 5}, None),
        ({"op": "c", "after": {"n": 1}}, None),
        ({"op": "c", "after": {"id": None}}, None),
        ({"op": "d"}, None),
        ({"op": "d"}, 5),
        ({"op": "d"}, {"n": 1}),
        ({"op": "d", "before": 5}, None),
    ],
)
def test_what_is_no_event_is_malformed(value: Any, key: Any) -> None:
    with pytest.raises(MalformedRequest):
        taken(Decoded(value), Decoded(key), Layout.DEBEZIUM)


def test_what_says_nothing_of_a_row_is_passed_over() -> None:
    assert read_event(None, Decoded({"id": 7}), Layout.DEBEZIUM) is None
    assert read_event(Decoded(None), None, Layout.DEBEZIUM) is None
    assert read_event(Decoded({"op": "m", "message": {}}), None, Layout.DEBEZIUM) is None


def test_plain_rows_are_as_they_are_now() -> None:
    def operations(value: Any, key: Any = None) -> tuple[Operation, ...]:
        found = read_event(None if value is None else Decoded(value), Decoded(key), Layout.ROWS)
        assert found is not None
        return operations_of(found, TABLE, Rules())

    assert operations(row(7))[0].kind is UPSERT
    gone = (Operation(DELETE, "t", {"id": 7}, {}),)
    assert operations(None, {"id": 7}) == gone
    assert operations({**row(7), "__deleted": "true"}) == gone
    assert operations({**row(7), "__op": "d"}) == gone
    assert operations({**row(7), "__deleted": "false", "__op": "u"})[0].kind is UPSERT
    for value, key in ((None, None), (None, 7), (5, None)):
        with pytest.raises(MalformedRequest):
            operations(value, key)


def applied(table: dict[int, dict[str, Any]], operations: tuple[Operation, ...]) -> None:
    """What a master makes of them."""
    for each in operations:
        assert isinstance(each.key, Mapping)
        number = each.key["id"]
        there = table.get(number)
        if each.expect == ANY_GENID:
            assert there is not None
        if each.before is not None:
            assert there is not None
            assert all(there[name] == value for name, value in each.before.items())
        if each.kind is DELETE:
            table.pop(number, None)
        elif each.kind is INSERT:
            assert there is None
            table[number] = {"id": number, **each.values}
        else:
            made = {**(table.pop(number, {"id": number})), **each.values}
            table[made["id"]] = made


@pytest.mark.parametrize("rules", [Rules(), VERIFY])
@pytest.mark.parametrize("again", [False, True])
def test_a_history_comes_to_the_source_s_rows(rules: Rules, again: bool) -> None:
    """`again`: each event comes twice, which changes nothing where nothing is verified."""
    if again and rules.verify:
        pytest.skip("the same event twice is refused then")
    seed = random.randrange(1 << 32)
    print("seed", seed)
    source = random.Random(seed)
    rows: dict[int, dict[str, Any]] = {}
    table: dict[int, dict[str, Any]] = {}
    for _ in range(400):
        number = source.randrange(12)
        there = rows.get(number)
        made = row(number, source.randrange(5), source.choice(["a", "b", None]))
        if there is None:
            told = event("c", None, made)
            rows[number] = made
        elif source.random() < 0.3:
            told = event("d", there, None, {"id": number})
            del rows[number]
        else:
            moved = source.randrange(12, 24) if source.random() < 0.2 else number
            if moved in rows:
                moved = number
            made["id"] = moved
            told = event("u", there, made)
            del rows[number]
            rows[moved] = made
        for _ in range(2 if again else 1):
            applied(table, operations_of(told, TABLE, rules))
        assert table == rows
