"""Goal: a feed goes on through whatever statements do to its table.

Method: a whole database in this process, changed by statements with writes between; its log is then
followed by a feed from the table's first version on. A consumer that folds the feed's messages has
the rows that the database has, without those that another column's type or key has changed since:
they are told by a snapshot, as with Debezium.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leasehold.catalog.descriptor import from_wire
from leasehold.catalog.job import Status
from leasehold.dev.database import DevDatabase
from leasehold.model.records.events import VersionEvent
from leasehold.replication.changefeed import FeedPublication
from tests.support.changefeed.fed_table import FollowedLog, fold, make_feed, payload

Row = dict[str, Any]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[DevDatabase]:
    dev = DevDatabase(tmp_path, lambda _words: None)
    try:
        dev.wait_ready()
        yield dev
    finally:
        dev.close()


def put(key: Row, **values: Any) -> Row:
    return {"table": "t", "op": "upsert", "key": key, "values": values}


def delete(**key: Any) -> Row:
    return {"table": "t", "op": "delete", "key": key}


def run(database: DevDatabase, *requests: Row | str) -> None:
    """Each after the other, with the jobs that it makes."""
    for request in requests:
        answer = database.ask({"sql": request} if isinstance(request, str) else request)
        assert answer.committed, answer.outcome.message
        for job in database.jobs():
            ended = database.wait_job(job.job_id)
            assert ended is not None
            assert ended.status is Status.SUCCEEDED, ended.error


def follow(database: DevDatabase, **fields: Any) -> FollowedLog:
    """Follow the database's log by a feed of its first table, from CREATE TABLE on."""
    followed = FollowedLog()
    with database.held():
        records = list(database.cluster.bus.read(database.cluster.topics.log.name))
    for record in records:
        step = followed.follow(record.value or b"", record.offset)
        for made in step.publications if not followed.feeds.feeds else ():
            if isinstance(made, FeedPublication) and isinstance(made.record, VersionEvent):
                table = from_wire(made.record.body)
                followed.feeds.add(make_feed(table, **fields), table)
    return followed


def found_in(database: DevDatabase, *keys: Row) -> list[Row]:
    found = [database.get("t", key) for key in keys]
    return [dict(row) for row in found if row is not None]


MADE = "create table t (id bigint primary key, n integer not null, note text)"

STORIES = {
    "a column comes, is renamed and goes": (
        MADE,
        put({"id": 1}, n=1, note="a"),
        "alter table t add column more bigint not null default 7",
        put({"id": 2}, n=2, note="b", more=8),
        "alter table t rename column more to most",
        put({"id": 3}, n=3, most=9),
        "alter table t drop column note",
        put({"id": 1}, n=4),
        delete(id=2),
    ),
    "a column changes its type": (
        MADE,
        put({"id": 1}, n=1, note="a"),
        put({"id": 2}, n=2, note="b"),
        "alter table t alter column n type text using n::text || '!'",
        put({"id": 2}, n="two"),
        put({"id": 3}, n="three"),
        delete(id=1),
    ),
    "the primary key is another one": (
        MADE,
        put({"id": 1}, n=11, note="a"),
        put({"id": 2}, n=12, note="b"),
        put({"id": 4}, n=14, note="untouched"),
        "alter table t drop constraint t_pkey, add primary key (n)",
        put({"n": 12}, id=2, note="c"),
        put({"n": 13}, id=3),
        delete(n=11),
    ),
    "the table is emptied, and gets another name": (
        MADE,
        put({"id": 1}, n=1),
        {"sql": "truncate t"},
        put({"id": 2}, n=2),
        "alter table t rename to u",
        {"table": "u", "op": "upsert", "key": {"id": 3}, "values": {"n": 3}},
        "alter table u rename to t",
        put({"id": 2}, n=4),
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_a_feed_goes_on_through_what_becomes_of_its_table(
    database: DevDatabase, story: str
) -> None:
    run(database, *STORIES[story])
    followed = follow(database)
    (feed,) = followed.feeds.feeds.values()
    assert feed.is_on, feed.words
    followed.snapshot()  # one has begun with another primary key
    table = fold(followed.messages(), one_version=False)
    key = "n" if "key" in story else "id"
    rows = found_in(database, *({key: value} for value in (1, 2, 3, 11, 12, 13, 14)))
    assert sorted(row[key] for row in table.values()) == [row[key] for row in rows]
    feed.start_snapshot()
    followed.snapshot()
    told = fold(followed.messages(), one_version=False)
    assert sorted(told.values(), key=lambda row: row[key]) == rows


def test_a_feed_ends_with_its_table(database: DevDatabase) -> None:
    run(database, MADE, put({"id": 1}, n=1), "drop table t", MADE, put({"id": 2}, n=2))
    followed = follow(database)
    (feed,) = followed.feeds.feeds.values()
    assert (feed.status, feed.words) == ("ended", "table t was dropped")
    assert [payload(m.value)["op"] for m in followed.messages()] == ["c"]
    assert followed.rows.rows == {}
