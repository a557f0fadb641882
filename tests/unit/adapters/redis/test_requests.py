"""Messages of the fast way of requests: what is packed is read, and nothing else is."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leasehold.adapters.redis.requests import (
    ANSWER_BYTES_MAX,
    ASKER_BYTES,
    CODEC,
    CONTENT_TYPE_MAX,
    FORM,
    HEAD_BYTES,
    REQUEST_BYTES_MAX,
    REQUESTS_MAX,
    _in_parts,
    pack_requests,
    read_requests,
)
from leasehold.adapters.redis.resp import REPLY_BYTES_MAX
from leasehold.model.records.requests import Outcome, Result, ResultBatch
from leasehold.replication.effects import RequestsReceived
from leasehold.replication.fast_path.requests import FastRequestSettings

ASKER = bytes(range(ASKER_BYTES))
NUMBERS = st.integers(0, 2**64 - 1)
REQUEST = st.tuples(st.text(max_size=CONTENT_TYPE_MAX), st.binary(max_size=200))
JSON = "application/json"


@given(
    st.binary(min_size=ASKER_BYTES, max_size=ASKER_BYTES),
    NUMBERS,
    NUMBERS,
    st.lists(REQUEST, max_size=20),
)
def test_what_is_packed_is_read(
    requester: bytes, run: int, number: int, requests: list[tuple[str, bytes]]
) -> None:
    found = read_requests(pack_requests(requester, run, number, requests))
    assert found == RequestsReceived(requester, run, number, tuple(requests))


SAID = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=9)
    | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)  # fmt: skip
NESTED = b"\x91" * 2_000 + b"\x90"
MANY_KEYS = b"\x82\xc0\xc0\xc0\xc0"
WRONG_TEXT = b"\x91\x92\xa1\xff\xc4\x00"
NO_KEY = b"\x81\x90\xc0"
FOREIGN = b"\xd4\xff\x00"
PROMISED = b"\xdd\xff\xff\xff\xff"


@given(st.binary(max_size=300) | SAID.map(msgpack.packb))
@example(b"")
@example(NESTED)
@example(MANY_KEYS)
@example(WRONG_TEXT)
@example(NO_KEY)
@example(FOREIGN)
@example(PROMISED)
@example(msgpack.packb([[JSON, b"", b""]]))
@example(msgpack.packb([[b"json", b""]]))
@example(msgpack.packb([[JSON, "text"]]))
@example(msgpack.packb(["ab"]))
@example(msgpack.packb({JSON: b""}))
def test_whatever_is_said_it_is_requests_or_nothing(said: bytes) -> None:
    for data in (said, FORM + said, FORM + bytes(HEAD_BYTES - 1) + said):
        found = read_requests(data)
        if found is None:
            continue
        assert len(found.requester) == ASKER_BYTES
        assert isinstance(found.requests, tuple)
        for content_type, body in found.requests:
            assert isinstance(content_type, str)
            assert len(content_type) <= CONTENT_TYPE_MAX
            assert isinstance(body, bytes)


@given(st.lists(REQUEST, min_size=1, max_size=4), st.data())
def test_a_message_cut_short_or_with_more_behind_it_is_none(
    requests: list[tuple[str, bytes]], data: st.DataObject
) -> None:
    whole = pack_requests(ASKER, 1, 2, requests)
    end = data.draw(st.integers(0, len(whole) - 1))
    assert read_requests(whole[:end]) is None
    assert read_requests(whole + b"\x00") is None


def test_another_form_is_none() -> None:
    whole = pack_requests(ASKER, 1, 2, [(JSON, b"body")])
    assert read_requests(whole) is not None
    assert read_requests(b"\x02" + whole[1:]) is None


@pytest.mark.parametrize(("more", "read"), [(0, True), (1, False)])
def test_bounds(more: int, read: bool) -> None:
    def message(*requests: tuple[str, bytes]) -> bytes:
        return pack_requests(ASKER, 0, 0, requests)

    def is_read(data: bytes) -> bool:
        return read_requests(data) is not None

    assert is_read(message(*[("", b"")] * (REQUESTS_MAX + more))) == read
    assert is_read(message(("x" * (CONTENT_TYPE_MAX + more), b""))) == read
    room = REQUEST_BYTES_MAX - len(message((JSON, b"x" * 50_000))) + 50_000
    assert len(message((JSON, b"x" * room))) == REQUEST_BYTES_MAX
    assert is_read(message((JSON, b"x" * (room + more)))) == read


def test_the_largest_that_an_asker_tells_is_read_by_redis_and_master() -> None:
    """Bodies of `bytes_max` in all, as many as may be under way: with all that is around them."""
    settings = FastRequestSettings()
    assert settings.under_way_max <= REQUESTS_MAX
    each = settings.bytes_max // settings.under_way_max
    whole = pack_requests(ASKER, 2**60, 2**60, [(JSON, b"x" * each)] * settings.under_way_max)
    assert read_requests(whole) is not None
    assert REQUEST_BYTES_MAX < REPLY_BYTES_MAX


# ---------------------------------------------------------------- answers


def result(number: int, answer: object = None) -> Result:
    return Result(number.to_bytes(8, "big"), number, Outcome(1, 7, 1, 0, True, answer=answer))


def parts_of(*results: Result) -> list[tuple[Result, ...]]:
    found = []
    for data in _in_parts(ResultBatch(results)):
        assert len(data) <= ANSWER_BYTES_MAX < REPLY_BYTES_MAX
        assert data.startswith(FORM)
        found.append(CODEC.decode_as(ResultBatch, data[len(FORM) :]).results)
    return found


def test_a_few_answers_are_one_message() -> None:
    assert parts_of(result(1), result(2)) == [(result(1), result(2))]


@given(st.lists(st.integers(0, ANSWER_BYTES_MAX), max_size=12))
def test_many_answers_come_in_parts_in_order_each_once(sizes: list[int]) -> None:
    small = 40_000
    results = [result(n, "x" * size) for n, size in enumerate(sizes)]
    found = [one for part in parts_of(*results) for one in part]
    assert found == [one for one in results if one in found]
    assert {one.offset for one in found} >= {n for n, size in enumerate(sizes) if size < small}


def test_one_that_is_too_large_is_left_to_kafka_and_keeps_no_other_away() -> None:
    large = result(2, "x" * ANSWER_BYTES_MAX)
    found = [one for part in parts_of(result(1), large, result(3)) for one in part]
    assert found == [result(1), result(3)]
    assert parts_of(large) == []
