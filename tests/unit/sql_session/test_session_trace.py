"""Goal: a text of a client's is one span with all that it does, and what it asks the master for
belongs to it; a text without a trace costs nothing and tells nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.dev.node import DevNode
from leasehold.model.records.requests import ChangeRequest, Outcome
from leasehold.model.traces import NO_SPAN, SpanKind, TraceContext, read_traceparent
from tests.support.sql_session.sql_client import SqlClient, database_with
from tests.support.tracing.kept_spans import KeptSpans

ASKS: Final = TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", sampled=True)
COMMENT: Final = f"/*traceparent='{ASKS.to_text()}'*/"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    table = "create table t (id integer primary key, a integer)"
    with database_with(tmp_path_factory, table, "insert into t values (1, 0)") as made:
        yield made


class Traced:
    """A session whose spans and requests are kept."""

    def __init__(self, database: DevDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kept = KeptSpans()
        self.sent: list[ChangeRequest] = []
        submit = DevNode.submit
        sent = self.sent

        def kept(node: DevNode, request: ChangeRequest, *rest: Any) -> Outcome:
            sent.append(request)
            return submit(node, request, *rest)

        monkeypatch.setattr(DevNode, "spans", self.kept)
        monkeypatch.setattr(DevNode, "submit", kept)
        self.client = SqlClient(database)

    def ask(self, text: str) -> list[Any]:
        self.kept.spans.clear()
        self.sent.clear()
        return self.client.ask(text)


@pytest.fixture
def traced(database: DevDatabase, monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    made = Traced(database, monkeypatch)
    yield made
    made.client.session.close()


def test_a_text_is_a_span_and_its_request_belongs_to_it(traced: Traced) -> None:
    traced.ask(f"update t set a = a + 1 where id = 1 {COMMENT}")
    (span,) = traced.kept.spans
    assert (span.name, span.kind) == ("UPDATE", SpanKind.SERVER)
    assert (span.place.trace_id, span.parent) == (ASKS.trace_id, ASKS.span_id)
    assert span.attributes["db.operation.name"] == "UPDATE"
    assert span.begin_ns < span.end_ns
    (request,) = traced.sent
    assert read_traceparent(request.traceparent) == span.place


def test_the_next_text_has_a_span_of_its_own_or_none(traced: Traced) -> None:
    traced.ask(f"select a from t {COMMENT}")
    first = traced.kept.named("SELECT").place
    traced.ask(f"select a from t {COMMENT}")
    assert traced.kept.named("SELECT").place.span_id != first.span_id
    traced.ask("update t set a = 1 where id = 1")
    assert not traced.kept.spans
    assert [request.traceparent for request in traced.sent] == [""]


def test_in_a_block_the_commit_belongs_to_the_last_trace(traced: Traced) -> None:
    traced.ask("begin")
    traced.ask(f"update t set a = 2 where id = 1 {COMMENT}")
    assert len(traced.kept.spans) == 1
    assert not traced.sent
    traced.ask("commit")
    span = traced.kept.named("COMMIT")
    assert span.parent == ASKS.span_id
    assert read_traceparent(traced.sent[0].traceparent) == span.place
    traced.ask("select 1")
    assert not traced.kept.spans, "the block is over"


def test_what_fails_tells_its_sqlstate(traced: Traced) -> None:
    with pytest.raises(Exception, match="duplicate key"):
        traced.ask(f"insert into t values (1, 1) {COMMENT}")
    assert traced.kept.named("INSERT").error == "23505"
    with pytest.raises(Exception, match="division by zero"):
        traced.ask(f"select 1 / 0 {COMMENT}")
    assert traced.kept.named("SELECT").error == "22012"
    traced.ask(f"select 1 {COMMENT}")
    assert not traced.kept.named("SELECT").error


def test_a_schema_change_belongs_to_its_text(traced: Traced) -> None:
    traced.ask(f"create table u (id integer primary key) {COMMENT}")
    assert read_traceparent(traced.sent[0].traceparent) == traced.kept.named("CREATE").place
    traced.ask("drop table u")


def test_without_a_collector_what_the_client_asks_for_is_passed_on(traced: Traced) -> None:
    traced.kept.is_on = False
    traced.ask(f"update t set a = 3 where id = 1 {COMMENT}")
    assert not traced.kept.spans
    assert [request.traceparent for request in traced.sent] == [ASKS.to_text()]


def test_a_trace_may_begin_here(traced: Traced) -> None:
    traced.kept.begins = TraceContext("1" * 32, NO_SPAN, sampled=True)
    traced.ask("select 1")
    span = traced.kept.named("SELECT")
    assert (span.place.trace_id, span.parent) == ("1" * 32, "")
    traced.ask(f"select 1 {COMMENT}")
    assert traced.kept.named("SELECT").place.trace_id == ASKS.trace_id


def test_not_sampled_is_not_followed(traced: Traced) -> None:
    said = ASKS._replace(sampled=False).to_text()
    traced.kept.begins = TraceContext("1" * 32, NO_SPAN, sampled=True)
    traced.ask(f"update t set a = 3 where id = 1 /*traceparent='{said}'*/")
    assert not traced.kept.spans
    assert [request.traceparent for request in traced.sent] == [""]


def test_texts_that_differ_in_their_trace_share_a_plan(traced: Traced) -> None:
    """Else each call of an instrumented client would be read and planned anew."""
    plans = traced.client.session._state.plan_of.args
    assert plans is not None
    read = traced.client.session.statements
    one = read(f"select a from t where id = 1 {COMMENT}")
    other = read(f"select a from t where id = 1 {COMMENT.replace('00f0', '11f0')}")
    assert one is other
    traced.client.session.fail()
