"""Goal: what readers of a table will find changed is known before a job begins.

Method: plans of statements on one table, and what consumers of its feeds are told of them.
"""

from __future__ import annotations

import pytest

from leasehold.admin.feeds import concern_feeds
from leasehold.catalog.catalog import Catalog
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.reader_changes import reader_changes, tables_after
from leasehold.schema_change.plan.results import JobPlan
from leasehold.sql.ddl.schema_statements import parse_ddl
from tests.support.schema_change.made_statements import (
    catalog_with,
    column,
    create_table,
)


def beginning() -> Catalog:
    made = create_table("t", column("a"), column("b", nullable=False), column("c", "text"))
    return catalog_with(made)


def changes(sql: str) -> list[tuple[str, str, bool]]:
    """Column, words, and whether readers can't go on as before."""
    catalog = beginning()
    planned = plan(parse_ddl(sql), catalog)  # type: ignore[arg-type]
    assert isinstance(planned, JobPlan), planned
    return [each[1:] for each in reader_changes(planned.job, catalog)]


STATEMENTS: dict[str, list[tuple[str, str, bool]]] = {
    "create index i on t (a)": [],
    "alter table t add column d text": [("d", "d comes, text", False)],
    "alter table t add column d int not null default 7": [
        ("d", "d comes, integer not null", False)
    ],
    "alter table t drop column c": [("c", "c goes", True)],
    "alter table t rename column c to d": [("c", "c is named d", True)],
    "alter table t alter column a type bigint": [("a", "a is bigint, and was integer", False)],
    "alter table t alter column a type text": [("a", "a is text, and was integer", True)],
    "alter table t alter column b drop not null": [("b", "b may be null", True)],
    "alter table t alter column a set not null": [],
    "alter table t rename to u": [("", "table t is named u", False)],
    "alter table t drop constraint t_pkey, add primary key (b)": [
        ("", "the key is (b), and was (id)", True)
    ],
    "drop table t": [("", "table t goes", True)],
}


@pytest.mark.parametrize("sql", STATEMENTS)
def test_what_readers_find_changed_is_told(sql: str) -> None:
    assert changes(sql) == STATEMENTS[sql]


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("create index i on t (a)", None),
        ("alter table t rename to u", None),
        ("drop table t", None),
        ("alter table t drop column c", ["id", "a", "b"]),
        ("alter table t alter column a set not null", ["id", "a", "b", "c"]),
        ("alter table t alter column a type bigint", ["id", "a", "b", "c"]),
        ("alter table t drop constraint t_pkey, add primary key (b)", ["id", "a", "b", "c"]),
    ],
)
def test_the_table_of_then_is_told_where_it_shows_something_else(
    sql: str, shown: list[str] | None
) -> None:
    catalog = beginning()
    planned = plan(parse_ddl(sql), catalog)  # type: ignore[arg-type]
    assert isinstance(planned, JobPlan), planned
    tables = tables_after(planned.job, catalog)
    assert [list(each.by_name) for each in tables] == ([] if shown is None else [shown])
    assert {1}.issuperset(each.former or each.table_id for each in tables)


def test_a_feed_is_told_what_concerns_it() -> None:
    """Of its table alone, of the columns that it tells, and of those of its condition."""

    def state(table_id: int, columns: list[str], mentioned: str = "", status: str = "on") -> object:
        return {
            "status": status,
            "table_id": table_id,
            "columns": [[number, name] for number, name in enumerate(columns)],
            "mentioned": [[5, mentioned]] if mentioned else [],
        }

    states = {
        "public.all": state(1, []),
        "public.other": state(2, []),
        "public.listed": state(1, ["a"]),
        "public.condition": state(1, ["a"], "c"),
        "public.ended": state(1, [], status="ended"),
    }
    catalog = beginning()
    planned = plan(parse_ddl("alter table t drop column c"), catalog)  # type: ignore[arg-type]
    assert isinstance(planned, JobPlan)
    found = [each.to_wire() for each in reader_changes(planned.job, catalog)]
    told = concern_feeds(states, found)  # type: ignore[arg-type]
    assert [(each["feed"], each["words"], each["breaks"]) for each in told] == [
        ("public.all", "c goes", True),
        ("public.condition", "c goes, which its condition names: the feed fails", True),
    ]
