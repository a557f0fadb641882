"""A conflict that ends the process that computes it: tried again, then given up unread."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.codec.request_encoding import encode_request
from leasehold.model.ids import request_id
from leasehold.model.records.requests import ChangeRequest, Conflict, Operation, OperationKind
from leasehold.model.signatures import NO_KEYS
from leasehold.pipeline.attempt_child import ENDED_MAX, AttemptChild
from leasehold.pipeline.retry_state import NextAttempts, Waiting

CODEC = MessagePackCodec()
ATTEMPTS = NextAttempts(CODEC, NO_KEYS, "demo")
REQUEST = request_id(1_700_000_000_000, bytes(10))


def computed(entries: Sequence[int], fatal: Mapping[int, int], folder: Path) -> list[Any]:
    """What comes of entries, of which each of `fatal` ends that many processes."""

    def compute(entry: int) -> tuple[int, bytes]:
        ended = folder / str(entry)
        times = int(ended.read_text()) if ended.exists() else 0
        if times < fatal.get(entry, 0):
            ended.write_text(str(times + 1))
            os.kill(os.getpid(), signal.SIGKILL)
        return entry, b"computed" * 20_000

    with AttemptChild(compute) as child:
        return list(child.results(entries, lambda entry: (entry, b"given up")))


@pytest.mark.parametrize(
    ("fatal", "given_up"),
    [
        ({}, []),
        ({3: 1, 0: 1, 5: 1}, []),
        ({3: ENDED_MAX}, [3]),
        ({0: 9, 2: 9, 3: 9, 4: 1, 5: 9}, [0, 2, 3, 5]),
    ],
)
def test_who_ends_one_process_after_the_other_is_given_up_and_nobody_else(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fatal: Mapping[int, int],
    given_up: Sequence[int],
) -> None:
    """Goal: each has one result, in order, and as many processes end as may; none is left."""
    forked: list[int] = []
    fork = os.fork

    def counted() -> int:
        child = fork()
        forked.append(child)
        return child

    monkeypatch.setattr(os, "fork", counted)
    results = computed(range(6), fatal, tmp_path)
    assert [entry for entry, _ in results] == list(range(6))
    assert [entry for entry, said in results if said == b"given up"] == given_up
    assert {int(path.name): int(path.read_text()) for path in tmp_path.iterdir()} == {
        entry: min(times, ENDED_MAX) for entry, times in fatal.items()
    }
    assert len(forked) == 1 + sum(min(times, ENDED_MAX) for times in fatal.values()) - (
        5 in given_up
    )
    for child in forked:
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)


def test_what_fails_in_a_child_is_no_result_of_another(caplog: pytest.LogCaptureFixture) -> None:
    def compute(entry: int) -> int:
        return 6 // entry

    with AttemptChild(compute) as child:
        assert list(child.results([3, 0, 2], lambda _: None)) == [2, None, 3]
    assert caplog.text.count("has ended") == ENDED_MAX


def test_what_is_asked_and_told_may_be_of_any_size() -> None:
    with AttemptChild(lambda entry: entry * 2) as child:
        for size in (0, 1, 70_000, 3_000_000):
            assert list(child.results([b"x" * size], str)) == [b"x" * size * 2]


def test_nothing_needs_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fork", None)
    with AttemptChild(str) as child:
        assert list(child.results((), str)) == []


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
