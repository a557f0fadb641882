"""The way of each element, step by step: what changes, what is filled, who verifies, and from where
on there is no way back; then how several ways share steps.

Method: a track alone gives its steps; each is compared with a line of the table below, which is the
design's list of safe steps (Claims 4 to 8) written down a second time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.edits import Edit, Kind, make_body
from leasehold.catalog.element_forms import derived_to_wire
from leasehold.catalog.elements import THIS_VERSION, Check, Column, Derived, Index, Lock
from leasehold.catalog.job import Step
from leasehold.catalog.states import State
from leasehold.schema_change.steps import element_paths, table_paths
from leasehold.schema_change.steps.element_paths import ElementPath
from leasehold.schema_change.steps.steps import steps_of
from leasehold.sql.expressions.conversion import Kept
from leasehold.values.types import Type

INT = Type("integer")
OPTIONAL = Column(5, "c", INT)
NULLABLE = Column(5, "c", INT, default=7)
REQUIRED = Column(5, "c", INT, nullable=False, default=7)
BARE = Column(5, "c", INT, nullable=False)
INDEX = Index(6, "i", (5,))
UNIQUE = replace(INDEX, unique=True)
CHECK = Check(7, "k", "c > 0", (5,))
NOT_VALID = replace(CHECK, state=State.WRITE_ONLY)
LOCK = Lock(8, "l")
TABLE = Descriptor(1, "t", 3, (Column(1, "id", INT, False), OPTIONAL), (1,))

NEW_TYPE, OLD_TYPE = element_paths.change_type(
    BARE, Column(9, "c", Type("bigint")), Kept("c", (5,)), Kept("back", (9,))
)

GONE = {"gone": True}
DELETE_ONLY = {"state": "delete-only"}
WRITE_ONLY = {"state": "write-only"}
AT_ONCE = {"state": "delete-only", "missing": [THIS_VERSION, 7, True]}
FILLED_BY_KEY = {"state": "write-only", "missing": [THIS_VERSION, 7]}
PUBLIC = {"state": "public"}


class Walked(NamedTuple):
    """What a step changes (fields of the element), and whether it fills and verifies it."""

    changes: dict[str, Any]
    backfills: bool = False
    verifies: bool = False


class Way(NamedTuple):
    path: ElementPath
    point: int
    steps: tuple[Walked, ...]


def plain(*changes: dict[str, Any]) -> tuple[Walked, ...]:
    return tuple(map(Walked, changes))


LOOSENED = {"nullable": True, "not_null_enforced": True}
LET_GO = {"state": "delete-only", "not_null_enforced": False}
WRITTEN_STILL = (
    {"state": "write-only", "filled": True},
    {"state": "delete-only", "filled": False},
    GONE,
)


def followed(source: int, expression: str, **said: Any) -> list[Any]:
    return derived_to_wire(Derived((source,), expression, **said))


GENERATED = Column(
    6, "g", Type("integer"), derived=Derived((5,), "c + 1", strict=True, generated=True)
)
FOLLOWS = {"strict": True, "generated": True}
WAYS: dict[str, Way] = {
    "add generated column": Way(
        element_paths.add_generated(GENERATED),
        3,
        (
            Walked({"state": "delete-only", "derived": followed(5, "c + 1", generated=True)}),
            Walked({"state": "write-only"}, True),
            Walked({"derived": followed(5, "c + 1", **FOLLOWS)}, False, True),
            Walked(PUBLIC),
        ),
    ),
    "drop generated column": Way(
        element_paths.drop_column(GENERATED),
        1,
        plain(
            {"state": "write-only", "filled": True},
            {"state": "delete-only", "filled": False, "derived": None},
            GONE,
        ),
    ),
    "drop generated column that is NOT NULL": Way(
        element_paths.drop_column(replace(GENERATED, nullable=False)),
        1,
        plain(
            LOOSENED,
            {"state": "write-only", "filled": True, "not_null_enforced": False},
            {"state": "delete-only", "filled": False, "derived": None},
            GONE,
        ),
    ),
    "drop what a generated column was computed from": Way(
        element_paths.drop_column(OPTIONAL, waits=2), 2, plain({}, {}, DELETE_ONLY, GONE)
    ),
    "drop expression": Way(
        element_paths.drop_expression(GENERATED),
        1,
        plain({"derived": followed(5, "c + 1", **FOLLOWS, loose=True)}, {"derived": None}),
    ),
    "add optional column": Way(element_paths.add_column(OPTIONAL), 1, plain(DELETE_ONLY, PUBLIC)),
    "add required column": Way(element_paths.add_column(REQUIRED), 1, plain(AT_ONCE, PUBLIC)),
    "add nullable column with default": Way(
        element_paths.add_column(NULLABLE), 1, plain(AT_ONCE, PUBLIC)
    ),
    "add required column, by key": Way(
        element_paths.add_column(REQUIRED, at_once=False),
        2,
        (Walked(DELETE_ONLY), Walked(FILLED_BY_KEY, True, True), Walked(PUBLIC)),
    ),
    "add required column with a long default": Way(
        element_paths.add_column(replace(REQUIRED, type=Type("text"), default="ä" * 129)),
        2,
        (Walked(DELETE_ONLY), Walked(WRITE_ONLY, True, True), Walked(PUBLIC)),
    ),
    "add nullable column with default, by key": Way(
        element_paths.add_column(NULLABLE, at_once=False),
        3,
        (
            Walked(DELETE_ONLY),
            Walked(FILLED_BY_KEY, True, True),
            Walked({"filled": True}),
            Walked({"state": "public", "filled": False}),
        ),
    ),
    "drop optional column": Way(element_paths.drop_column(OPTIONAL), 0, plain(DELETE_ONLY, GONE)),
    "drop indexed column": Way(
        element_paths.drop_column(OPTIONAL, waits=1), 1, plain({}, DELETE_ONLY, GONE)
    ),
    "drop checked column": Way(
        element_paths.drop_column(OPTIONAL, waits=1), 1, plain({}, DELETE_ONLY, GONE)
    ),
    "drop required column with default": Way(
        element_paths.drop_column(REQUIRED), 1, plain(*WRITTEN_STILL)
    ),
    "drop nullable column with default": Way(
        element_paths.drop_column(NULLABLE), 1, plain(*WRITTEN_STILL)
    ),
    "drop indexed column with default": Way(
        element_paths.drop_column(NULLABLE, waits=1), 2, plain({}, *WRITTEN_STILL)
    ),
    "drop required column without default": Way(
        element_paths.drop_column(BARE, waits=1), 1, plain(LOOSENED, LET_GO, GONE)
    ),
    "add index": Way(
        element_paths.add_index(INDEX, unique=False),
        2,
        (Walked(DELETE_ONLY), Walked(WRITE_ONLY, True, True), Walked(PUBLIC)),
    ),
    "add unique index": Way(
        element_paths.add_index(INDEX, unique=True),
        3,
        (
            Walked(DELETE_ONLY),
            Walked(WRITE_ONLY, True),
            Walked({"unique_enforced": True}, False, True),
            Walked({"state": "public", "unique": True, "unique_enforced": False}),
        ),
    ),
    "drop index": Way(element_paths.drop_index(INDEX), 1, plain(WRITE_ONLY, DELETE_ONLY, GONE)),
    "drop unique index": Way(
        element_paths.drop_index(UNIQUE),
        1,
        plain(
            {"state": "write-only", "unique": False, "unique_enforced": True},
            {"state": "delete-only", "unique_enforced": False},
            GONE,
        ),
    ),
    "add check": Way(
        element_paths.add_check(CHECK, not_valid=False),
        1,
        (Walked(WRITE_ONLY, False, True), Walked(PUBLIC)),
    ),
    "add check not valid": Way(
        element_paths.add_check(CHECK, not_valid=True), 0, plain(WRITE_ONLY)
    ),
    "validate check": Way(
        element_paths.validate_check(NOT_VALID), 1, (Walked({}, False, True), Walked(PUBLIC))
    ),
    "drop check": Way(element_paths.drop_check(CHECK), 1, plain(WRITE_ONLY, GONE)),
    "drop check not valid": Way(element_paths.drop_check(NOT_VALID), 0, plain(GONE)),
    "set not null": Way(
        element_paths.set_not_null(OPTIONAL),
        1,
        (
            Walked({"not_null_enforced": True}, False, True),
            Walked({"nullable": False, "not_null_enforced": False}),
        ),
    ),
    "drop not null": Way(
        element_paths.drop_not_null(BARE), 1, plain(LOOSENED, {"not_null_enforced": False})
    ),
    "set default": Way(element_paths.set_default(OPTIONAL, 9), 0, plain({"default": 9})),
    "rename column": Way(
        element_paths.rename(OPTIONAL, "d"), 0, plain({"name": "d", "alias": "c"}, {"alias": ""})
    ),
    "rename index": Way(
        element_paths.rename(INDEX, "j"), 0, plain({"name": "j", "alias": "i"}, {"alias": ""})
    ),
    "rename table": Way(
        element_paths.rename(TABLE, "u"),
        0,
        plain({"name": "u", "alias": "t", "key_name": "t_pkey"}, {"alias": ""}),
    ),
    "rename check": Way(element_paths.rename(CHECK, "l"), 0, plain({"name": "l"})),
    "reword check": Way(
        element_paths.reword_check(CHECK, "d > 0"), 0, plain({"expression": "d > 0"})
    ),
    "drop table": Way(table_paths.drop_table(TABLE), 0, plain(DELETE_ONLY, {"state": "absent"})),
    "retire lock": Way(element_paths.retire_lock(LOCK), 0, plain(DELETE_ONLY)),
    "change type, new column": Way(
        NEW_TYPE,
        3,
        (
            Walked({"state": "delete-only", "derived": followed(5, "c")}),
            Walked({"state": "write-only"}, True),
            Walked(
                {"derived": followed(5, "c", strict=True), "not_null_enforced": True}, False, True
            ),
            Walked(
                {
                    "state": "public",
                    "derived": None,
                    "nullable": False,
                    "not_null_enforced": False,
                }
            ),
        ),
    ),
    "change type, old column": Way(
        OLD_TYPE,
        0,
        plain(
            {"state": "write-only", "derived": followed(9, "back", strict=True, reverse=True)},
            {"state": "delete-only", "derived": None},
            GONE,
        ),
    ),
    "move column": Way(
        element_paths.move_column(OPTIONAL, 8), 1, plain({"locks": [0, 8]}, {"locks": [8]})
    ),
}


def changed(path: ElementPath, edits: tuple[Edit, ...]) -> dict[str, Any]:
    """Fields that a step sets, a new element's compared with what it will be in the end."""
    if not edits:
        return {}
    ((kind, element_id, before, after, _),) = edits
    assert (kind, element_id) == path.name
    if after is None:
        return GONE
    known = before or {**make_body(path.element), "state": ""}
    return {name: value for name, value in after.items() if value != known[name]}


def walked(path: ElementPath, step: Step) -> Walked:
    element_id = path.name[1]
    assert set(step.backfills) <= {element_id}
    assert set(step.verifies) <= {element_id}
    return Walked(changed(path, step.edits), bool(step.backfills), bool(step.verifies))


@pytest.mark.parametrize("name", WAYS)
def test_way_of_one_element(name: str) -> None:
    path, point, expected = WAYS[name]
    steps, made_point = steps_of([path])
    assert tuple(walked(path, step) for step in steps) == expected
    assert made_point == point


@pytest.mark.parametrize("name", WAYS)
def test_each_step_begins_where_the_one_before_has_ended(name: str) -> None:
    path = WAYS[name].path
    steps, _ = steps_of([path])
    standing = None if path.new else make_body(path.element)
    for step in steps:
        for edit in step.edits:
            assert edit.before == standing
            standing = edit.after
    ends = steps[-1].edits[-1].after
    assert standing == ends


@pytest.mark.parametrize("name", WAYS)
def test_reversed_steps_say_the_opposite_and_ask_no_work(name: str) -> None:
    for step in steps_of([WAYS[name].path]).steps:
        back = step.reversed
        assert (back.backfills, back.verifies) == ((), ())
        assert back.reversed.edits == step.edits
        assert [(e.before, e.after) for e in back.edits] == [
            (e.after, e.before) for e in reversed(step.edits)
        ]


def test_a_tracks_name_tells_the_table_from_its_elements() -> None:
    assert table_paths.drop_table(TABLE).name == (Kind.TABLE, 0)
    assert element_paths.drop_index(INDEX).name == (Kind.INDEX, 6)
