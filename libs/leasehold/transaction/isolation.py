"""The isolation levels as a table: the one place that everything asks what a level means.

    level            reads            own writes   verified         after a verify error
    default          newest           unseen       rows changed     replayed
    read committed   newest           seen         rows changed     replayed
    snapshot         as of its time   seen         rows changed     40001
    serializable     as of BEGIN      seen         and all it read  replayed
    linearizable     as of a barrier  seen         and all it read  replayed

Rows visited by SELECTV are verified at any level.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from leasehold.model.errors import FeatureNotSupported, MalformedRequest


class Level(StrEnum):
    DEFAULT = "default"
    READ_COMMITTED = "read committed"
    SNAPSHOT = "snapshot"
    SERIALIZABLE = "serializable"
    LINEARIZABLE = "linearizable"


class Sees(StrEnum):
    NEWEST = "newest"  # what is committed when each statement begins
    BEGIN = "begin"  # one moment: that of BEGIN
    BARRIER = "barrier"  # one moment, at or after the transaction's own barrier in the log (T6)


@dataclass(frozen=True, slots=True)
class Isolation:
    """What a level promises. `own_writes`: reads show what the transaction itself has written.
    `verifies_reads`: what was read is verified, too, and not only the rows that change (T1).
    `replays`: the statements may run again by themselves (T2). `any_time`: it may read AS OF a time
    of the past."""

    level: Level
    sees: Sees
    own_writes: bool
    verifies_reads: bool
    replays: bool
    any_time: bool = False

    @property
    def spoken(self) -> str:
        """Return the level as PostgreSQL says it; of what it does not know, the nearest that it
        does."""
        return _SPOKEN_AS[self.level]

    @property
    def one_snapshot(self) -> bool:
        """Do all its reads see one moment, which needs kept history (not a long snapshot)?"""
        return self.sees is not Sees.NEWEST


_TABLE: Final = (
    Isolation(Level.DEFAULT, Sees.NEWEST, False, False, True),
    Isolation(Level.READ_COMMITTED, Sees.NEWEST, True, False, True),
    # Never replayed: it would read as of the same time, and meet the same conflict.
    Isolation(Level.SNAPSHOT, Sees.BEGIN, True, False, False, any_time=True),
    Isolation(Level.SERIALIZABLE, Sees.BEGIN, True, True, True),
    Isolation(Level.LINEARIZABLE, Sees.BARRIER, True, True, True),
)
ISOLATION: Final[Mapping[Level, Isolation]] = MappingProxyType({i.level: i for i in _TABLE})

_SPOKEN_AS: Final[Mapping[Level, str]] = MappingProxyType(
    {
        Level.DEFAULT: Level.READ_COMMITTED.value,
        Level.LINEARIZABLE: Level.SERIALIZABLE.value,
        Level.READ_COMMITTED: Level.READ_COMMITTED.value,
        Level.SNAPSHOT: "repeatable read",
        Level.SERIALIZABLE: Level.SERIALIZABLE.value,
    }
)
# As PostgreSQL clients say it; it knows no weaker level than READ COMMITTED either.
_SPOKEN: Final[Mapping[str, Level]] = MappingProxyType(
    {
        **{level.value: level for level in Level},
        "read uncommitted": Level.READ_COMMITTED,
        "repeatable read": Level.SNAPSHOT,
    }
)


def isolation_of(name: str) -> Isolation:
    """The level of that name, as here or as PostgreSQL says it, in any case and with any blanks.

    Raises MalformedRequest for another one."""
    level = _SPOKEN.get(name) or _SPOKEN.get(" ".join(name.replace("_", " ").lower().split()))
    if level is None:
        known = ", ".join(_SPOKEN)
        raise MalformedRequest(f"there is no isolation level {name!r:.60}; known are {known}")
    return ISOLATION[level]


def chosen(name: str | None, *, past: bool) -> Isolation:
    """What a transaction that asks for that level, or for none, runs at; `past`: it reads AS OF a
    time. Raises FeatureNotSupported for a level that can't."""
    if name is None:
        return ISOLATION[Level.SNAPSHOT if past else Level.READ_COMMITTED]
    found = isolation_of(name)
    if past and not found.any_time:
        raise FeatureNotSupported(
            f"a transaction at isolation level {found.level.value} can't read AS OF a time:"
            " what it decides rests on the present; use snapshot, or leave the time out"
        )
    return found
