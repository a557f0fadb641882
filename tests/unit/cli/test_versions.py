"""Whom `leasehold versions --follow TABLE` follows: a table, whatever it is called meanwhile."""

from __future__ import annotations

from dataclasses import replace

from leasehold.admin.fold import fold
from leasehold.admin.view import ClusterView
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.states import State
from leasehold.cli.versions import Followed
from leasehold.model.records.events import VersionEvent
from leasehold.values.types import Type

V1 = Descriptor(1, "flights", 1, (Column(1, "id", Type("bigint"), nullable=False),), (1,))
V2 = replace(V1, version=2, name="trips", alias="flights")
V3 = replace(V2, version=3, alias="")
V4 = replace(V3, version=4, state=State.ABSENT)
OTHER = replace(V1, table_id=2, name="gates")
ANEW = replace(V1, table_id=3)


def view(*versions: Descriptor) -> ClusterView:
    seen = ClusterView()
    for number, each in enumerate(versions):
        event = VersionEvent(
            each.table_id, each.name, each.version, number, 9, each.to_wire(), 0, ""
        )
        seen = fold(seen, event, 9)
    return seen


def told(followed: Followed, *versions: Descriptor) -> list[tuple[int, int]]:
    news = followed.news(view(*versions))
    return [(change.event.table_id, change.event.version) for change in news]


def test_a_table_that_is_renamed_is_followed_on_to_its_end_and_its_names_next_table_too() -> None:
    followed = Followed(view(V1), "flights")
    assert told(followed, V1, V2, OTHER) == [(1, 2)]
    assert told(followed, V1, V2, OTHER, V3) == [(1, 3)]
    assert told(followed, V1, V2, OTHER, V3, ANEW, V4) == [(3, 1), (1, 4)]
    assert told(followed, V1, V2, OTHER, V3, ANEW, V4) == []


def test_one_that_is_not_there_yet_is_followed_from_its_first_version_on() -> None:
    followed = Followed(view(), "flights")
    assert told(followed, OTHER) == []
    assert told(followed, OTHER, V1) == [(1, 1)]


def test_without_a_name_all_are() -> None:
    followed = Followed(view(V1), None)
    assert told(followed, V1, OTHER, V2) == [(2, 1), (1, 2)]
