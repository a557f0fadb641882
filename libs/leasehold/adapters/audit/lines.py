"""An audit event as one line of JSON, and back."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from leasehold.model.audit import WORDS_CHARACTERS_MAX, AuditEvent

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LINE_BYTES_MAX: Final = 16 * 1024
"""A line that is longer was not written here."""


def encode_line(event: AuditEvent, node: str, at_us: int) -> bytes:
    """Return the line, without its end: plain ASCII, whatever a stranger has sent."""
    at = (_EPOCH + timedelta(microseconds=at_us)).isoformat(timespec="microseconds")
    fields: dict[str, Any] = {"time": at.replace("+00:00", "Z"), "node": node}
    for name, value in zip(event._fields, event, strict=True):
        if isinstance(value, str):
            value = str(value)[:WORDS_CHARACTERS_MAX]
        if value != "" and not (name == "times" and value == 1):
            fields[name] = value
    return json.dumps(fields, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def decode_line(data: bytes) -> dict[str, Any] | None:
    """Return the fields of a line; None for what is none."""
    if len(data) > LINE_BYTES_MAX:
        return None
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    named = isinstance(fields.get("kind"), str) and isinstance(fields.get("time"), str)
    return fields if named else None
