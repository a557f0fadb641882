"""Compares a replay with what was answered: it commits only if every answer already sent comes out
the same (T2 ⚠).

A client may have taken another path after an answer, and can't take it back. What has not been
answered yet (a single statement, one round trip, a function that runs inside a replica) replays
freely: it has no answers here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from leasehold.transaction.isolation import Isolation


class Told(StrEnum):
    """What an answer told."""

    COUNT = "row count"
    RETURNED = "rows returned"
    FETCHED = "rows fetched"
    SELECTED = "rows selected"
    VISITED = "rows visited"  # SELECTV, SELECT … FOR UPDATE
    LOCKED = "rows selected behind a row that was locked or changed"
    OWN = "rows of its own that were shown"  # behind the answer of what has made them so
    ERROR = "error"


_OF_ROWS: Final = (Told.RETURNED, Told.FETCHED, Told.SELECTED, Told.VISITED, Told.LOCKED)


class Answer(NamedTuple):
    """The answer of a statement, as it was sent. `value`: a count, rows, or an SQLSTATE. Without
    `ordered` (no ORDER BY) rows are compared as a multiset. `behind`: the rows that the transaction
    had locked or changed by then, with their genids, as one number."""

    told: Told
    value: Any
    ordered: bool = False
    behind: int = 0


def contradiction(
    isolation: Isolation,
    sent: Sequence[Answer],
    again: Sequence[Answer],
) -> str:
    """Return why a replay whose answers are `again` may not commit after `sent`; "" if it may.

    Rows of plain SELECTs count from serializable up: below, each statement may see other rows
    anyway, but of those that the transaction itself has written, and behind a row that it has
    locked or changed, which keeps others away from what is read then. ⚠ As long as nobody has
    changed or locked one of those since, what was read stands: others had no part in it."""
    number = 0
    for before, now in zip(sent, again, strict=False):
        number += before.told is not Told.OWN or not number
        if not isolation.verifies_reads and _may_differ(before, now):
            continue
        if _comparable(before) != _comparable(now):
            return (
                f"statement {number} of those whose answers are compared was answered already, and"
                f" would be answered otherwise in a replay ({before.told.value})"
            )
    if len(again) < len(sent):
        return (
            f"statement {number + 1} of those whose answers are compared was answered already, and"
            " a replay does not reach it"
        )
    return ""


def _may_differ(before: Answer, now: Answer) -> bool:
    if before.told is now.told is Told.SELECTED:
        return True
    return before.told is now.told is Told.LOCKED and before.behind == now.behind


def _comparable(answer: Answer) -> object:
    if answer.told in _OF_ROWS and not answer.ordered:
        return answer.told, Counter(map(repr, answer.value))
    return answer.told, repr(answer.value)
