"""Judges what is answered to an id that is asked again. PURE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Answer = Mapping[str, Any]


def judge_outcomes(first: Mapping[str, Sequence[Answer]], again: Mapping[str, Answer]) -> list[str]:
    """Return the ids with two outcomes (L5). `first`: what was told, each time; `again`: what is
    told in the end."""
    found = []
    for request_id, answers in first.items():
        last = again.get(request_id)
        if last is None:
            found.append(f"outcomes: {request_id} has no outcome in the end")
            continue
        other = next((answer for answer in answers if dict(answer) != dict(last)), None)
        if other is not None:
            found.append(f"outcomes: {request_id} was told {dict(other)}, then {dict(last)}")
    lsns: dict[int, str] = {}
    for request_id, answer in again.items():
        lsn = answer.get("lsn", 0)
        if lsn and lsns.setdefault(lsn, request_id) != request_id:
            found.append(f"outcomes: {request_id} and {lsns[lsn]} have one LSN, {lsn}")
    return found
