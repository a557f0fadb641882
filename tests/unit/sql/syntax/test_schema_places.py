"""A query that names what lies in a schema names it behind the schema's new name, and nothing else
of it changes."""

from __future__ import annotations

from typing import Final

import pytest

from leasehold.sql.syntax.schema_places import rename_schema_in

CASES: Final = {
    "select * from app.t, other.t, t as app": "select * from new.t, other.t, t as app",
    'select * from "app".t where exists (select 1 from APP . t)': (
        "select * from new.t where exists (select 1 from new . t)"
    ),
    "select app.t.a, app.a, app.t.* from app.t, u as app": (
        "select new.t.a, app.a, new.t.* from new.t, u as app"
    ),
    "select 'x'::app.mood, cast('y' as app.mood[]), 'app.t' from t": (
        "select 'x'::new.mood, cast('y' as new.mood[]), 'app.t' from t"
    ),
    "select nextval('app.s'), 'app.t'::regclass, ' \"app\".t'::regclass, nextval('apps.s')": (
        "select nextval('new.s'), 'new.t'::regclass, ' new.t'::regclass, nextval('apps.s')"
    ),
    "with app as (select * from app.t) select app.a from app /* app.t */": (
        "with app as (select * from new.t) select app.a from app /* app.t */"
    ),
    "select 'ü' from app.t as ü -- app.t": "select 'ü' from new.t as ü -- app.t",
    r"""select * from U&"\0061pp".t, U&"!0061pp" UESCAPE '!'.t as u""": (
        "select * from new.t, new.t as u"
    ),
    "select 1 as app": "select 1 as app",
}


@pytest.mark.parametrize("text", CASES)
def test_names_stand_behind_the_new_name(text: str) -> None:
    assert rename_schema_in(text, "app", "new") == CASES[text]


def test_both_names_are_quoted() -> None:
    said = 'select nextval(\'"A ""b".s\') from "A ""b".t, "a ""b".t'
    made = 'select nextval(\'"It\'\'s".s\') from "It\'s".t, "a ""b".t'
    assert rename_schema_in(said, 'A "b', "It's") == made
    assert rename_schema_in(made, "It's", "app") == (
        'select nextval(\'app.s\') from app.t, "a ""b".t'
    )
