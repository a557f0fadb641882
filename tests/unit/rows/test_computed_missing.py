"""A column whose values images of before leave to their readers: what those compute, for good,
whatever has become of the table; and which expressions are left to them at all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.element_forms import COLUMN_FORM
from leasehold.catalog.elements import THIS_VERSION, Column, Missing
from leasehold.rows.computed_missing import COMPUTED_BYTES_MAX, SOURCES_MAX, make_computed
from leasehold.rows.filled_by_key import backfill_row, complete_image
from leasehold.sql.expressions.portable import PORTABLE_TYPES, is_portable
from leasehold.values.types import Type, parse_type
from tests.unit.rows.test_missing import TABLE, versions_of

A, B = 2, 3
BASE = replace(
    TABLE,
    columns=(
        *TABLE.columns,
        Column(A, "a", Type("integer")),
        Column(B, "b", Type("text")),
    ),
    next_element_id=4,
)
TO_TEXT = "ALTER TABLE t ALTER COLUMN a TYPE text"
FIRST, BELOW = 5, 7
"""The version of before, and that in which the new column is filled."""


def altered(*statements: str) -> Descriptor:
    table = BASE
    for sql in statements:
        table = versions_of(sql, table)[-1]
    return table


def read(table: Descriptor, made_under: int, **pairs: object) -> object:
    """What a reader of `table` finds in column a of an image."""
    image = {1: 1, **{int(name[1:]): value for name, value in pairs.items()}}
    return complete_image(table, made_under, image).get(table.by_name["a"].element_id)


def test_an_image_of_before_is_read_in_the_new_type_and_a_later_one_as_it_is() -> None:
    table = altered(TO_TEXT)
    new = table.by_name["a"]
    assert A not in table.by_id, "the reader can't look there for what it was"
    assert new.missing is not None
    assert (new.missing.below, new.missing.value) == (BELOW, None)
    assert read(table, FIRST, _2=42) == "42"
    assert read(table, BELOW - 1, _2=42) == "42", "a writer who did not know it"
    assert read(table, BELOW, _2=42) is None, "it says NULL"
    assert read(table, FIRST, _2=42, _4="41") == "41"
    assert read(table, FIRST) is None


def test_what_was_computed_is_computed_on() -> None:
    """Types change one after the other, and nobody writes the row."""
    table = altered(TO_TEXT, "ALTER TABLE t ALTER COLUMN a TYPE integer USING length(a) * 10")
    assert {A, 4} & table.by_id.keys() == set()
    assert read(table, FIRST, _2=4_200) == 40
    assert read(table, 9, _4="abc") == 30, "an image from between the two"
    assert read(table, 9, _2=4_200) is None, "there it was NULL"


def test_a_default_that_came_at_once_is_computed_with() -> None:
    table = altered(
        "ALTER TABLE t ADD COLUMN c integer NOT NULL DEFAULT 7",
        "ALTER TABLE t ALTER COLUMN c TYPE text",
        "ALTER TABLE t RENAME COLUMN c TO d",
        "ALTER TABLE t ADD COLUMN g text GENERATED ALWAYS AS (d || b) STORED",
    )
    of = {c.name: c.element_id for c in table.columns}
    seen = complete_image(table, FIRST, {1: 1, B: "x"})
    assert (seen[of["d"]], seen[of["g"]]) == ("7", "7x")


def test_a_rename_of_its_source_changes_nothing() -> None:
    table = altered(TO_TEXT, "ALTER TABLE t RENAME COLUMN a TO z")
    assert complete_image(table, FIRST, {1: 1, A: 5})[table.by_name["z"].element_id] == "5"


def test_what_it_was_converted_to_counts_not_what_it_is_widened_to_since() -> None:
    """A value that the type had not was never the row's."""
    table = altered(
        "ALTER TABLE t ALTER COLUMN a TYPE varchar(3)",
        "ALTER TABLE t ALTER COLUMN a TYPE text",
    )
    assert table.by_name["a"].type.name == "text"
    assert read(table, FIRST, _2=999) == "999"
    assert read(table, FIRST, _2=1_000) is None


def test_a_row_of_which_it_can_t_be_computed_stays_without() -> None:
    table = altered("ALTER TABLE t ALTER COLUMN b TYPE integer USING CAST(b AS integer)")
    column = table.by_name["b"]
    assert backfill_row(column, {1: 1, B: "7"}) == {1: 1, B: "7", column.element_id: 7}
    assert backfill_row(column, {1: 1, B: "seven"}) is None
    assert backfill_row(column, {1: 1}) is None
    assert backfill_row(column, {1: 1, B: "7", column.element_id: 8}) is None
    assert complete_image(table, FIRST, {1: 1, B: "seven"}) == {1: 1, B: "seven"}


def test_it_travels_and_an_earlier_release_refuses_it() -> None:
    table = altered(TO_TEXT, "ALTER TABLE t ALTER COLUMN a TYPE integer USING length(a)")
    column = table.by_name["a"]
    body = COLUMN_FORM.to_wire(column)
    assert COLUMN_FORM.from_wire(body) == column
    with pytest.raises(TypeError):  # what that release does with it
        (lambda below, value, at_once=False: None)(*body["missing"])


# ------------------------------------------------------------------ what is left to readers

SEEN = replace(
    BASE,
    columns=(
        *BASE.columns,
        *(Column(10 + n, f"c{n}", Type(kind)) for n, kind in enumerate(sorted(PORTABLE_TYPES))),
        Column(30, "at", Type("timestamptz")),
        Column(31, "j", Type("jsonb")),
    ),
)


@pytest.mark.parametrize(
    ("text", "kind", "left"),
    [
        ("a", "text", True),
        ("CAST(b AS integer)", "integer", True),
        ("b::numeric(5,2) * 2", "numeric", True),
        ("CASE WHEN a > 1 THEN 'x' ELSE substr(b, 1, 2) END", "text", True),
        ("coalesce(a, 7) % 3 IN (1, 2)", "boolean", True),
        ("upper(b)", "text", False),
        ("repeat(b, 1000)", "text", False),
        ("replace(b, 'a', 'aaaa')", "text", False),
        ("exp(a)", "double precision", False),
        ("b ~ 'x.*'", "boolean", False),
        ("b LIKE 'x%'", "boolean", False),
        ("at", "text", False),
        ("CAST(at AS date)", "date", False),
        ("CAST(b AS timestamptz)", "timestamptz", False),
        ("length(CAST(CAST(b AS timestamptz) AS text))", "integer", False),
        ("j", "text", False),
        ("CAST(b AS jsonb)", "jsonb", False),
    ],
)
def test_what_rests_on_the_values_alone_is_left_to_readers(
    text: str, kind: str, left: bool
) -> None:
    assert is_portable(text, SEEN, parse_type(kind)) == left


def test_a_time_zone_too_many_words_and_versions_that_nobody_knows_are_left_to_images() -> None:
    column = Column(40, "n", Type("text"))
    assert make_computed(SEEN, column, "a || b", (A, B), "") is not None
    assert make_computed(SEEN, column, "a || b", (A, B), "Europe/Vienna") is None
    assert make_computed(SEEN, column, "'x'", (), "") is None
    long = "b || '" + "x" * COMPUTED_BYTES_MAX + "'"
    assert make_computed(SEEN, column, long, (B,), "") is None
    many = tuple(Column(50 + n, f"m{n}", Type("text")) for n in range(SOURCES_MAX + 1))
    wide = replace(SEEN, columns=(*SEEN.columns, *many))
    text = " || ".join(c.name for c in many)
    assert make_computed(wide, column, text, [c.element_id for c in many], "") is None
    unknown = replace(many[0], missing=Missing(THIS_VERSION, "x"))
    young = replace(SEEN, columns=(*SEEN.columns, unknown))
    assert make_computed(young, column, "m0", (50,), "") is None


def test_types_that_change_again_and_again_come_to_be_told_by_images() -> None:
    table, computed = BASE, []
    for _ in range(12):
        for kind in ("text", "integer USING CAST(a AS integer)"):
            table = versions_of(f"ALTER TABLE t ALTER COLUMN a TYPE {kind}", table)[-1]
            computed.append(table.by_name["a"].missing is not None)
    assert computed[:4] == [True] * 4
    assert False in computed
    after = computed.index(False)
    assert computed[after + 1], "from there on it begins anew"
    assert read(table, FIRST, _2=42) is None, "whose row has a newer image"
