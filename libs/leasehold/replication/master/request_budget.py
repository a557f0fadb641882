"""Limits how long a request's expressions may compute on the master, by count.

What a request computes once the master decides it (expressions that it brings, defaults, checks,
generated columns, entries of indexes) every follower computes again when it applies the record. So
the limit is one of work, not of time: whoever decides it, it comes out the same, and no master is
lost over it.
"""

from __future__ import annotations

from typing import Final

from leasehold.model.budget import CALL_WORK_MAX, WORK_PER_MS, Budget, check_call
from leasehold.model.errors import TooComplex

ROW_WORK_MAX: Final = 2 * CALL_WORK_MAX
"""Of all that is computed for one row: between two rows heartbeats and grants may go out."""
REQUEST_WORK_MAX: Final = 20 * CALL_WORK_MAX
"""Of a request in all: so long others wait for the master, and for each node that applies it."""
FINDINGS_WORK_MAX: Final = 5 * CALL_WORK_MAX
"""Of findings, which are looked into at once."""
_NO_LIMIT: Final = 1 << 62


class WorkExceeded(BaseException):
    """Ends what computes more than a request may. ⚠ No Exception: those are caught where a failing
    expression means something (no entry in an index), which would make this node's rows others than
    those of the followers, who count nothing."""

    def __init__(self, what: str, work_max: int) -> None:
        super().__init__(what)
        self._what = what
        self._work_max = work_max

    def as_refusal(self) -> TooComplex:
        return TooComplex(
            f"the expressions of {self._what} would compute longer than"
            f" {self._work_max // WORK_PER_MS} ms in all, so nothing of it was applied; ask for"
            " less in one request, or give the columns simpler defaults, checks and indexes"
        )


class RequestBudget(Budget):
    """Counts while a message is decided, and nothing else. Memory is not limited."""

    def __init__(
        self,
        request_max: int = REQUEST_WORK_MAX,
        row_max: int = ROW_WORK_MAX,
        request: str = "this request",
    ) -> None:
        """Begin without a request. `request`: what it is called."""
        super().__init__(_NO_LIMIT)
        self._request_max = request_max
        self._row_max = row_max
        self._request = request
        self._counts = False
        self._of_row = 0
        self._of_request = 0

    def begin_request(self) -> None:
        self._of_request = 0
        self.begin_row()

    def begin_row(self) -> None:
        self._of_row = 0
        self._counts = True

    def pause(self) -> None:
        """Count nothing until the next row begins."""
        self._counts = False

    def charge(self, work: int) -> None:
        """Count `work`. Raises TooComplex as any budget, WorkExceeded."""
        check_call(work)
        if not self._counts:
            return
        self._of_row += work
        self._of_request += work
        if self._of_row > self._row_max:
            raise WorkExceeded("one row", self._row_max)
        if self._of_request > self._request_max:
            raise WorkExceeded(self._request, self._request_max)
