"""The topics of a database by what they are to one of its nodes."""

from __future__ import annotations

from leasehold.model.records.requests import Queue
from leasehold.model.topics import Topics
from leasehold.replication.effects import (
    Event,
    LogEnd,
    LogIdentified,
    QueueFound,
    QueueIdentified,
    Topic,
)
from leasehold.replication.master.queue_topics import Found


class NodeTopics:
    """Names of topics, and the events that tell a node what was found out about one of them."""

    def __init__(self, topics: Topics) -> None:
        self.log = topics.log.name
        self.acks = topics.acks.name
        self.queues = {topics.requests.name: Queue.REQUESTS, topics.backfill.name: Queue.BACKFILL}
        self.of_queue = {queue: topic for topic, queue in self.queues.items()}
        self.of_send = {
            Topic.RESULTS: topics.results.name,
            Topic.CONFLICTS: topics.conflicts.name,
            Topic.ACKS: self.acks,
            Topic.NOTICES: topics.notices.name,
        }

    def identified(self, topic: str, topic_id: str) -> LogIdentified | QueueIdentified:
        """Return the event for: the log's or a queue's topic has this id now."""
        if topic == self.log:
            return LogIdentified(topic, topic_id)
        return QueueIdentified(self.queues[topic], topic, topic_id)

    def found(self, found: Found) -> tuple[Event, ...]:
        """Return the events, in their order, for: the log's or a queue's topic is this one, with
        these offsets."""
        if found.topic == self.log:
            return LogIdentified(found.topic, found.topic_id), LogEnd(found.end)
        return (QueueFound(self.queues[found.topic], found),)
