"""Refused requests, and what comes back for them, for tests of Spark's driver."""

from __future__ import annotations

from typing import Any

from leasehold.adapters.codec.request_encoding import encode_request
from leasehold.model.ids import request_id
from leasehold.model.records.events import RowImage
from leasehold.model.records.requests import (
    ChangeRequest,
    Conflict,
    Expression,
    Operation,
    OperationKind,
)
from tests.support.cluster.spark_pipeline import CODEC, Pipeline

LESS = Expression("seats - 1")


def refused(number: int, attempt: int, genid: int) -> Conflict:
    """A request to take a seat of flight `number`, refused because the row has `genid` now."""
    request = ChangeRequest(
        request_id(1_700_000_000_000 + number, number.to_bytes(10, "big")),
        (Operation(OperationKind.UPDATE, "flights", {"id": number}, {"seats": LESS}, expect=5),),
        attempt=attempt,
        reply_to=2,
    )
    content_type, body = encode_request(request)
    image = RowImage(1, (number,), {0: genid}, 9, 1, 1, {1: number, 2: 30})
    return Conflict(request.id, attempt, 1, "flights", content_type, body, image, "changed")


def publish(pipeline: Pipeline, conflict: Conflict) -> None:
    partition = conflict.request_id[-1] % 2
    topic = pipeline.topics.conflicts.name
    pipeline.produce(topic, conflict.request_id, CODEC.encode(conflict), partition)


def request_of(message: Any) -> ChangeRequest:
    headers = dict(message.headers())
    return CODEC.decode_request(headers["content-type"].decode(), message.value())


def retried(pipeline: Pipeline, conflict: Conflict) -> ChangeRequest:
    """What comes back for it."""
    publish(pipeline, conflict)
    pipeline.flush()
    messages = pipeline.records(
        pipeline.topics.requests.name, lambda m: any(x.key() == conflict.request_id for x in m)
    )
    return request_of(messages[-1])
