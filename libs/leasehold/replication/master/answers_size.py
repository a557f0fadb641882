"""Measures about how much memory an answer takes that waits to be given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from leasehold.model.records.requests import Outcome

RESULT_BYTES: Final = 300
"""What a result takes beside its words."""


def outcome_bytes(outcome: Outcome) -> int:
    """Return about how much memory an outcome takes."""
    message, detail, answer = outcome.message, outcome.detail, outcome.answer
    size = RESULT_BYTES + len(message)
    if detail:
        size += weigh(detail)
    return size if answer is None else size + weigh(answer)


def weigh(value: Any) -> int:
    """Return about how much memory a value of a record takes."""
    if isinstance(value, str | bytes):
        return 50 + len(value)
    if isinstance(value, Mapping):
        return 50 + sum(100 + weigh(each) for each in value.values())
    if isinstance(value, tuple | list):
        return 50 + sum(map(weigh, value))
    return 30
