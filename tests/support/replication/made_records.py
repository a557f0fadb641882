"""Records of a log made by hand, chained as a master chains them."""

from __future__ import annotations

from collections.abc import Sequence

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model.records.log import Claim, Commit, Decisions, Grant, LogPosition, LogRecord

CODEC = MessagePackCodec()
M1 = b"m1-first"
M2 = b"m2-first"


def commit(at_us: int) -> Commit:
    return Commit(b"", 1, at_us, {}, (), 0)


def decisions(
    after: LogPosition,
    *,
    commits: Sequence[int] = (),
    incarnation: bytes | None = None,
    epoch: int | None = None,
    grants: tuple[Grant, ...] = (),
    answered_through: int = 0,
) -> Decisions:
    """The record that the master of `after` would append next; `commits` are commit times."""
    return Decisions(
        epoch=after.epoch if epoch is None else epoch,
        incarnation=after.incarnation if incarnation is None else incarnation,
        sequence=after.sequence + 1,
        previous=after.digest,
        first_lsn=after.lsn + 1,
        commits=tuple(commit(at) for at in commits),
        refusals=(),
        decided_through={},
        answered_through=answered_through,
        grants=grants,
    )


def claim(after: LogPosition, incarnation: bytes, node: str = "m1") -> Claim:
    return Claim(after.epoch + 1, incarnation, after.digest, node)


def digest(record: LogRecord) -> bytes:
    return CODEC.digest(CODEC.encode(record))
