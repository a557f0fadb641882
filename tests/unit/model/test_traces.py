"""Goal: what W3C Trace Context allows is read, what it forbids counts as none, and a trace goes
behind a content type and comes off it again whatever else stands there."""

from __future__ import annotations

from typing import Final

import pytest

from leasehold.model.signatures import (
    CONTENT_TYPE_CHARACTERS_MAX,
    RequestKeys,
    Verifier,
    derive_role_key,
    read_mark,
    signer,
)
from leasehold.model.traces import (
    TraceContext,
    add_trace,
    read_traceparent,
    split_trace,
    trace_of,
)

TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN: Final = "00f067aa0ba902b7"
SAID: Final = f"00-{TRACE}-{SPAN}-01"
DATABASE: Final = "demo"
KEYS: Final = RequestKeys(master=(b"a master key of thirty-two characters",))


@pytest.mark.parametrize(
    ("text", "sampled"),
    [
        (SAID, True),
        (f"00-{TRACE}-{SPAN}-00", False),
        (f"00-{TRACE}-{SPAN}-03", True),
        (f"00-{TRACE}-{SPAN}-fe", False),
        (f"cc-{TRACE}-{SPAN}-01", True),
        (f"cc-{TRACE}-{SPAN}-01-what comes later", True),
    ],
)
def test_a_traceparent_is_read(text: str, sampled: bool) -> None:
    assert read_traceparent(text) == TraceContext(TRACE, SPAN, sampled)


@pytest.mark.parametrize(
    "text",
    [
        "",
        SAID[:-1],
        SAID + "-",
        SAID + "0",
        f"ff-{TRACE}-{SPAN}-01",
        f"cc-{TRACE}-{SPAN}-01.what comes later",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-0g",
        f"00_{TRACE}_{SPAN}_01",
        f"00-{TRACE[:-1]}é-{SPAN}-01",
    ],
)
def test_what_is_none_counts_as_none(text: str) -> None:
    assert read_traceparent(text) is None
    assert add_trace("application/json", text) == "application/json"


def test_it_is_written_as_it_is_read() -> None:
    context = TraceContext(TRACE, SPAN, sampled=True)
    assert context.to_text() == SAID
    assert read_traceparent(context._replace(sampled=False).to_text()) == (TRACE, SPAN, False)


def test_a_span_below_has_the_same_id_each_time_and_another_one_for_another_name() -> None:
    above = TraceContext(TRACE, SPAN, sampled=True)
    assert above.child("a", 1) == above.child("a", 1)
    names = [("a", 1), ("a", 2), ("a",), (1, "a"), ("a1",), (b"a", 1, 0)]
    assert len({above.child(*each).span_id for each in names}) == len(names)
    assert all(above.child(*each).trace_id == TRACE for each in names)


@pytest.mark.parametrize("content_type", ["application/json", "application/msgpack; role=a%20b"])
def test_a_trace_goes_behind_a_content_type_and_comes_off(content_type: str) -> None:
    traced = add_trace(content_type, SAID)
    assert split_trace(traced) == (content_type, SAID)
    assert trace_of(traced) == TraceContext(TRACE, SPAN, sampled=True)
    assert read_mark(traced)[:4] == read_mark(content_type)[:4]
    other = f"00-{TRACE[::-1]}-{SPAN}-00"
    assert split_trace(add_trace(traced, other)) == (content_type, other)
    assert trace_of(add_trace(traced, other)) is None
    assert trace_of(content_type) is None


def test_s8_a_trace_is_no_part_of_what_is_signed_and_hides_nothing_of_it() -> None:
    """By a master key and a role's own, known to the verifier or not; the limit of characters holds
    the longest of all with it."""
    verifier = Verifier(DATABASE, KEYS.master)
    name = "é" * 31 + "x"
    of_role = RequestKeys(of_role=derive_role_key(KEYS.master[0], DATABASE, name, "16384.12"))
    for keys in (KEYS, of_role):
        sign = signer(keys, DATABASE, name)
        for body in (b"one", b"two"):
            signed = sign("requests", name, "application/msgpack+zlib", body)
            traced = add_trace(signed, SAID)
            assert len(traced) <= CONTENT_TYPE_CHARACTERS_MAX
            assert verifier.read("requests", traced, body) == verifier.read(
                "requests", signed, body
            )
            assert read_mark(traced).traceparent == SAID
