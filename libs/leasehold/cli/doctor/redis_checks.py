"""Checks of Redis: whether it keeps the ledger, and has memory for it. PURE."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from leasehold.adapters.redis.durability import find_redis_weaknesses
from leasehold.adapters.redis.server_look import RedisSeen
from leasehold.cli.doctor.facts import Facts
from leasehold.cli.doctor.finding import Check, Problem, Unseen, fail, warn

MEMORY_WARN_PERCENT: Final = 80
MEMORY_FAIL_PERCENT: Final = 95
MIB: Final = 1 << 20


def _redis(facts: Facts) -> RedisSeen:
    assert not isinstance(facts.redis, Unseen), "the check needs it"
    return facts.redis


def judge_memory(facts: Facts) -> Iterator[Problem]:
    """Yield that its memory ends soon."""
    redis = _redis(facts)
    if redis.evicted:
        yield fail(
            f"Redis has given up {redis.evicted:,} keys for want of memory: leases may be among"
            " them",
            "CONFIG SET maxmemory-policy noeviction, and give it more memory; schema changes wait"
            " until the ledger is whole again",
        )
    if not redis.memory_max:
        return
    percent = redis.memory * 100 // redis.memory_max
    words = (
        f"Redis uses {redis.memory // MIB:,} MiB, {percent} % of its maxmemory"
        f" ({redis.memory_max // MIB:,} MiB)"
    )
    to_do = "raise maxmemory, or find what else is in it (redis-cli --bigkeys)"
    if percent >= MEMORY_FAIL_PERCENT:
        yield fail(f"{words}: leases are refused soon, and schema changes wait", to_do)
    elif percent >= MEMORY_WARN_PERCENT:
        yield warn(words, to_do)


def judge_redis_durability(facts: Facts) -> Iterator[Problem]:
    """Yield how Redis could lose the ledger. No write is lost with it; schema changes wait until
    agents have taken their leases anew."""
    return durability_of_redis(_redis(facts), facts.sentinels)


def durability_of_redis(redis: RedisSeen, sentinels: int) -> Iterator[Problem]:
    """Yield the same of a Redis that was looked at; `sentinels`: how many the settings name."""
    for words, to_do, breaks in find_redis_weaknesses(redis, sentinels):
        yield fail(words, to_do) if breaks else warn(words, to_do)


REDIS_CHECKS: Final = (
    Check("memory of Redis", "used_memory against maxmemory", ("redis",), judge_memory),
)
REDIS_DURABILITY: Final = Check(
    "ledger's durability",
    "append-only file, maxmemory-policy, replica and Sentinels of Redis",
    ("redis",),
    judge_redis_durability,
)
