"""Which versions are kept, and what is said of those that are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.admin.version_history import event_at, history_of
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.states import State
from leasehold.model.errors import SnapshotTooOld, StaleVersion, UnknownTable, UnknownVersion
from leasehold.model.records.events import VersionEvent
from leasehold.values.types import Type

ID = Column(1, "id", Type("bigint"), nullable=False)
GATE = Column(2, "gate", Type("text"))
V4 = Descriptor(1, "flights", 4, (ID,), (1,), next_element_id=2)
V5 = replace(V4, version=5, columns=(ID, replace(GATE, state=State.DELETE_ONLY)))
V6 = replace(V4, version=6, columns=(ID, GATE))
V7 = replace(V6, version=7, name="departures", alias="flights")


def event(descriptor: Descriptor) -> VersionEvent:
    wire = descriptor.to_wire()
    return VersionEvent(descriptor.table_id, descriptor.name, descriptor.version, 9, 9, wire, 0, "")


KEPT = [event(v) for v in (V4, V5, V6)]


def test_a_diff_of_versions_that_do_not_follow_each_other_both_ways() -> None:
    history = history_of(KEPT, "flights")
    assert [str(c) for c in history.between(4, 6)] == ["column gate added, public (text)"]
    assert [str(c) for c in history.between(6, 4)] == ["column gate is gone (was public)"]
    assert history.between(5, 5) == ()


@pytest.mark.parametrize(
    ("version", "error", "words"),
    [
        (7, UnknownVersion, "table 'flights' has no version 7; the newest is 6"),
        (0, UnknownVersion, "table 'flights' has no version 0; the newest is 6"),
        (3, StaleVersion, "version 3 of table 'flights' is no longer kept; the oldest kept is 4"),
    ],
)
def test_a_version_that_is_not_there(version: int, error: type[Exception], words: str) -> None:
    for first, second in ((version, 5), (5, version)):
        with pytest.raises(error, match=words):
            history_of(KEPT, "flights").between(first, second)


def test_a_version_of_the_table_that_had_the_name_before_says_so() -> None:
    """Its number goes on from that one's: nothing of it is lost."""
    anew = replace(V4, table_id=2, version=5, replaces=1)
    history = history_of([event(V4), event(anew), event(replace(anew, version=6))], "flights")
    words = (
        "version 4 of 'flights' was that of a table which was dropped; this one begins with .* 5"
    )
    with pytest.raises(UnknownVersion, match=words):
        history.between(4, 6)


def test_history_tells_what_each_version_changed() -> None:
    told = [[str(c) for c in each.changes] for each in history_of(KEPT, "flights").changes()]
    assert told == [
        ["column id added, public (bigint not null)"],
        ["column gate added, delete-only (text)"],
        ["column gate: delete-only → public"],
    ]


def test_events_that_come_again_change_nothing() -> None:
    assert history_of([*KEPT, *KEPT], "flights") == history_of(KEPT, "flights")


def test_a_name_is_that_of_the_table_that_has_it_now() -> None:
    """Both names while two versions live; a name recreated is the new table's; one that nobody
    has any more is that of the last table that had it."""
    renamed = [*KEPT, event(V7)]
    assert history_of(renamed, "departures").newest.version == 7
    assert history_of(renamed, "flights").newest.version == 7
    anew = event(replace(V4, table_id=2, version=1))
    assert history_of([*renamed, anew], "flights").newest.table_id == 2
    gone = event(replace(V4, table_id=2, version=2, state=State.ABSENT))
    done = event(replace(V7, version=8, alias=""))
    assert history_of([*renamed, done, anew, gone], "flights").newest.table_id == 2


def test_a_table_that_never_was() -> None:
    with pytest.raises(UnknownTable, match="'no_such' does not exist"):
        history_of(KEPT, "no_such")


def test_as_of_an_lsn_a_table_is_what_had_the_name_then() -> None:
    at = [event(v)._replace(lsn=10 * v.version) for v in (V4, V5, V6, V7)]
    assert event_at(at, "flights", 59).version == 5
    assert event_at(at, "flights", 75).version == 7, "both names resolve"
    assert event_at(at, "departures", 75).version == 7
    with pytest.raises(UnknownTable, match="'departures' did not exist at LSN 69"):
        event_at(at, "departures", 69)
    with pytest.raises(SnapshotTooOld, match="begins at LSN 40"):
        event_at(at, "flights", 39)
    first = [event(replace(V4, version=1))._replace(lsn=40)]
    with pytest.raises(UnknownTable, match="LSN 39"):
        event_at(first, "flights", 39)


def test_a_table_that_took_anothers_place_goes_on_from_its_versions() -> None:
    """The primary key is changed: both have the name, one of them is read."""
    gate = replace(GATE, nullable=False)
    follows = replace(
        V6, table_id=2, columns=(ID, gate), primary_key=(2,), state=State.WRITE_ONLY, former=1
    )
    taken = replace(follows, version=7, state=State.PUBLIC)
    left = replace(V6, version=7, state=State.WRITE_ONLY)
    before = [event(v)._replace(lsn=10 * v.version) for v in (V4, V5, V6, follows)]
    assert history_of(before, "flights").newest.table_id == 1
    events = [*before, event(left)._replace(lsn=70), event(taken)._replace(lsn=70)]
    history = history_of(events, "flights")
    assert [(e.table_id, e.version) for e in history.events] == [(1, 4), (1, 5), (1, 6), (2, 7)]
    said = [str(change) for change in history.between(6, 7)]
    assert said == [
        "table flights: now primary key (gate)",
        "column gate: now text not null",
    ]
    assert event_at(events, "flights", 69).table_id == 1
    assert event_at(events, "flights", 70).table_id == 2
    ended = replace(left, version=8, state=State.ABSENT)
    assert history_of([*events, event(ended)], "flights").newest.table_id == 2


def test_events_in_which_tables_took_each_other_s_place_come_to_an_end() -> None:
    """No master writes such; whoever may write to the topic does."""
    one = [event(replace(V4, table_id=1, former=2)), event(replace(V4, table_id=2, former=1))]
    assert history_of(one, "flights").newest.version == 4
    itself = [event(replace(V4, table_id=1, former=1))]
    assert history_of(itself, "flights").newest.version == 4
