"""Functions over json and jsonb mean what PostgreSQL says: what a PostgreSQL 15 gives of them
(`tests/integration/postgres_compat/test_arrays_postgres.py` holds one to it), and what is left out
has a sentence."""

from __future__ import annotations

import pytest

from leasehold.model.errors import FeatureNotSupported, Refused, TooLong
from leasehold.sql.functions.aggregates.aggregates import AGGREGATE_NAMES
from leasehold.sql.functions.arrays.set_returning import SEVERAL_COLUMNS
from leasehold.sql.functions.jsonb.made_objects import FUNCTIONS
from leasehold.sql.functions.not_supported import FUNCTIONS as LEFT_OUT
from leasehold.sql.functions.registry import FUNCTION_NAMES, SET_NAMES
from leasehold.values.arrays import stored_form
from leasehold.values.types import TEXT_BYTES_MAX
from tests.support.sql.asked import Asked
from tests.support.sql.recorded_cases import JSON, JSON_NAMES, JSON_REFUSED


@pytest.mark.parametrize(("expression", "text"), JSON.items())
def test_what_an_expression_gives(asked: Asked, expression: str, text: str | None) -> None:
    assert asked.rows(f"SELECT ({expression})::text") == [(text,)]


@pytest.mark.parametrize(("statement", "code"), JSON_REFUSED.items())
def test_what_is_refused(asked: Asked, statement: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        asked.rows(statement)
    assert caught.value.sqlstate == code


@pytest.mark.parametrize("name", JSON_NAMES)
def test_each_function_of_postgresql_is_there_or_has_a_sentence(asked: Asked, name: str) -> None:
    there = FUNCTION_NAMES | SET_NAMES | AGGREGATE_NAMES | set(SEVERAL_COLUMNS)
    if name in there:
        return
    assert name in LEFT_OUT
    with pytest.raises(FeatureNotSupported, match=name):
        asked.rows(f"SELECT {name}('{{}}'::jsonb, '{{}}'::jsonb)")


def test_json_without_nulls_may_be_as_deep_as_json_is(asked: Asked) -> None:
    deep = '[{"a":' * 249 + "[1]" + "}]" * 249
    assert asked.rows("SELECT json_strip_nulls($1::json)", [deep]) == [(deep,)]


@pytest.mark.parametrize("name", ["json_object", "jsonb_object"])
def test_an_object_has_a_limit(name: str) -> None:
    compute = next(f.compute for f in FUNCTIONS if f.name == name and len(f.arguments) == 1)
    # Each quote and backslash is two characters in json.
    words = stored_form([f"{n}" + '"' * 10_000 for n in range(2 * (TEXT_BYTES_MAX // 40_000 + 2))])
    compute(stored_form(["a", "b"]))
    with pytest.raises(TooLong):
        compute(words)
