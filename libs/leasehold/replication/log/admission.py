"""Judges which records of the log count (L1, L2, L9): by every reader, from the log alone.

`admit` is a pure function of the reader's position and the next record, so masters, followers,
snapshots and the changefeed can't come to different conclusions.
"""

from __future__ import annotations

from enum import Enum

from leasehold.model.errors import LogStopped
from leasehold.model.records.log import Barrier, Claim, Decisions, LogPosition, LogRecord
from leasehold.replication.master.attempts import attempts_after


class Verdict(Enum):
    APPLY = "apply"  # a Decisions record that counts
    CLAIMED = "claimed"  # a Claim that counts: its node is master of the new epoch
    BARRIER = "barrier"
    SKIP = "skip"  # read over it, as every reader does
    FOREIGN = "foreign"  # the same; it is no part of the log (`foreign.py`)


def admit(
    position: LogPosition, offset: int, record: LogRecord, digest: bytes
) -> tuple[Verdict, LogPosition]:
    """Judge `record` at `offset`, read by a reader at `position`; return the verdict and the
    position after it.

    Raises LogStopped when the record proves that this reader, or the broker, has lost something.
    """
    if offset < position.offset:
        return Verdict.SKIP, position  # delivered again; it was judged before
    after = position._replace(offset=offset + 1)
    if isinstance(record, Decisions):
        return _admit_decisions(position, after, record, digest)
    if isinstance(record, Barrier):
        return Verdict.BARRIER, after
    return _admit_claim(position, after, record, digest)


def _admit_claim(
    position: LogPosition, after: LogPosition, claim: Claim, digest: bytes
) -> tuple[Verdict, LogPosition]:
    if claim.epoch <= position.epoch:
        return Verdict.SKIP, after  # L1: the first Claim for an epoch wins
    if claim.epoch != position.epoch + 1:
        raise LogStopped(
            f"L1: the log claims epoch {claim.epoch} at offset {after.offset - 1}, this reader is"
            f" in epoch {position.epoch} and has missed a Claim; rebuild it from a snapshot"
        )
    if not _follows_what_its_claimer_applied(claim, position):
        return Verdict.SKIP, after
    return Verdict.CLAIMED, after._replace(
        epoch=claim.epoch, incarnation=claim.incarnation, sequence=0, digest=digest
    )


def _follows_what_its_claimer_applied(claim: Claim, position: LogPosition) -> bool:
    """Return whether no other record stands between that and its Claim (⚠ L1)."""
    return claim.previous == position.digest


def _is_of_this_process(record: Decisions, position: LogPosition) -> bool:
    """Return whether it is not of an earlier process of the same node (L1, L4)."""
    return record.incarnation == position.incarnation


def _check_chain(position: LogPosition, record: Decisions, where: str) -> None:
    """Raise LogStopped if the record does not follow (L2)."""
    if record.sequence != position.sequence + 1:
        raise LogStopped(
            f"L2: {where}: expected sequence {position.sequence + 1}; the broker has lost or"
            " repeated an acknowledged record"
        )
    if record.previous != position.digest:
        raise LogStopped(
            f"L2: {where}: it follows a record this reader has not read; the broker has lost"
            " an acknowledged record"
        )
    if record.first_lsn != position.lsn + 1:
        raise LogStopped(f"L2: {where}: LSN {record.first_lsn} follows LSN {position.lsn}")


def _admit_decisions(
    position: LogPosition, after: LogPosition, record: Decisions, digest: bytes
) -> tuple[Verdict, LogPosition]:
    where = f"offset {after.offset - 1}, epoch {record.epoch}, sequence {record.sequence}"
    if record.epoch > position.epoch:
        raise LogStopped(
            f"L1: {where}: this reader is in epoch {position.epoch} and has missed a Claim;"
            " rebuild it from a snapshot"
        )
    if record.epoch < position.epoch:
        return Verdict.SKIP, after  # a deposed master's record, late
    if not _is_of_this_process(record, position):
        return Verdict.SKIP, after  # late
    if record.sequence == position.sequence and digest == position.digest:
        return Verdict.SKIP, after  # L2: the same record once more
    _check_chain(position, record, where)
    if record.reset_us:
        position = position._replace(
            commit_us=record.reset_us, closed_us=0, id_horizon_us=0, reset_us=record.reset_us
        )
    commit_us, closed_us = position.commit_us, position.time_us
    for commit in record.commits:
        commit_us = commit.commit_us
        if commit_us <= closed_us:
            raise LogStopped(f"L9: {where}: commit time {commit_us} is not after {closed_us}")
        closed_us = commit_us
    attempts = position.attempts
    if attempts or record.attempts:
        attempts = attempts_after(attempts, record)
    return Verdict.APPLY, after._replace(
        sequence=record.sequence,
        digest=digest,
        lsn=position.lsn + len(record.commits),
        commit_us=commit_us,
        decided_through={**position.decided_through, **record.decided_through},
        queue_topics=(
            {**position.queue_topics, **record.queue_topics}
            if record.queue_topics
            else position.queue_topics
        ),
        answered_through=max(position.answered_through, record.answered_through),
        longest_grant_ms=max(
            position.longest_grant_ms, max((g.duration_ms for g in record.grants), default=0)
        ),
        closed_us=max(position.closed_us, record.closed_us),
        id_horizon_us=max(position.id_horizon_us, record.id_horizon_us),
        reset_us=position.reset_us,
        attempts=attempts,
        feature_level=max(position.feature_level, record.feature_level),
    )
