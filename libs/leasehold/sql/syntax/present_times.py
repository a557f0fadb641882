"""The words for the present time that may have a precision, CURRENT_TIMESTAMP(3) and the like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PRESENT_TIMES: Final[Mapping[str, str]] = {
    "current_timestamp": "timestamptz",
    "localtimestamp": "timestamp",
    "current_time": "timetz",
    "localtime": "time",
}
"""The types that they have, by their names."""
PRECISION_MAX: Final = 6
"""Digits of a second, of which PostgreSQL has no more either."""
