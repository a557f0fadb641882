"""Decides what a statement of transaction control does, by where its client stands between BEGIN
and COMMIT.

    IDLE ──BEGIN──▶ OPEN ──error──▶ FAILED ──ROLLBACK TO──▶ OPEN
      ◀──COMMIT, ROLLBACK──┘          └──COMMIT (= ROLLBACK), ROLLBACK──▶ IDLE
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from leasehold.model.errors import Refused, RequestTooLarge
from leasehold.transaction.isolation import Isolation
from leasehold.values.dates import AsOf

SAVEPOINTS_MAX: Final = 10_000


class NoTransaction(Refused):
    """Said outside a block, of what makes sense inside one only."""

    sqlstate = "25P01"


class TransactionActive(Refused):
    """Said inside a block, or too late in it."""

    sqlstate = "25001"


class ReadOnlyTransaction(Refused):
    """A statement that writes in a transaction that is read-only."""

    sqlstate = "25006"


class UnknownSavepoint(Refused):
    """A savepoint that does not exist."""

    sqlstate = "3B001"


class BlockStatus(Enum):
    __hash__ = object.__hash__  # members are one each; by name it would be computed each time

    IDLE = "no block"
    OPEN = "in a block"
    FAILED = "in a block that has failed"


@dataclass
class Block:
    """The state of a client's transaction block. `savepoints`: name and mark, oldest first; what a
    mark is, whoever runs statements knows."""

    status: BlockStatus = BlockStatus.IDLE
    isolation: Isolation | None = None
    as_of: AsOf | None = None
    read_only: bool = False
    used: bool = False
    savepoints: list[tuple[str, Any]] = field(default_factory=list)

    def begin(self, isolation: Isolation, as_of: AsOf | None = None, *, read_only: bool) -> bool:
        """Open a block; return False where there is one already, and nothing changes."""
        if self.status is not BlockStatus.IDLE:
            return False
        self.status = BlockStatus.OPEN
        self.isolation, self.as_of, self.read_only = isolation, as_of, read_only
        return True

    def set_modes(
        self,
        isolation: Isolation | None = None,
        as_of: AsOf | None = None,
        read_only: bool | None = None,
    ) -> None:
        """Set what is not None. Raises TransactionActive once a statement has run: what it saw
        can't be taken back."""
        if self.used and as_of is not None and as_of != self.as_of:
            raise TransactionActive("AS OF must be said before any query")
        if self.used and isolation is not None and isolation != self.isolation:
            raise TransactionActive(
                "SET TRANSACTION ISOLATION LEVEL must be called before any query"
            )
        if self.used and read_only is False and self.read_only:
            raise TransactionActive("transaction read-write mode must be set before any query")
        self.isolation = isolation or self.isolation
        self.as_of = self.as_of if as_of is None else as_of
        self.read_only = self.read_only if read_only is None else read_only

    def fail(self) -> None:
        if self.status is BlockStatus.OPEN:
            self.status = BlockStatus.FAILED

    def end(self) -> None:
        self.status = BlockStatus.IDLE
        self.isolation, self.as_of = None, None
        self.read_only, self.used = False, False
        self.savepoints.clear()

    # ------------------------------------------------------------ savepoints

    def savepoint(self, name: str, mark: object) -> None:
        self._need_block("SAVEPOINT")
        if len(self.savepoints) >= SAVEPOINTS_MAX:
            raise RequestTooLarge(
                f"a transaction has at most {SAVEPOINTS_MAX} savepoints at once: RELEASE some"
            )
        self.savepoints.append((name, mark))

    def release(self, name: str) -> None:
        self._need_block("RELEASE SAVEPOINT")
        del self.savepoints[self._place(name) :]

    def roll_back_to(self, name: str) -> Any:
        """Return the mark of a savepoint. It stays, those after it go; a failed block is open
        again."""
        self._need_block("ROLLBACK TO SAVEPOINT")
        position = self._place(name)
        del self.savepoints[position + 1 :]
        self.status = BlockStatus.OPEN
        return self.savepoints[position][1]

    def _place(self, name: str) -> int:
        for position in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[position][0] == name:
                return position
        raise UnknownSavepoint(f'savepoint "{name}" does not exist')

    def _need_block(self, what: str) -> None:
        if self.status is BlockStatus.IDLE:
            raise NoTransaction(f"{what} can only be used in transaction blocks")
