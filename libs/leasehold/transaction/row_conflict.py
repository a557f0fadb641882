"""A verify error that knows its row. In a file of its own, which is not compiled: a compiled class
may not inherit from an interpreted one (`infra/DESIGN.md`, *Compiled services*)."""

from __future__ import annotations

from leasehold.model.errors import VerifyError
from leasehold.model.records.events import RowImage


class RowRefused(VerifyError):
    """A verify error together with the row that refused the request, and the locks concerned."""

    def __init__(
        self, message: str, image: RowImage | None, locks: tuple[int, ...], **detail: object
    ) -> None:
        super().__init__(message, **detail)
        self.image = image
        self.locks = locks
