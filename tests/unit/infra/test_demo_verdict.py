"""The demo's verdict on its schema changes says WRONG when one of them is not as claimed.

Method: what a good run leaves behind, made by the pure planner, then spoilt in one place.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from rich.console import Console

from infra.demo.changes import Change
from infra.demo.flights import TABLES, Rows
from infra.demo.lock_duel import Duel
from infra.demo.menu import PLANE, RETYPE, SEATS, UNIQUE, Shown
from infra.demo.verdict import Verdict, check_menu
from leasehold.catalog.elements import Index
from leasehold.catalog.job import Job, Status
from leasehold.model.errors import NotCoherent
from leasehold.model.records.requests import Outcome
from leasehold.replica.replica import Replica
from leasehold.schema_change.plan.explain import explain
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.syntax.statements import (
    AlterTable,
    CreateIndex,
    CreateTable,
)
from tests.support.schema_change.made_statements import catalog_with, job_plan, run_to_end

PLANES = [
    {"tailnum": PLANE, "seats": 149, "engines": 2},
    {"tailnum": "N1", "seats": 2, "engines": 1},
]
AIRPORTS = [{"faa": "A", "name": "Field"}, {"faa": "B", "name": "Field"}, {"faa": "C", "name": "x"}]
SHARED = "unique index 'airports_name': (name) = ('Field') is also in another row"
LOADED = [Rows(TABLES[1], AIRPORTS), Rows(TABLES[2], PLANES)]
NOW = [{**PLANES[0], "seats": SEATS + 30, "engines": 2 + 31}, PLANES[1]]


class Found:
    """What the verdict asks of a replica, which loses its lease once."""

    def __init__(self, planes: list[dict[str, Any]]) -> None:
        self._planes = planes
        self._coherent = False
        self._waits = 0

    def wait_coherent(self, _: float) -> None:
        self._waits += 1
        self._coherent = self._waits > 1

    def scan(self, _: str) -> list[dict[str, Any]]:
        if not self._coherent:
            raise NotCoherent("lost between waiting and reading")
        return self._planes


def change(sql: str, job: Job) -> Change:
    return Change(sql, job, 0, 1, (), 0.0)


@pytest.fixture
def shown() -> Shown:
    made = [parse_ddl(table.sql) for table in TABLES]
    catalog = catalog_with(*(table for table in made if isinstance(table, CreateTable)))
    airports = catalog.resolve("airports")
    unique, retype = parse_ddl(UNIQUE), parse_ddl(RETYPE)
    assert isinstance(unique, CreateIndex)
    assert isinstance(retype, AlterTable)
    plan = [row.to_wire() for row in explain(job_plan(retype, catalog))]
    done = run_to_end(retype, catalog)
    assert done.status is Status.SUCCEEDED
    failed = replace(
        job_plan(unique, catalog).job,
        status=Status.FAILED,
        error="2 rows break index airports_name: row ('A',): …",
        findings=((6, 9, ("A",), SHARED), (6, 9, ("B",), SHARED)),
    )
    return Shown(
        plan,
        done.job_id - 1,
        change(UNIQUE, failed),
        change("", done),
        change(RETYPE, done),
        change("", done),
        change("", done),
        (airports, airports),
        (Outcome(1, 0, 0, 0, True, "23503"), Outcome(1, 0, 0, 0, True, "23503")),
        (Outcome(1, 0, 0, 0, True, "22003"), Outcome(1, 7, 1, 0, True)),
        (Duel({"seats": 10, "engines": 11}, 9, 2.5), Duel({"seats": 20, "engines": 20}, 0, 2.5)),
    )


def right(shown: Shown, planes: list[dict[str, Any]]) -> bool:
    verdict = Verdict(Console(file=io.StringIO()))
    check_menu(verdict, shown, cast(Replica, Found(planes)), LOADED)
    return verdict.right


def test_a_good_run_is_right(shown: Shown) -> None:
    assert right(shown, NOW)


def failed_with(shown: Shown, **fields: Any) -> Shown:
    return replace(shown, unique=change(UNIQUE, replace(shown.unique.job, **fields)))


SPOILT: dict[str, Callable[[Shown], Shown]] = {
    "a finding names a row that shares nothing": lambda s: failed_with(
        s, findings=((6, 9, ("A",), SHARED), (6, 9, ("C",), SHARED))
    ),
    "a duplicate is not named": lambda s: failed_with(s, findings=s.unique.job.findings[:1]),
    "its value is not named": lambda s: failed_with(
        s, findings=((6, 9, ("A",), SHARED), (6, 9, ("B",), "another row"))
    ),
    "another number of rows": lambda s: failed_with(s, error="22 rows break index airports_name"),
    "the index is still there": lambda s: replace(
        s, airports=(s.airports[0], replace(s.airports[1], indexes=(Index(9, "i", (2,)),)))
    ),
    "EXPLAIN lacks a step": lambda s: replace(s, plan=s.plan[1:]),
    "EXPLAIN names another point": lambda s: replace(
        s, plan=[{**row, "point_of_no_return": False} for row in s.plan]
    ),
    "EXPLAIN made a job": lambda s: replace(s, last_job=s.last_job - 1),
    "the end of an airport was taken": lambda s: replace(
        s, broken=(s.broken[0], Outcome(1, 7, 1, 0, True))
    ),
    "a smallint took the seats": lambda s: replace(s, too_many=(s.too_many[1], s.too_many[1])),
    "an integer refused them": lambda s: replace(s, too_many=(s.too_many[0], s.too_many[0])),
    "they collide as before": lambda s: replace(
        s, duels=(s.duels[0], s.duels[1]._replace(replays=9))
    ),
    "they never met": lambda s: replace(s, duels=(s.duels[0]._replace(replays=0), s.duels[1])),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT.keys())
def test_a_spoilt_run_is_wrong(shown: Shown, spoil: Callable[[Shown], Shown]) -> None:
    assert not right(spoil(shown), NOW)


def test_a_lost_or_doubled_write_is_wrong(shown: Shown) -> None:
    assert not right(shown, [{**NOW[0], "engines": 32}, NOW[1]])
    assert not right(shown, [NOW[0], {**NOW[1], "seats": 3}])
    assert not right(shown, NOW[:1])
