"""Report who holds a version of a table, since when, at what work, and whether it answers. PURE.

The ledger says who holds what. Why, agents report themselves while they hold a change back. How
they are follows from their reports, acknowledgements and renewals together.
"""

from __future__ import annotations

from typing import Any, Final

from leasehold.admin.view import SILENT_AFTER_US, ClusterView
from leasehold.lease.replies import Holding
from leasehold.model.records.acks import HoldingReport

RENEWAL_MISSED_US: Final = 10_000_000
"""Agents renew every 5 s unless they are told otherwise; two of them were due by then."""
WORK_SAID_MAX: Final = 2


def holding_report(view: ClusterView, holding: Holding, table: str, now_us: int) -> dict[str, Any]:
    """Return what is known of one holder of a table's version, with all times in ms.

    `state` is running, silent (nothing has come from it for too long), expiring (its renewals are
    refused, so its session ends within its time) or unknown (only its lease is known). `held_ms`,
    `old_ms` (since a newer version is there), `users` and `work` are what the agent reported
    `heard_ms` ago, carried on to now; they are None where it has reported nothing.
    """
    told = view.held_back.get((holding.agent, holding.table, holding.version))
    if told is not None and told.session not in (0, holding.session):
        told = None  # of a life before this one
    since_ms = None
    if told is not None:
        since_ms = view.age_us(holding.agent, told.sent_us, now_us) // 1_000
    heard_ms = _heard_ms(view, holding, told, now_us)
    return {
        "agent": holding.agent,
        "session": holding.session,
        "table": table,
        "version": holding.version,
        "state": _state(view, holding, heard_ms),
        "heard_ms": heard_ms,
        "held_ms": _carried(told.held_ms if told else None, since_ms),
        "old_ms": _carried(told.old_ms if told else None, since_ms),
        "users": told.users if told else None,
        "work": [
            {"label": label, "sql": sql, "age_ms": _carried(age_ms, since_ms)}
            for label, sql, age_ms in (told.work if told else ())
        ],
        "session_ends_in_ms": _carried(told.expires_ms if told else None, since_ms, down=True),
    }


def _carried(age_ms: int | None, since_ms: int | None, *, down: bool = False) -> int | None:
    if age_ms is None or since_ms is None:
        return None
    return age_ms - since_ms if down else age_ms + since_ms


def _heard_ms(
    view: ClusterView, holding: Holding, told: HoldingReport | None, now_us: int
) -> int | None:
    """Return the age of its newest sign of life that was seen; None when none was."""
    node, session = view.nodes.get(holding.agent), view.sessions.get(holding.session)
    ages_us = [
        view.age_us(holding.agent, sent_us, now_us)
        for sent_us in (told.sent_us if told else 0, node.ack.sent_us if node else 0)
        if sent_us
    ]
    if session is not None and session.moved_us:
        ages_us.append(max(0, now_us - session.moved_us))
    return min(ages_us) // 1_000 if ages_us else None


def _state(view: ClusterView, holding: Holding, heard_ms: int | None) -> str:
    sessions = view.ledger.report.sessions if view.ledger else ()
    if any(s.expiring for s in sessions if s.session == holding.session):
        return "expiring"
    if heard_ms is None:
        return "unknown"
    # Who has only renewals to be seen by is seen by them seldom.
    told = (holding.agent, holding.table, holding.version) in view.held_back
    often = told or holding.agent in view.nodes
    limit_us = SILENT_AFTER_US if often else RENEWAL_MISSED_US
    return "silent" if heard_ms * 1_000 > limit_us else "running"


def holding_words(told: dict[str, Any]) -> str:
    """Return one sentence: who, what, since when, at which work, and what ends it."""
    words = f"agent {told['agent']} holds {told['table']} version {told['version']}"
    words += f" (session {told['session']})"
    if told["old_ms"] is not None:
        words += f" for {seconds_words(told['old_ms'])} after a newer one was there"
    elif told["state"] != "silent":
        words += " and has not said why"
    return words + _work_words(told) + _end_words(told)


def _work_words(told: dict[str, Any]) -> str:
    if told["users"] is None:
        return ""
    named = told["work"][:WORK_SAID_MAX]
    said = [
        f"{each['label'] or each['sql'] or 'unnamed work'}"
        f"{': ' + each['sql'] if each['label'] and each['sql'] else ''}"
        f" ({seconds_words(each['age_ms'])})"
        for each in named
    ]
    others = told["users"] - len(named)
    if others > 0:
        users = "user" if others == 1 else "users"
        said.append(f"{others} other {users}" if named else f"{others} {users} without a name")
    return f"; in use by {', '.join(said)}" if said else ""


def _end_words(told: dict[str, Any]) -> str:
    if told["state"] == "expiring":
        when = "at its next call to Redis, or when its session ends"
        return f"; its renewals are refused, so it lets go {when}"
    if told["state"] != "silent":
        return "; it lets go when its work on it ends"
    left = told["session_ends_in_ms"]
    ends = f" (in about {seconds_words(left)} by its clock)" if left and left > 0 else ""
    return f"; not heard of for {seconds_words(told['heard_ms'])}: its session ends by itself{ends}"


def seconds_words(milliseconds: int) -> str:
    return f"{milliseconds / 1_000:.1f} s"
