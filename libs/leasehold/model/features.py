"""The features of what is written: each has a number, which says since when processes read it.

A process says by one number up to where it reads (`known_to`): all features up to that. So a number
is given once, in the order in which releases came to read what they stand for, none is left out,
and none is ever taken back: they are on the wire.

A feature is of use where records, stores or messages between processes get a form that a process of
an earlier release would stop at, or would read as something else. Who writes such a form asks a
`FeatureGate` before, and writes the form of before, or refuses in plain words, while it says no.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final

from leasehold.model.ids import INCARNATION_BYTES


class Feature(IntEnum):
    """A feature by its number, which is on the wire."""

    CHANGES_IN_PLACE = 1
    RANGE_BACKFILLS = 2
    TRANSACTION_JOBS = 3
    COMPUTED_BACKFILLS = 4
    COLUMN_TYPES = 5
    VIEWS = 6
    ENUMS = 7
    FEATURE_LEVEL = 8
    NARROWED_TYPES = 9
    EQUAL_NULLS = 10

    @property
    def title(self) -> str:
        """Return what people are told it is called."""
        return self.name.lower().replace("_", " ")

    @property
    def written(self) -> str:
        """Return what is written once it may be."""
        return _WRITTEN[self]


_WRITTEN: Final = {
    Feature.CHANGES_IN_PLACE: (
        "columns whose default rows have at once, and column types widened where they stand"
    ),
    Feature.RANGE_BACKFILLS: "ranges of keys, which each node merges into an index by itself",
    Feature.TRANSACTION_JOBS: (
        "one job for all that a transaction says of tables, held until its rows come"
    ),
    Feature.COMPUTED_BACKFILLS: (
        "columns that follow others, which each node computes from its own rows"
    ),
    Feature.COLUMN_TYPES: "columns of the later types (real, time, arrays, ...)",
    Feature.VIEWS: "views, and comments on objects",
    Feature.ENUMS: "enum types, and columns of them",
    Feature.FEATURE_LEVEL: "the feature level of the database, up to which it is finalized",
    Feature.NARROWED_TYPES: (
        "column types narrowed where they stand, or changed under indexes and CHECKs"
    ),
    Feature.EQUAL_NULLS: "unique indexes to which NULLs are equal",
}
"""What a master writes, or has others write, once a feature may be used."""

NEWEST: Final = max(Feature)
"""The highest feature that this release reads; it reads those below, too."""
WITHOUT_LEVEL: Final = Feature.ENUMS
"""Up to here nothing waits for a finalization: release 0.1.0 has no feature level, and writes them
as soon as all processes read them."""


def incarnation_of(random: bytes) -> bytes:
    """Return the incarnation of a process from INCARNATION_BYTES random bytes, or b"" for one that
    has none. Behind them it says up to which feature this release reads: there a master of an
    earlier release reads it as it reads any incarnation, while an acknowledgement with a field more
    it would pass over."""
    return random + bytes((NEWEST,))


def known_to(incarnation: bytes) -> int:
    """Return up to which feature the process with that incarnation reads, 0 for one of a release
    that does not say it."""
    return incarnation[-1] if len(incarnation) % INCARNATION_BYTES == 1 else 0


class FeatureGate:
    """Says whether a feature may be written: every process that reads the log has said that it
    reads the feature, and the database is finalized up to it.

    ⚠ Both: by the first nobody comes to a form that he can't read; by the second an operator can go
    back to the release of before until he has said that he will not."""

    def __init__(
        self,
        all_read: Callable[[int, int], bool] = lambda number, now_ns: True,
        level: Callable[[], int] = lambda: NEWEST,
    ) -> None:
        """Make a gate. `all_read`: whether all who read the log read what has that number, at a
        time (`CoherencyWatch.all_know`). `level`: that of the database, 0 = it has none."""
        self._all_read = all_read
        self._level = level

    def permits(self, feature: int) -> bool:
        """Return whether the database is finalized up to the feature."""
        return feature <= max(WITHOUT_LEVEL, self._level())

    def is_written(self, feature: int, now_ns: int) -> bool:
        """Return whether what the feature stands for may be written now."""
        return self.permits(feature) and self._all_read(feature, now_ns)
