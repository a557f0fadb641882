"""Units of time. Clocks count nanoseconds, settings are milliseconds, the log has microseconds."""

from __future__ import annotations

from typing import Final

NS_PER_US: Final = 1_000
US_PER_MS: Final = 1_000
NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000
