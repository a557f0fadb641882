"""Goal: what a foreign key does with rows that refer to one which goes, or to values that it loses,
is part of the same request, on every store alike, and obeys every other constraint.

Method: requests on tables that refer to each other, each against the reference in memory and
against SQLite; the tables' rows afterwards, and what the commit says that it has changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column, ForeignKey, Index, OnChange
from leasehold.catalog.states import State
from leasehold.model.errors import (
    CheckViolation,
    DuplicateKey,
    ForeignKeyViolation,
    NotNullViolation,
    OutOfRange,
    Refused,
    RequestTooLarge,
)
from leasehold.model.records.log import ChangeKind, MinVersion
from leasehold.model.records.requests import Operation
from leasehold.transaction import referential_actions
from leasehold.values.types import Type
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
PARENT = Descriptor(
    1, "p", 1, COLUMNS, (ID,), (Index(4, "p_a_key", (A,), unique=True, constraint=True),), 5
)
CASCADE, SET_NULL, SET_DEFAULT = OnChange.CASCADE, OnChange.SET_NULL, OnChange.SET_DEFAULT
INDEXES = (Index(4, "c_a_idx", (A,)), Index(5, "c_b_idx", (B,)))


def child(
    table_id: int = 2,
    name: str = "c",
    on_delete: OnChange = CASCADE,
    on_update: OnChange = CASCADE,
    parent: int = 1,
    **fields: Any,
) -> Descriptor:
    """`a` refers to the parent's key, `b` to its unique column."""
    said: dict[str, Any] = {"on_delete": on_delete, "on_update": on_update}
    keys = (
        ForeignKey(6, f"{name}_a_fkey", (A,), parent, (ID,), 0, 4, **said),
        ForeignKey(7, f"{name}_b_fkey", (B,), parent, (A,), 4, 5, **said),
    )
    made: dict[str, Any] = {"indexes": INDEXES, "foreign_keys": keys, **fields}
    return Descriptor(table_id, name, 1, COLUMNS, (ID,), next_element_id=9, **made)


def made(store: Any, *tables: Descriptor) -> WrittenTable:
    """Parents 1 (a = 10) and 2 (a = 20); rows 1 and 2 of `c` refer to 1 by key, 3 to 2 by `b`."""
    written = WrittenTable(store, PARENT, *tables)
    written.send(insert("p", 1, a=10), insert("p", 2, a=20))
    if any(table.name == "c" for table in tables):
        written.send(insert("c", 1, a=1), insert("c", 2, a=1), insert("c", 3, b=20))
    return written


def rows(written: WrittenTable, table_id: int, *keys: int) -> dict[int, tuple[Any, Any]]:
    found = {key: written.row(table_id, key) for key in keys}
    return {key: (row.get(A), row.get(B)) for key, row in found.items() if row is not None}


ON_DELETE = {
    CASCADE: {3: (None, 20)},
    SET_NULL: {1: (None, None), 2: (None, None), 3: (None, 20)},
    SET_DEFAULT: {1: (2, None), 2: (2, None), 3: (None, 20)},
}


@pytest.mark.parametrize(("action", "left"), ON_DELETE.items(), ids=str)
def test_on_delete(store: Any, action: OnChange, left: dict[int, Any]) -> None:
    """The count is that of the request: its own row alone."""
    defaults = (COLUMNS[0], replace(COLUMNS[1], default=2), COLUMNS[2])
    written = WrittenTable(store, PARENT, replace(child(on_delete=action), columns=defaults))
    written.send(insert("p", 1, a=10), insert("p", 2, a=20))
    written.send(insert("c", 1, a=1), insert("c", 2, a=1), insert("c", 3, a=None, b=20))
    decided = written.send(delete("p", 1))
    assert decided.rows_affected == 1
    assert len(decided.changes) == 3
    assert decided.versions == {1: 1, 2: 1}
    assert rows(written, 2, 1, 2, 3) == left


ON_UPDATE = {
    CASCADE: ({1: (9, None), 2: (9, None), 3: (None, 20)}, {3: (None, 90)}),
    SET_NULL: ({1: (None, None), 2: (None, None), 3: (None, 20)}, {3: (None, None)}),
    SET_DEFAULT: ({1: (None, None), 2: (None, None), 3: (None, 20)}, {3: (None, None)}),
}


@pytest.mark.parametrize(("action", "left"), ON_UPDATE.items(), ids=str)
def test_on_update_of_a_key_and_of_a_unique_column(
    store: Any, action: OnChange, left: tuple[dict[int, Any], dict[int, Any]]
) -> None:
    written = made(store, child(on_update=action))
    assert written.send(update("p", 1, id=9)).rows_affected == 1
    assert rows(written, 2, 1, 2, 3) == left[0]
    written.send(update("p", 2, a=90))
    assert rows(written, 2, 3) == left[1]


@pytest.mark.parametrize("action", [OnChange.NO_ACTION, OnChange.RESTRICT])
def test_without_an_action_the_request_is_refused(store: Any, action: OnChange) -> None:
    written = made(store, child(on_delete=action, on_update=action))
    for operation in (delete("p", 1), update("p", 1, id=9), update("p", 2, a=1)):
        with pytest.raises(ForeignKeyViolation):
            written.send(operation)


def test_chains_and_mixed_actions(store: Any) -> None:
    grand = child(3, "g", on_delete=SET_NULL, parent=2)
    written = made(store, child(), grand)
    written.send(insert("g", 1, a=1), insert("g", 2, a=3))
    written.send(delete("p", 1))
    assert rows(written, 2, 1, 2, 3) == {3: (None, 20)}
    assert rows(written, 3, 1, 2) == {1: (None, None), 2: (3, None)}


def test_a_table_that_refers_to_itself(store: Any) -> None:
    """A tree goes with its root, and a circle ends."""
    written = WrittenTable(store, child(1, "t", parent=1, foreign_keys=(SELF,)))
    written.send(insert("t", 1, a=2), insert("t", 2, a=1), insert("t", 3, a=2), insert("t", 4, a=4))
    decided = written.send(delete("t", 1))
    assert (decided.rows_affected, len(decided.changes)) == (1, 3)
    assert rows(written, 1, 1, 2, 3, 4) == {4: (4, None)}
    written.send(update("t", 4, id=5))
    assert rows(written, 1, 4, 5) == {5: (5, None)}


SELF = ForeignKey(6, "t_a_fkey", (A,), 1, (ID,), 0, 4, on_delete=CASCADE, on_update=CASCADE)


def test_keys_that_refer_to_each_other_in_a_circle_end(store: Any) -> None:
    """Each one's key is the other's parent: a move goes round once."""
    said: dict[str, Any] = {"on_delete": CASCADE, "on_update": CASCADE}
    one, two = (
        Descriptor(
            *(number, name, 1, COLUMNS, (ID,)),
            next_element_id=9,
            foreign_keys=(ForeignKey(6, f"{name}_fkey", (ID,), other, (ID,), 0, 0, **said),),
        )
        for number, name, other in ((1, "one", 2), (2, "two", 1))
    )
    written = WrittenTable(store, one, two)
    written.send(insert("one", 1), insert("two", 1))
    decided = written.send(update("one", 1, id=2))
    assert (decided.rows_affected, len(decided.changes)) == (1, 4)
    assert rows(written, 1, 1, 2).keys() == rows(written, 2, 1, 2).keys() == {2}
    written.send(delete("two", 2))
    assert not rows(written, 1, 1, 2)
    assert not rows(written, 2, 1, 2)


def test_a_diamond_is_walked_from_both_sides(store: Any) -> None:
    """A row that goes by two ways goes once."""
    left, right = child(2, "l"), child(3, "r")
    keys = tuple(
        ForeignKey(6 + n, f"d{n}", (c,), parent, (ID,), 0, 4 + n, on_delete=CASCADE)
        for n, (c, parent) in enumerate(((A, 2), (B, 3)))
    )
    bottom = child(4, "d", foreign_keys=keys)
    written = made(store, left, right, bottom)
    written.send(insert("l", 1, a=1), insert("r", 1, a=1), insert("d", 1, a=1, b=1))
    decided = written.send(delete("p", 1))
    assert sorted(c.table_id for c in decided.changes) == [1, 2, 3, 4]


def test_no_action_is_looked_at_after_the_actions(store: Any) -> None:
    """As in PostgreSQL, if it is deferred: one way would refuse, the other has taken the row
    away."""
    keys = (
        replace(child().foreign_keys[0], on_delete=OnChange.NO_ACTION, deferred=True),
        ForeignKey(7, "c_b_fkey", (B,), 1, (ID,), 0, 5, on_delete=CASCADE),
    )
    written = made(store, replace(child(), name="n", foreign_keys=keys))
    written.send(insert("n", 1, a=1, b=1), insert("n", 2, a=2))
    written.send(delete("p", 1))
    with pytest.raises(ForeignKeyViolation):
        written.send(delete("p", 2))


class TestOrderOfOperations:
    """An action concerns rows that referred to the value when it was taken away."""

    def test_who_refers_later_refers_to_another_row(self, store: Any) -> None:
        written = made(store, child())
        written.send(delete("p", 1), insert("p", 1, a=11), insert("c", 5, a=1))
        assert rows(written, 2, 1, 2, 5) == {5: (1, None)}

    def test_who_has_referred_before_goes_with_it(self, store: Any) -> None:
        written = made(store, child())
        written.send(insert("c", 5, a=1), delete("p", 1), upsert("p", 1, a=11))
        assert rows(written, 2, 1, 2, 5) == {}

    def test_who_has_left_before_stays(self, store: Any) -> None:
        written = made(store, child())
        written.send(update("c", 1, a=2), delete("p", 1))
        assert rows(written, 2, 1, 2) == {1: (2, None)}

    def test_who_leaves_after_stays(self, store: Any) -> None:
        """A session that does not see what follows may say so; in PostgreSQL no row is there."""
        written = made(store, child())
        written.send(delete("p", 1), update("c", 1, a=2), delete("c", 2))
        assert rows(written, 2, 1, 2) == {1: (2, None)}

    def test_another_column_of_a_row_that_goes(self, store: Any) -> None:
        written = made(store, child())
        written.send(delete("p", 1), update("c", 1, b=10))
        assert rows(written, 2, 1, 2) == {}

    def test_children_follow_their_own_parent_through_a_chain(self, store: Any) -> None:
        """Values pass from row to row in one statement: none follows twice."""
        written = made(store, child())
        written.send(insert("c", 4, a=2), insert("c", 5, b=10))
        written.send(update("p", 1, id=2, a=20), update("p", 2, id=3, a=30))
        assert rows(written, 2, 1, 3, 4, 5) == {
            1: (2, None),
            3: (None, 30),
            4: (3, None),
            5: (None, 20),
        }

    def test_children_follow_a_row_that_moves_twice(self, store: Any) -> None:
        written = made(store, child())
        written.send(update("p", 1, id=7), insert("c", 4, a=7), update("p", 7, id=8))
        assert rows(written, 2, 1, 4) == {1: (8, None), 4: (8, None)}

    def test_a_row_that_moves_and_goes_takes_them_along(self, store: Any) -> None:
        written = made(store, child())
        written.send(update("p", 1, id=7), delete("p", 7))
        assert rows(written, 2, 1, 2) == {}

    def test_a_row_that_never_was(self, store: Any) -> None:
        written = made(store, child())
        written.send(insert("p", 5), insert("c", 5, a=5), delete("p", 5))
        assert rows(written, 2, 5) == {}


class TestOtherConstraints:
    """Derived rows are rows like any other."""

    def refused(self, store: Any, table: Descriptor, *operations: Operation) -> Refused:
        written = made(store, table)
        with pytest.raises(Refused) as found:
            written.send(*operations)
        assert rows(written, 2, 1, 2, 3) == {1: (1, None), 2: (1, None), 3: (None, 20)}
        return found.value

    def test_not_null(self, store: Any) -> None:
        columns = (COLUMNS[0], replace(COLUMNS[1], not_null_enforced=True), COLUMNS[2])
        table = replace(child(on_delete=SET_NULL, foreign_keys=()), columns=columns)
        key = child(on_delete=SET_NULL).foreign_keys[0]
        written = WrittenTable(store, PARENT, replace(table, foreign_keys=(key,)))
        written.send(insert("p", 1), insert("c", 1, a=1))
        with pytest.raises(NotNullViolation):
            written.send(delete("p", 1))

    def test_check(self, store: Any) -> None:
        table = child(checks=(Check(8, "small", "a < 5", (A,)),))
        assert isinstance(self.refused(store, table, update("p", 1, id=9)), CheckViolation)

    def test_unique(self, store: Any) -> None:
        indexes = (INDEXES[0], INDEXES[1], Index(8, "u", (A,), unique=True))
        written = WrittenTable(store, PARENT, child(indexes=indexes, on_delete=SET_DEFAULT))
        columns = (COLUMNS[0], replace(COLUMNS[1], default=3), COLUMNS[2])
        written.publish(
            replace(child(indexes=indexes, on_delete=SET_DEFAULT), version=2, columns=columns)
        )
        written.send(insert("p", 1), insert("p", 2), insert("p", 3))
        written.send(insert("c", 1, a=1), insert("c", 2, a=2))
        with pytest.raises(DuplicateKey):
            written.send(delete("p", 1), delete("p", 2))

    def test_foreign_keys(self, store: Any) -> None:
        """A default must refer to a row, too."""
        columns = (COLUMNS[0], replace(COLUMNS[1], default=1), COLUMNS[2])
        table = replace(child(on_delete=SET_DEFAULT), columns=columns)
        written = made(store, table)
        written.send(update("c", 3, a=1))
        with pytest.raises(ForeignKeyViolation):
            written.send(delete("p", 1))

    def test_the_child_s_type(self, store: Any) -> None:
        columns = (*COLUMNS[:1], Column(A, "a", Type("smallint")), COLUMNS[2])
        table = replace(child(), columns=columns)
        assert isinstance(self.refused(store, table, update("p", 1, id=70_000)), OutOfRange)


def test_rows_whose_key_refers_move(store: Any) -> None:
    """(a, b) is the child's key: it goes with its parent's, two at a time."""
    table = replace(child(foreign_keys=(child().foreign_keys[0],)), primary_key=(A, B))
    written = WrittenTable(store, PARENT, table)
    written.send(insert("p", 1), insert("p", 2))
    named = [insert("c", 0, id=n, a=a, b=b) for n, a, b in ((1, 1, 1), (2, 1, 2), (3, 2, 1))]
    written.send(*(o._replace(key={}) for o in named))
    written.send(update("p", 1, id=2), update("p", 2, id=3))
    newest = written.catalog.newest(2)
    found = {key: store.row(newest, key) for key in ((1, 1), (1, 2), (2, 1), (2, 2), (3, 1))}
    assert {key: row.values[ID] for key, row in found.items() if row} == {
        (2, 1): 1,
        (2, 2): 2,
        (3, 1): 3,
    }


def test_it_is_bounded(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written = made(store, child())
    monkeypatch.setattr(referential_actions, "ROWS_MAX", 2)
    written.send(delete("p", 1))
    written.send(insert("p", 1), *(insert("c", n, a=1) for n in range(4, 7)))
    with pytest.raises(RequestTooLarge, match="c_a_fkey") as refused:
        written.send(delete("p", 1))
    assert refused.value.sqlstate == "54000"


def test_own_operations_on_children_are_not_counted(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = made(store, child())
    monkeypatch.setattr(referential_actions, "ROWS_MAX", 2)
    own = [insert("c", n, a=1) for n in range(4, 9)]
    written.send(*own, delete("p", 1))
    assert rows(written, 2, *range(1, 9)) == {3: (None, 20)}


def beside(first: OnChange, then: OnChange, **said: Any) -> Descriptor:
    """`a` refers to the parent's key by a key made first, `b` to its unique column by another."""
    made = child().foreign_keys
    keys = (
        replace(made[0], on_delete=first, on_update=first, **said),
        replace(made[1], on_delete=then, on_update=then, **said),
    )
    return child(foreign_keys=keys)


@pytest.mark.parametrize("kept", [OnChange.NO_ACTION, OnChange.RESTRICT], ids=str)
def test_a_key_made_before_one_that_acts_finds_its_rows(store: Any, kept: OnChange) -> None:
    """As PostgreSQL's triggers do, which come by their names."""
    written = made(store, beside(kept, CASCADE))
    written.send(delete("c", 1), delete("c", 2), insert("c", 5, a=1, b=10), insert("c", 6, b=10))
    with pytest.raises(ForeignKeyViolation, match="c_a_fkey"):
        written.send(delete("p", 1))
    written.send(update("c", 5, a=2))
    written.send(delete("p", 1))  # it refers to another row
    assert rows(written, 2, 5, 6) == {}


@pytest.mark.parametrize("said", ["deferred", "deferrable"])
def test_a_deferrable_key_or_a_later_one_finds_what_actions_leave(store: Any, said: str) -> None:
    """Which of the deferrable ones SET CONSTRAINTS has deferred a request does not say."""
    written = made(store, beside(OnChange.NO_ACTION, CASCADE, **{said: True}))
    written.send(delete("c", 1), delete("c", 2), insert("c", 5, a=1, b=10))
    written.send(delete("p", 1))
    assert rows(written, 2, 5) == {}
    written.publish(replace(beside(CASCADE, OnChange.NO_ACTION), version=2))
    written.catalog.apply(MinVersion(2, 2), 0, 0)
    written.send(insert("p", 1, a=10), insert("c", 5, a=1, b=10))
    written.send(delete("p", 1))
    assert rows(written, 2, 5) == {}


def test_a_row_that_has_come_in_the_place_is_referred_to(store: Any) -> None:
    """And a row of the request's own, or one that goes by another loss, is nobody's to find."""
    written = made(store, beside(OnChange.NO_ACTION, CASCADE))
    written.send(delete("c", 1), delete("c", 2), insert("c", 5, a=1, b=10))
    written.send(delete("p", 1), insert("p", 1, a=11))
    assert rows(written, 2, 5) == {}
    written.send(insert("c", 5, a=1, b=11))
    written.send(delete("p", 1), delete("c", 5))
    written.send(insert("p", 1, a=10), insert("c", 5, a=1, b=20))
    written.send(delete("p", 1), delete("p", 2))
    assert rows(written, 2, 3, 5) == {}


def test_what_follows_is_held_to_earlier_keys_too(store: Any) -> None:
    keys = beside(OnChange.NO_ACTION, CASCADE).foreign_keys
    by_key = tuple(replace(key, parent=2, parent_columns=(ID,), parent_index=0) for key in keys)
    leaf = replace(child(3, "g"), foreign_keys=by_key)
    written = made(store, child(), leaf)
    written.send(insert("g", 1, a=1, b=1))
    with pytest.raises(ForeignKeyViolation, match="c_a_fkey"):
        written.send(delete("p", 1))
    written.send(update("g", 1, a=None))
    written.send(delete("p", 1))
    assert rows(written, 3, 1) == {}


@pytest.mark.parametrize("state", [State.DELETE_ONLY, State.WRITE_ONLY, State.PUBLIC])
def test_it_acts_from_the_state_in_which_it_is_enforced(store: Any, state: State) -> None:
    written = made(store, child())
    keys = tuple(replace(key, state=state) for key in child().foreign_keys)
    written.publish(replace(child(foreign_keys=keys), version=2))
    written.catalog.apply(MinVersion(2, 2), 0, 0)
    written.send(delete("p", 1))
    assert (1 in rows(written, 2, 1)) == (state is State.DELETE_ONLY)


def test_it_acts_as_long_as_a_version_that_enforces_it_may_be_in_use(store: Any) -> None:
    """The child's table is on its way out: its rows go under the version that enforces it."""
    written = made(store, child())
    written.publish(replace(child(), version=2, state=State.DELETE_ONLY))
    decided = written.send(delete("p", 1))
    assert [(c.kind, c.version) for c in decided.changes[1:]] == [(ChangeKind.DELETE, 1)] * 2


@pytest.mark.parametrize("own", [False, True], ids=["alone", "beside_own_writes_at_the_old_key"])
def test_while_the_child_changes_its_primary_key(store: Any, own: bool) -> None:
    """Two tables have the same rows, both versions are in use, and each row goes once from each."""
    columns = (*COLUMNS[:2], replace(COLUMNS[2], nullable=False))
    key = (child().foreign_keys[0],)
    old = replace(child(foreign_keys=key, mirror=3), columns=columns)
    new = replace(old, table_id=3, primary_key=(B,), mirror=2, former=2, state=State.WRITE_ONLY)
    written = WrittenTable(store, PARENT, old, new)
    written.send(insert("p", 1), insert("c", 1, a=1, b=11), insert("c", 2, a=1, b=12))
    assert rows(written, 3, 11, 12) == {11: (1, 11), 12: (1, 12)}
    written.publish(replace(old, version=2, state=State.WRITE_ONLY))
    written.publish(replace(new, version=2, state=State.PUBLIC))
    before = [update("c", 1, id=1)._replace(schema_version=1)] if own else []
    decided = written.send(*before, delete("p", 1))
    gone = [(c.table_id, c.key) for c in decided.changes if c.kind is ChangeKind.DELETE]
    assert sorted(gone) == [(1, (1,)), (2, (1,)), (2, (2,)), (3, (11,)), (3, (12,))]
    assert not rows(written, 2, 1, 2)
    assert not rows(written, 3, 11, 12)
