"""A request that is verified row by row, so that heartbeats and grants go on if it takes long.

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
from leasehold.replication.effects import QueueRead
from leasehold.replication.master.batch import Batch, Made, Measured
from leasehold.replication.master.request_budget import RequestBudget
from leasehold.transaction.verify import Decided

WORK_MS_MAX: Final = 50
"""Of one turn of the master's loop: a tenth of a lease, a fortieth of an election's time-out."""


@dataclass(slots=True)
class OversizedRequest:
    """A request that is verified in slices. `wall_us`: when it was begun, which the commit's time
    is made of, as its defaults are. `rows_max`: in a turn, whatever the clock says."""

    message: QueueRead
    request: ChangeRequest
    made: Made
    catalog: Catalog
    wall_us: int
    lsn: int
    slices: Generator[int | None, None, Decided | Measured | LeaseholdError]
    rows_max: int
    budget: RequestBudget
    found: Decided | Measured | LeaseholdError | None = None

    def goes_on(self, clock_ns: Callable[[], int], until_ns: int) -> bool:
        """Verify more rows, `until_ns` at most; return False when all is known. What its rows
        compute is counted by `budget`, which is the thread's."""
        budget, slices = self.budget, self.slices
        rows = 0
        try:
            while rows < self.rows_max:
                budget.begin_row()
                rows += next(slices) or 1
                if clock_ns() >= until_ns:
                    break
        except StopIteration as end:
            self.found = end.value
            return False
        finally:
            budget.pause()
        return True

    def settle(self, batch: Batch) -> None:
        """Decide it in a record of its own."""
        assert self.found is not None
        assert batch.draft.next_lsn == self.lsn, "something was decided meanwhile"
        found = self.found
        batch.settle(self.message, self.request, self.made, self.catalog, found)
