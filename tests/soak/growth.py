"""Whether something grows: slopes of what was measured over hours.

A slope is Theil and Sen's: the median of the slopes between all pairs of samples. A restart, a
collection of garbage or a compaction makes steps, which a least-squares line would follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

SAMPLES_MIN: Final = 8
WARM_UP: Final = 0.25
"""Of the time, at the beginning: caches fill, compilers work."""
HOUR_S: Final = 3_600.0


class Sample(NamedTuple):
    """What was measured at a time, in seconds from the beginning."""

    at_s: float
    value: float


class Limit(NamedTuple):
    """What may be added in an hour: so much of what there is in the middle, or so much in any
    case. `warm_up`: which part of the time, at the beginning, is not judged."""

    share: float
    least: float
    warm_up: float = WARM_UP


class Growth(NamedTuple):
    """One series. `per_hour`: its slope behind the warm-up. `flat`: None = too short to say, or,
    where it is not `judged`, nothing is said."""

    name: str
    unit: str
    first: float
    last: float
    per_hour: float
    flat: bool | None
    judged: bool = True


def slope_per_s(samples: Sequence[Sample]) -> float:
    """Return the median of the slopes of all pairs, 0 where there are none."""
    slopes = [
        (later.value - earlier.value) / (later.at_s - earlier.at_s)
        for number, earlier in enumerate(samples)
        for later in samples[number + 1 :]
        if later.at_s > earlier.at_s
    ]
    return median(slopes) if slopes else 0.0


def judge(
    name: str,
    unit: str,
    samples: Sequence[Sample],
    limit: Limit | None,
    least_s: float = HOUR_S / 2,
) -> Growth:
    """Return how a series grows. It is judged where samples behind the warm-up span `least_s` at
    least; without a limit it is told only."""
    assert samples, name
    begun_s, ended_s = samples[0].at_s, samples[-1].at_s
    warm_up = WARM_UP if limit is None else limit.warm_up
    warm = [each for each in samples if each.at_s >= begun_s + warm_up * (ended_s - begun_s)]
    per_hour = slope_per_s(warm) * HOUR_S
    first, last = samples[0].value, samples[-1].value
    if limit is None:
        return Growth(name, unit, first, last, per_hour, None, judged=False)
    long_enough = len(warm) >= SAMPLES_MIN and warm[-1].at_s - warm[0].at_s >= least_s
    allowed = max(limit.least, limit.share * median(each.value for each in warm))
    flat = per_hour <= allowed if long_enough else None
    return Growth(name, unit, first, last, per_hour, flat)
