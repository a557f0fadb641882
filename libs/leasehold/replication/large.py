"""A request of many rows on its way: verified slice by slice, so that heartbeats and grants go on.

Nothing is decided between its slices: the rows and versions that it is verified against are those
under which it is accepted.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from leasehold.model.errors import LeaseholdError
from leasehold.model.records import ChangeRequest
from leasehold.replication.batch import Batch, Made
from leasehold.replication.effects import LaneRead
from leasehold.schema.catalog import Catalog
from leasehold.transaction.verify import Decided


@dataclass(slots=True)
class Large:
    """`wall_us`: when it was begun, which the commit's time is made of, as its defaults are."""

    message: LaneRead
    request: ChangeRequest
    made: Made
    catalog: Catalog
    wall_us: int
    lsn: int
    slices: Generator[None, None, Decided | LeaseholdError]
    found: Decided | LeaseholdError | None = None

    def goes_on(self) -> bool:
        """One slice more; False when all is known."""
        try:
            next(self.slices)
        except StopIteration as end:
            self.found = end.value
            return False
        return True

    def settle(self, batch: Batch) -> None:
        """In a record of its own."""
        assert self.found is not None
        assert batch.next_lsn == self.lsn, "something was decided meanwhile"
        batch.settle(self.message, self.request, self.made, self.catalog, self.found)
