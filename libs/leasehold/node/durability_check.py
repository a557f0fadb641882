"""Tells at the start of a master how writes that were acknowledged could be lost, by the settings
of topics and of Redis. It keeps nobody from starting: `leasehold status` and `leasehold doctor` say
the same, with what to do."""

from __future__ import annotations

import logging
from contextlib import closing
from threading import Thread
from typing import Final

from leasehold.adapters.kafka.cluster_look import TopicLooker
from leasehold.adapters.kafka.durability import find_weaknesses
from leasehold.adapters.redis.durability import find_redis_weaknesses
from leasehold.adapters.redis.server_look import look_at_redis
from leasehold.model.errors import LeaseholdError
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings, RedisSettings

LOOK_S: Final = 10.0
LOG: Final = logging.getLogger("leasehold.durability")


def begin_durability_check(topics: Topics, kafka: KafkaSettings, redis: RedisSettings) -> None:
    """Look at both on a thread of its own, and log a line for each weakness: a warning where more
    than one broker was asked for, or Redis is not what it is said to be."""
    args = (topics, kafka, redis)
    Thread(target=check_durability, args=args, name="durability-check", daemon=True).start()


def check_durability(topics: Topics, kafka: KafkaSettings, redis: RedisSettings) -> None:
    """Look at both and log what was found. A part that is away is passed over: others say that."""
    try:
        _check_kafka(topics, kafka)
    except LeaseholdError as error:
        LOG.debug("the topics' durability is not known: %s", error.message)
    try:
        seen = look_at_redis(redis)
    except LeaseholdError as error:
        LOG.debug("the ledger's durability is not known: %s", error.message)
        return
    for words, to_do, _ in find_redis_weaknesses(seen, len(redis.sentinels)):
        LOG.warning("the ledger could be lost: %s; %s", words, to_do)


def _check_kafka(topics: Topics, kafka: KafkaSettings) -> None:
    names = [topics.log.name, topics.requests.name]
    with closing(TopicLooker(kafka, LOOK_S)) as looker:
        brokers = looker.brokers(names[0])
        found = looker.topics(names)
    # Who has asked for one broker alone knows what that may cost.
    level = logging.WARNING if topics.replication_factor > 1 or brokers > 1 else logging.INFO
    for name, seen in found.items():
        if seen.partitions:
            for words, to_do in find_weaknesses(name, seen, brokers):
                LOG.log(level, "acknowledged writes could be lost: %s; %s", words, to_do)
