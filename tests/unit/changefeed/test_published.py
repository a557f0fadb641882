"""Whatever stands in a log has a message that Kafka takes: whole, or in a form that says it is not.

Method: records that are larger than a message, by rows, by findings, by elements, by requests.
"""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.adapters.codec.published import feed_message, messages_of, restore_image, row_message
from leasehold.adapters.codec.records import MessagePackCodec, restore_row_key
from leasehold.catalog.job import Job, job_from_wire
from leasehold.model.errors import MalformedRequest
from leasehold.model.records.events import RowImage, RowLeftOut, RowsTruncated
from leasehold.model.records.jobs import JobEvent
from leasehold.model.records.requests import DeadLetter, Outcome, Result, ResultBatch
from leasehold.model.topics import PUBLISHED_BYTES_MAX
from tests.support.schema_change.made_job import index_job

CODEC = MessagePackCodec()
LONG = "x" * 250_000


def is_left_out(value: bytes | None) -> bool:
    return value is not None and isinstance(CODEC.decode(value), RowLeftOut)


def image(values: dict[int, Any]) -> RowImage:
    return RowImage(4, (1,), {0: 9, 8: 7}, 5, 3, 6, {1: 1, **values})


def test_an_image_that_fits_is_told_as_it_is() -> None:
    told = row_message((1,), image({2: "a"}))
    assert told is not None
    assert restore_row_key(told[0]) == (1,)
    assert told[1] is not None
    assert restore_image((1,), told[1]) == image({2: "a"})
    assert not is_left_out(told[1])


def test_an_image_that_does_not_is_told_as_left_out() -> None:
    large = image(dict.fromkeys(range(2, 42), LONG))
    told = row_message((1,), large)
    assert told is not None
    assert is_left_out(told[1])
    assert told[1] is not None
    size = len(CODEC.encode(large))
    assert restore_image((1,), told[1]) == RowLeftOut(4, (1,), {0: 9, 8: 7}, 5, 3, 6, size)


@pytest.mark.parametrize("spare", [0, -1])
def test_the_key_counts(spare: int) -> None:
    """As a producer counts: key and value together."""
    room = PUBLISHED_BYTES_MAX - len(CODEC.encode(image({2: b"x" * 70_000}))) + 70_000 - 2
    told = row_message((1,), image({2: b"x" * (room - spare)}))
    assert told is not None
    assert is_left_out(told[1]) is (spare < 0)


def test_of_a_row_whose_key_is_too_large_nothing_is_told() -> None:
    key = (LONG,) * 40
    assert row_message(key, None) is None
    assert row_message(key, image({})._replace(key=key)) is None
    deleted = row_message((1,), None)
    assert deleted is not None
    assert deleted[1] is None


def test_what_is_no_image_is_refused() -> None:
    truncated = CODEC.encode(RowsTruncated(1, 2, 3))
    assert restore_image((), truncated) == RowsTruncated(1, 2, 3)
    with pytest.raises(MalformedRequest):
        restore_image((1,), truncated)


def told_job(body: dict[str, Any]) -> Job:
    value = feed_message(b"job/1", JobEvent(1, 2, 3, body))
    assert len(value) <= PUBLISHED_BYTES_MAX
    return job_from_wire(CODEC.decode_as(JobEvent, value).body)


def test_a_job_keeps_its_state_when_its_findings_are_too_large() -> None:
    job = told_job(index_job(1, 4).to_wire())
    findings = [[6, 9, [LONG] * 4, "why"] for _ in range(20)]
    found = told_job({**job.to_wire(), "findings": findings})
    assert (found.status, found.phase, found.steps) == (job.status, job.phase, job.steps)
    assert [key for _, _, key, _ in found.findings] == [("x" * 256,) * 4] * 20


def test_values_and_expressions_of_elements_are_left_out_and_not_cut() -> None:
    """Part of a value may be no value."""
    body = index_job(1, 4).to_wire()
    column = {"id": 7, "name": "c", "default": LONG, "missing": [1, LONG], "expression": LONG}
    many = [["column", n, None, {**column, "id": n}] for n in range(40)]
    (first, *rest) = body["steps"]
    value = feed_message(
        b"job/1", JobEvent(1, 2, 3, {**body, "steps": [[many, *first[1:]], *rest]})
    )
    assert len(value) <= PUBLISHED_BYTES_MAX
    told = CODEC.decode_as(JobEvent, value).body["steps"][0][0][0][3]
    assert (told["name"], told["default"], told["missing"]) == ("c", None, None)
    assert told["expression"] == ""


def test_a_job_of_more_elements_than_any_message_holds_keeps_its_steps() -> None:
    body = index_job(1, 4).to_wire()
    (first, *rest) = body["steps"]
    many = [["column", n, None, {"id": n, "name": "c" * 200}] for n in range(50_000)]
    found = told_job({**body, "steps": [[many, *first[1:]], *rest]})
    assert len(found.steps) == len(body["steps"])
    assert found.status is index_job(1, 4).status


def test_a_dead_letter_keeps_its_reason_and_the_beginning_of_its_request() -> None:
    detail = {"table": "t", "key": LONG}
    body = b"b" * 9_000_000
    letter = DeadLetter(b"i" * 16, 1, "54000", "why", detail, 2, "requests", 3, "", body)
    value = feed_message(letter.request_id, letter)
    assert len(value) <= PUBLISHED_BYTES_MAX
    told = CODEC.decode_as(DeadLetter, value)
    assert (told.code, told.message, told.offset) == ("54000", "why", 3)
    assert told.detail["table"] == "t"
    assert told.detail["body_bytes"] == 9_000_000
    assert told.body
    assert body.startswith(told.body)


def test_an_answer_with_words_of_an_earlier_master_is_told_with_fewer() -> None:
    """It is remembered for a day, and would be dropped each time that it is asked for."""
    detail = {"table": "w", "key": ("x" * PUBLISHED_BYTES_MAX, 5)}
    outcome = Outcome(1, 0, 0, 9, True, "40001", "verify error", detail)
    (data,) = messages_of(ResultBatch((Result(bytes(16), 7, outcome),)))
    assert len(data) <= PUBLISHED_BYTES_MAX
    (told,) = CODEC.decode_as(ResultBatch, data).results
    assert told.outcome.code == "40001"
    assert told.outcome.detail["key"] == ("x" * 256, 5)
    assert told.outcome.detail["detail_cut"] is True
