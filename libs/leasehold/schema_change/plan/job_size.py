"""How many tables one job may change: each step of it is published by one call of the ledger."""

from __future__ import annotations

from collections.abc import Collection

from leasehold.lease.commands import TABLES_PER_CALL_MAX
from leasehold.model.errors import OutOfRange


def check_job_size(tables: Collection[int]) -> None:
    """Refuse a job of more tables and sequences than can move in one step. Raises OutOfRange."""
    if len(tables) > TABLES_PER_CALL_MAX:
        raise OutOfRange(
            f"a schema change of {len(tables)} tables and sequences: at most {TABLES_PER_CALL_MAX}"
            " change at once",
            hint="Change or drop them by several statements, each in a transaction of its own.",
        )
