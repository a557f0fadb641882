"""The stream of a source's changes: gathered into transactions of the target, each with its place.

PURE. A place is kept with the changes it stands behind. A large transaction of the source is
applied in several, so a place says how many of its changes are there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from leasehold.transfer.changes import Changes, Emptied, Operation, Reread
from leasehold.transfer.pgoutput import (
    Begin,
    Commit,
    Other,
    Relation,
    read_message,
)

GATHERED_CHANGES: Final = 2_000
GATHERED_BYTES: Final = 1_000_000


class StreamPlace(NamedTuple):
    """How far a stream is: everything that was committed before `lsn`, and `changes` of the
    transaction whose commit stands at `within`."""

    lsn: int
    within: int = 0
    changes: int = 0

    def to_text(self) -> str:
        return json.dumps(self._asdict())

    @classmethod
    def read(cls, text: str) -> StreamPlace:
        return cls(**json.loads(text))


class Gathered(NamedTuple):
    """Changes that go together, and where the stream is behind them. `sql`: comes before them;
    `reread`: the row is to be read and put there, too."""

    operations: Sequence[Operation]
    place: StreamPlace
    changes: int
    sql: str = ""
    reread: Reread | None = None


class Gathering:
    """Gathers the messages of one reading of a slot, which begins anywhere before `place`."""

    def __init__(self, changes: Changes, place: StreamPlace) -> None:
        self._changes = changes
        self._place = place
        self._operations: list[Operation] = []
        self._count = self._bytes = 0

    def gather(self, messages: Iterable[bytes]) -> Iterator[Gathered]:
        """Yield what is to be applied, in order. Raises SchemaChanged, ProtocolViolation."""
        begun = Begin(0, 0, 0)
        number = 0
        for data in messages:
            message = read_message(data)
            match message:
                case Begin():
                    begun, number = message, 0
                case Relation():
                    self._changes.relate(message)
                case Other():
                    continue
                case Commit():
                    if begun.commit_lsn >= self._place.lsn:
                        self._place = StreamPlace(message.end_lsn)
                        self._count += not self._count  # the place alone is worth keeping
                        if self._is_much:
                            yield self._take()
                case _:
                    number += 1
                    if begun.commit_lsn < self._place.lsn:
                        continue
                    if self._place.within == begun.commit_lsn and number <= self._place.changes:
                        continue
                    applied = self._changes.apply(message)
                    if isinstance(applied, Emptied | Reread) and self._operations:
                        yield self._take()
                    self._place = StreamPlace(self._place.lsn, begun.commit_lsn, number)
                    self._count += 1
                    self._bytes += len(data)
                    if isinstance(applied, Emptied):
                        yield self._take(sql=applied.sql)
                    elif isinstance(applied, Reread):
                        self._operations += applied.operations
                        yield self._take(reread=applied)
                    else:
                        self._operations += applied
                        if self._is_much:
                            yield self._take()
        if self._count:
            yield self._take()

    @property
    def _is_much(self) -> bool:
        return self._count >= GATHERED_CHANGES or self._bytes >= GATHERED_BYTES

    def _take(self, sql: str = "", reread: Reread | None = None) -> Gathered:
        made = Gathered(self._operations, self._place, self._count, sql, reread)
        self._operations, self._count, self._bytes = [], 0, 0
        return made
