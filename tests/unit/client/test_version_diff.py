"""What changed between two versions, in words and as data."""

from __future__ import annotations

from dataclasses import replace

from leasehold.client.version_diff import column_words, diff
from leasehold.schema.descriptor import Column, Descriptor, Index
from leasehold.schema.states import State
from leasehold.schema.types import Type

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
    v3 = v2.with_state(3, State.WRITE_ONLY)
    v4 = v3.with_state(3, State.ABSENT)
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
            "kind": "index",
            "name": "by_dest",
            "before": "absent",
            "after": "public",
            "detail": "unique on (dest)",
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


def test_equal_versions_differ_in_nothing() -> None:
    assert diff(V1, replace(V1, version=2)) == ()


def test_defaults_are_written_as_in_sql() -> None:
    text = Column(9, "note", Type("text"), default="it's")
    flag = Column(9, "late", Type("boolean"), default=1)
    assert column_words(text) == "text default 'it''s'"
    assert column_words(flag) == "boolean default true"
