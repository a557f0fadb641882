"""The version that a transaction has pinned, judged anew by each statement (D3, D8)."""

from __future__ import annotations

from leasehold.catalog.descriptor import Descriptor
from leasehold.model.errors import StaleVersion


def check_pinned(pinned: Descriptor, min_version: int) -> None:
    """Raise StaleVersion where a statement under `pinned` may not read a snapshot in which
    `min_version` is the table's (D3 ⚠); the transaction is to be run again.

    Both belong to one snapshot: between a check outside and the read the store may have moved on by
    two versions."""
    if pinned.version < min_version:
        raise StaleVersion(
            f"version {pinned.version} of table {pinned.name!r} is no longer in use; lowest is"
            f" {min_version}; run the transaction again",
            table=pinned.name,
        )
