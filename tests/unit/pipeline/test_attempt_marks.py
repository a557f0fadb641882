"""A conflict that ends the worker of the retry: tried again, then given up unread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.codec.request_encoding import encode_request
from leasehold.model.ids import request_id
from leasehold.model.records.requests import ChangeRequest, Conflict, Operation, OperationKind
from leasehold.model.signatures import NO_KEYS
from leasehold.pipeline.attempt_marks import ENDED_MAX, MARKS_BYTES_MAX, AttemptMarks
from leasehold.pipeline.retry_state import NextAttempts, Waiting

CODEC = MessagePackCodec()
ATTEMPTS = NextAttempts(CODEC, NO_KEYS, "demo")
REQUEST = request_id(1_700_000_000_000, bytes(10))
MARK = (REQUEST, 1)
OTHER = (request_id(1_700_000_000_001, bytes(10)), 3)


def dies_over(folder: Path, *marks: tuple[bytes, int]) -> None:
    """A worker that computes these, and ends over the last."""
    worker = AttemptMarks(folder, 7)
    for mark in marks:
        worker.begin(mark)


def test_who_has_ended_two_workers_is_given_up_and_what_stood_before_it_is_not(
    tmp_path: Path,
) -> None:
    for _ in range(ENDED_MAX):
        assert not AttemptMarks(tmp_path, 7).is_given_up(MARK)
        dies_over(tmp_path, OTHER, MARK)
    found = AttemptMarks(tmp_path, 7)
    assert found.is_given_up(MARK)
    assert not found.is_given_up(OTHER)
    assert not found.is_given_up((REQUEST, 2)), "another attempt"
    assert not AttemptMarks(tmp_path, 8).is_given_up(MARK), "another bucket"
    found.end()
    assert not AttemptMarks(tmp_path, 7).is_given_up(MARK)


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x93\x01\x02\x03", bytes(MARKS_BYTES_MAX + 1)])
def test_a_file_that_says_nothing_ends_no_worker(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "7.marks").write_bytes(data)
    assert not AttemptMarks(tmp_path, 7).is_given_up(MARK)
    dies_over(tmp_path, MARK)


def conflict_of(body: bytes, content_type: str = "application/json") -> Waiting:
    record = Conflict(REQUEST, 2, 5, "t", content_type, body, None, "changed")
    return Waiting(REQUEST, 2, 0, CODEC.encode(record))


def test_what_is_given_up_unread_says_why_in_its_dead_letter() -> None:
    content_type, body = ATTEMPTS.give_up_unread(conflict_of(b"?"), "two workers have ended")
    request = CODEC.decode_request(content_type, body)
    assert (request.id, request.attempt, request.give_up) == (REQUEST, 3, True)
    assert request.sql is not None
    assert "two workers have ended" in request.sql


@pytest.mark.parametrize("error", [MemoryError, RecursionError, AttributeError])
def test_what_can_not_be_computed_is_given_up(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def failing(*_: Any, **__: Any) -> Any:
        raise error

    written, body = encode_request(
        ChangeRequest(REQUEST, (Operation(OperationKind.DELETE, "t", {"id": 1}, {}),))
    )
    monkeypatch.setattr("leasehold.pipeline.retry_state.recompute", failing)
    content_type, given, why = ATTEMPTS.encode(conflict_of(body, written))
    assert error.__name__ in why
    assert CODEC.decode_request(content_type, given).give_up
