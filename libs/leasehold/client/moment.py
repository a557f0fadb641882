"""The moment that a transaction reads as of, found when it begins."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from leasehold.model.errors import (
    FeatureNotSupported,
    MalformedRequest,
    NotCoherent,
    SnapshotTooOld,
)
from leasehold.model.ports import Snapshots
from leasehold.schema.moments import AsOf
from leasehold.transaction.isolation import Isolation, Sees


def moment_of(
    isolation: Isolation,
    as_of: AsOf | None,
    store: Snapshots,
    coherent: Callable[[], bool],
    pass_barrier: Callable[[], None],
    now_us: int,
) -> int | None:
    """The LSN, None where each statement reads what is newest.

    Of BEGIN: what is here now, while all that was answered is. `pass_barrier` puts a barrier into
    the log and comes back when all before it is committed here: then no lease, and no clock, is
    needed to know that nothing answered is missing (T6).

    Raises NotCoherent, SnapshotTooOld, MalformedRequest for a time without a time zone,
    FeatureNotSupported where no rows of the past are kept, and what `pass_barrier` raises.
    """
    if isolation.sees is Sees.NEWEST:
        return None
    if isolation.sees is Sees.BARRIER:
        pass_barrier()
    elif not isinstance(as_of, int) and not coherent():
        raise NotCoherent("this replica is not coherent now: it has no valid lease from the master")
    with store.open_snapshot() as snapshot:
        if not snapshot.keeps_rows():
            raise FeatureNotSupported(
                f"transactions at isolation level {isolation.level.value} read one moment, and no"
                " rows of the past are kept here (LEASEHOLD_ROW_HISTORY_MS is 0): set it on every"
                " node, or use read committed"
            )
        if as_of is None:
            return snapshot.lsn
        lsn = as_of if isinstance(as_of, int) else _lsn_at(as_of, snapshot.lsn_at, now_us)
        # Now rather than at its first statement: it is not kept, or not here yet.
        snapshot.as_of(lsn)
        return lsn


def _lsn_at(time: datetime, lsn_at: Callable[[int], int], now_us: int) -> int:
    if time.tzinfo is None:
        raise MalformedRequest(f"AS OF needs a time with a time zone, not {time.isoformat()}")
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    time_us = (time - epoch) // _MICROSECOND
    if time_us > now_us:
        raise NotCoherent(f"{time.isoformat()} lies ahead; ask for a time that has passed")
    lsn = lsn_at(time_us)
    if not lsn:
        raise SnapshotTooOld(
            f"what was there at {time.isoformat()} is not kept any more"
            " (LEASEHOLD_ROW_HISTORY_MS); ask for a later time"
        )
    return lsn


_MICROSECOND = datetime.resolution
