"""The one record of a master's that is on its way."""

from __future__ import annotations

from collections.abc import Mapping

from leasehold.model.errors import LogStopped
from leasehold.model.ports import Codec
from leasehold.model.records.log import Decisions, LogPosition
from leasehold.replication.master.record_draft import RecordDraft


class RecordInFlight:
    """Holds the record from its append to its read-back; there is never a second one.

    L4: it counts when it was read back as this term's own; what is read back with its place and
    another content ends the process. `_sequence` is that of the record read back last."""

    def __init__(self, position: LogPosition, codec: Codec) -> None:
        """Begin at `position`, right after the Claim."""
        self._codec = codec
        self._epoch = position.epoch
        self._incarnation = position.incarnation
        self._sequence = position.sequence
        self._digest = b""
        self._record: Decisions | None = None
        self._draft: RecordDraft | None = None

    @property
    def draft(self) -> RecordDraft | None:
        """What it was made of; None while no record is on its way."""
        return self._draft

    def pack(
        self,
        draft: RecordDraft,
        previous: bytes,
        decided_through: Mapping[str, int],
        queue_topics: Mapping[str, str],
        answered_through: int,
    ) -> bytes:
        """Return the bytes to append, which are in flight from now on. `previous`: digest of the
        record before."""
        assert self._draft is None, "one record is on its way at a time"
        header = Decisions(
            epoch=self._epoch,
            incarnation=self._incarnation,
            sequence=self._sequence + 1,
            previous=previous,
            first_lsn=draft.first_lsn,
            commits=(),
            refusals=(),
            decided_through=decided_through,
            answered_through=answered_through,
            grants=draft.grants,
            closed_us=draft.time_us,
            id_horizon_us=draft.id_horizon_us,
            reset_us=draft.reset_us,
            queue_topics=queue_topics,
            attempts=tuple(draft.attempts),
            barriers=tuple(draft.barriers),
            feature_level=draft.feature_level,
        )
        data = self._codec.join_decisions(header, draft.packed_commits, draft.packed_refusals)
        self._digest = self._codec.digest(data)
        self._draft = draft
        self._record = draft.complete(header)
        return data

    def find(self, digest: bytes) -> Decisions | None:
        """Return the record in flight if it has that digest."""
        if self._draft is None or digest != self._digest:
            return None
        return self._record

    def is_own(self, record: Decisions, digest: bytes) -> bool:
        """Whether that is the record in flight. L4 ⚠: by epoch, incarnation, sequence and content,
        not just the LSN."""
        own = (
            self._draft is not None
            and record.epoch == self._epoch
            and record.incarnation == self._incarnation
            and record.sequence == self._sequence + 1
        )
        if own and digest != self._digest:
            raise LogStopped(
                f"L4: epoch {record.epoch} sequence {record.sequence} was read back with other"
                " content than was sent"
            )
        return own

    def land(self, record: Decisions) -> RecordDraft:
        """Return what the record was made of that was read back as this one."""
        draft = self._draft
        assert draft is not None, "L4"
        self._draft = None
        self._sequence = record.sequence
        return draft

    def drop(self) -> bool:
        """Forget the record; return whether one was on its way."""
        was, self._draft = self._draft is not None, None
        return was
