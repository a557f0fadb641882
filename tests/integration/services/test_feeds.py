"""Goal: killed at any moment, the changefeed tells each change of a feed's rows exactly once (L6).

Method: a synthetic log on a real broker, real processes ended by SIGKILL, with and without the file
of rows that they left; a `read_committed` consumer folds the feeds, and checks each row before.
"""

from __future__ import annotations

import json
import random
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from infra.local_cluster import LocalCluster
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.adapters.kafka.topic_creation import ensure_topics
from leasehold.adapters.kafka.whole_topic import read_compacted
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.changefeed import rows_loading
from leasehold.changefeed.publisher import Publisher
from leasehold.cli.main import main
from leasehold.events.debezium.definition import (
    CreateFeed,
    Definition,
    DropFeed,
    Order,
    SnapshotSignal,
    encode_order,
)
from leasehold.model.errors import BusUnavailable
from leasehold.model.records.log import DescriptorWrite, TableTruncated
from leasehold.model.topics import Topics
from leasehold.settings.changefeed import ChangefeedSettings
from leasehold.settings.environment import KafkaSettings
from tests.support.changefeed.changefeed_process import (
    DEADLINE_S,
    append,
    changefeed,
    has_stored,
    published,
    stored_position,
    wait_until,
)
from tests.support.changefeed.fed_table import fold, payload
from tests.support.changefeed.made_log import MadeLog, descriptor_body
from tests.support.cli.json_output import check_printed
from tests.support.cluster.secure_suite import access_of

KILLS = 6
MORE_EVENTS_MAX = 300


@pytest.fixture
def settings(kafka: KafkaSettings) -> KafkaSettings:
    return kafka


@pytest.fixture
def access(servers: LocalCluster, database: str, tmp_path: Path) -> dict[str, str]:
    rows = {"LEASEHOLD_CHANGEFEED_ROWS": str(tmp_path / "feeds" / "rows")}
    return {**access_of(servers, "changefeed", database), **rows}


def order(settings: KafkaSettings, topics: Topics, *orders: Order | bytes) -> None:
    ensure_topics(settings, [topics.feeds])
    writer = TopicWriter(settings, "test-orders")
    for each in orders:
        value = each if isinstance(each, bytes) else encode_order(each)
        writer.send(topics.feeds.name, 0, b"demo.feed", value)
    assert writer.close(DEADLINE_S) == 0


def create(table: str, **fields: Any) -> CreateFeed:
    return CreateFeed(f"make {table}", Definition(table=table, **fields))


def states(settings: KafkaSettings, topics: Topics) -> dict[str, Any]:
    stored = read_compacted(settings, "test", topics.changefeed.name)
    found = [json.loads(value) for key, value in stored.items() if key.startswith(b"feed/")]
    return {state["definition"]["table"]: state for state in found}


def are_on(settings: KafkaSettings, topics: Topics, *names: str) -> bool:
    """Whether these feeds have told the rows that they began with."""
    found = states(settings, topics)
    return all(
        name in found and found[name]["status"] == "on" and found[name]["snapshot"] is None
        for name in names
    )


def events_written(ends: TopicReader, *names: str) -> int:
    written = 0
    for name in names:
        with suppress(BusUnavailable):  # not made yet
            written += sum(ends.end_offset(name, p) for p in range(ends.partitions(name)))
    return written


def last_rows(log: MadeLog, table_id: int, since_lsn: int = 0) -> dict[int, int]:
    rows: dict[int, int] = {}
    for table, (key,), lsn, image in log.rows:
        if table == table_id:
            rows.pop(key, None)
            if image is not None and lsn > since_lsn:
                rows[key] = image[2]
    return rows


def folded(settings: KafkaSettings, topic: str) -> dict[int, int]:
    """n by id, of a consumer that reads each partition by itself."""
    by_partition: dict[int, list[Any]] = {}
    for record in published(settings, topic):
        by_partition.setdefault(record.partition, []).append(record)
    tables = [fold(records) for records in by_partition.values()]
    return {row["id"]: row["n"] for table in tables for row in table.values()}


@pytest.mark.slow
def test_l6_killed_again_and_again_a_feed_tells_every_change_once(
    settings: KafkaSettings, access: dict[str, str], topics: Topics, tmp_path: Path
) -> None:
    log, moments = MadeLog(5), random.Random(17)
    log.claim()
    log.create_table(1)
    log.create_table(2)
    for _ in range(40):
        log.write_rows(log.random.choice((1, 2)), commits=4, keys=40)
    append(settings, topics, log)
    plain, full = create("public.table_1"), create("public.table_2", schemas=True, partitions=2)
    order(settings, topics, plain, full)
    with changefeed(access, topics, tmp_path) as process:
        begun = partial(are_on, settings, topics, "public.table_1", "public.table_2")
        wait_until(begun, process, tmp_path)
    first, later = len(log.records), -len(log.rows)
    for _ in range(400):
        log.write_rows(log.random.choice((1, 2)), commits=log.random.randint(1, 8), keys=40)
    truncated_at = log.lsn + 1
    log.decide((log.commit(catalog=(TableTruncated(2),)),))
    log.forget_rows()
    log.write_rows(2, commits=5, keys=40)
    append(settings, topics, log, first)
    later += len(log.rows)  # changes, of which each is an event at least
    names = [f"{topics.database}.feed.public.table_{number}" for number in (1, 2)]
    ends, kills = TopicReader(settings, "test-ends"), 0

    def is_far(enough: int) -> bool:
        # Little is asked: the process goes on meanwhile.
        return events_written(ends, *names) >= min(enough, later)

    for number in range(KILLS):
        if number % 2:
            (tmp_path / "feeds" / "rows").unlink()
        enough = events_written(ends, *names) + moments.randint(1, MORE_EVENTS_MAX)
        with changefeed(access, topics, tmp_path) as process:
            wait_until(partial(is_far, enough), process, tmp_path)
        kills += stored_position(settings, topics).offset < len(log.records)
    assert kills >= 3, "the log was too short to be killed in"
    ends.close()
    with changefeed(access, topics, tmp_path) as process:
        wait_until(partial(has_stored, settings, topics, log), process, tmp_path)
    assert folded(settings, names[0]) == last_rows(log, 1)
    assert folded(settings, names[1]) == last_rows(log, 2, truncated_at - 1)
    for name, partitions in zip(names, (1, 2), strict=True):
        records = published(settings, name)
        assert {record.partition for record in records} == set(range(partitions))
        told = [payload(record.value) for record in records if record.value is not None]
        places = [each["source"]["sequence"] for each in told if each["op"] in "cud"]
        assert len(places) == len(set(places)), "each change is told once"
        for partition in range(partitions):
            lsns = [
                payload(r.value)["source"]["lsn"]
                for r in records
                if r.value is not None and r.partition == partition
            ]
            assert lsns == sorted(lsns), "in the order of commits"


def test_orders_are_carried_out_once_and_what_is_none_is_passed_over(
    settings: KafkaSettings, access: dict[str, str], topics: Topics, tmp_path: Path
) -> None:
    log = MadeLog(6)
    log.claim()
    log.create_table(1)
    log.write_rows(1, commits=20, keys=15)
    append(settings, topics, log)
    one, nobody = create("public.table_1", snapshot=False), create("public.nobody")
    order(settings, topics, b"no order", one, nobody, create("public.table_1", schemas=True))
    feed = f"{topics.database}.feed.public.table_1"
    signal = SnapshotSignal("", ("public.table_1",))

    def is_refused() -> bool:
        return bool(states(settings, topics).get("public.nobody", {}).get("status") == "refused")

    def is_told(count: int) -> bool:
        read = [payload(r.value)["op"] for r in published(settings, feed) if r.value]
        return read.count("r") >= count and are_on(settings, topics, "public.table_1")

    rows = len(last_rows(log, 1))
    with changefeed(access, topics, tmp_path) as process:
        wait_until(is_refused, process, tmp_path)
        assert are_on(settings, topics, "public.table_1")
        assert not states(settings, topics)["public.table_1"]["definition"]["schemas"]
        assert published(settings, feed) == []
        order(settings, topics, signal)
        wait_until(partial(is_told, rows), process, tmp_path)
    assert folded(settings, feed) == last_rows(log, 1)
    with changefeed(access, topics, tmp_path) as process:  # the orders are there still
        renamed = {**descriptor_body(1, 2), "name": "renamed"}
        more = len(log.records)
        log.decide((log.commit(catalog=(DescriptorWrite(1, 2, renamed),)),))
        log.write_rows(1, commits=5, keys=15)
        append(settings, topics, log, more)
        order(settings, topics, DropFeed("", "public.nobody"))
        wait_until(partial(has_stored, settings, topics, log), process, tmp_path)
        wait_until(lambda: "public.nobody" not in states(settings, topics), process, tmp_path)
        order(settings, topics, signal)
        wait_until(partial(is_told, 2 * rows - 15), process, tmp_path)
    assert folded(settings, feed) == last_rows(log, 1)
    names = {payload(r.value)["source"]["table"] for r in published(settings, feed) if r.value}
    assert names == {"table_1", "renamed"}


def test_the_command_makes_lists_and_drops_feeds(
    settings: KafkaSettings,
    servers: LocalCluster,
    access: dict[str, str],
    topics: Topics,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = MadeLog(7)
    log.claim()
    log.create_table(1)
    log.write_rows(1, commits=20, keys=15)
    append(settings, topics, log)
    ensure_topics(settings, [topics.feeds])
    for name, value in access_of(servers, "operator", topics.database).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LEASEHOLD_DATABASE", topics.database)

    def run(*words: str) -> tuple[int, Any]:
        code = main(["feed", *words, "--json"])
        out = capsys.readouterr()
        check_printed(["feed", *words, "--json"], out.out)
        return code, json.loads(out.out) if out.out else out.err

    with changefeed(access, topics, tmp_path) as process:
        wait_until(partial(has_stored, settings, topics, log), process, tmp_path)
        code, state = run("create", "table_1", "--columns", "n", "--where", "n > 500")
        assert (code, state["status"], state["topic"]) == (
            0,
            "on",
            f"{topics.database}.feed.public.table_1",
        )
        assert run("create", "table_1")[0] == 1
        code, state = run("create", "nobody")
        assert (code, state["words"]) == (1, "table 'public.nobody' does not exist")
        assert run("create", "table_1", "--partitions", "0")[0] == 2
        code, listed = run("list")
        assert [each["status"] for each in listed] == ["refused", "on"]
        assert run("snapshot", "table_1", "nobody")[0] == 1
        assert run("snapshot", "table_1")[0] == 0
        assert run("drop", "nobody")[0] == 0
        assert run("drop", "table_1")[0] == 0
        wait_until(lambda: states(settings, topics) == {}, process, tmp_path)
    found = folded(settings, f"{topics.database}.feed.public.table_1")
    assert found == {key: n for key, n in last_rows(log, 1).items() if n > 500}


def test_while_a_feeds_rows_are_read_all_else_is_published(
    settings: KafkaSettings, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows and other feeds go on, and the feed begins with the rows as of where it begins: what is
    written meanwhile is among them, once."""
    monkeypatch.setattr(rows_loading, "SLICE_RECORDS", 5)
    log = MadeLog(9)
    log.claim()
    log.create_table(1)
    log.create_table(2)
    for _ in range(20):
        log.write_rows(1, commits=20, keys=50)
    append(settings, topics, log)
    order(settings, topics, create("public.table_1"), create("public.table_2"))
    places: list[int] = []
    turns = 0

    def stop() -> bool:
        """Whether the publisher is to end; asked once a turn, by it."""
        nonlocal turns
        feeds = publisher._table_feeds
        if feeds.is_loading:
            turns += 1
            places.append(publisher._stored.offset)
            if turns % 10 == 0 and turns <= 100:
                more = len(log.records)
                log.write_rows(1 + turns // 10 % 2, commits=2, keys=50)
                append(settings, topics, log, more)
        names = ("public.table_1", "public.table_2")
        begun = all(name in feeds._states for name in names) and not feeds.has_snapshot
        return begun and publisher._stored.offset >= len(log.records)

    given = ChangefeedSettings(linger_ms=0)
    with closing(Publisher(settings, topics, given, stop)) as publisher:
        publisher.open()
        publisher.run()
    assert len(set(places)) > 3, "places were stored while rows were read"
    for table_id in (1, 2):
        feed = f"{topics.database}.feed.public.table_{table_id}"
        assert folded(settings, feed) == last_rows(log, table_id)
        told = [payload(record.value) for record in published(settings, feed) if record.value]
        begun = states(settings, topics)[f"public.table_{table_id}"]["since_lsn"]
        changes = [each["source"]["lsn"] for each in told if each["op"] in "cud"]
        wanted = [lsn for table, _, lsn, _ in log.rows if table == table_id and lsn > begun]
        assert set(changes) <= set(wanted)
        assert changes == sorted(changes)
