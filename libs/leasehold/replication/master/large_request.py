"""A request of many rows on its way: verified slice by slice, so that heartbeats and grants go on.

Nothing is decided between its slices: the rows and versions that it is verified against are those
under which it is accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Final

from leasehold.catalog.catalog import Catalog
from leasehold.model.errors import LeaseholdError
from leasehold.model.records.requests import ChangeRequest
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.effects import QueueRead
from leasehold.replication.master.batch import Batch, Made
from leasehold.transaction.verify import Decided

WORK_MS_MAX: Final = 50
"""Of one turn of the master's loop: a tenth of a lease, a fortieth of an election's time-out."""


@dataclass(slots=True)
class OversizedRequest:
    """A request that is verified in slices. `wall_us`: when it was begun, which the commit's time
    is made of, as its defaults are. `slices_max`: in a turn, whatever the clock says."""

    message: QueueRead
    request: ChangeRequest
    made: Made
    catalog: Catalog
    wall_us: int
    lsn: int
    slices: Generator[None, None, Decided | LeaseholdError]
    slices_max: int
    found: Decided | LeaseholdError | None = None

    def goes_on(self, clock_ns: Callable[[], int]) -> bool:
        """Verify a few slices more, for a moment at most; return False when all is known."""
        begun_ns = clock_ns()
        try:
            for _ in range(self.slices_max):
                next(self.slices)
                if clock_ns() - begun_ns >= WORK_MS_MAX * NS_PER_MS:
                    break
        except StopIteration as end:
            self.found = end.value
            return False
        return True

    def settle(self, batch: Batch) -> None:
        """Decide it in a record of its own."""
        assert self.found is not None
        assert batch.draft.next_lsn == self.lsn, "something was decided meanwhile"
        batch.settle(self.message, self.request, self.made, self.catalog, self.found)
