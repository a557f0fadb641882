"""Goal: a feed tells each change of its rows once, with the row before, whatever the table becomes.

Method: synthetic logs, followed whole and in two parts; a consumer folds the messages of a feed to
a table, and checks each row before against what it has.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.states import State
from leasehold.events.debezium.definition import Definition
from leasehold.model.errors import LeaseholdError, MalformedRequest
from leasehold.model.records.events import RowImage
from leasehold.model.records.log import (
    Backfill,
    ChangeKind,
    DescriptorWrite,
    RowChange,
    TableTruncated,
)
from leasehold.replication.feed_state import Feed, Snapshot
from leasehold.replication.table_feeds import SNAPSHOT_ROWS, RowTold, TableFeeds
from leasehold.values.types import Type
from tests.support.changefeed.fed_table import (
    RELEASE,
    TABLE,
    FollowedLog,
    fold,
    make_feed,
    payload,
    to_messages,
)
from tests.support.changefeed.made_log import MadeLog

ID, N, NOTE = TABLE.columns


class Story:
    """A log that is followed as it is written, with feeds from a moment on."""

    def __init__(self) -> None:
        self.log = MadeLog()
        self.log.claim()
        self.followed = FollowedLog()
        self.version(TABLE)

    def follow(self) -> None:
        for offset in range(self.followed.changefeed.position.offset, len(self.log.records)):
            self.followed.follow(self.log.records[offset][0], offset)

    def feed(self, table: Descriptor = TABLE, **fields: Any) -> Feed:
        self.follow()
        feed = make_feed(table, self.log.lsn, **fields)
        self.followed.feeds.add(feed, table)
        return feed

    def version(self, *tables: Descriptor) -> None:
        writes = tuple([DescriptorWrite(t.table_id, t.version, t.to_wire()) for t in tables])
        self.log.decide((self.log.commit(catalog=writes),))
        self.follow()

    def write(self, *changes: RowChange) -> None:
        self.log.decide((self.log.commit(changes),))
        self.follow()

    def ops(self) -> list[tuple[str, Any, Any]]:
        """Op, row before and row after of each event, and forget them."""
        found = []
        for told in self.followed.told:
            if isinstance(told, RowTold):
                rows = told.form.row(told.key, told.before), told.form.row(told.key, told.after)
                found.append((told.op, *rows))
        self.followed.told.clear()
        return found


def put(key: int, *, table: int = 1, version: int = 1, **values: Any) -> RowChange:
    names = {"n": 2, "note": 3, "more": 4}
    pairs = {1: key, **{names[name]: value for name, value in values.items()}}
    return RowChange(ChangeKind.UPDATE, table, version, (key,), pairs, {}, (0,))


def gone(key: int) -> RowChange:
    return RowChange(ChangeKind.DELETE, 1, 1, (key,), None, {0: 1}, (0,))


def last_rows(log: MadeLog, truncated_at: int) -> dict[int, int]:
    """What the table holds in the end: n by id."""
    rows: dict[int, int] = {}
    for _, (key,), lsn, image in log.rows:
        rows.pop(key, None)
        if image is not None and lsn > truncated_at:
            rows[key] = image[2]
    return rows


@pytest.mark.parametrize("seed", range(6))
def test_folding_a_feed_gives_the_table(seed: int) -> None:
    """A random history with a truncation; the follower is started again on the way, and another
    feed of the same table begins later, with a snapshot between two records."""
    log, table = MadeLog(seed), replace(TABLE, name="table_1", columns=(ID, N))
    log.claim()
    log.create_table(1)
    for number in range(24):
        log.write_rows(1, commits=4, keys=15)
        if number == 14:
            log.decide((log.commit(catalog=(TableTruncated(1),)),))
            truncated_at = log.lsn
            log.forget_rows()
    first = FollowedLog()
    first.feeds.add(make_feed(table, schemas=bool(seed % 2)), table)
    for offset, (data, _) in enumerate(log.records):
        first.follow(data, offset)
        if offset == 3 + seed:
            states = [f.to_json() for f in first.feeds.feeds.values()]
            feeds = [Feed.restore("demo", RELEASE, state) for state in states]
            first.feeds = TableFeeds(first.rows, feeds, (table,))
        if offset == 10:
            late = make_feed(table, log.lsn, table="public.late", tombstones=False, snapshot=True)
            first.feeds.add(late, table)
            first.snapshot()
    for topic in ("demo.feed.public.table_1", "demo.feed.public.late"):
        messages = [m for m in first.messages(partitions=2) if m.topic == topic]
        found = {row["id"]: row["n"] for row in fold(messages).values()}
        assert found == last_rows(log, truncated_at)
        ops = {payload(m.value)["op"] for m in messages if m.value}
        assert ops == {"c", "u", "d", "t", *("r" if "late" in topic else "")}
        assert any(m.value is None for m in messages) == ("late" not in topic)


def test_an_event_says_where_it_comes_from() -> None:
    story = Story()
    story.feed()
    story.write(put(1, n=5), put(2, n=6))
    events = [payload(m.value) for m in story.followed.messages()]
    assert [(e["op"], e["after"]["id"], e["source"]["sequence"]) for e in events] == [
        ("c", 1, '["2","1"]'),
        ("c", 2, '["2","2"]'),
    ]
    source = events[0]["source"]
    assert (source["lsn"], source["position"]) == (2, len(story.log.records) - 1)
    assert (source["schema"], source["table"], source["schema_version"]) == ("public", "t", 1)
    assert source["ts_us"] == story.log.commit_us


def test_a_backfill_that_shows_nothing_is_no_event() -> None:
    story = Story()
    story.feed()
    story.write(put(1, n=5))
    story.ops()
    same = Backfill(1, 1, 4, ((1,),), ({1: 1, 2: 5, 4: "hidden"},), ({0: 1},))
    other = Backfill(1, 1, 3, ((1,),), ({1: 1, 2: 5, 3: "shown", 4: "hidden"},), ({0: 1},))
    story.write(put(1, n=5)._replace(kind=ChangeKind.BACKFILL, locks=()))  # of an older master
    story.log.decide((story.log.commit()._replace(backfills=(same,)),))
    story.log.decide((story.log.commit()._replace(backfills=(other,)),))
    story.follow()
    ((op, before, after),) = story.ops()
    assert (op, before["note"], after["note"]) == ("u", None, "shown")


def test_columns_that_are_listed_and_the_key_are_told() -> None:
    """Under their new names, and with another type; one that is added is not of the feed."""
    story = Story()
    feed = story.feed(columns=("note",))
    story.write(put(1, n=5, note="a"))
    renamed = replace(TABLE, version=2, columns=(ID, N, replace(NOTE, name="remark")))
    story.version(renamed)
    story.write(put(1, n=6, note="b"))
    typed = replace(
        renamed,
        version=3,
        columns=(
            *(ID, N, replace(NOTE, name="old", state=State.WRITE_ONLY)),
            *(Column(4, "remark", Type("varchar", 9)), Column(5, "new", Type("bigint"))),
        ),
    )
    story.version(typed)
    story.write(put(1, version=3, n=7, more="c"))
    assert story.ops() == [
        ("c", None, {"id": 1, "note": "a"}),
        ("u", {"id": 1, "remark": "a"}, {"id": 1, "remark": "b"}),
        ("u", {"id": 1, "remark": None}, {"id": 1, "remark": "c"}),
    ]
    assert feed.is_on


def test_a_condition_makes_rows_come_and_go() -> None:
    """It goes on under a column's new name, and the feed fails where the column is gone."""
    story = Story()
    feed = story.feed(where="n > 10")
    story.write(put(1, n=5))
    story.write(put(1, n=11))
    story.write(put(1, n=12))
    story.version(replace(TABLE, version=2, columns=(ID, replace(N, name="m"), NOTE)))
    story.write(put(1, n=3))
    story.write(put(1, n=13), put(2), put(3, n=9))
    story.write(gone(1), gone(2))
    assert [
        (op, (before or {}).get("id"), (after or {}).get("id")) for op, before, after in story.ops()
    ] == [
        ("c", None, 1),
        ("u", 1, 1),
        ("d", 1, None),
        ("c", None, 1),
        ("d", 1, None),
    ]
    story.version(replace(TABLE, version=3, columns=(ID, NOTE)))
    assert (feed.status, feed.words) == (
        "failed",
        "its condition can't be computed any more: column m is gone",
    )
    story.write(put(5, n=50))
    assert story.ops() == []


def test_a_row_on_which_the_condition_fails_is_none_of_the_feed() -> None:
    story = Story()
    story.feed(where="10 / n > 1")
    story.write(put(1, n=0), put(2, n=5))
    assert [op for op, *_ in story.ops()] == ["c"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"columns": ("nope",)}, "nope"),
        ({"where": "nope > 1"}, "nope"),
        ({"where": "n + 1"}, "not boolean"),
        ({"where": "n >"}, "syntax"),
        ({"where": "n > random()"}, "random"),
    ],
)
def test_a_definition_that_does_not_fit_is_refused(fields: dict[str, Any], words: str) -> None:
    feed = Feed("demo", RELEASE, Definition(table="public.t", **fields), "")
    with pytest.raises(LeaseholdError, match=words):
        feed.begin(TABLE, 1)


def test_a_feed_goes_on_through_a_new_name_and_ends_with_its_table() -> None:
    story = Story()
    feed = story.feed()
    story.version(replace(TABLE, version=2, name="u"))
    story.write(put(1, n=5))
    (message,) = story.followed.messages()
    assert message.topic == "demo.feed.public.t"
    assert payload(message.value)["source"]["table"] == "u"
    story.ops()
    story.version(replace(TABLE, version=3, name="u", state=State.WRITE_ONLY))
    story.write(put(1, version=2, n=6))
    assert story.ops() == []
    assert (feed.status, feed.words) == ("ended", "table u was dropped")
    assert story.followed.rows.rows == {}


def test_a_feed_goes_over_to_the_table_with_the_other_primary_key() -> None:
    story = Story()
    feed = story.feed()
    mirror = replace(
        TABLE, table_id=9, name="t", primary_key=(2,), state=State.WRITE_ONLY, mirror=1, former=1
    )
    story.version(replace(TABLE, version=2, mirror=9), replace(mirror, version=2))
    other = put(1, n=50)._replace(table_id=9, key=(50,), locks=())
    story.write(put(1, n=50), other)
    assert [op for op, *_ in story.ops()] == ["c"]
    story.version(
        replace(TABLE, version=3, mirror=9, state=State.WRITE_ONLY),
        replace(mirror, version=3, state=State.PUBLIC),
    )
    assert feed.table_id == 9
    assert story.ops() == [("t", None, None)]
    story.followed.snapshot()
    assert story.ops() == [("r", None, {"id": 1, "n": 50, "note": None})]
    # a writer of the version before names the old table; the other one follows, without a lock
    story.write(put(1, n=50, note="x"), other._replace(image={1: 1, 2: 50, 3: "x"}))
    (message,) = story.followed.messages()
    assert json.loads(message.key or b"") == {"n": 50}
    assert payload(message.value)["op"] == "u"
    story.version(replace(TABLE, version=4, mirror=0, state=State.ABSENT))
    assert list(story.followed.rows.rows) == [9]


def test_a_snapshot_stands_between_records_and_goes_on_where_it_was() -> None:
    story = Story()
    story.write(*(put(n, n=n) for n in range(3)))  # before there is a feed: FedRows is loaded
    feed = story.feed(snapshot=True)
    for n in range(2 * SNAPSHOT_ROWS):
        story.followed.rows.put(RowImage(1, (n,), {}, 1, 1, 5, {1: n, 2: n}))
    told = story.followed.feeds.snapshot(5, 10)
    assert len(told) == SNAPSHOT_ROWS
    story.write(put(0, n=7))
    again = Feed.restore("demo", RELEASE, feed.to_json())
    assert isinstance(again.snapshot, Snapshot)
    assert again.snapshot.rows == SNAPSHOT_ROWS
    story.followed.feeds = TableFeeds(story.followed.rows, (again,), (TABLE,))
    rest = story.followed.feeds.snapshot(6, 11)
    words = [t.source.snapshot for t in (*told, *rest) if isinstance(t, RowTold)]
    assert words == ["true"] * (2 * SNAPSHOT_ROWS - 1) + ["last"]
    assert len({t.key for t in (*told, *rest) if isinstance(t, RowTold)}) == 2 * SNAPSHOT_ROWS
    assert not story.followed.feeds.has_snapshot
    again.start_snapshot()
    (one, *_) = story.followed.feeds.snapshot(7, 12)
    assert isinstance(one, RowTold)
    assert one.source.snapshot == "incremental"


def test_transactions_are_told_with_their_counts() -> None:
    """Of feeds that take part alone; a commit without an event of theirs has none."""
    story = Story()
    story.feed(transactions=True)
    other = replace(TABLE, table_id=2, name="other")
    story.version(other)
    story.feed(other)
    story.write(put(1, n=5), put(1, table=2, n=6), put(2, n=7))
    story.write(put(2, table=2, n=6))
    messages = story.followed.messages()
    found = [(m.topic, payload(m.value)) for m in messages]
    offset = len(story.log.records) - 2
    name = f"3:{offset}"
    assert [topic for topic, _ in found] == [
        "demo.feed.transaction",
        "demo.feed.public.t",
        "demo.feed.public.other",
        "demo.feed.public.t",
        "demo.feed.transaction",
        "demo.feed.public.other",
    ]
    assert [body.get("transaction") for _, body in found[1:4]] == [
        {"id": name, "total_order": 1, "data_collection_order": 1},
        None,
        {"id": name, "total_order": 2, "data_collection_order": 2},
    ]
    assert found[4][1]["data_collections"] == [{"data_collection": "public.t", "event_count": 2}]


def test_a_row_that_can_not_be_told_ends_its_feed_alone() -> None:
    story = Story()
    feed = story.feed()
    broken = put(2)._replace(image={1: 2, 2: 3, 3: 5})
    table = replace(TABLE, columns=(ID, N, Column(3, "at", Type("timestamptz"))))
    story.version(replace(table, version=2))
    story.write(put(1, n=1), broken._replace(image={1: 2, 3: "no time"}), put(3, n=3))
    told = list(to_messages(story.followed.told))
    assert len(told) == 1
    assert feed.status == "failed"
    assert feed.words.startswith("row (2,) can't be told")


def test_a_state_that_can_not_be_read_is_refused() -> None:
    state = json.loads(make_feed(TABLE).to_json())
    changed: list[dict[str, object]] = [{"format": 9}, {"columns": 3}, {"snapshot": 1}]
    broken: list[object] = [{}, [], *({**state, **each} for each in changed)]
    for body in broken:
        with pytest.raises(MalformedRequest):
            Feed.restore("demo", RELEASE, json.dumps(body).encode())
