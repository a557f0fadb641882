"""What depends on a session's time zone is what a real PostgreSQL 15 has answered.

`zone_cases.jsonl` was recorded by `tests/integration/postgres_compat/test_values_and_postgres.py`
(RECORD=1): a zone, an expression, and its answer as `value:<type>|<text>` or the SQLSTATE.
"""

from __future__ import annotations

import json
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from leasehold.model.errors import Refused
from leasehold.sql.planning.plan import Plans, prepare
from leasehold.values.time_zone import UTC, zone_of, zone_of_setting
from tests.support.sql.zone_expressions import no_table, ours

LINES = (Path(__file__).parent / "zone_cases.jsonl").read_text().splitlines()
BERLIN, TOKYO = zone_of("Europe/Berlin"), zone_of("Asia/Tokyo")


def test_what_postgresql_has_answered() -> None:
    differing = []
    for line in LINES:
        zone, expression, answer = json.loads(line)
        mine = ours(zone, expression)
        if mine != answer and not (mine.startswith("error:") and mine[:11] == answer):
            differing.append(f"{zone}: {expression}: {answer!r}, not {mine!r}")
    assert len(LINES) > 500
    assert not differing, "\n".join(differing)


@pytest.mark.parametrize(
    ("text", "depends"),
    [
        ("select timestamptz '2020-01-01'", True),
        ("select '2020-01-01 12:00'::timestamp::timestamptz", True),
        ("select now() > '2020-01-01'", True),
        ("select now()::date, current_date, now() + interval '1 day'", False),
        ("select timestamp '2020-01-01'", False),
        ("select $1::timestamptz", False),
    ],
)
def test_a_plan_serves_the_zone_that_its_constants_were_read_in(text: str, depends: bool) -> None:
    plans = Plans()

    def made(zone: ZoneInfo) -> object:
        return plans.get(text, no_table, zone=zone)

    first = made(BERLIN)
    assert prepare(text, no_table, zone=BERLIN).zone is (BERLIN if depends else None)
    assert (made(TOKYO) is first) != depends
    assert made(BERLIN) is first


def test_a_zone_is_the_same_object_as_long_as_it_is_known() -> None:
    assert zone_of("utc") is zone_of_setting("UTC") is UTC
    assert zone_of("Europe/Berlin") is BERLIN


@pytest.mark.parametrize("name", ["", "A" * 300 + "-1", "EST5EDT,M13.1.0,M1.1.0", "X" * 9, "é-1é"])
def test_what_is_no_zone(name: str) -> None:
    with pytest.raises(Refused) as caught:
        zone_of(name)
    assert caught.value.sqlstate == "22023"
