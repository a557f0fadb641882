"""Keeps infinity out of dates and timestamps that are to be written, as long as a process may read
them that does not know it (`Feature.INFINITE_TIMES`): one of an earlier release would end with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.newer_types import has_infinite_time
from leasehold.model.errors import FeatureNotSupported
from leasehold.model.features import Feature, FeatureGate
from leasehold.model.records.log import RowChange
from leasehold.values.dates import INFINITY, is_infinite

_HINT: Final = "Send it again when leasehold upgrade status says that the upgrade is finalized."


def refuse_infinite(
    changes: Iterable[RowChange], catalog: Catalog, features: FeatureGate
) -> FeatureNotSupported | None:
    """Return why rows are not taken that have an infinite date or timestamp; None: they are, or
    have none. (Where the database is finalized so far, no process that would end with them
    starts.)"""
    if features.permits(Feature.INFINITE_TIMES):
        return None
    for change in changes:
        table, image = catalog.version(change.table_id, change.version), change.image or {}
        for column in table.dated_columns:
            if _is_infinite(image.get(column.element_id)):
                return FeatureNotSupported(
                    f"column {column.name!r}: the upgrade is not finalized, and processes of an"
                    " earlier release could not read infinity as a date or a timestamp",
                    table=table.name,
                    column=column.name,
                    hint=_HINT,
                )
    return None


def _is_infinite(value: Any) -> bool:
    if isinstance(value, str):  # an array of such values
        return str(INFINITY) in value
    return value is not None and is_infinite(value)


def check_bodies(bodies: Iterable[Mapping[str, Any]], features: FeatureGate, now_ns: int) -> None:
    """Check tables and jobs that are to be written for infinity in defaults and expressions. Raises
    FeatureNotSupported."""
    written = features.is_written(Feature.INFINITE_TIMES, now_ns)
    if not written and any(map(has_infinite_time, bodies)):
        features.check_written(Feature.INFINITE_TIMES, now_ns)
