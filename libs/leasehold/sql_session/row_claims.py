"""Rows that a transaction claims (FOR UPDATE SKIP LOCKED, NOWAIT): advisory locks of the whole
database, by the ledger, on a digest of each row's key.

A claim keeps nobody from writing: COMMIT verifies the rows, as without it. It only keeps those who
claim, too, from taking the same ones. A claim is given back when the transaction has ended on every
coherent node. So what the one before has done to a row is there once the claim is held, and such a
row is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final

from leasehold.model.errors import LockNotAvailable
from leasehold.replica.advisory_locks import ROWS, LockName
from leasehold.sql.binding.select_for_verify import ShownRow
from leasehold.sql.planning.plan import RowClaim
from leasehold.sql_session.advisory_locks import SessionLocks

_DIGEST_BYTES: Final = 4
"""As much as pg_locks has room for. Two rows that share a digest are claimed together, which among
the few thousand that are claimed at a time is rare, and harmless."""
Rows = Sequence[Sequence[ShownRow]]
IsSame = Callable[[Sequence[ShownRow]], bool]


class RowClaims:
    """The claims of a session's transaction."""

    def __init__(self, locks: SessionLocks) -> None:
        """Claim by these locks, which the transaction's end gives back."""
        self._locks = locks

    def claim(self, claim: RowClaim, rows: Rows, wanted: int, is_same: IsSame) -> list[bool]:
        """Claim at most `wanted` rows of a result, each made of rows of some tables, in their
        order; return for each whether it is held. One that is not as it was shown any more
        (`is_same`) is passed over. Raises LockNotAvailable (55P03) for one that another has where
        none may be passed over, and what `SessionLocks.claim` raises."""
        names = [list(dict.fromkeys(_names_of(row))) for row in rows]
        flags = [False] * len(rows)
        if not claim.skips:
            self._claim_each(claim, rows, names, flags, wanted)
            return flags
        begin = 0
        while wanted > 0 and begin < len(rows):
            end = self._claim_next(claim, names, flags, begin, wanted)
            for place in range(begin, end):
                if flags[place] and not is_same(rows[place]):
                    flags[place] = False
                    self._locks.give_claimed(names[place], exclusive=claim.exclusive)
                wanted -= flags[place]
            begin = end
        return flags

    def _claim_each(
        self,
        claim: RowClaim,
        rows: Rows,
        names: Sequence[Sequence[LockName]],
        flags: list[bool],
        wanted: int,
    ) -> None:
        for place in range(min(wanted, len(rows))):
            if not self._claim_one(claim, names[place]):
                table = next(shown.table.name for shown in rows[place])
                raise LockNotAvailable(
                    f'could not obtain lock on row in relation "{table}"', table=table
                )
            flags[place] = True

    def _claim_next(
        self,
        claim: RowClaim,
        names: Sequence[Sequence[LockName]],
        flags: list[bool],
        begin: int,
        wanted: int,
    ) -> int:
        """Claim some rows from `begin` on, and return the place behind those that were tried."""
        if any(len(each) != 1 for each in names[begin:]):
            flags[begin] = self._claim_one(claim, names[begin])
            return begin + 1
        asked = [name for (name,) in names[begin:]]
        held = set(self._locks.claim(asked, wanted, exclusive=claim.exclusive))
        for place, name in enumerate(asked, begin):
            if not wanted:
                return place
            flags[place] = name in held
            wanted -= flags[place]
        return len(names)

    def _claim_one(self, claim: RowClaim, names: Sequence[LockName]) -> bool:
        """Claim a row of several tables whole, or not at all. One that only its transaction knows
        needs no claim."""
        if not names:
            return True
        held = self._locks.claim(names, len(names), exclusive=claim.exclusive)
        if len(held) == len(names):
            return True
        self._locks.give_claimed(held, exclusive=claim.exclusive)
        return False


def _names_of(row: Sequence[ShownRow]) -> list[LockName]:
    return [
        LockName(ROWS, shown.table.table_id, _digest(shown.key))
        for shown in row
        if shown.genids and not shown.table.provisional
    ]


def _digest(key: Sequence[object]) -> int:
    return int.from_bytes(blake2b(repr(tuple(key)).encode(), digest_size=_DIGEST_BYTES).digest())
