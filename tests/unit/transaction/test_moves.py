"""Goal: an update that sets another primary key moves the row whole, once, on every store alike.

Method: requests that move rows, alone and one after the other, under versions that do not see all
of the row; the rows, their genids and what the commit says, in memory and in SQLite.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column, Derived, Index, Lock
from leasehold.catalog.states import State
from leasehold.model.errors import (
    CheckViolation,
    DuplicateKey,
    MalformedRequest,
    NotNullViolation,
    Uncommittable,
)
from leasehold.model.ids import genid
from leasehold.model.records.log import ChangeKind
from leasehold.model.records.requests import Expression
from leasehold.transaction.row_conflict import RowRefused
from leasehold.values.types import Type
from tests.models.mutants.transaction import VerifyRules
from tests.models.mutants.transaction import broken as rule_broken
from tests.models.summary import AddLine, ModelLine
from tests.support.transaction.written_table import (
    WrittenTable,
    delete,
    insert,
    update,
    upsert,
)

INTEGER = Type("integer")
ID, A, B = 1, 2, 3
COLUMNS = (Column(ID, "id", INTEGER, False), Column(A, "a", INTEGER), Column(B, "b", INTEGER))
TABLE = Descriptor(1, "t", 1, COLUMNS, (ID,), (Index(4, "u", (A,), unique=True),), 9)
ROWS = tuple(insert("t", n, a=n * 10, b=n) for n in (1, 2, 3))


@pytest.fixture
def table(store: Any) -> WrittenTable:
    made = WrittenTable(store, TABLE)
    made.send(*ROWS)
    return made


def keys(table: WrittenTable) -> dict[int, Any]:
    found = {key: table.row(1, key) for key in range(10)}
    return {key: row.get(A) for key, row in found.items() if row is not None}


def test_it_goes_and_comes_and_counts_once(table: WrittenTable) -> None:
    decided = table.send(update("t", 1, id=7, b=5))
    assert decided.rows_affected == 1
    assert [(c.kind, c.key) for c in decided.changes] == [
        (ChangeKind.DELETE, (1,)),
        (ChangeKind.INSERT, (7,)),
    ]
    assert keys(table) == {2: 20, 3: 30, 7: 10}
    row = table.store.row(TABLE, (7,))
    assert row is not None
    assert row.genids == {0: genid(table.lsn, 1)}
    assert row.values == {ID: 7, A: 10, B: 5}


def test_the_same_key_is_no_move(table: WrittenTable) -> None:
    decided = table.send(update("t", 1, id=1, a=11))
    assert [c.kind for c in decided.changes] == [ChangeKind.UPDATE]


def test_an_expression_may_say_the_key(table: WrittenTable) -> None:
    table.send(update("t", 1, id=Expression("id + 6")))
    assert keys(table) == {2: 20, 3: 30, 7: 10}


def test_rows_that_move_together_may_take_each_other_s_keys(table: WrittenTable) -> None:
    decided = table.send(update("t", 1, id=2), update("t", 2, id=3), update("t", 3, id=1))
    assert decided.rows_affected == 3
    assert keys(table) == {1: 30, 2: 10, 3: 20}


def test_what_moves_after_something_else_moves_on(table: WrittenTable) -> None:
    """A row is found where the operation before has put it."""
    table.send(update("t", 1, id=7), update("t", 7, id=8), update("t", 8, a=1))
    assert keys(table) == {2: 20, 3: 30, 8: 1}
    table.send(update("t", 8, id=9), insert("t", 8, a=2), delete("t", 9))
    assert keys(table) == {2: 20, 3: 30, 8: 2}


TAKEN = {
    "another_row": [update("t", 1, id=2)],
    "one_of_the_request": [insert("t", 5), update("t", 1, id=5)],
    "one_that_moves_too": [update("t", 1, id=5), update("t", 2, id=5)],
    "one_that_changes": [update("t", 1, id=2), update("t", 2, b=1), delete("t", 2)],
}


@pytest.mark.parametrize("operations", TAKEN.values(), ids=TAKEN)
def test_a_key_that_is_taken(table: WrittenTable, operations: Any) -> None:
    with pytest.raises(DuplicateKey, match="t_pkey"):
        table.send(*operations)


def test_the_key_has_a_value_and_is_set_by_updates_alone(table: WrittenTable) -> None:
    with pytest.raises(NotNullViolation):
        table.send(update("t", 1, id=None))
    with pytest.raises(MalformedRequest):
        table.send(upsert("t", 1, id=5))


def test_it_concerns_every_lock(store: Any) -> None:
    columns = (*COLUMNS[:2], replace(COLUMNS[2], locks=(5,)))
    locked = replace(TABLE, columns=columns, row_locks=(Lock(5, "l"),))
    made = WrittenTable(store, locked)
    made.send(insert("t", 1, a=1, b=1))
    seen = genid(1, 0)
    made.send(update("t", 1, b=2))
    with pytest.raises(RowRefused):
        made.send(update("t", 1, id=2)._replace(expect={"row": seen}))
    with pytest.raises(RowRefused):
        made.send(update("t", 1, id=2)._replace(expect={"row": seen, "l": seen}))
    made.send(update("t", 1, id=2)._replace(expect={"row": seen, "l": genid(2, 0)}))
    row = made.store.row(locked, (2,))
    assert row is not None
    assert row.genids == dict.fromkeys((0, 5), genid(3, 1))


def test_who_expects_a_row_that_he_has_moved_himself(table: WrittenTable) -> None:
    moves = update("t", 1, id=7)._replace(expect=genid(1, 0))
    with pytest.raises(Uncommittable):
        table.send(moves, update("t", 1, a=5)._replace(expect=genid(1, 0)))


def moved_unseen(table: WrittenTable) -> Any:
    """What a row has that was moved by a writer who does not know of one of its columns."""
    hidden = Column(6, "h", INTEGER, default=5, nullable=False)
    wider = replace(TABLE, version=2, columns=(*COLUMNS, hidden), next_element_id=10)
    table.publish(wider)
    table.send(update("t", 1, h=8))
    table.send(update("t", 1, id=7)._replace(schema_version=1))
    return table.row(1, 7)


def test_it_takes_along_what_its_writer_can_not_see(table: WrittenTable) -> None:
    assert moved_unseen(table) == {ID: 7, A: 10, B: 1, 6: 8}


def test_what_it_broke_before_is_looked_at_again(table: WrittenTable) -> None:
    """⚠ A verification in slices may have passed where it comes to lie."""
    check = Check(5, "k", "b > 1", (B,), State.WRITE_ONLY)
    table.publish(replace(TABLE, version=2, checks=(check,)))
    table.send(update("t", 1, a=11))
    with pytest.raises(CheckViolation):
        table.send(update("t", 1, id=7))
    table.send(update("t", 2, id=7))


def broken(table: WrittenTable, keys: range) -> set[int]:
    rows = {key: table.row(1, key) for key in keys}
    return {key for key, row in rows.items() if row is not None and not row[B] > 1}


def missed(table: WrittenTable) -> set[int]:
    """Rows that break a constraint and that no slice has found: between two slices one goes from
    the second one's part to the first one's."""
    table.send(insert("t", 9, b=1))
    check = Check(5, "k", "b > 1", (B,), State.WRITE_ONLY)
    table.publish(replace(TABLE, version=2, checks=(check,)))
    found = broken(table, range(5))
    with suppress(CheckViolation):
        table.send(update("t", 9, id=0))
    found |= broken(table, range(5, 10))
    return broken(table, range(10)) - found


def test_no_slice_misses_a_row(table: WrittenTable) -> None:
    assert missed(table) == set()


OFF = {
    "moved_is_new": (missed, {0}, "a row that breaks the check was seen by no slice"),
    "move_carries_all": (moved_unseen, {ID: 7, A: 10, B: 1}, "a pair is lost"),
}


@pytest.mark.parametrize("rule", OFF)
def test_rule_turned_off_does_harm(store: Any, rule: str, model_line: AddLine) -> None:
    table = WrittenTable(store, TABLE)
    table.send(*ROWS)
    story, harm, words = OFF[rule]
    with rule_broken(VerifyRules(**{rule: False})):
        assert story(table) == harm
    model_line(ModelLine("move", f"{rule} off", 1, 1, False, f"story: harm shown, {words}"))


def test_what_follows_is_computed_anew(table: WrittenTable) -> None:
    """A pair that a backfill has yet to put, or that is wrong, is right behind the slices."""
    derived = Derived((B,), "b + 1", strict=True, generated=True)
    made = Column(6, "g", INTEGER, derived=derived, state=State.WRITE_ONLY)
    table.publish(replace(TABLE, version=2, columns=(*COLUMNS, made), next_element_id=10))
    table.send(update("t", 1, id=7))
    assert table.row(1, 7) == {ID: 7, A: 10, B: 1, 6: 2}


def test_unique_values_go_along(table: WrittenTable) -> None:
    table.send(update("t", 1, id=7), update("t", 2, a=11))
    with pytest.raises(DuplicateKey, match='"u"'):
        table.send(update("t", 7, id=8, a=11))
    table.send(update("t", 7, id=2, a=11), update("t", 2, id=7, a=10))
    assert keys(table) == {2: 11, 3: 30, 7: 10}


def test_rows_move_in_both_tables_while_the_primary_key_changes(store: Any) -> None:
    """The other table has another key: what moves in one is an update in the other."""
    columns = (*COLUMNS[:2], replace(COLUMNS[2], nullable=False))
    old = replace(TABLE, columns=columns, indexes=(), mirror=2)
    new = replace(old, table_id=2, primary_key=(B,), mirror=1, former=1, state=State.WRITE_ONLY)
    made = WrittenTable(store, old, new)

    def ids(table_id: int, *keys: int) -> list[tuple[Any, Any]]:
        found = [made.row(table_id, key) for key in keys]
        return [(row[ID], row[B]) for row in found if row is not None]

    made.send(insert("t", 1, b=11), insert("t", 2, b=12))
    made.send(update("t", 1, id=2, b=13), update("t", 2, id=5))
    assert ids(1, 1, 2, 5) == ids(2, 11, 13, 12) == [(2, 13), (5, 12)]
    made.publish(replace(old, version=2, state=State.WRITE_ONLY))
    made.publish(replace(new, version=2, state=State.PUBLIC))
    by_b = [update("t", 0, b=to)._replace(key={"b": b}) for b, to in ((13, 12), (12, 13))]
    made.send(*by_b)
    assert ids(1, 2, 5) == ids(2, 12, 13) == [(2, 12), (5, 13)]
