"""Which rules a run has exercised: for each number the places where the rule decides something, and
how often it did.

Not how often code is passed: a place counts when the rule made a difference there, as a refusal, a
wait, or a record that is passed over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple
from unittest.mock import patch

from leasehold.in_process.ledger import MemoryLedger
from leasehold.lease.agent.held_leases import HeldLeases
from leasehold.lease.agent.session import AgentSession
from leasehold.lease.commands import TakeLock
from leasehold.lease.ledger import master_commands
from leasehold.lease.master.ledger_watch import LedgerWatch
from leasehold.lease.master.session_watch import SessionWatch
from leasehold.lease.replies import LedgerRefused, RefusalReason
from leasehold.model.errors import (
    CheckViolation,
    DuplicateKey,
    ForeignKeyViolation,
    GaveUp,
    NotNullViolation,
    RequestExpired,
    RequestFromFuture,
    StaleVersion,
    TableBusy,
    Uncommittable,
    VerifyError,
)
from leasehold.replication.coherency import CoherencyLease, CoherencySettings, CoherencyWatch
from leasehold.replication.log import admission
from leasehold.replication.log.admission import Verdict
from leasehold.replication.log.clock import LogClock
from leasehold.replication.log.foreign import ForeignRecords
from leasehold.replication.log.truncation import LogTruncation
from leasehold.replication.master import batch
from leasehold.replication.master.attempts import Attempts
from leasehold.replication.master.batch import Batch
from leasehold.replication.master.batch_limits import CommitLimits
from leasehold.replication.master.intake import Intake
from leasehold.replication.master.record_draft import RecordDraft
from leasehold.replication.master.record_in_flight import RecordInFlight
from leasehold.replication.node import Node
from leasehold.replication.outcomes import Asked
from leasehold.replication.unanswered import UnansweredRecords
from leasehold.transaction import decide, sequence_operations
from tests.simulation.client import Client

NUMBERS: Final = (
    *(f"L{number}" for number in range(1, 12)),
    *(f"C{number}" for number in range(1, 8)),
    *(f"T{number}" for number in range(9)),
    *(f"D{number}" for number in range(1, 12)),
    "R1",
)
ELSEWHERE: Final = {
    "L2": "what is lost or twice: tests/models, tests/simulation/test_foreign_in_log.py",
    "C5": "cool-downs: tests/unit/replication/test_coherency.py",
    "T2": "what can never commit: tests/isolation/test_comdb2.py",
    "T4": "answers of statements: tests/unit/sql_session",
    "D10": "advisory locks: tests/unit/replica/test_node_locks.py",
    "D11": "a ledger that is replaced while it lives: tests/models/test_model_lease.py",
}
"""What drawn runs seldom exercise, or never, and where it is instead."""
When = Callable[[Any, tuple[Any, ...]], bool]
"""Of what a function has returned, and its arguments."""


class Place(NamedTuple):
    """Where a rule makes a difference: `owner`'s function `name`, in calls of which `when` is
    so."""

    rule: str
    words: str
    owner: Any
    name: str
    when: When


# -------------------------------------------------------------- when


def _always(*_: Any) -> bool:
    return True


def _is_true(result: Any, _: Any) -> bool:
    return bool(result)


def _is_false(result: Any, _: Any) -> bool:
    return result is False


def _is_something(result: Any, _: Any) -> bool:
    return result is not None


def _refuses(*kinds: type[Exception]) -> When:
    """Of a refusal that a batch takes."""
    return lambda _, arguments: isinstance(arguments[3], kinds)


def _says(*reasons: RefusalReason) -> When:
    """Of the ledger's calls."""
    return lambda reply, _: isinstance(reply, LedgerRefused) and reply.reason in reasons


def _is_of_a_deposed_master(result: Any, arguments: Any) -> bool:
    position, _, record, _ = arguments
    return result[0] is Verdict.SKIP and record.epoch < position.epoch


def _is_too_late_a_claim(result: Any, arguments: Any) -> bool:
    position, _, claim, _ = arguments
    return result[0] is Verdict.SKIP and claim.epoch <= position.epoch


def _is_known_already(result: Any, arguments: Any) -> bool:
    position, _, _, digest = arguments
    return result[0] is Verdict.SKIP and digest == position.digest


def _does_not_follow(result: Any, _: Any) -> bool:
    return result[0] is Verdict.FOREIGN


def _goes_on(_: Any, arguments: Any) -> bool:
    return any(arguments[0]._next.values())


def _has_a_store(_: Any, arguments: Any) -> bool:
    return bool(arguments[0].position.offset)


def _is_repeated(result: Any, _: Any) -> bool:
    return result is Asked.REPEAT


def _is_next_attempt(result: Any, arguments: Any) -> bool:
    return result is Asked.DECIDE and arguments[0] is not None


def _is_held_up(result: Any, arguments: Any) -> bool:
    return bool(result != arguments[1].wall_us)


def _waits(result: Any, arguments: Any) -> bool:
    watch, _, now_ns = arguments
    return not result and now_ns >= watch.serve_from_ns


def _goes_on_without_one(result: Any, arguments: Any) -> bool:
    watch, offset, now_ns = arguments
    nodes = list(watch._nodes.values())
    return bool(result) and any(
        0 < node.wait_until_ns <= now_ns and node.applied <= offset for node in nodes
    )


def _longer(result: Any, arguments: Any) -> bool:
    settings: CoherencySettings = arguments[0]._settings
    return bool(result > settings.duration_ms)


def _cools_down(_: Any, arguments: Any) -> bool:
    _, node, now_ns = arguments
    return bool(now_ns < node.cool_down_until_ns)


def _has_to_wait(_: Any, arguments: Any) -> bool:
    watch, _, claimed_ns, running = arguments[:4]
    return bool(running.known) or watch.serve_from_ns > claimed_ns


def _ran_out(result: Any, arguments: Any) -> bool:
    return not result and arguments[0].until_ns > 0


def _hides_something(_: Any, arguments: Any) -> bool:
    descriptor, _, row = arguments[:3]
    return row is not None and any(element not in descriptor.public_ids for element in row)


def _is_retired(_: Any, arguments: Any) -> bool:
    return bool(arguments[1].retired)


def _takes_a_lock(_: Any, arguments: Any) -> bool:
    return isinstance(arguments[1], TakeLock)


CONSTRAINTS: Final = (DuplicateKey, NotNullViolation, CheckViolation, ForeignKeyViolation)
CALL: Final = (MemoryLedger, "call")
REFUSE: Final = (Batch, "_refuse")
PLACES: Final = (
    Place(
        "L1",
        "an overtaken Claim is passed over",
        admission,
        "_follows_what_its_claimer_applied",
        _is_false,
    ),
    Place("L1", "a second Claim for an epoch", admission, "_admit_claim", _is_too_late_a_claim),
    Place(
        "L1", "a deposed master's record", admission, "_admit_decisions", _is_of_a_deposed_master
    ),
    Place("L2", "the same record once more", admission, "_admit_decisions", _is_known_already),
    Place("L2", "a record that does not follow", ForeignRecords, "judge", _does_not_follow),
    Place("L3", "a master goes on where the one before ended", Intake, "__init__", _goes_on),
    Place("L4", "an epoch is given up after an error", Node, "_append_failed", _always),
    Place("L4", "a record is an earlier process's", admission, "_is_of_this_process", _is_false),
    Place("L4", "a record is not the master's own", RecordInFlight, "is_own", _is_false),
    Place("L5", "an answer is repeated", batch, "judge_repeat", _is_repeated),
    Place("L5", "attempt n + 1 is decided", batch, "judge_repeat", _is_next_attempt),
    Place("L5", "an id of another time", *REFUSE, _refuses(RequestExpired, RequestFromFuture)),
    Place("L6", "a node goes on from its store", Node, "__init__", _has_a_store),
    Place("L7", "answers are given again", UnansweredRecords, "hand_over", _is_true),
    Place("L8", "a commit has a record of its own", CommitLimits, "needs_own_record", _is_true),
    Place("L8", "what does not fit waits for the next", RecordDraft, "fits", _is_false),
    Place("L9", "a clock's step is not followed", LogClock, "_follow", _is_held_up),
    Place("L10", "it is said what is decided alone", Attempts, "say", _always),
    Place("L10", "a message is refused that ended terms", Attempts, "is_refused", _is_true),
    Place("L11", "the log is deleted behind who reads it", LogTruncation, "floor", _is_something),
    Place("C1", "an answer waits for a node", CoherencyWatch, "may_answer", _waits),
    Place("C2", "a node does not read, its lease ran out", CoherencyLease, "holds", _ran_out),
    Place("C3", "a grant of no ask of this life", CoherencyLease, "_has_asked_for", _is_false),
    Place("C3", "leases last longer, the log is slow", CoherencyWatch, "_lease_length_ms", _longer),
    Place("C4", "one is waited for no more", CoherencyWatch, "may_answer", _goes_on_without_one),
    Place("C5", "a slow node cools down", CoherencyWatch, "_was_slow", _cools_down),
    Place("C6", "a new master waits for leases", CoherencyWatch, "__init__", _has_to_wait),
    Place("C7", "a node says what it holds", CoherencyWatch, "take_part", _always),
    Place("T0", "a row has more than its writer sees", decide, "compose", _hides_something),
    Place("T1", "a verify error", *REFUSE, _refuses(VerifyError)),
    Place("T2", "what can never commit", *REFUSE, _refuses(Uncommittable)),
    Place("T3", "a constraint refuses", *REFUSE, _refuses(*CONSTRAINTS)),
    Place("T5", "an id is asked again, unanswered", Client, "ask_again", _always),
    Place("T6", "a place in the log is given", Batch, "pass_barrier", _always),
    Place("T7", "a row has a hidden key", decide, "hidden_key", _is_true),
    Place("T8", "another epoch of numbers", sequence_operations, "continue_position", _always),
    Place("D1", "a lease on an old version", *CALL, _says(RefusalReason.TOO_OLD)),
    Place("D2", "a deposed master's call", *CALL, _says(RefusalReason.EPOCH)),
    Place("D2", "publishing waits for holders", *CALL, _says(RefusalReason.HOLDERS)),
    Place("D2", "a publication is known again", master_commands, "_is_published", _is_true),
    Place("D3", "a lease has run out for its user", HeldLeases, "is_valid", _is_false),
    Place("D4", "new users are moved at once", HeldLeases, "retire", _always),
    Place("D5", "a write under an old version", *REFUSE, _refuses(StaleVersion)),
    Place("D5", "publishing waits for the fence", *CALL, _says(RefusalReason.NOT_FENCED)),
    Place(
        "D6",
        "a ledger is closed",
        *CALL,
        _says(RefusalReason.CLOSED, RefusalReason.NOT_READY, RefusalReason.RUN_ID),
    ),
    Place("D6", "an agent has to register", *CALL, _says(RefusalReason.REGISTER)),
    Place("D6", "a master waits for agents", LedgerWatch, "_grace", _always),
    Place("D7", "a session has stood still", SessionWatch, "step", _is_true),
    Place("D7", "it has renewed meanwhile", *CALL, _says(RefusalReason.COUNTER_MOVED)),
    Place("D7", "a dead session's call", *CALL, _says(RefusalReason.DEAD)),
    Place("D7", "a refused session ends at once", AgentSession, "leave", _always),
    Place("D8", "a use outlives its version", HeldLeases, "release", _is_retired),
    Place("D9", "a table is being changed", *REFUSE, _refuses(TableBusy)),
    Place("D10", "an advisory lock is taken", *CALL, _takes_a_lock),
    Place("D11", "a call has to be vouched for", AgentSession, "_needs_vouch", _is_true),
    Place("R1", "a request is given up", *REFUSE, _refuses(GaveUp)),
)
Exercised = Counter[tuple[str, str]]
"""How often, by rule and words."""


@contextmanager
def counting() -> Iterator[Exercised]:
    """Count while it lasts."""
    counted: Exercised = Counter()
    by_function: dict[tuple[Any, str], list[Place]] = {}
    for place in PLACES:
        by_function.setdefault((place.owner, place.name), []).append(place)
    with ExitStack() as stack:
        for (owner, name), places in by_function.items():
            counter = _counter(getattr(owner, name), places, counted)
            stack.enter_context(patch.object(owner, name, counter))
        yield counted


def _counter(real: Any, places: list[Place], counted: Exercised) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        result = real(*arguments, **named)
        for rule, words, _, _, when in places:
            if when(result, arguments):
                counted[rule, words] += 1
        return result

    return call


def summary(counted: Exercised, runs: Counter[tuple[str, str]]) -> list[str]:
    """Return lines: how often each rule made a difference, and in how many runs; then those that
    never did. `runs`: in how many each place was met."""
    lines = []
    for rule, words, *_ in PLACES:
        if count := counted[rule, words]:
            lines.append(f"{rule:4} {words:46} {count:>10,} times in {runs[rule, words]:,} runs")
    met = {rule for (rule, _), count in counted.items() if count}
    silent = [f"{rule} ({words})" for rule, words, *_ in PLACES if not counted[rule, words]]
    lines.append(f"places never met: {', '.join(silent) or 'none'}")
    never = [number for number in NUMBERS if number not in met]
    told = [f"{number} ({ELSEWHERE.get(number, 'nowhere else named')})" for number in never]
    lines.append(f"rules never exercised: {', '.join(told) or 'none'}")
    return lines
