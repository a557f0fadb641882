"""ALTER TABLE of a view gives it another name, as in PostgreSQL; anything else of it is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import pytest

from leasehold.model.errors import WrongObject
from leasehold.schema_change.plan.views import as_of_view, refuse_view
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.syntax.object_statements import RenameView

ACCESS: Final[Any] = SimpleNamespace(views_by_name={"v": None, "app.v": None})
"""What is asked of a catalogue: two views."""


def changed(statement: str) -> Any:
    made: Any = parse_ddl(statement)
    return as_of_view(made, ACCESS)


@pytest.mark.parametrize(
    ("statement", "view"),
    [
        ("ALTER TABLE v RENAME TO w", RenameView("v", "w", False, 13)),
        ("ALTER TABLE IF EXISTS v RENAME TO w", RenameView("v", "w", True, 23)),
        ("ALTER TABLE app.v RENAME TO w", RenameView("app.v", "app.w", False, 13)),
    ],
)
def test_a_view_gets_another_name(statement: str, view: RenameView) -> None:
    assert changed(statement) == view


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t RENAME TO v",
        "ALTER TABLE IF EXISTS t RENAME TO w",
        "ALTER TABLE t RENAME a TO b",
        "DROP TABLE v",
        "CREATE VIEW w AS SELECT 1 AS a",
    ],
)
def test_anything_else_stays_what_it_is(statement: str) -> None:
    made = parse_ddl(statement)
    assert changed(statement) == made


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("ALTER TABLE v ADD COLUMN c integer", "has no elements to be changed"),
        ("ALTER TABLE v RENAME a TO b", "has no elements to be changed"),
        ("DROP TABLE v", "is not a table"),
        ("CREATE INDEX ON v (a)", "is not a table"),
        ("TRUNCATE v", "is not a table"),
    ],
)
def test_what_is_done_to_tables_alone(statement: str, words: str) -> None:
    with pytest.raises(WrongObject, match=words):
        refuse_view(changed(statement), ACCESS)
    refuse_view(changed(statement.replace(" v", " t")), ACCESS)
