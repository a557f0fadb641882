"""What one client may ask for at most. Each limit names its unit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one connection. `statements_max` and `portals_max` count those that exist at
    once."""

    startup_bytes_max: int = 10_000
    small_message_bytes_max: int = 10_000
    message_bytes_max: int = 16 * 1024 * 1024
    parameters_max: int = 10_000
    statements_max: int = 1_000
    portals_max: int = 1_000
    statement_texts_bytes_max: int = 4 * 1024 * 1024
    """Of the texts of all prepared statements together."""
    portal_values_bytes_max: int = 32 * 1024 * 1024
    """Of the values of all portals together."""
    name_bytes_max: int = 255
    output_bytes_max: int = 32 * 1024
    """Answers gather up to here before they are handed to the outlet."""
    rows_a_fetch_max: int = 256
    copy_rows_max: int = 1_000
    """Rows that are handed to the session at a time."""
    copy_line_bytes_max: int = 4 * 1024 * 1024
