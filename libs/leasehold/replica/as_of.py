"""The moment that a transaction reads as of, found when it begins."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from leasehold.model.errors import (
    FeatureNotSupported,
    MalformedRequest,
    NotCoherent,
    SnapshotTooOld,
)
from leasehold.model.ports import Snapshots, StoreSnapshot
from leasehold.transaction.isolation import Isolation, Sees
from leasehold.values.dates import AsOf

CLOSED_WAIT_S: Final = 1.0
"""For the next record of a master that has nothing to decide: five of its heartbeats."""


def snapshot_lsn_of(
    isolation: Isolation,
    as_of: AsOf | None,
    store: Snapshots,
    coherent: Callable[[], bool],
    pass_barrier: Callable[[], None],
    wait: Callable[[Callable[[], bool]], bool],
    now_us: int,
) -> int | None:
    """Return the LSN that it reads as of; None: each statement reads what is newest.

    Of BEGIN: what is here now, while all that was answered is. `pass_barrier` puts a barrier into
    the log and comes back when all before it is committed here: then no lease, and no clock, is
    needed to know that nothing answered is missing (T6). As of a time: the same for ever, hence not
    before it is known here that no commit can come that is not later (L9); `wait`: at most
    CLOSED_WAIT_S for that, → whether it came true.

    Raises NotCoherent, SnapshotTooOld, MalformedRequest for a time without a time zone,
    FeatureNotSupported where no rows of the past are kept, and what `pass_barrier` raises.
    """
    if isolation.sees is Sees.NEWEST:
        return None
    if isolation.sees is Sees.BARRIER:
        pass_barrier()
    elif not isinstance(as_of, int) and not coherent():
        raise NotCoherent("this replica is not coherent now: it has no valid lease from the master")
    if isinstance(as_of, datetime):
        _await_closed(as_of, store, wait, now_us)
    with store.open_snapshot() as snapshot:
        if not snapshot.keeps_rows():
            raise FeatureNotSupported(
                f"transactions at isolation level {isolation.level.value} read one moment, and no"
                " rows of the past are kept here (LEASEHOLD_ROW_HISTORY_MS is 0): set it on every"
                " node, or use read committed"
            )
        if as_of is None:
            return snapshot.lsn
        lsn = as_of if isinstance(as_of, int) else _lsn_at(as_of, snapshot)
        # Now rather than at its first statement: it is not kept, or not here yet.
        snapshot.as_of(lsn)
        return lsn


def _await_closed(
    time: datetime, store: Snapshots, wait: Callable[[Callable[[], bool]], bool], now_us: int
) -> None:
    time_us = _microseconds(time)
    if time_us > now_us:
        raise NotCoherent(f"{time.isoformat()} lies ahead; ask for a time that has passed")

    def is_closed() -> bool:
        with store.open_snapshot() as snapshot:
            return snapshot.position().time_us >= time_us

    if not is_closed() and not wait(is_closed):
        raise NotCoherent(
            f"what will have been committed by {time.isoformat()} is not known here yet: nothing"
            " later has come from the master; ask again, or for an earlier time, and if it stays"
            " so see `leasehold status` and `leasehold clock`"
        )


def _microseconds(time: datetime) -> int:
    if time.tzinfo is None:
        raise MalformedRequest(f"AS OF needs a time with a time zone, not {time.isoformat()}")
    return (time - _EPOCH) // _MICROSECOND


def _lsn_at(time: datetime, snapshot: StoreSnapshot) -> int:
    time_us = _microseconds(time)
    lsn = snapshot.lsn_at(time_us)
    if not lsn:
        reset_us = snapshot.position().reset_us
        if time_us < reset_us:
            raise SnapshotTooOld(
                f"what was there at {time.isoformat()} can't be told: commits of before"
                f" {(_EPOCH + reset_us * _MICROSECOND).isoformat()}, when the log's time was set"
                " back (leasehold clock reset), have times that overlap; ask for a later time"
            )
        raise SnapshotTooOld(
            f"what was there at {time.isoformat()} is not kept any more"
            " (LEASEHOLD_ROW_HISTORY_MS); ask for a later time"
        )
    return lsn


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = datetime.resolution
