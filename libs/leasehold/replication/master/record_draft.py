"""The body of the master's next Decisions record, as far as it is decided."""

from __future__ import annotations

from typing import NamedTuple

from leasehold.catalog.elements import CommitContext
from leasehold.model.records.log import (
    Attempt,
    Barrier,
    Commit,
    Decisions,
    Grant,
    LogPosition,
    Refusal,
)
from leasehold.model.records.requests import Outcome, Queue
from leasehold.replication.effects import NOWHERE, QueueRead
from leasehold.replication.log.clock import Reading
from leasehold.replication.master.answers_size import outcome_bytes
from leasehold.replication.master.batch_limits import HEADER_BYTES
from leasehold.replication.queue_limits import REPEATS_BYTES_MAX


class Full(Exception):
    """The next part would not fit the record; it waits for the next one (L8)."""


class Repeat(NamedTuple):
    """A remembered answer to give again, no earlier than a fresh one would be (C1 ⚠)."""

    request_id: bytes
    reply_to: int
    outcome: Outcome
    requester: bytes = b""


class RecordDraft:
    """Gathers decisions; nothing that is in it is taken out again.

    L2: LSNs of its commits are dense from `first_lsn`. L9: their times rise strictly, and past all
    that was closed. `closed` once catalog writes are in it, or what has it alone: no commit follows
    those."""

    def __init__(
        self, position: LogPosition, clock: Reading, record_bytes_max: int, secret: bytes
    ) -> None:
        self._record_bytes_max = record_bytes_max
        self._secret = secret
        # L5 ⚠: by the id horizon ids are judged, and with this record forgotten.
        self._wall_us, self.latest_us, self.id_horizon_us = clock
        self._commit_us = position.time_us
        self._bytes = HEADER_BYTES
        self.first_lsn = position.lsn + 1
        self.next_lsn = self.first_lsn
        self.commits: list[Commit] = []
        self.refusals: list[Refusal] = []
        self.packed_commits: list[bytes] = []
        self.packed_refusals: list[bytes] = []
        self.repeats: list[Repeat] = []
        self._repeats_bytes = 0
        self.requesters: dict[bytes, bytes] = {}
        """By request id who is to be told what becomes of it: of those that were told. Not in the
        log: whoever hears nothing asks through Kafka."""
        self.decided_through: dict[str, int] = {}
        self.attempts: list[Attempt] = []
        self.barriers: list[Barrier] = []
        self.requests_taken = 0
        self.grants: tuple[Grant, ...] = ()
        self.rows_filled = 0
        self.reset_us = 0
        self.feature_level = 0
        self.closed = False

    @property
    def is_empty(self) -> bool:
        decided = self.decided_through or self.commits or self.refusals or self.repeats
        return not (decided or self.attempts or self.feature_level)

    @property
    def has_room_alone(self) -> bool:
        """Whether what is packed next may have the record to itself."""
        return self._bytes == HEADER_BYTES

    def fits(self, packed: bytes) -> bool:
        return self._bytes + len(packed) <= self._record_bytes_max

    # ------------------------------------------------------------ time

    @property
    def time_us(self) -> int:
        """The time that the record closes: no commit of it is later, and every one of the next
        records may be (L9)."""
        return max(self._commit_us, self._wall_us)

    def next_commit_us(self) -> int:
        """Return the time of the next commit, which rises strictly over masters, too (L9)."""
        return max(self._commit_us + 1, self._wall_us)

    def next_context(self) -> CommitContext:
        """Return the next commit's time, with what nobody can foretell and no other commit has."""
        return CommitContext(self.next_commit_us(), self._secret + self.next_lsn.to_bytes(8, "big"))

    def reset_clock(self, clock: Reading) -> int:
        """Go by `clock` from now on, and set the log's time back if it is ahead of it; return the
        log's time of before, in unix µs."""
        assert self.is_empty, "nothing of this record may be stamped by the time of before"
        before_us, horizon_us = self._commit_us, self.id_horizon_us
        self._wall_us, self.latest_us, self.id_horizon_us = clock
        if before_us > clock.wall_us or horizon_us > clock.id_horizon_us:
            self.reset_us = self._commit_us = clock.wall_us
        return before_us

    # ------------------------------------------------------------ the feature level

    def raise_level(self, level: int) -> None:
        """Finalize the database up to that feature from this record on."""
        self.feature_level = max(self.feature_level, level)

    # ------------------------------------------------------------ decisions

    def add_commit(self, commit: Commit, packed: bytes) -> None:
        assert not self.closed, "a commit with catalog writes stands last in its record"
        self.next_lsn += 1
        self._commit_us = commit.commit_us
        self._bytes += len(packed)
        self.commits.append(commit)
        self.packed_commits.append(packed)

    def repeat(self, repeat: Repeat) -> None:
        """Give a remembered answer again. Raises Full."""
        size = outcome_bytes(repeat.outcome)
        if self.repeats and self._repeats_bytes + size > REPEATS_BYTES_MAX:
            raise Full
        self._repeats_bytes += size
        self.repeats.append(repeat)

    def repeat_last(self, repeat: Repeat) -> None:
        """Give a remembered answer again, whatever there is, as the record's last."""
        self.repeats.append(repeat)
        self.closed = True

    def add_refusal(self, refusal: Refusal, packed: bytes) -> None:
        self._bytes += len(packed)
        self.refusals.append(refusal)
        self.packed_refusals.append(packed)

    def add_barrier(self, barrier: Barrier, packed: bytes) -> None:
        self._bytes += len(packed)
        self.barriers.append(barrier)

    def settle(self, message: QueueRead, request_id: bytes = b"") -> None:
        """Count the message as decided. `request_id`: that of a request decided now, and not
        before."""
        if message.offset != NOWHERE:
            self.pass_over(message.queue, message.offset)
        elif request_id:
            self.requesters[request_id] = message.requester

    def pass_over(self, queue: Queue, offset: int) -> None:
        """Count a message as decided that needs no decision of its own, or is wholly decided."""
        self.decided_through[queue] = offset + 1

    def complete(self, header: Decisions) -> Decisions:
        """Return the record whose other fields are those of `header`."""
        return header._replace(commits=tuple(self.commits), refusals=tuple(self.refusals))
