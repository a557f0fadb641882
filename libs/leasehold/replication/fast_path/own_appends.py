"""What a master knows of its own records without reading them back from Kafka.

A broker that acknowledges an append says at which offset the record stands, and that every in-sync
replica has it there. Where that is the offset which is next for this node, it has read the log up
to the record, and knows the record: nothing is left to be fetched. So it counts as read back (L4),
judged as if it had been (`admit`), at the moment of the acknowledgement.

- ⚠ `next_only`: an append that landed behind the next offset has something else before it, maybe
  the Claim by which this master was deposed (L1). Then Kafka is read, the own record included.

The log is fetched meanwhile, so that nothing hangs on this; but each of a steady stream of records
costs the broker a fetch. So after a row of them none are made, until an acknowledgement is missing
for `silence_ms`, something else stands in the log, or the term ends.
"""

from __future__ import annotations

from dataclasses import dataclass

from leasehold.replication.fast_path.state_machine import FastPath, Pause


@dataclass(frozen=True, slots=True)
class OwnAppendsSettings:
    """Times of taking own appends for read back. After `row_min` records taken at most `silence_ms`
    apart (longer than a master lets pass between two, so that one without users has no need of
    fetches either) the log is not fetched; once that went wrong it is for `pause_ms`, doubled up to
    `pause_ms_max` (who writes into the log, too, as a barrier does, makes the master wait for a
    fetch each time)."""

    on: bool = True
    silence_ms: int = 250
    row_min: int = 4
    pause_ms: int = 1_000
    pause_ms_max: int = 60_000


class OwnAppends:
    """A master's. Times are this host's CLOCK_BOOTTIME in ns.

    Invariant: what `landed` lets pass or Kafka gave before the node's next offset is the whole log
    below it.
    """

    def __init__(self, settings: OwnAppendsSettings) -> None:
        self._on = settings.on
        self._taken = 0  # below that everything was given to the node
        self._path = FastPath(
            pause_ms=settings.pause_ms,
            pause_ms_max=settings.pause_ms_max,
            row_min=settings.row_min,
            apart_ms=settings.silence_ms,
        )

    @property
    def path(self) -> FastPath:
        """Return its state machine, for whoever looks at it."""
        return self._path

    @property
    def fetches(self) -> bool:
        """Whether the log is to be fetched from Kafka."""
        return not self._path.taken

    def landed(self, offset: int, next_offset: int, now_ns: int) -> bool:
        """An append of this term stands at `offset`, -1: somewhere; the node has the log below
        `next_offset`. Whether it is to be taken as read back."""
        if not self._on or 0 <= offset < next_offset:
            return False
        if offset < 0 or offset > next_offset:
            self._leave(now_ns)
            return False
        path = self._path
        path.count(now_ns)
        self._taken = offset + 1
        if path.is_ready(now_ns):
            path.enter(now_ns)
        return True

    def is_new(self, offset: int) -> bool:
        """Whether the record that Kafka gives at `offset` was not taken before."""
        return offset >= self._taken

    def tick(self, now_ns: int, *, master: bool) -> None:
        """Leave the path after a turn in which nothing lands any more. `master`: whether this node
        is one still."""
        path = self._path
        if path.taken and (not master or path.is_silent(now_ns)):
            path.leave(now_ns, Pause.NONE)

    def due_ns(self) -> int | None:
        """Return when `tick` has to be called next, while nothing lands."""
        return self._path.silent_at_ns if self._path.taken else None

    def _leave(self, now_ns: int) -> None:
        self._path.end_row()
        if self._path.taken:
            self._path.leave(now_ns, Pause.FAULT)
