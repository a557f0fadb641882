"""Which refused requests wait and which go back; what the next attempt is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.codec.request_encoding import encode_request
from leasehold.model.errors import MalformedRequest, NotAuthentic
from leasehold.model.ids import request_id
from leasehold.model.records.events import RowImage
from leasehold.model.records.requests import (
    ANY_GENID,
    ChangeRequest,
    Conflict,
    Expression,
    Operation,
    OperationKind,
)
from leasehold.model.signatures import (
    NO_KEYS,
    Proven,
    RequestKeys,
    Verifier,
    derive_role_key,
    read_keys,
    read_mark,
    signer,
)
from leasehold.model.traces import add_trace, split_trace
from leasehold.pipeline import retry_state
from leasehold.pipeline.retry_state import (
    Arrived,
    NextAttempts,
    Waiting,
    jitter,
    pack,
    step,
    unpack,
)
from leasehold.transaction.retry import BACKOFF_MAX_MS

CODEC = MessagePackCodec()
ID = request_id(1_700_000_000_000, bytes(10))
NOW_MS = 1_700_000_000_000
EARLY_MS = 50

ADD_ONE = Expression("a + 1")

Turns = list[tuple[int, list[tuple[bytes, int]]]]
"""(pause in ms, [(request id, attempt), …]) …"""


def test_it_waits_for_its_back_off_and_then_goes() -> None:
    first = step((), [Arrived(ID, 6, b"c")], NOW_MS, EARLY_MS)
    assert first.ready == ()
    (waiting,) = first.waiting
    assert waiting[:2] == (ID, 6)
    assert NOW_MS + EARLY_MS < waiting.due_ms <= NOW_MS + 50 * 2**5
    assert first.next_due_ms == waiting.due_ms

    early = step(first.waiting, [], waiting.due_ms - EARLY_MS - 1, EARLY_MS)
    assert early.waiting == first.waiting
    due = step(first.waiting, [], waiting.due_ms - EARLY_MS, EARLY_MS)
    assert due == ((), (waiting,), None)


def test_a_first_refusal_goes_back_at_once() -> None:
    """Goal: where the back-off is shorter than a micro-batch, state and timers cost nothing."""
    assert len(step((), [Arrived(ID, 1, b"c")], NOW_MS, EARLY_MS).ready) == 1


def test_repeats_and_older_attempts_are_dropped() -> None:
    """Goal: L7's repeats make no second request; a newer attempt takes the older one's place."""
    waiting = step((), [Arrived(ID, 6, b"a"), Arrived(ID, 6, b"b")], NOW_MS, EARLY_MS).waiting
    assert [w.conflict for w in waiting] == [b"a"]
    assert step(waiting, [Arrived(ID, 5, b"old")], NOW_MS, EARLY_MS).waiting == waiting
    assert [
        w.attempt for w in step(waiting, [Arrived(ID, 7, b"new")], NOW_MS, EARLY_MS).waiting
    ] == [7]


def test_too_many_waiting_go_early_never_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry_state, "WAITING_MAX", 3)
    arrived = [Arrived(bytes([n] * 16), 9, b"") for n in range(10)]
    left, ready, _ = step((), arrived, NOW_MS, EARLY_MS)
    assert (len(left), len(ready)) == (3, 7)
    assert max(r.due_ms for r in ready) <= min(w.due_ms for w in left)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3_000),
            st.lists(st.tuples(st.binary(min_size=1, max_size=1), st.integers(1, 12)), max_size=5),
        ),
        max_size=20,
    )
)
def test_nothing_is_lost_and_state_empties(
    turns: list[tuple[int, list[tuple[bytes, int]]]],
) -> None:
    """Goal: the newest attempt of every id comes out, through packing, and nothing stays."""
    now_ms = NOW_MS
    waiting: tuple[Waiting, ...] = ()
    out: set[tuple[bytes, int]] = set()
    newest: dict[bytes, int] = {}
    for pause_ms, arrivals in turns:
        now_ms += pause_ms
        for identity, attempt in arrivals:
            newest[identity] = max(attempt, newest.get(identity, 0))
        left, ready, next_due_ms = step(
            waiting,
            [Arrived(identity, attempt, b"") for identity, attempt in arrivals],
            now_ms,
            EARLY_MS,
        )
        out |= {(entry.request_id, entry.attempt) for entry in ready}
        assert (next_due_ms is None) == (not left)
        assert all(entry.due_ms <= now_ms + BACKOFF_MAX_MS for entry in left)
        waiting = unpack(pack(left))
        assert waiting == left
    rest = step(waiting, [], now_ms + BACKOFF_MAX_MS, EARLY_MS)
    assert rest.waiting == ()
    out |= {(entry.request_id, entry.attempt) for entry in rest.ready}
    assert set(newest.items()) <= out


def test_jitter_is_the_same_for_a_replayed_batch_and_spread_over_requests() -> None:
    assert jitter(ID, 3) == jitter(ID, 3)
    spread = {int(jitter(bytes([n] * 16), 3) * 10) for n in range(200)}
    assert spread == set(range(10))


DATABASE = "shop"
KEYS = read_keys("k" * 40)


def conflict(attempt: int, value: Any = ADD_ONE, keys: RequestKeys = NO_KEYS) -> bytes:
    update = Operation(OperationKind.UPDATE, "t", {"id": 1}, {"a": value}, expect=5)
    request = ChangeRequest(ID, (update,), attempt=attempt)
    content_type, body = encode_request(request)
    content_type = signer(keys, DATABASE, "till")("requests", "", content_type, body)
    image = RowImage(1, (1,), {0: 77}, 9, 1, 1, {1: 1})
    return CODEC.encode(Conflict(ID, attempt, 1, "t", content_type, body, image, ""))


def next_attempt(data: bytes, attempt: int = 1) -> ChangeRequest:
    attempts = NextAttempts(CODEC, NO_KEYS, DATABASE, attempts_max=3)
    return CODEC.decode_request(*attempts.encode(Waiting(ID, attempt, 0, data))[:2])


def test_the_next_attempt_expects_the_row_that_refused_it() -> None:
    request = next_attempt(conflict(1))
    assert (request.id, request.attempt, request.give_up) == (ID, 2, False)
    assert request.operations[0].expect == ANY_GENID


def test_a_constant_is_given_up_and_not_written_over_the_row_that_refused_it() -> None:
    """A master of an earlier version has put it on the topic."""
    request = next_attempt(conflict(1, 1))
    assert (request.id, request.attempt, request.give_up) == (ID, 2, True)


def test_after_the_last_attempt_it_gives_up_as_a_decided_attempt() -> None:
    request = next_attempt(conflict(3), 3)
    assert (request.id, request.attempt, request.give_up) == (ID, 4, True)


def test_a_conflict_that_is_none_is_told() -> None:
    with pytest.raises(MalformedRequest):
        next_attempt(b"\xc1")


def test_s8_the_next_attempt_is_signed_in_the_name_that_the_first_one_proves() -> None:
    """By the role's own key or by a process of the database, and a claim stays a claim."""
    of_role = RequestKeys(of_role=derive_role_key(KEYS.master[0], DATABASE, "till", "16384.0"))
    attempts = NextAttempts(CODEC, KEYS, DATABASE)
    for keys in (of_role, KEYS):
        content_type, body, _ = attempts.encode(Waiting(ID, 1, 0, conflict(1, keys=keys)))
        proven = Verifier(DATABASE, KEYS.master).prove("requests", read_mark(content_type), body)
        assert proven == Proven("till")
    unsigned = attempts.encode(Waiting(ID, 1, 0, conflict(1)))
    assert read_mark(unsigned[0])[1:4] == ("till", "", None)


def test_the_next_attempt_belongs_to_the_trace_of_the_first_one() -> None:
    traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    attempts = NextAttempts(CODEC, KEYS, DATABASE)
    for keys in (KEYS, NO_KEYS):
        refused = CODEC.decode_as(Conflict, conflict(1, keys=keys))
        traced = refused._replace(content_type=add_trace(refused.content_type, traceparent))
        waiting = Waiting(ID, 1, 0, CODEC.encode(traced))
        for content_type in (attempts.encode(waiting)[0], attempts.give_up_unread(waiting, "x")[0]):
            assert split_trace(content_type)[1] == traceparent


def test_s8_who_can_write_conflicts_has_nothing_signed() -> None:
    """A conflict in a role's name, whose signature is that of other bytes, or of a key of one's
    own."""
    own = RequestKeys(master=(b"another key of thirty-two characters",))
    attempts = NextAttempts(CODEC, KEYS, DATABASE)
    true = CODEC.decode_as(Conflict, conflict(1, keys=KEYS))
    other = CODEC.decode_as(Conflict, conflict(1, Expression("a + 2")))
    forged = CODEC.encode(true._replace(body=other.body))
    for data in (forged, conflict(1, keys=own)):
        with pytest.raises(NotAuthentic):
            attempts.encode(Waiting(ID, 1, 0, data))
        with pytest.raises(NotAuthentic):
            attempts.give_up_unread(Waiting(ID, 1, 0, data), "why")
