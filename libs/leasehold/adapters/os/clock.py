"""The clocks and the randomness of this host; the pure core gets them as values (`ports.Now`)."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Final

from leasehold.model.features import incarnation_of
from leasehold.model.ids import INCARNATION_BYTES, request_id
from leasehold.model.ports import Now

SEED_BYTES: Final = 16
_SEEDS_A_CALL: Final = 256
_clock_gettime_ns: Final = time.clock_gettime_ns
_BOOTTIME: Final = time.CLOCK_BOOTTIME
_SEEDS: Final[deque[bytes]] = deque()
os.register_at_fork(after_in_child=_SEEDS.clear)


def boottime_ns() -> int:
    """Return nanoseconds of CLOCK_BOOTTIME: for leases and waits.

    CLOCK_MONOTONIC stops while a machine sleeps, and a lease must not outlive its owner's sleep.
    """
    return _clock_gettime_ns(_BOOTTIME)


def unix_us() -> int:
    """Return Unix time in microseconds: for commit times, request ids and people; never for
    leases."""
    return time.time_ns() // 1_000


def now() -> Now:
    """Return both clocks, read once per step."""
    return Now(boottime_ns(), unix_us())


def random_bytes(count: int) -> bytes:
    """Return randomness of the operating system."""
    return os.urandom(count)


def fresh_seed() -> bytes:
    """Return SEED_BYTES of the operating system's randomness, which is asked for many at a time: a
    call for each request's id would be a quarter of what the id costs."""
    try:
        return _SEEDS.pop()
    except IndexError:
        data = os.urandom(SEED_BYTES * _SEEDS_A_CALL)
        _SEEDS.extend(data[at : at + SEED_BYTES] for at in range(SEED_BYTES, len(data), SEED_BYTES))
        return data[:SEED_BYTES]


def new_request_id() -> bytes:
    """Return a fresh UUIDv7: its time decides how long its outcome is remembered (L5)."""
    return request_id(time.time_ns() // 1_000_000, fresh_seed()[:10])


def new_incarnation() -> bytes:
    """Return a fresh random incarnation, one per start of a process (L4, C3)."""
    return incarnation_of(os.urandom(INCARNATION_BYTES))
