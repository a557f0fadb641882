"""What a node does about the disk its store lies on: before it is full, nothing more is put on it.

    free bytes      master                                     every node
    the reserve     decides all                                applies all
    less            refuses what adds rows or fills them       applies all
    a quarter       hands its term over                        leaves, in order, and stops

A store that meets the end of its disk all the same stops too (StoreUnwritable), and nothing of it
is damaged; but it leaves nobody time. The reserve is for what no refusal can hold back: records
that are decided, deletions, the write-ahead log behind a long read.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from leasehold.model.errors import DiskNearlyFull, StoreUnwritable
from leasehold.model.ports import Now
from leasehold.model.records.acks import NodeReport
from leasehold.model.records.requests import ChangeRequest, OperationKind
from leasehold.model.time_units import NS_PER_S
from leasehold.replication.effects import DiskSeen, Effect, Send, Topic
from leasehold.sql.ddl.schema_statements import Said
from leasehold.sql.syntax.object_statements import (
    DropAbsent,
    DropView,
)
from leasehold.sql.syntax.statements import (
    AlterTable,
    DropColumn,
    DropConstraint,
    DropExpression,
    DropIdentity,
    DropIndex,
    DropLock,
    DropNotNull,
    DropSequence,
    DropTable,
    Explain,
    HasNoEffect,
    Statement,
    Truncate,
)

TOLD_EVERY_S: Final = 5
OUT_DIVISOR: Final = 4
"""The last quarter of the reserve: a node leaves."""
START_DIVISOR: Final = 2
"""With half of it one is started that has left."""
SHARE_DIVISOR: Final = 10
"""Of a small disk the reserve is a tenth at most."""
AGAIN_NUMERATOR: Final = 5
AGAIN_DIVISOR: Final = 4
"""Writes are taken again with a quarter more than the reserve free: who deletes a little should not
have them switch with each record."""
MIB: Final = 1 << 20
_FREEING: Final = (DropTable, DropIndex, DropSequence, DropView, DropAbsent, Truncate, Explain)
_FREEING_ACTIONS: Final = (
    DropColumn,
    DropConstraint,
    DropLock,
    DropNotNull,
    DropExpression,
    DropIdentity,
    HasNoEffect,
)


class Room(StrEnum):
    """How much room there is on the disk, by the reserve; UNKNOWN: nobody has looked."""

    UNKNOWN = "unknown"
    ENOUGH = "enough"
    SHORT = "short"
    OUT = "out"


class DiskRoom:
    """The disk of one node's store, as it was seen last."""

    def __init__(self, node: str, release: str, reserve_bytes: int) -> None:
        """Begin. `reserve_bytes` 0: nothing is refused, and SQLite meets the end of the disk."""
        assert reserve_bytes >= 0, reserve_bytes
        self._node = node
        self._release = release
        self._asked_bytes = reserve_bytes
        self.reserve_bytes = reserve_bytes
        """What is kept free of this disk."""
        self.seen = DiskSeen(0, 0, 0, 0)
        self.room = Room.UNKNOWN
        self.is_short = False
        """Whether nothing more is to be put on the disk."""
        self._told_ns: int | None = None
        self._told_level = 0

    @property
    def is_out(self) -> bool:
        """Whether the node has to leave."""
        return self.room is Room.OUT

    def take(self, seen: DiskSeen) -> None:
        """Take what the disk has now."""
        self.seen = seen
        reserve = self.reserve_bytes = reserve_of(seen, self._asked_bytes)
        free = seen.free
        enough = reserve * AGAIN_NUMERATOR // AGAIN_DIVISOR if self.is_short else reserve
        if free >= enough:
            self.room = Room.ENOUGH
        elif free < reserve // OUT_DIVISOR:
            self.room = Room.OUT
        else:
            self.room = Room.SHORT
        self.is_short = self.room is not Room.ENOUGH

    def words(self) -> str:
        """Return how much is free, and of what."""
        return (
            f"{self.seen.free // MIB:,} MiB are free on the disk of node {self._node}'s store, and"
            f" LEASEHOLD_DISK_RESERVE_MB keeps {self.reserve_bytes // MIB:,} MiB"
        )

    def check_rows(self, request: ChangeRequest) -> DiskNearlyFull | None:
        """Return why the rows of a request are refused that adds some or changes them; None where
        they are taken: with room, and where they only delete."""
        if not self.is_short or _only_deletes(request):
            return None
        return self._refusal("INSERT and UPDATE are")

    def check_statements(self, said: Iterable[Said]) -> None:
        """Raises DiskNearlyFull for a schema statement that may fill rows or make some."""
        if self.is_short and not all(frees(each.statement) for each in said):
            raise self._refusal("a schema change that does more than drop is")

    def _refusal(self, what: str) -> DiskNearlyFull:
        return DiskNearlyFull(
            f"{what} refused until there is room: {self.words()}; DELETE, TRUNCATE and DROP are"
            " taken",
            node=self._node,
        )

    def leaving(self) -> StoreUnwritable:
        """Return why the node stops that is out of room."""
        return StoreUnwritable(
            f"{self.words()}: with less than a quarter of that the node stops before the disk is"
            " full, and nothing of its store is damaged. Make room, and start it again; it goes on"
            " from where it is"
        )

    def report(self, now: Now, feature_level: int = 0) -> list[Effect]:
        """Tell those who look on, every few seconds, of this node's release and disk, and of the
        feature level that it has read."""
        due_ns = None if self._told_ns is None else self._told_ns + TOLD_EVERY_S * NS_PER_S
        if feature_level != self._told_level:
            due_ns = None
        if self.room is Room.UNKNOWN or (due_ns is not None and now.mono_ns < due_ns):
            return []
        self._told_ns, self._told_level = now.mono_ns, feature_level
        seen = self.seen
        told = NodeReport(
            node=self._node,
            release=self._release,
            room=self.room.value,
            free_bytes=seen.free,
            disk_bytes=seen.whole,
            reserve_bytes=self.reserve_bytes,
            store_bytes=seen.store,
            wal_bytes=seen.wal,
            sent_us=now.wall_us,
            feature_level=feature_level,
        )
        return [Send(Topic.ACKS, 0, self._node.encode(), told, 0)]


def reserve_of(seen: DiskSeen, reserve_bytes: int) -> int:
    """Return how many bytes of that disk are kept free."""
    return min(reserve_bytes, seen.whole // SHARE_DIVISOR)


def may_start(seen: DiskSeen, reserve_bytes: int) -> bool:
    """Return whether a node with a store on that disk may begin to write."""
    return seen.free >= reserve_of(seen, reserve_bytes) // START_DIVISOR


def frees(statement: Statement) -> bool:
    """Return whether a schema statement takes something away and fills nothing."""
    if isinstance(statement, AlterTable):
        return all(isinstance(action, _FREEING_ACTIONS) for action in statement.actions)
    return isinstance(statement, _FREEING)


def _only_deletes(request: ChangeRequest) -> bool:
    return all(each.kind is OperationKind.DELETE for each in request.operations)
