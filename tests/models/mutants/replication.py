"""Each ⚠ rule of replication, and what breaks it.

A rule is named by a field of these dataclasses, of which False is the rule broken; `broken` breaks
them for as long as it lasts. The log's own (`LogRules`) are broken for nodes alone: whoever judges
them reads the same log by `admit` as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from typing import Any, Final
from unittest.mock import patch

from leasehold.catalog.catalog import Catalog
from leasehold.model.records.acks import Ack, PartReport
from leasehold.model.records.log import Decisions, Grant, LogPosition, LogRecord
from leasehold.model.records.requests import Result, ResultBatch
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication import node
from leasehold.replication.acknowledging import Acknowledger
from leasehold.replication.coherency import CoherencyLease, CoherencyWatch, RunningLeases
from leasehold.replication.effects import Effect, Send, Topic
from leasehold.replication.election import Election
from leasehold.replication.fast_path.log import LogPath, Term
from leasehold.replication.fast_path.own_appends import OwnAppends
from leasehold.replication.fast_path.requests import ReceivedRequests, RequestPath
from leasehold.replication.granted_leases import GrantedLeases
from leasehold.replication.log import admission as log
from leasehold.replication.log.about import About
from leasehold.replication.log.admission import Verdict
from leasehold.replication.master import master
from leasehold.replication.master.answers import Answers
from leasehold.replication.master.attempts import Attempts
from leasehold.replication.master.master import Master
from leasehold.replication.master.record_draft import RecordDraft
from leasehold.replication.master.record_in_flight import RecordInFlight
from leasehold.replication.node import Node
from leasehold.replication.unanswered import UnansweredRecords
from tests.models.mutants import schema, transaction
from tests.models.mutants.breaking import Breaks
from tests.models.mutants.schema import JobRules
from tests.models.mutants.transaction import VerifyRules

BREAKS: Final = Breaks()


@dataclass(frozen=True, slots=True)
class LogRules:
    claim_is_compare_and_set: bool = True  # L1
    incarnation_counts: bool = True  # L1, L4
    digests_chain: bool = True  # L2


@dataclass(frozen=True, slots=True)
class FastLogRules:
    in_order: bool = True
    granted_first: bool = True


@dataclass(frozen=True, slots=True)
class FastRequestRules:
    numbers_in_order: bool = True
    one_way_at_a_time: bool = True
    asks_on: bool = True


@dataclass(frozen=True, slots=True)
class OwnAppendsRules:
    next_only: bool = True


@dataclass(frozen=True, slots=True)
class CoherencyRules:
    grant_names_an_ask: bool = True  # C3
    takeover_waits: bool = True  # C6
    earlier_grants_wait: bool = True  # C6
    lost_node_waits: bool = True  # C4
    longest_lease_waits: bool = True  # C4
    told_by_incarnation: bool = True  # C1, of what is received by the fast path


@dataclass(frozen=True, slots=True)
class PartRules:
    """C7: whom a master waits for that holds a part."""

    owed_in_order: bool = True
    catalog_is_counted: bool = True
    part_is_its_incarnations: bool = True
    records_of_before_count: bool = True


@dataclass(frozen=True, slots=True)
class ElectionRules:
    reach_the_end_first: bool = True


@dataclass(frozen=True, slots=True)
class ReplicationRules:
    log: LogRules = field(default_factory=LogRules)
    fast_log: FastLogRules = field(default_factory=FastLogRules)
    fast_requests: FastRequestRules = field(default_factory=FastRequestRules)
    own_appends: OwnAppendsRules = field(default_factory=OwnAppendsRules)
    coherency: CoherencyRules = field(default_factory=CoherencyRules)
    parts: PartRules = field(default_factory=PartRules)
    election: ElectionRules = field(default_factory=ElectionRules)
    verify: VerifyRules = field(default_factory=VerifyRules)
    jobs: JobRules = field(default_factory=JobRules)
    epoch_given_up_after_error: bool = True  # L4
    own_record_by_incarnation: bool = True  # L4
    repeats_wait_too: bool = True  # C1
    unanswered_given_again: bool = True  # L7
    attempts_are_counted: bool = True  # L10
    copies_are_acknowledged: bool = True
    each_copy_has_its_name: bool = True


RULES: Final = ReplicationRules()
Admit = Callable[[LogPosition, int, LogRecord, bytes], tuple[Verdict, LogPosition]]


@contextmanager
def broken(rules: Any) -> Iterator[None]:
    """Break what is off in these dataclasses, and those in them, that is a rule of replication."""
    of_log = _log_rules(rules)
    with ExitStack() as stack:
        stack.enter_context(BREAKS.broken_in(rules))
        if isinstance(rules, ReplicationRules):
            stack.enter_context(schema.broken(rules.jobs))
            stack.enter_context(transaction.broken(rules.verify))
        if of_log != LogRules():
            stack.enter_context(patch.object(node, "admit", admit_under(of_log)))
        yield


def admit_under(rules: LogRules) -> Admit:
    """`admit`, with these rules of the log."""
    replaced: list[tuple[str, Any]] = []
    if not rules.claim_is_compare_and_set:
        replaced.append(("_follows_what_its_claimer_applied", _anything))
    if not rules.incarnation_counts:
        replaced.append(("_is_of_this_process", _anything))
    if not rules.digests_chain:
        replaced.append(("_check_chain", _anything))
    if not replaced:
        return log.admit

    def admit(
        position: LogPosition, offset: int, record: LogRecord, digest: bytes
    ) -> tuple[Verdict, LogPosition]:
        kept = [(name, getattr(log, name)) for name, _ in replaced]
        for name, other in replaced:
            setattr(log, name, other)
        try:
            return log.admit(position, offset, record, digest)
        finally:
            for name, own in kept:
                setattr(log, name, own)

    return admit


def _anything(*_: Any) -> bool:
    return True


def _log_rules(rules: Any) -> LogRules:
    if isinstance(rules, LogRules):
        return rules
    parts = [getattr(rules, each.name) for each in fields(rules)]
    of_log = [_log_rules(part) for part in parts if not isinstance(part, bool)]
    return next((found for found in of_log if found != LogRules()), LogRules())


# -------------------------------------------------------------- the fast log


@BREAKS("in_order", LogPath, "receive")
def _jump_over_a_gap(kept: Any, path: LogPath, offset: int, now_ns: int, *, whole: bool) -> bool:
    wanted = path.next_offset
    if whole and offset > wanted:
        path.next_offset = offset
    applied: bool = kept(path, offset, now_ns, whole=whole)
    if not applied and path.next_offset == offset:
        path.next_offset = wanted
    return applied


@BREAKS("granted_first", LogPath, "follow")
def _follow_whoever_is_master(
    kept: Any, path: LogPath, term: Term, _granted: Term, now_ns: int
) -> None:
    kept(path, term, term, now_ns)


# -------------------------------------------------------------- requests


@BREAKS("numbers_in_order", ReceivedRequests, "accepts")
def _accept_any_number(
    kept: Any, received: ReceivedRequests, requester: bytes, run: int, number: int
) -> bool:
    if received._next.get(requester, (-1, 0))[0] <= run:
        received._next[requester] = run, number
    accepted: bool = kept(received, requester, run, number)
    return accepted


@BREAKS("one_way_at_a_time", RequestPath, "_kafka_carries")
def _overtake(_kept: Any, _path: RequestPath) -> bool:
    return False


@BREAKS("asks_on", RequestPath, "_ask_on")
def _ask_once(_kept: Any, _path: RequestPath, _now_ns: int) -> None:
    pass


# -------------------------------------------------------------- own appends


@BREAKS("next_only", OwnAppends, "landed")
def _take_it_wherever_it_landed(
    kept: Any, own: OwnAppends, offset: int, next_offset: int, now_ns: int
) -> bool:
    taken: bool = kept(own, offset, max(offset, next_offset), now_ns)
    return taken


# -------------------------------------------------------------- coherency


@BREAKS("grant_names_an_ask", CoherencyLease, "_has_asked_for")
def _take_any_grant(_kept: Any, _lease: CoherencyLease, _grant: Grant) -> bool:
    return True


@BREAKS("takeover_waits", CoherencyWatch, "__init__")
def _serve_at_once(
    kept: Any, watch: CoherencyWatch, settings: Any, claimed_ns: int, _running: Any, *more: Any
) -> None:
    kept(watch, settings, claimed_ns, RunningLeases(), *more)


@BREAKS("earlier_grants_wait", GrantedLeases, "__init__")
def _forget_what_was_granted_before(
    kept: Any, leases: GrantedLeases, started_ns: int, _longest_grant_ms: int, defer_ms: int
) -> None:
    kept(leases, started_ns, 0, defer_ms)


@BREAKS("lost_node_waits", CoherencyWatch, "applied_by_all")
def _wait_for_nobody(_kept: Any, _watch: CoherencyWatch, _now_ns: int) -> None:
    pass


@BREAKS("longest_lease_waits", CoherencyWatch, "grants")
def _wait_for_the_newest_lease_alone(
    kept: Any, watch: CoherencyWatch, log_end: int, now_ns: int
) -> tuple[Grant, ...]:
    given: tuple[Grant, ...] = kept(watch, log_end, now_ns)
    for grant in given:
        node = watch._nodes[grant.node, grant.incarnation]
        length_ms = grant.duration_ms + watch._settings.defer_ms
        node.wait_until_ns = node.ask_heard_ns + length_ms * NS_PER_MS
    return given


@BREAKS("told_by_incarnation", CoherencyWatch, "take_published")
def _take_it_for_any_incarnation(kept: Any, watch: CoherencyWatch, ack: Ack, now_ns: int) -> None:
    for name, incarnation in list(watch._nodes):
        if name == ack.node:
            kept(watch, ack._replace(incarnation=incarnation), now_ns)


# -------------------------------------------------------------- partial replicas


@BREAKS("owed_in_order", CoherencyWatch, "read_back")
def _owe_the_newest_alone(kept: Any, watch: CoherencyWatch, *record: Any) -> None:
    for each in watch._nodes.values():
        each.owed.clear()
    kept(watch, *record)


@BREAKS("catalog_is_counted", master, "about")
def _count_changed_rows_alone(kept: Any, record: Decisions, catalog: Catalog) -> About:
    rows = tuple(commit._replace(catalog=()) for commit in record.commits)
    found: About = kept(record._replace(commits=rows), catalog)
    return found


@BREAKS("part_is_its_incarnations", CoherencyWatch, "_heard")
def _take_the_part_of_a_name(kept: Any, watch: CoherencyWatch, name: str, own: bytes) -> Any:
    node = kept(watch, name, own)
    for (other, _), state in watch._nodes.items():
        if other == name and node.held is None:
            node.held = state.held
    return node


@BREAKS("records_of_before_count", CoherencyWatch, "take_part")
def _count_from_the_report_on(
    kept: Any, watch: CoherencyWatch, report: PartReport, _log_end: int, now_ns: int
) -> None:
    kept(watch, report, 0, now_ns)


# -------------------------------------------------------------- copies of a store


@BREAKS("copies_are_acknowledged", Acknowledger, "_copied")
def _keep_the_log_for_nodes_alone(_kept: Any, _of: Acknowledger, *_: Any) -> list[Effect]:
    return []


@BREAKS("each_copy_has_its_name", Acknowledger, "_copied")
def _acknowledge_for_all_copies(
    kept: Any, acknowledger: Acknowledger, *arguments: Any
) -> list[Effect]:
    copies = acknowledger.copies
    acknowledger.copies = lambda: {"": min(copies().values())} if copies() else {}
    try:
        effects: list[Effect] = kept(acknowledger, *arguments)
    finally:
        acknowledger.copies = copies
    return effects


# -------------------------------------------------------------- elections


@BREAKS("reach_the_end_first", Election, "take_end")
def _bid_where_it_stands(
    kept: Any, election: Election, end: int, position: LogPosition, now_ns: int
) -> str | None:
    if end >= election._read:
        end = position.offset
    answer: str | None = kept(election, end, position, now_ns)
    return answer


# -------------------------------------------------------------- masters


@BREAKS("epoch_given_up_after_error", Node, "_append_failed")
def _append_another_record_in_its_place(
    kept: Any, one: Node, reason: str, now: Any
) -> list[Effect]:
    master = one.master
    if master is None:
        effects: list[Effect] = kept(one, reason, now)
        return effects
    if master.flight.drop():
        master._store.rollback()
    return []


@BREAKS("own_record_by_incarnation", RecordInFlight, "is_own")
def _know_it_by_its_lsn(
    _kept: Any, flight: RecordInFlight, record: Decisions, _digest: bytes
) -> bool:
    return flight.draft is not None and record.first_lsn == flight.draft.first_lsn


@BREAKS("repeats_wait_too", Master, "_append")
def _repeat_answers_at_once(
    kept: Any, master: Master, draft: RecordDraft, position: LogPosition, *more: Any
) -> list[Effect]:
    appended: list[Effect] = kept(master, draft, position, *more)
    repeats, draft.repeats = draft.repeats, []
    return [
        *appended,
        *(
            Send(Topic.RESULTS, to, b"", ResultBatch((Result(request_id, 0, outcome),)), 0)
            for request_id, to, outcome, _ in repeats
        ),
    ]


@BREAKS("unanswered_given_again", UnansweredRecords, "hand_over")
def _forget_what_is_unanswered(
    kept: Any, unanswered: UnansweredRecords, answered_through: int
) -> list[Answers]:
    kept(unanswered, answered_through)
    return []


@BREAKS("attempts_are_counted", Attempts, "is_refused")
@BREAKS("attempts_are_counted", Attempts, "is_refused_unread")
def _refuse_nothing(_kept: Any, _attempts: Attempts, *_: Any) -> bool:
    return False
