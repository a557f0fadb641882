"""Passes over what stands in the log and is no part of it (L2): bytes of whoever else may write to
its topic, and records that do not follow.

The chain of digests tells. A record that does not follow what this reader has is of somebody else,
or what it follows is missing here; the next record that counts decides between the two, since it
names the digest of the one before it. Until then nothing is applied, so no lease is granted and
nothing acknowledged, and nothing can go wrong but time.

    what stands there                                  it is
    bytes that are no record                           passed over; a record that was changed to
                                                       that is missed by the next one
    sequence of this term that was read already        somebody else's: L4, a master writes it once
    later sequence, other digest before it, other      in doubt, until a record follows
    LSN or time than follows; a later term
    two of those, one behind the other                 a chain that this reader has not: it waits
                                                       for WAIT_MS, and stops
    a Claim of the next term, another digest           a bid that was too late (L1)
    follows, and can't be read                         stop: a newer release is master
    follows, and finalizes the database up to a        stop: what may follow can't be read
    feature that is not known here
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, TypeAlias

from leasehold.model.errors import LogStopped
from leasehold.model.features import refuse_level
from leasehold.model.records.log import Claim, Decisions, LogPosition, LogRecord, Unreadable
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.log.admission import Verdict

WAIT_MS: Final = 10_000
"""How long a reader waits for a record that follows once it has seen a chain that does not: a
master writes every 200 ms."""
REMEMBERED_MAX: Final = 1_000
"""Records in doubt of which is known what would follow them."""
WARN_MS: Final = 60_000
LATE_MS: Final = 3_600_000
Admit: TypeAlias = Callable[[LogPosition, int, LogRecord, bytes], tuple[Verdict, LogPosition]]
_Place: TypeAlias = tuple[int, bytes, int]
"""Epoch, incarnation and sequence of a record; sequence 0: a Claim."""


class ForeignRecords:
    """Judges records as `admit` does, and says of those that do not follow whether that is somebody
    else's fault. `count`: those that were passed over since the start."""

    def __init__(self) -> None:
        self.count = 0
        self.in_doubt = 0
        """Records that do not follow since the last one that counts."""
        self._places: OrderedDict[bytes, _Place] = OrderedDict()  # by digest
        self._first: LogStopped | None = None
        self._broken_ns: int | None = None
        self._at_ns = 0  # when the last one was passed over
        self._warned_ns: int | None = None
        self._warned_of = 0
        self._words = ""

    def judge(
        self,
        admit: Admit,
        position: LogPosition,
        offset: int,
        record: LogRecord | Unreadable,
        digest: bytes,
        now_ns: int,
    ) -> tuple[Verdict, LogPosition]:
        """Return the verdict on `record` and the position behind it. Raises LogStopped for one that
        counts and can't be read, or behind which there may be such."""
        if offset < position.offset:
            return Verdict.SKIP, position
        after = position._replace(offset=offset + 1)
        if isinstance(record, Unreadable):
            self._judge_unreadable(position, offset, record, digest, now_ns)
            return Verdict.FOREIGN, after
        try:
            verdict, admitted = admit(position, offset, record, digest)
        except LogStopped as error:
            self._doubt(position, offset, _place(record), _before(record), digest, error, now_ns)
            return Verdict.FOREIGN, after
        except Exception as error:  # noqa: BLE001 - of its fields: judging changes nothing
            self._pass_over(offset, f"{type(error).__name__}: {error}", now_ns)
            return Verdict.FOREIGN, after
        if verdict in (Verdict.APPLY, Verdict.CLAIMED):
            self.followed()
            refuse_level(admitted.feature_level, f"the log at offset {offset}")
        elif isinstance(record, Claim) and record.epoch > position.epoch:
            self._remember(digest, _place(record))
        return verdict, admitted

    def followed(self) -> None:
        """Note that a record follows: what was in doubt is nobody's."""
        if self.in_doubt or self._places:
            self.in_doubt = 0
            self._places.clear()
            self._first = self._broken_ns = None

    @property
    def breaks(self) -> bool:
        """Whether there is a chain in the log that this reader has not. ⚠ No claim then: those who
        have it would pass it over, and those who have not would follow."""
        return self._broken_ns is not None

    def check(self, now_ns: int) -> None:
        """Raise LogStopped once the chain has been broken for too long."""
        if self._broken_ns is not None and now_ns - self._broken_ns >= WAIT_MS * NS_PER_MS:
            assert self._first is not None, "a chain has a first record"
            raise self._first

    def of_late(self, now_ns: int) -> int:
        """Return their number, or 0 once none has come for LATE_MS."""
        return self.count if now_ns - self._at_ns < LATE_MS * NS_PER_MS else 0

    def warning(self, now_ns: int) -> str:
        """Return a sentence on what was passed over, now and then; "" where there is nothing to
        say."""
        if self.count == self._warned_of:
            return ""
        if self._warned_ns is not None and now_ns - self._warned_ns < WARN_MS * NS_PER_MS:
            return ""
        new, self._warned_of, self._warned_ns = self.count - self._warned_of, self.count, now_ns
        return (
            f"passed over {new:,} records of the log that no master of this database wrote, the"
            f" last {self._words}. Nothing of them was applied. Who else may write to that topic?"
            " See docs/how-to/secure.md"
        )

    # ------------------------------------------------------------ one record

    def _judge_unreadable(
        self, position: LogPosition, offset: int, record: Unreadable, digest: bytes, now_ns: int
    ) -> None:
        """Raises LogStopped."""
        place = (record.epoch, record.incarnation, record.sequence)
        error = LogStopped(record.words, reason=record.words)
        if record.sequence < 0 or record.epoch < position.epoch:
            self._pass_over(offset, record.words, now_ns)
            return
        if record.previous == position.digest and (
            place == (position.epoch, position.incarnation, position.sequence + 1)
            or (record.sequence == 0 and record.epoch == position.epoch + 1)
        ):
            raise error
        self._doubt(position, offset, place, record.previous, digest, error, now_ns)

    def _doubt(
        self,
        position: LogPosition,
        offset: int,
        place: _Place,
        before: bytes,
        digest: bytes,
        error: LogStopped,
        now_ns: int,
    ) -> None:
        self._pass_over(offset, error.message, now_ns)
        epoch, incarnation, sequence = place
        if (*map(type, place), type(before)) != (int, bytes, int, bytes):
            return  # a record of the log has numbers and digests there
        if (epoch, incarnation) == position[1:3] and sequence <= position.sequence:
            return  # L4: a master writes that place once, and it was read
        self.in_doubt += 1
        if self._first is None:
            self._first = error
        if self._places.get(before) == (epoch, incarnation, sequence - 1):
            self._broken_ns = now_ns if self._broken_ns is None else self._broken_ns
        self._remember(digest, place)

    def _remember(self, digest: bytes, place: _Place) -> None:
        self._places[digest] = place
        if len(self._places) > REMEMBERED_MAX:
            self._places.popitem(last=False)

    def _pass_over(self, offset: int, words: str, now_ns: int) -> None:
        self.count += 1
        self._at_ns = now_ns
        self._words = f"at offset {offset}: {words[:200]}"


def _place(record: LogRecord) -> _Place:
    if isinstance(record, Decisions):
        return record.epoch, record.incarnation, record.sequence
    assert isinstance(record, Claim), "a barrier always passes"
    return record.epoch, record.incarnation, 0


def _before(record: LogRecord) -> bytes:
    assert isinstance(record, Decisions | Claim), "a barrier always passes"
    return record.previous
