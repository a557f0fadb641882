"""What a partial replica holds, of tables and of rows, and what it refuses by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Lock
from leasehold.catalog.part import (
    WHOLE,
    ColumnValue,
    HeldTable,
    KeyRange,
    Part,
    PartWish,
    part_from_wire,
    scanned,
)
from leasehold.catalog.states import State
from leasehold.model.errors import NotHeldHere, StoreCorrupted
from leasehold.model.records.log import Backfill, ChangeKind, Commit, KeySpan, RowChange
from leasehold.values.types import Type

COLUMNS = (Column(1, "id", Type("bigint"), nullable=False), Column(2, "a", Type("integer")))
SEATS = Descriptor(1, "seats", 1, COLUMNS, (1,), next_element_id=3)
FLIGHTS = replace(SEATS, table_id=2, name="flights")
NARROW = HeldTable(1, "seats", "id >= 100 AND id < 200", KeyRange(100, 200))
PART = Part.of([NARROW, HeldTable(3, "crews")])


def change(table_id: int, key: int, kind: ChangeKind = ChangeKind.INSERT) -> RowChange:
    return RowChange(kind, table_id, 1, (key,), {1: key}, {}, (0,))


def commit(*changes: RowChange) -> Commit:
    return Commit(b"", 1, 1, {}, changes, len(changes))


def nobody(change: RowChange) -> bool:
    """No row of a change is here: for parts that need not ask."""
    raise AssertionError(change)


def test_a_whole_store_has_everything_and_refuses_nothing() -> None:
    assert WHOLE.is_whole
    assert WHOLE.holds(99)
    assert WHOLE.holds_whole(99)
    WHOLE.check_table(FLIGHTS)
    WHOLE.check_key(SEATS, (5,))
    WHOLE.check_range(SEATS, KeyRange())


def test_a_table_that_is_not_held_is_refused_by_name_with_what_is_held() -> None:
    with pytest.raises(NotHeldHere) as refused:
        PART.check_table(FLIGHTS)
    assert "does not hold table 'flights'" in refused.value.message
    assert "seats (id >= 100 AND id < 200), crews" in refused.value.message
    assert "LEASEHOLD_REPLICA_TABLES" in str(refused.value.detail["hint"])
    with pytest.raises(NotHeldHere):  # whoever has its descriptor from elsewhere
        PART.check_key(FLIGHTS, (1,))
    with pytest.raises(NotHeldHere):
        PART.check_range(FLIGHTS, KeyRange(1, 2))


@pytest.mark.parametrize(("key", "held"), [(99, False), (100, True), (199, True), (200, False)])
def test_a_row_is_held_by_the_first_part_of_its_key(key: int, held: bool) -> None:
    assert [n for n, _ in PART.seen(commit(change(1, key)), nobody)] == [0] * held
    if held:
        PART.check_key(SEATS, (key,))
    else:
        with pytest.raises(NotHeldHere, match="id >= 100 AND id < 200"):
            PART.check_key(SEATS, (key,))


def test_changes_keep_their_places_in_the_commit() -> None:
    """Their genids follow from them."""
    changes = [change(2, 1), change(1, 150), change(1, 250), change(3, 7)]
    assert [n for n, _ in PART.seen(commit(*changes), nobody)] == [1, 3]


def test_a_row_whose_key_changes_comes_in_and_goes() -> None:
    goes = [change(1, 150, ChangeKind.DELETE), change(1, 300)]
    comes = [change(1, 300, ChangeKind.DELETE), change(1, 150)]
    assert [each.kind for _, each in PART.seen(commit(*goes), nobody)] == [ChangeKind.DELETE]
    assert [each.kind for _, each in PART.seen(commit(*comes), nobody)] == [ChangeKind.INSERT]


@pytest.mark.parametrize(
    ("low", "high", "covered"),
    [
        ((100,), (200,), True),
        ((150,), (151,), True),
        ((150, "x"), (199, "y"), True),
        ((150,), (199, "y"), True),
        ((150,), (200, "y"), False),  # which has (200, "a") in it
        ((99,), (120,), False),
        ((150,), None, False),
        (None, (150,), False),
        (None, None, False),
    ],
)
def test_a_scan_is_answered_where_all_its_rows_are_here(
    low: tuple[object, ...] | None, high: tuple[object, ...] | None, covered: bool
) -> None:
    if covered:
        PART.check_range(SEATS, scanned(low, high))
    else:
        with pytest.raises(NotHeldHere):
            PART.check_range(SEATS, scanned(low, high))


def test_a_comparison_with_another_type_is_covered_by_nothing() -> None:
    with pytest.raises(NotHeldHere):
        PART.check_range(SEATS, KeyRange("a", "b"))
    with pytest.raises(NotHeldHere):
        PART.check_key(SEATS, ("a",))


def test_of_a_backfill_it_takes_its_own_rows() -> None:
    keys = ((50,), (150,), (250,))
    images = tuple({1: key[0]} for key in keys)
    found = PART.backfill(Backfill(1, 1, 2, keys, images, ({0: 1}, {0: 2}, {0: 3})))
    assert found == Backfill(1, 1, 2, ((150,),), ({1: 150},), ({0: 2},))
    assert PART.backfill(Backfill(1, 1, 2, ((50,),))) is None
    assert PART.backfill(Backfill(2, 1, 2, keys)) is None
    span = Backfill(1, 1, 2, (), span=KeySpan((), ()))
    assert PART.backfill(span) == span, "each store has its own rows alone"


def test_it_follows_names_and_the_table_that_takes_anothers_place() -> None:
    held = Part.of([HeldTable(1, "seats")])
    assert held.followed_by(SEATS) is held
    renamed = held.followed_by(replace(SEATS, name="places", version=2))
    assert renamed.words() == "places"
    heir = replace(FLIGHTS, table_id=9, former=1)
    assert held.followed_by(heir).holds_whole(9)
    assert held.followed_by(replace(heir, former=7)) is held
    alone, leaving = Part.of([HeldTable(9, "seats")]), replace(heir, state=State.WRITE_ONLY)
    assert alone.followed_by(leaving).holds(9), "it is read under the version before"
    assert not PART.followed_by(heir).holds(9), "its key may begin with another column"
    gone = held.followed_by(replace(SEATS, version=3, state=State.ABSENT))
    assert gone.words() == "seats (dropped)"
    assert not PartWish.of(["seats"]).is_met_by(gone)
    both = held.followed_by(heir).followed_by(replace(SEATS, version=3, state=State.ABSENT))
    assert PartWish.of([heir.name]).is_met_by(both), "the rows are in the heir"
    assert not PartWish.of([heir.name, "seats"]).is_met_by(both)


def test_the_stored_form_is_read_back() -> None:
    assert part_from_wire(PART.to_wire()) == PART
    assert part_from_wire(WHOLE.to_wire()) == WHOLE
    with pytest.raises(StoreCorrupted):
        part_from_wire([[1, "seats"]])


def test_a_wish_is_met_by_the_part_that_was_made_of_it() -> None:
    listed = PartWish.of(["crews"], None, {"seats": ["b", "a"]})
    of_it = Part.of([HeldTable(1, "seats", columns=("a", "b"), elements=frozenset({1, 2}))])
    assert not listed.is_met_by(of_it)
    assert PartWish.of(None, None, {"seats": ["b", "a"]}).is_met_by(of_it)
    assert PartWish.from_json(listed.to_json()) == listed
    assert part_from_wire(of_it.to_wire()) == of_it
    assert of_it.words() == "seats (columns a, b)"
    assert not of_it.holds_whole(1)
    wish = PartWish.of(["crews"], {"seats": NARROW.where})
    assert wish.tables == ("crews", "seats")
    assert wish.is_met_by(PART)
    assert not wish.is_met_by(WHOLE)
    assert not PartWish.of(["crews", "seats"]).is_met_by(PART)
    assert not PartWish().is_met_by(PART)
    assert PartWish().is_met_by(WHOLE)
    assert PartWish.from_json(wish.to_json()) == wish


@pytest.mark.parametrize("text", ["", "[]", '{"tables": 1}', '{"tables": [1]}', '{"where": []}'])
def test_what_no_node_says_is_no_wish(text: str) -> None:
    with pytest.raises(ValueError, match=r"no |Expecting"):
        PartWish.from_json(text)


def test_of_many_tables_the_first_are_named() -> None:
    many = Part.of(HeldTable(n, f"t{n}") for n in range(1, 15))
    assert many.words().endswith("t10 and 4 more")


BY_VALUE = Part.of([HeldTable(1, "seats", "a = 7", equal=ColumnValue(2, 7))])
INSERT, UPDATE, DELETE, FILL = ChangeKind


@pytest.mark.parametrize(
    ("kind", "value", "here", "applied"),
    [
        (INSERT, 7, False, INSERT),
        (INSERT, 8, False, None),
        (UPDATE, 7, True, UPDATE),
        (UPDATE, 7, False, INSERT),  # it comes in
        (UPDATE, 8, True, DELETE),  # it goes
        (UPDATE, 8, False, None),
        (UPDATE, None, True, DELETE),
        (DELETE, None, True, DELETE),
        (DELETE, None, False, None),
        (FILL, 7, True, FILL),
        (FILL, 7, False, None),
        (FILL, 8, True, DELETE),
    ],
)
def test_a_row_is_held_by_the_value_that_it_has(
    kind: ChangeKind, value: int | None, here: bool, applied: ChangeKind | None
) -> None:
    image = None if kind is DELETE else {1: 5, **({} if value is None else {2: value})}
    before = {} if kind is INSERT else {0: 3}
    told = RowChange(kind, 1, 1, (5,), image, before, () if kind is FILL else (0,))
    found = [each for _, each in BY_VALUE.seen(commit(told), lambda change: here)]
    assert [each.kind for each in found] == ([] if applied is None else [applied])
    for each in found:
        assert each.image == (None if applied is DELETE else image)
        assert each.before == ({} if applied is INSERT else before), "what is verified of it"
        assert each.locks == (() if applied in (DELETE, FILL) and kind is not DELETE else (0,))


def test_what_is_read_says_the_value() -> None:
    BY_VALUE.check_rows(SEATS, KeyRange(), {2: 7})
    BY_VALUE.check_rows(SEATS, KeyRange(5, 6), {1: 5, 2: 7})
    for values in ({}, {2: 8}, {1: 7}):
        with pytest.raises(NotHeldHere, match="a = 7"):
            BY_VALUE.check_rows(SEATS, KeyRange(5, 6), values)
    with pytest.raises(NotHeldHere):
        BY_VALUE.check_range(SEATS, KeyRange(5, 6))
    BY_VALUE.check_key(SEATS, (5,))
    BY_VALUE.check_found(SEATS, "a row")
    with pytest.raises(NotHeldHere):
        BY_VALUE.check_found(SEATS, None)
    PART.check_found(SEATS, None)
    with pytest.raises(NotHeldHere, match="changes no row"):
        BY_VALUE.check_writable(SEATS)


def test_of_a_range_and_a_value_both_are_said() -> None:
    both = HeldTable(1, "seats", "w", KeyRange(100, 200), equal=ColumnValue(2, 7))
    part = Part.of([both])
    part.check_rows(SEATS, KeyRange(100, 150), {2: 7})
    for read, values in ((KeyRange(100, 150), {}), (KeyRange(), {2: 7})):
        with pytest.raises(NotHeldHere):
            part.check_rows(SEATS, read, values)
    told = change(1, 99)._replace(image={1: 99, 2: 7})
    assert not list(part.seen(commit(told), lambda change: False))
    assert part_from_wire(part.to_wire()) == part
    assert part_from_wire(BY_VALUE.to_wire()) == BY_VALUE


def test_without_the_column_it_is_held_no_more() -> None:
    """And of rows with several locks: one that comes in tells not all of them."""
    going = replace(COLUMNS[1], state=State.WRITE_ONLY)
    assert BY_VALUE.followed_by(replace(SEATS, columns=(COLUMNS[0], going))).holds(1)
    gone = replace(COLUMNS[1], state=State.DELETE_ONLY)
    for columns in ((COLUMNS[0],), (COLUMNS[0], gone)):
        assert not BY_VALUE.followed_by(replace(SEATS, columns=columns)).holds(1)
    locked = replace(SEATS, row_locks=(Lock(9, "own"),))
    assert not BY_VALUE.followed_by(locked).holds(1)


def test_of_a_backfill_by_keys_it_takes_the_rows_that_are_here() -> None:
    told = Backfill(1, 1, 2, ((5,), (6,)))
    found = BY_VALUE.backfill(told, (), lambda key: key == (6,))
    assert found is not None
    assert found.keys == ((6,),)
