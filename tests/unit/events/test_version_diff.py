"""What changed between two versions, in words and as data."""

from __future__ import annotations

from dataclasses import replace

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Derived, ForeignKey, Index, Lock, OnChange
from leasehold.catalog.sequence import Numbering, Sequence
from leasehold.catalog.states import State
from leasehold.events.version_diff import column_words, diff, foreign_key_words, index_words
from leasehold.values.types import Type
from tests.support.descriptors import with_state

ID = Column(1, "id", Type("integer"), nullable=False)
DEST = Column(2, "dest", Type("varchar", 3))
SEATS = Column(3, "seats", Type("integer"), nullable=False, default=0)
V1 = Descriptor(1, "flights", 1, (ID, DEST), (1,), next_element_id=3)


def test_the_first_version_is_all_new() -> None:
    assert [str(change) for change in diff(None, V1)] == [
        "column id added, public (integer not null)",
        "column dest added, public (varchar(3))",
    ]


def test_a_column_on_its_way_and_back() -> None:
    v2 = replace(V1, version=2, columns=(ID, DEST, replace(SEATS, state=State.DELETE_ONLY)))
    v3 = with_state(v2, 3, State.WRITE_ONLY)
    v4 = with_state(v3, 3, State.ABSENT)
    assert [str(c) for c in diff(V1, v2)] == [
        "column seats added, delete-only (integer not null default 0)"
    ]
    assert [str(c) for c in diff(v2, v3)] == ["column seats: delete-only → write-only"]
    assert [str(c) for c in diff(v3, v4)] == ["column seats is gone (was write-only)"]


def test_versions_that_were_missed_are_summed_up() -> None:
    index = Index(4, "by_dest", (2,), unique=True)
    change = diff(V1, replace(V1, version=4, indexes=(index,)))
    assert [c.to_json() for c in change] == [
        {
            "id": 4,
            "kind": "index",
            "name": "by_dest",
            "former_name": "by_dest",
            "before": "absent",
            "after": "public",
            "detail": "unique on (dest)",
            "was": "",
        }
    ]


def test_a_readded_name_is_another_element() -> None:
    again = replace(DEST, element_id=5)
    changes = [str(c) for c in diff(V1, replace(V1, version=2, columns=(ID, again)))]
    assert changes == ["column dest is gone (was public)", "column dest added, public (varchar(3))"]


def test_a_definition_that_changes_without_a_state() -> None:
    longer = replace(DEST, type=Type("varchar", 5))
    changes = diff(V1, replace(V1, version=2, columns=(ID, longer)))
    assert [str(c) for c in changes] == ["column dest: now varchar(5)"]


def test_a_rename_names_both() -> None:
    both = replace(DEST, name="to", alias="dest")
    v2 = replace(V1, version=2, columns=(ID, both), name="trips", alias="flights")
    assert [str(c) for c in diff(V1, v2)] == [
        "table flights is now named trips: now also named flights",
        "column dest is now named to: now varchar(3) also named dest",
    ]
    assert diff(V1, v2)[1].former_name == "dest"


def test_locks_and_the_columns_under_them() -> None:
    lock = Lock(9, "gates")
    v2 = replace(V1, version=2, columns=(ID, replace(DEST, locks=(0, 9))), row_locks=(lock,))
    v3 = replace(v2, version=3, columns=(ID, replace(DEST, locks=(9,))))
    assert [str(c) for c in diff(V1, v2)] == [
        "column dest: now varchar(3) under lock row and gates",
        "lock gates added, public (covering (dest))",
    ]
    assert [str(c) for c in diff(v2, v3)] == ["column dest: now varchar(3) under lock gates"]


def test_an_index_that_goes_public_says_what_it_is_then() -> None:
    index = Index(4, "by_dest", (2,), unique_enforced=True, state=State.WRITE_ONLY)
    v2 = replace(V1, version=2, indexes=(index,))
    public = replace(index, unique=True, unique_enforced=False, state=State.PUBLIC)
    changes = diff(v2, replace(v2, version=3, indexes=(public,)))
    assert [str(c) for c in changes] == ["index by_dest: write-only → public, now unique on (dest)"]


def test_an_index_is_told_with_its_expressions_predicate_and_included_columns() -> None:
    index = Index(
        *(4, "i", (0, 1), True),
        expressions=("lower(dest)",),
        predicate="dest > 'a'",
        included=(2,),
        mentioned=(2,),
    )
    assert index_words(V1, index) == "unique on (lower(dest), id) include (dest) where dest > 'a'"
    plain = replace(index, unique=False, predicate="", included=())
    assert index_words(V1, plain) == "on (lower(dest), id)"
    reworded = replace(plain, expressions=("upper(dest)",))
    changes = diff(replace(V1, indexes=(plain,)), replace(V1, version=2, indexes=(reworded,)))
    assert [str(c) for c in changes] == ["index i: now on (upper(dest), id)"]


def test_equal_versions_differ_in_nothing() -> None:
    assert diff(V1, replace(V1, version=2)) == ()


def test_a_column_says_what_it_draws_from_follows_and_owns() -> None:
    drawn = replace(DEST, type=Type("bigint"), default_expression="nextval('s'::regclass)")
    told = {
        "bigint default nextval('s'::regclass)": replace(drawn, numbering=Numbering(70)),
        "bigint default nextval('s'::regclass) owns sequence 70": replace(
            drawn, numbering=Numbering(70, owned=True)
        ),
        "bigint generated always as identity (nextval('s'::regclass)) owns sequences 70, 71": (
            replace(drawn, numbering=Numbering(70, True, "a"), owns=(70, 71))
        ),
        "varchar(3) default 'x'": replace(DEST, default="x", filled=True),
        "varchar(3) default 'x' in every row": replace(
            DEST, default="x", filled=True, state=State.WRITE_ONLY
        ),
        "varchar(3) generated always as (id + 1) stored where it can be computed": replace(
            DEST, derived=Derived((1,), "id + 1", generated=True)
        ),
        "varchar(3) generated always as (id + 1) stored until its expression is dropped": replace(
            DEST, derived=Derived((1,), "id + 1", strict=True, generated=True, loose=True)
        ),
        "varchar(3) computed as (id) while its type changes": replace(
            DEST, derived=Derived((1,), "id", strict=True)
        ),
    }
    assert [column_words(column) for column in told.values()] == list(told)


def test_a_sequence_says_which_numbers_it_gives() -> None:
    plain = replace(V1, columns=(ID,), sequence=Sequence("integer", 1, 1, 1, 9))
    other = Sequence("integer", 1, 5, 1, 9, cache=3, cycles=True, begins=4)
    (changed,) = diff(plain, replace(plain, version=2, sequence=other))
    assert str(changed) == (
        "table flights: now a sequence of integer from 1 by 5, minvalue 1, maxvalue 9, cache 3,"
        " cycles, goes on from 4"
    )


def test_a_foreign_key_says_what_it_does() -> None:
    key = ForeignKey(
        *(9, "f", (2, 1), 3, (1, 2)),
        on_delete=OnChange.SET_NULL,
        on_update=OnChange.CASCADE,
        full=True,
        delete_sets=(2,),
        deferred=True,
    )
    assert foreign_key_words(V1, key) == (
        "(dest, id) refers to table 3 match full on delete set null (dest) on update cascade"
        " deferred"
    )


def test_defaults_are_written_as_in_sql() -> None:
    text = Column(9, "note", Type("text"), default="it's")
    flag = Column(9, "late", Type("boolean"), default=1)
    assert column_words(text) == "text default 'it''s'"
    assert column_words(flag) == "boolean default true"
