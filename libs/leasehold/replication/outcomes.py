"""What is remembered of a request id, and what asking again gets (L5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from leasehold.model.errors import RequestExpired, RequestFromFuture
from leasehold.model.ids import request_time_ms
from leasehold.model.records.log import Commit, Disposition, Refusal
from leasehold.model.records.requests import Outcome


@dataclass(frozen=True, slots=True)
class OutcomeSettings:
    """Limits of the memory. `horizon_ms`: how old an id may become before the id horizon passes it.
    `ahead_ms_max`: how far its own time may lie ahead of the master's clock (producers' clocks
    differ)."""

    horizon_ms: int = 24 * 3600 * 1000
    ahead_ms_max: int = 60_000
    collected_per_record_max: int = 2_000
    """Now and then, beside two for each that is decided: there can't come more than go."""
    ids_own_time_counts: bool = True  # L5 ⚠; a switch for tests alone


class Asked(Enum):
    DECIDE = "decide"
    REPEAT = "repeat"  # give the remembered answer again


DEFAULTS: Final = OutcomeSettings()
_UNTIMELY: Final = (RequestExpired.sqlstate, RequestFromFuture.sqlstate)
_NO_DETAIL: Final[Mapping[str, Any]] = {}


# Looked up once: a member of an enum costs as much as a call, and each request asks for several.
_DECIDE, _REPEAT = Asked.DECIDE, Asked.REPEAT


def judge_repeat(remembered: Outcome | None, attempt: int) -> Asked:
    """Return what is due to a request whose id was decided before (L5): a final outcome is
    repeated; after "attempt n refused" only attempt n + 1 is decided."""
    if remembered is None:
        return _DECIDE
    if remembered.lsn or remembered.final:
        return _REPEAT
    return _DECIDE if attempt == remembered.attempt + 1 else _REPEAT


def check_age(
    request_id: bytes, id_horizon_us: int, now_us: int, settings: OutcomeSettings = DEFAULTS
) -> None:
    """Refuse an id whose outcome may be forgotten. ⚠ Its own time counts, since a resent record
    carries a new Kafka timestamp; and it is judged by what its outcome is collected by, the id
    horizon, whatever a clock says (L5).

    Raises RequestExpired when its outcome may have been collected already, RequestFromFuture when
    it would be remembered for longer than others, InvalidText when the id carries no time.
    """
    time_ms = request_time_ms(request_id)
    if not settings.ids_own_time_counts:
        return
    if time_ms * 1_000 < id_horizon_us:
        raise RequestExpired(
            f"the request id is {now_us // 1_000 - time_ms} ms old, which is"
            f" {id_horizon_us // 1_000 - time_ms} ms more than outcomes are surely remembered for,"
            " so it can't be told whether it was applied before; submit the change under a new id"
            " (should fresh ids be refused, see `leasehold clock`)"
        )
    ahead_ms = time_ms - now_us // 1_000
    if ahead_ms > settings.ahead_ms_max:
        raise RequestFromFuture(
            f"the request id lies {ahead_ms} ms ahead of the master's clock; at most"
            f" {settings.ahead_ms_max} ms are taken; the clock of the producer or of the master's"
            " host is wrong: set it right, then submit the change under a new id"
        )


def outcome_of_commit(commit: Commit, lsn: int) -> Outcome:
    # All by position: by name it takes half as long again, and there are three of each commit.
    _, attempt, commit_us, _, _, rows_affected, _, _, _, answer, _, _ = commit
    return Outcome(attempt, lsn, rows_affected, commit_us, True, "", "", _NO_DETAIL, False, answer)


def is_untimely(refusal: Refusal) -> bool:
    """Return whether it was refused for the time of its id. By that time it would be forgotten at
    once, or, made by a clock years ahead, never; nothing was applied, so it is forgotten by the
    time at which it was refused."""
    return refusal.code in _UNTIMELY


def outcome_of_refusal(refusal: Refusal) -> Outcome:
    final = refusal.disposition in (Disposition.FINAL, Disposition.DEAD_LETTER)
    return Outcome(
        attempt=refusal.attempt,
        lsn=0,
        rows_affected=0,
        decided_us=refusal.decided_us,
        final=final,
        code=refusal.code,
        message=refusal.message,
        detail=refusal.detail,
        dead_lettered=refusal.disposition is Disposition.DEAD_LETTER,
    )
