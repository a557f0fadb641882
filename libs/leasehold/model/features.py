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

from leasehold.model.errors import FeatureNotSupported, LogStopped, UpgradeUnfinished
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
    PARTIAL_REPLICAS = 11
    COPIED_ROWS = 12
    NOTIFICATIONS = 13
    INFINITE_TIMES = 14
    NUMERIC_REFERENCES = 15
    NAMESPACES = 16
    DEFERRED_KEYS = 17
    RANDOM_DEFAULTS = 18
    ROW_ARRAYS = 19
    VIEW_FORMS = 20
    DEFERRABLE_UNIQUES = 21
    DEFERRABLE_KEYS = 22
    INCLUDING_KEYS = 23
    DEFAULT_TEXTS = 24

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
    Feature.PARTIAL_REPLICAS: "what partial replicas hold, which a master waits for alone",
    Feature.COPIED_ROWS: "ranges of rows, which each node copies under another primary key",
    Feature.NOTIFICATIONS: "what a transaction tells those who listen (NOTIFY)",
    Feature.INFINITE_TIMES: "infinity and -infinity as dates and timestamps",
    Feature.NUMERIC_REFERENCES: "foreign keys over numeric columns",
    Feature.NAMESPACES: "schemas beside public, and tables in them",
    Feature.DEFERRED_KEYS: "which foreign keys were said to be deferred",
    Feature.RANDOM_DEFAULTS: "defaults with random()",
    Feature.ROW_ARRAYS: "CHECKs, indexes and generated columns over elements of arrays",
    Feature.VIEW_FORMS: "views with options, and views over views that were renamed",
    Feature.DEFERRABLE_UNIQUES: "UNIQUE constraints that are deferrable",
    Feature.DEFERRABLE_KEYS: "foreign keys that SET CONSTRAINTS may defer",
    Feature.INCLUDING_KEYS: "primary keys with INCLUDE",
    Feature.DEFAULT_TEXTS: "how a number was written that is a default",
}
"""What a master writes, or has others write, once a feature may be used."""

NEWEST: Final = max(Feature)
"""The highest feature that this release reads; it reads those below, too."""
FEATURE_NUMBER_MAX: Final = 255
"""A number is one byte of an incarnation."""
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


def titles(after: int, through: int) -> list[str]:
    """Return what the features above `after`, up to `through`, are called; of one that this release
    does not know only the number is known."""
    known = {each.value: each.title for each in Feature}
    return [known.get(number, f"feature {number}") for number in range(after + 1, through + 1)]


def refuse_level(level: int, where: str) -> None:
    """Raise LogStopped where a database is finalized up to more than this release reads. `where`
    says so, as the subject of a sentence."""
    if level > NEWEST:
        raise LogStopped(
            f"The database is finalized at feature level {level}, says {where}, and this release"
            f" reads features up to {NEWEST} only: what was written since it could not read."
            " Nothing of it was applied. Install the release of the other nodes here (leasehold"
            " upgrade status names it); this node then goes on from where it is.",
            reason=f"feature level {level}, of which this release knows {NEWEST}",
        )


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

    @property
    def level(self) -> int:
        """Return the feature level of the database, 0 = it has none."""
        return self._level()

    def permits(self, feature: int) -> bool:
        """Return whether the database is finalized up to the feature."""
        return feature <= max(WITHOUT_LEVEL, self._level())

    def is_written(self, feature: int, now_ns: int) -> bool:
        """Return whether what the feature stands for may be written now."""
        return self.permits(feature) and self._all_read(feature, now_ns)

    def check_written(self, feature: Feature, now_ns: int) -> None:
        """Check that what the feature stands for may be written now. Raises FeatureNotSupported
        (0A000), which says what it waits for."""
        if not self.permits(feature):
            raise FeatureNotSupported(
                f"the upgrade is not finalized, and processes of an earlier release could not read"
                f" what this writes ({feature.title})",
                hint="Send it again after leasehold upgrade finalize.",
            )
        if not self._all_read(feature, now_ns):
            raise FeatureNotSupported(
                f"processes of an earlier release are there, which do not read what this writes"
                f" ({feature.title})",
                hint="Send it again when all nodes, replicas and the changefeed are of this"
                " release (leasehold upgrade status).",
            )

    def check_finalizes(self, level: int, now_ns: int) -> None:
        """Check that the database may be finalized up to a level. Raises UpgradeUnfinished (55000)
        where this process, or another one that reads the log, does not read all of that."""
        if level > NEWEST:
            raise UpgradeUnfinished(
                f"the master reads features up to {NEWEST}, not {level}: it is of an earlier"
                " release than the command",
                hint="Upgrade the master, then finalize again.",
            )
        if level > self.level and not self._all_read(level, now_ns):
            raise UpgradeUnfinished(
                f"a process that reads the log does not read features up to {level}, or has not"
                " been heard yet by a new master: it would stop",
                hint="leasehold upgrade status names it. Upgrade or end it, and finalize again; one"
                " that has ended counts for 10 s more.",
            )
