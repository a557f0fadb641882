"""The time that a master puts into the log: what its commits are stamped with, what it has closed,
and the id horizon (L5, L9).

A clock may be days ahead or behind. During a term the master therefore follows its monotonic clock
across a step of the other one for a time in which somebody can see to it; and the id horizon, which
is there to bound what is remembered and for nothing else, goes on by the monotonic clock alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from leasehold.model.ids import time_ms_of
from leasehold.model.ports import Now
from leasehold.model.records.log import LogPosition
from leasehold.model.records.requests import Outcome
from leasehold.model.time_units import NS_PER_S, NS_PER_US
from leasehold.replication.effects import ClockNotice
from leasehold.replication.outcomes import OutcomeSettings

STEP_US_MAX: Final = 60_000_000
"""How far the clock may be from where the monotonic one has it. Slewing, leap seconds and small
corrections stay below; it is also how far ids may lie ahead."""
STEP_HELD_NS: Final = 15 * 60 * NS_PER_S
"""After that a step counts as the correction of a clock that was wrong before (or of a machine that
was paused together with its monotonic clock): long enough for somebody to act on the warning."""
HORIZON_GAIN: Final = 4
"""The id horizon goes on by at most 1 + 1/4 of the time that passes: more than 1, so that it comes
up with the clock again; hardly more, so that clocks must be ahead for four days before it has
crossed the day that fresh ids have."""
IDLE_JUMP_US_MAX: Final = 20 * 3_600_000_000
"""What a term may pass over at its begin of the time without a master: a night; and less than the
day that fresh ids have, should it be a clock's fault."""
OLDER_JUMP_US: Final = 3_600_000_000
"""How far an older master let one commit go on after idle hours."""
OLDEST_LOOKED_AT_MAX: Final = 100


class Remembered(Protocol):
    """The part of a StoreWriter that knows which outcomes it remembers."""

    def oldest_outcomes(self, count: int) -> Sequence[Outcome]: ...
    def oldest_id(self) -> bytes | None: ...


class Reading(NamedTuple):
    """A reading of the clock. `wall_us`: what is committed now has at least that time. `latest_us`:
    what it may be at the latest, which an id may not be far ahead of. `id_horizon_us`: see
    Decisions."""

    wall_us: int
    latest_us: int
    id_horizon_us: int


class LogClock:
    """The clock of one term."""

    def __init__(
        self,
        position: LogPosition,
        remembered: Remembered,
        now: Now,
        settings: OutcomeSettings,
    ) -> None:
        """Begin the term at `position`."""
        self._kept_us = settings.horizon_ms * 1_000
        self._at_boot_us = _at_boot_us(now)
        # By the log's time, should this master's clock be behind that of the one before.
        self._log_at_boot_us = position.time_us - now.mono_ns // NS_PER_US
        self._held_since_ns: int | None = None
        if position.id_horizon_us:
            self._horizon_us = over_idle_time(position, remembered, now.wall_us, self._kept_us)
        else:
            oldest = remembered.oldest_outcomes(OLDEST_LOOKED_AT_MAX)
            self._horizon_us = first_id_horizon(position, oldest, now.wall_us, settings)
        self._advanced_ns = now.mono_ns
        self._now = now
        self._notices: list[ClockNotice] = []

    def read(self, now: Now) -> Reading:
        """Return the times of a record that begins now."""
        self._now = now
        wall_us = self._follow(now)
        # ⚠ By time that has passed: a clock's jump moves it no faster, so that ids which are fresh
        # by the right clock stay above it.
        passed_us = (now.mono_ns - self._advanced_ns) // NS_PER_US
        self._advanced_ns += passed_us * NS_PER_US
        most_us = self._horizon_us + passed_us + passed_us // HORIZON_GAIN
        self._horizon_us = max(self._horizon_us, min(wall_us - self._kept_us, most_us))
        log_us = self._log_at_boot_us + now.mono_ns // NS_PER_US
        return Reading(wall_us, max(wall_us, now.wall_us, log_us), self._horizon_us)

    def reset(self) -> Reading:
        """Return the last reading again, with nothing ahead of it: an operator vouches for the
        clock."""
        now = self._now
        self._take(now)
        self._log_at_boot_us = self._at_boot_us
        # Not further back: what was decided about ids of before stays known or refused.
        self._horizon_us = min(self._horizon_us, now.wall_us)
        return Reading(now.wall_us, now.wall_us, self._horizon_us)

    def notices(self) -> list[ClockNotice]:
        """Return what is to be said to people since the last call."""
        notices, self._notices = self._notices, []
        return notices

    def _follow(self, now: Now) -> int:
        """Return the time to go by, µs."""
        step_us = _at_boot_us(now) - self._at_boot_us
        if abs(step_us) <= STEP_US_MAX:
            if self._held_since_ns is not None:
                self._held_since_ns = None
                self._notices.append(ClockNotice(begins=False, words=_RIGHT_AGAIN))
            return now.wall_us
        if self._held_since_ns is None:
            self._held_since_ns = now.mono_ns
            self._notices.append(ClockNotice(begins=True, words=_held_words(step_us)))
        if now.mono_ns - self._held_since_ns < STEP_HELD_NS:
            return self._at_boot_us + now.mono_ns // NS_PER_US
        self._notices.append(ClockNotice(begins=False, words=_taken_words(step_us)))
        self._take(now)
        return now.wall_us

    def _take(self, now: Now) -> None:
        self._at_boot_us = _at_boot_us(now)
        self._held_since_ns = None


def over_idle_time(
    position: LogPosition, remembered: Remembered, wall_us: int, kept_us: int
) -> int:
    """Return the id horizon where a term begins: further by the time in which there was no master,
    past what nobody has decided anything in. By the time that passes while there is a master it
    might never catch up with nights in which there is none.

    It goes on to `kept_us` before the log's time of before at most, so this master's clock alone
    does not move it; nor do several terms under one wrong clock, by which hardly any time passes
    between them.
    """
    horizon_us, before_us = position.id_horizon_us, position.time_us
    idle_us = min(max(0, wall_us - before_us), IDLE_JUMP_US_MAX)
    most_us = min(horizon_us + idle_us, min(wall_us, before_us) - kept_us)
    oldest = remembered.oldest_id()
    if oldest is not None:
        most_us = min(most_us, time_ms_of(oldest) * 1_000)
    return max(horizon_us, most_us)


def first_id_horizon(
    position: LogPosition, oldest: Sequence[Outcome], wall_us: int, settings: OutcomeSettings
) -> int:
    """Return the id horizon of a log that has none: above every id that may be forgotten.

    ⚠ An older master forgot by the time of the commit, which lagged behind after idle hours, an
    hour a commit: an id may have been forgotten when it was minutes old. What was forgotten was
    decided before all that is remembered, so before any commit there that did not lag: its time is
    then the clock's, and ids are not far ahead of that. Commits that all lagged lie exactly an hour
    apart; of two that don't, the later one stands after one that did not lag.
    """
    if not position.lsn:
        return max(0, wall_us - settings.horizon_ms * 1_000)
    ahead_us = 2 * settings.ahead_ms_max * 1_000  # of an id, and of one master's clock
    known = [(o.lsn, o.decided_us) for o in oldest if o.lsn]
    known.append((position.lsn, position.commit_us))
    known.sort()
    first_lsn, first_us = known[0]
    for lsn, commit_us in known:
        if lsn > first_lsn and commit_us - first_us != (lsn - first_lsn) * OLDER_JUMP_US:
            return commit_us + ahead_us
    return wall_us + ahead_us  # hardly a commit is remembered, which tells nothing


def _at_boot_us(now: Now) -> int:
    return now.wall_us - now.mono_ns // NS_PER_US


def _held_words(step_us: int) -> str:
    return (
        f"this host's clock was set {_direction(step_us)} by {_span(step_us)} while it has the"
        " database's master: commits are stamped by the time that has passed since, for"
        f" {STEP_HELD_NS // (60 * NS_PER_S)} minutes; if the new time is wrong, set the clock right"
        " until then (timedatectl, chronyc tracking); if it is right, nothing need be done"
    )


def _taken_words(step_us: int) -> str:
    words = (
        f"this host's clock has stayed where it was set, {_direction(step_us)} by"
        f" {_span(step_us)}: commits are stamped by it from now on"
    )
    if step_us > 0:
        words += "; if it is wrong, set it right, then see `leasehold clock`"
    return words


_RIGHT_AGAIN: Final = "this host's clock is where it was before it was set: commits go by it again"


def _direction(step_us: int) -> str:
    return "forward" if step_us > 0 else "back"


def _span(step_us: int) -> str:
    seconds = abs(step_us) // 1_000_000
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} seconds"
