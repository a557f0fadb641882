"""The statements of a SQL transaction as they were answered: what a replay does again and is
compared with (T2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

from leasehold.adapters.sqlite.query import BATCH_ROWS, Rows
from leasehold.adapters.sqlite.write import Written
from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import GaveUp, LeaseholdError
from leasehold.model.keys import Key
from leasehold.replica.deferred_keys import AS_DEFINED, DeferredKeys
from leasehold.schema_change.plan.plan import NO_CONTEXT
from leasehold.transaction.replay_comparison import Answer, Told
from leasehold.values.types import Type

Types = tuple[Type | None, ...]
_DIGEST_BYTES = 16


class Contradicted(GaveUp):
    """Run again the transaction would have answered otherwise than it did (T2)."""


class FailedAgain(LeaseholdError):
    """A statement that was not answered yet has run again, and ends in this error."""

    def __init__(self, error: LeaseholdError) -> None:
        super().__init__(error.message)
        self.error = error


class KeysRead(NamedTuple):
    """A place where a statement reads: rows of a table whose keys begin so; () may be any. `whole`:
    it is all of a key."""

    table_id: int
    prefix: Key
    whole: bool


class Asked(NamedTuple):
    """A statement as it was run. `many`: it was run for each of these values in turn (COPY).
    `emptied`: the tables of a TRUNCATE, which `restarts` their sequences and `cascades` to those
    that refer to them; `changes`: it is a schema change; no statements of the plan's."""

    text: str
    types: Types
    values: tuple[Any, ...]
    many: tuple[tuple[Any, ...], ...] = ()
    emptied: tuple[str, ...] = ()
    changes: bool = False
    restarts: bool = False
    cascades: bool = False


@dataclass(slots=True)
class Shown:
    """Rows of a query that its client has been given, as their number and a digest: many rows may
    be shown, and none is asked for again. `ended`: the client knows that there are no more.
    `ordered`: their order was asked for; else they are a multiset. `behind`: as of `Answer`."""

    told: Told
    ordered: bool
    count: int = 0
    ended: bool = False
    digest: int = 0
    behind: int = 0

    def add(self, rows: Sequence[Any]) -> None:
        for row in rows:
            mark = int.from_bytes(blake2b(repr(row).encode(), digest_size=_DIGEST_BYTES).digest())
            if self.ordered:
                self.digest = self.digest * 31 + mark
            else:
                self.digest += mark
            self.digest %= 1 << (8 * _DIGEST_BYTES)
        self.count += len(rows)

    def again(self, fetch: Callable[[int], Sequence[Any]], behind: int = 0) -> Shown:
        """What is shown by as many rows of a replay, or by all where the client knows the end.
        `fetch` gives at most so many of the next ones, none at the end."""
        shown = Shown(self.told, self.ordered, behind=behind)
        while self.ended or shown.count < self.count:
            left = BATCH_ROWS if self.ended else min(BATCH_ROWS, self.count - shown.count)
            found = fetch(left)
            shown.add(found)
            if not found:
                shown.ended = self.ended
                break
        return shown

    @property
    def answer(self) -> Answer:
        return Answer(self.told, (self.count, self.ended, self.digest), True, self.behind)


class ReadAgain(Protocol):
    """The cursor of a DECLARE, for a replay."""

    def read_again(self, rows: Rows) -> Shown:
        """What its client was given would be that of these. Raises what computing them raises."""
        ...


@dataclass(slots=True)
class Step:
    """A statement that was run, and its answer: `rowcount`, `rows` and the verb (`tag`) of a write,
    `shown` by a query, or the SQLSTATE it failed with. `back`: a ROLLBACK TO the state before step
    number `back`. `place`: of the statement in its transaction; what it draws at random follows
    from that. `context`: of the session as it was then (its time zone), by which it runs again.
    `deferred`: the foreign keys that were left to COMMIT then. `cursor`: of a DECLARE. `seen`: what
    queries behind it have shown of rows that its transaction has written, as digests; None where
    they have shown none. `returns`: of a write, its client was given `rows`, which may be none."""

    asked: Asked | None
    rowcount: int = 0
    rows: tuple[Any, ...] = ()
    sqlstate: str = ""
    shown: Shown | None = field(default=None)
    back: int = -1
    position: int = 0
    context: CommitContext = NO_CONTEXT
    deferred: DeferredKeys = AS_DEFINED
    cursor: ReadAgain | None = None
    seen: dict[KeysRead, bytes] | None = None
    tag: str = ""
    returns: bool = False

    @classmethod
    def wrote(cls, asked: Asked, written: Written, tag: str, *, returns: bool = False) -> Step:
        """Return the step of a write; `returns`: rows are its answer, maybe none."""
        return cls(asked, written.count, tuple(written.rows), tag=tag, returns=returns)

    @property
    def counted(self) -> str:
        """What a client is told of a write."""
        zero = "0 " if self.tag == "INSERT" else ""
        return f"{self.tag} {zero}{self.rowcount}"

    @property
    def answer(self) -> Answer:
        """Rows that came back tell their number, too."""
        if self.sqlstate:
            return Answer(Told.ERROR, self.sqlstate)
        if self.shown is not None:
            return self.shown.answer
        if self.rows:
            return Answer(Told.RETURNED, self.rows)
        return Answer(Told.COUNT, self.rowcount)
