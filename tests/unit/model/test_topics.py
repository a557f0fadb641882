"""The table of topics: names, partitions, clean-up."""

from __future__ import annotations

import pytest

from leasehold.model.errors import ConfigurationError
from leasehold.model.topics import MESSAGE_BYTES_MAX, Topic, Topics
from leasehold.replication.log.truncation import TruncationSettings

DATABASE = Topics("air")


def test_names_and_partitions_are_those_of_the_protocol() -> None:
    assert {topic.name: topic.partitions for topic in DATABASE.all_static()} == {
        "air.requests": 1,
        "air.backfill": 1,
        "air.log": 1,
        "air.acks": 1,
        "air.results": 8,
        "air.versions": 1,
        "air.versions-history": 1,
        "air.notices": 1,
        "air.jobs": 1,
        "air.conflicts": 2,
        "air.dead-letter": 1,
        "air.changefeed": 1,
        "air.audit": 1,
        "air.feeds": 1,
        "air.activity": 2,
        "air.activity-seconds-changelog": 1,
        "air.activity-minutes-changelog": 1,
        "air.activity-steps-changelog": 1,
        "air.activity-jobs-changelog": 1,
    }


@pytest.mark.parametrize("topic", [DATABASE.requests, DATABASE.backfill, DATABASE.log])
def test_what_is_not_yet_decided_is_never_deleted_by_time(topic: Topic) -> None:
    assert topic.config["cleanup.policy"] == "delete"
    assert topic.config["retention.ms"] == "-1"
    assert topic.config["retention.bytes"] == "-1"


@pytest.mark.parametrize(
    "topic", [DATABASE.versions, DATABASE.jobs, DATABASE.changefeed, DATABASE.rows(7)]
)
def test_state_topics_are_compacted(topic: Topic) -> None:
    assert topic.config["cleanup.policy"] == "compact"


def test_history_of_versions_is_kept_for_ever() -> None:
    """Old row images are decoded by it."""
    assert DATABASE.versions_history.config["retention.ms"] == "-1"
    assert DATABASE.versions_history.config["cleanup.policy"] == "delete"


def test_what_is_counted_is_kept_for_a_time_and_so_is_what_brings_it_back() -> None:
    """A window has a key of its own, so compaction alone would keep all of them."""
    for table in ("seconds", "minutes", "steps"):
        config = DATABASE.activity_changelog(table).config
        assert config["cleanup.policy"] == "compact,delete"
        assert int(config["segment.ms"]) < int(config["retention.ms"])
    assert DATABASE.activity_changelog("jobs").config["cleanup.policy"] == "compact"


def test_rows_are_named_by_table_id() -> None:
    assert [DATABASE.rows(7).name, DATABASE.rows(72).name] == ["air.rows.7", "air.rows.72"]
    assert {DATABASE.rows(n).partitions for n in range(5)} == {2}


@pytest.mark.parametrize(("replicas", "in_sync"), [(1, 1), (2, 2), (3, 2), (5, 3)])
def test_a_majority_of_replicas_must_have_a_record(replicas: int, in_sync: int) -> None:
    for topic in Topics("air", replicas).all_static():
        assert topic.config["min.insync.replicas"] == str(in_sync)
        assert topic.config["unclean.leader.election.enable"] == "false"
        assert topic.config["max.message.bytes"] == str(MESSAGE_BYTES_MAX)


@pytest.mark.parametrize("name", ["", "Air", "a.b", "1a", "a b", "a" * 64, "é"])
def test_unusable_names_are_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="is not usable"):
        Topics(name)


def test_no_replicas_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="replication factor"):
        Topics("air", 0)


EVERY = [
    *DATABASE.all_static(),
    *(DATABASE.rows(1), DATABASE.intake, DATABASE.feed_transactions),
    *(DATABASE.feed("air.feed.public.t", 3, kept_ms) for kept_ms in (1_000, 86_400_000, -1)),
    DATABASE.held("air.feed.public.t"),
]
KAFKAS_SEGMENT = {"segment.bytes": 1 << 30, "segment.ms": 7 * 24 * 3_600_000}
"""What a broker takes where a topic says nothing."""


def setting(topic: Topic, name: str) -> int:
    return int(topic.config.get(name, KAFKAS_SEGMENT.get(name, -1)))


@pytest.mark.parametrize("topic", EVERY, ids=lambda topic: topic.name)
def test_a_segment_takes_the_largest_message(topic: Topic) -> None:
    """A broker refuses a batch that is larger, and whoever has to publish it would never go on."""
    assert setting(topic, "segment.bytes") >= setting(topic, "max.message.bytes")


@pytest.mark.parametrize("topic", EVERY, ids=lambda topic: topic.name)
def test_what_is_deleted_after_a_time_is_gone_soon_after_it(topic: Topic) -> None:
    """The segment that is written to is never deleted: it is a small part of what is kept."""
    kept_ms = setting(topic, "retention.ms")
    if "delete" not in topic.config["cleanup.policy"] or kept_ms < 0:
        return
    assert setting(topic, "segment.ms") <= max(kept_ms // 4, 60_000)
    assert setting(topic, "segment.bytes") <= 64 << 20


@pytest.mark.parametrize("topic", [DATABASE.acks, DATABASE.notices], ids=lambda topic: topic.name)
def test_what_is_worth_nothing_once_it_is_old_is_bounded_in_bytes(topic: Topic) -> None:
    assert 0 < setting(topic, "retention.bytes") <= 1 << 30


def test_l11_acknowledgements_are_kept_for_longer_than_a_reader_is_waited_for() -> None:
    settings = TruncationSettings()
    assert int(DATABASE.acks.config["retention.ms"]) >= 1.5 * settings.away_ms
