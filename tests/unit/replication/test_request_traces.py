"""Goal: of a request that is to be followed each station is told once, below the span of who asks;
of any other nothing is.

Method: a master stepped by hand, whose spans are kept; times are those of its virtual clock.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import pytest

from leasehold.model.records.acks import Ack
from leasehold.model.traces import Span, TraceContext, add_trace
from leasehold.replication.effects import AckRead
from leasehold.replication.master import request_traces
from tests.support.replication.world import TABLE, World, insert, taken_over, update
from tests.support.tracing.kept_spans import KeptSpans

MS: Final = 1_000_000
ASKS: Final = TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", sampled=True)
TRACED: Final = add_trace("application/json", ASKS.to_text())
STATIONS: Final = ("queue", "decide", "append", "answer")


class Traced:
    """A world whose master's spans are kept."""

    def __init__(self) -> None:
        self.kept = KeptSpans()
        self.world = World(spans=self.kept)
        self.world.ask({"sql": TABLE})
        self.kept.spans.clear()

    def grant(self) -> int:
        """Let the follower have a lease; return the offset that it has applied."""
        world = self.world
        self.acknowledge(asked_ns=world.now().mono_ns)
        world.ms += 300
        world.tick()
        world.pump()
        return world.follower.position.offset

    def acknowledge(self, *, asked_ns: int = 0) -> None:
        world, node = self.world, self.world.follower
        position = node.position
        said = (position.offset, position.epoch, position.lsn, asked_ns)
        ack = Ack("r1", node.incarnation, "replicant", *said, True, "", 0)
        world.perform(world.node.step(AckRead(ack), world.now()))


@pytest.fixture
def traced() -> Traced:
    return Traced()


def ms_of(span: Span) -> float:
    return (span.end_ns - span.begin_ns) / MS


def test_each_station_is_told_below_the_request_and_the_request_below_who_asks(
    traced: Traced,
) -> None:
    world, kept = traced.world, traced.kept
    number = world.put(insert(1, a=1), content_type=TRACED)
    world.ms += 6  # it waits for the master
    world.tick()
    world.ms += 20  # its record travels
    world.pump()
    world.tick()
    assert world.answers(number)[-1].lsn
    whole = kept.named("decide request")
    assert (whole.place.trace_id, whole.parent) == (ASKS.trace_id, ASKS.span_id)
    assert whole.attributes["leasehold.lsn"] == world.answers(number)[-1].lsn
    assert not whole.error
    stations = [kept.named(name) for name in STATIONS]
    assert len(kept.spans) == len(STATIONS) + 1
    assert {span.parent for span in stations} == {whole.place.span_id}
    assert len({span.place.span_id for span in kept.spans}) == len(kept.spans)
    assert [ms_of(span) for span in stations[:3]] == [7, 0, 20]
    assert (whole.begin_ns, whole.end_ns) == (stations[0].begin_ns, stations[3].end_ns)
    for before, after in pairwise(stations):
        assert before.end_ns == after.begin_ns


def test_a_node_that_is_waited_for_has_a_span_that_ends_with_its_acknowledgement(
    traced: Traced,
) -> None:
    world, kept = traced.world, traced.kept
    traced.grant()
    traced.acknowledge()
    number = world.put(insert(1, a=1), content_type=TRACED)
    world.tick()
    world.pump()
    world.tick()
    assert not world.answers(number), "r1 is waited for"
    assert "decide request" not in {span.name for span in kept.spans}
    world.ms += 9
    traced.acknowledge()
    world.tick()
    assert world.answers(number)
    applied = kept.named("apply r1")
    assert applied.attributes == {"leasehold.node": "r1"}
    assert 9 <= ms_of(applied) <= ms_of(kept.named("answer")) + 1
    assert kept.named("decide request").end_ns >= applied.end_ns


def test_a_refusal_tells_its_sqlstate(traced: Traced) -> None:
    world, kept = traced.world, traced.kept
    world.ask(insert(1, a=1))
    world.put(insert(1, a=1), content_type=TRACED)
    world.tick()
    world.pump()
    world.tick()
    refused = kept.named("decide request")
    assert refused.error == refused.attributes["db.response.status_code"] == "23505"
    assert "leasehold.lsn" not in refused.attributes


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; traceparent=nonsense",
        add_trace("application/json", ASKS._replace(sampled=False).to_text()),
    ],
)
def test_of_others_nothing_is_told(traced: Traced, content_type: str) -> None:
    traced.world.put(insert(1, a=1), content_type=content_type)
    traced.world.tick()
    traced.world.pump()
    traced.world.tick()
    assert traced.world.row(traced.world.node, 1) is not None
    assert not traced.kept.spans


def test_one_that_can_not_be_read_is_told_too(traced: Traced) -> None:
    world = traced.world
    world.raw(b"{", TRACED)
    world.tick()
    world.pump()
    world.tick()
    assert traced.kept.named("decide request").attributes["leasehold.request.id"] == ""


def test_an_id_asked_again_has_a_span_of_the_answer_it_is_given_again(traced: Traced) -> None:
    world, kept = traced.world, traced.kept
    number = world.fresh_id()
    world.ask(insert(1, a=1), number)
    world.put(insert(1, a=1), number, TRACED)
    world.tick()
    world.pump()
    world.tick()
    assert len(world.answers(number)) == 2
    assert kept.named("decide request").attributes["leasehold.request.attempt"] == 1


def test_no_more_are_followed_than_there_is_room_for(
    traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_traces, "FOLLOWED_MAX", 2)
    world, kept = traced.world, traced.kept
    for _ in range(2):
        kept.spans.clear()
        for key in range(1, 4):
            world.put(update(key, a=1), content_type=TRACED)
        world.tick()
        world.pump()
        world.tick()
        whole = [span for span in kept.spans if span.name == "decide request"]
        assert len(whole) == 2, "and there is room again behind them"


def test_a_next_master_begins_with_nothing(traced: Traced) -> None:
    """What the first one has not ended stays untold; the next one tells what it decides itself."""
    world, kept = traced.world, traced.kept
    world.put(insert(1, a=1), content_type=TRACED)
    world.lost = True
    world.tick()
    world.lost = False
    taken_over(world)
    assert not [span for span in kept.spans if span.name == "decide request"]
