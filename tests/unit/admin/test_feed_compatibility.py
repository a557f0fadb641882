"""Goal: a schema change that a registry takes for incompatible is refused before the master hears
of it, with a sentence that names the feed; where nobody can say, too, unless a setting says
otherwise.

Method: plans of real statements, states of real feeds, a registry in this process.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from leasehold.adapters.kafka.access import AccessDenied
from leasehold.admin.feed_compatibility import FeedGate, judge_feeds
from leasehold.admin.feeds import Feeds
from leasehold.catalog.catalog import Catalog
from leasehold.events.debezium.definition import Encoding
from leasehold.model.errors import IncompatibleSchema, LeaseholdError
from leasehold.model.records.requests import ChangeRequest, Outcome
from leasehold.replica.serving_node import ServingNode
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.reader_changes import tables_after
from leasehold.schema_change.plan.results import JobPlan
from leasehold.settings.client import ClientSettings
from leasehold.settings.schema_registry import SchemaRegistrySettings
from leasehold.sql.ddl.schema_statements import parse_ddl
from tests.support.changefeed.fed_table import make_feed
from tests.support.registry.double import RegistryDouble, registry_double
from tests.support.schema_change.made_statements import catalog_with, column, create_table

DROP = "alter table t drop column c"


@pytest.fixture
def double() -> Iterator[RegistryDouble]:
    with registry_double() as made:
        yield made


def catalog() -> Catalog:
    return catalog_with(create_table("t", column("a"), column("c", "text")))


def state(**definition: Any) -> dict[str, Any]:
    made = make_feed(catalog().newest(1), **definition)
    return dict(json.loads(made.to_json()))


def explain(sql: str) -> Outcome:
    """What the master says of an EXPLAIN."""
    words = sql.removeprefix("EXPLAIN ")
    try:
        planned = plan(parse_ddl(words), catalog())  # type: ignore[arg-type]
    except LeaseholdError as error:
        return Outcome(1, 0, 0, 5, True, error.sqlstate, error.message)
    assert isinstance(planned, JobPlan)
    tables = [table.to_wire() for table in tables_after(planned.job, catalog())]
    return Outcome(1, 5, 0, 5, True, answer={"plan": [], "tables": tables})


Gate = Callable[..., None]


@pytest.fixture
def gate(double: RegistryDouble, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Check a statement with a feed in Avro of the table t, and one in JSON."""
    states = {
        "public.t": state(encoding=Encoding.AVRO),
        "public.plain": state(),
    }
    monkeypatch.setattr(Feeds, "states", lambda _: states)

    def check(sql: str, asked: Any = explain, *, allow: bool = False, **settings: Any) -> None:
        given = {"urls": double.url, **settings}
        registry = SchemaRegistrySettings(**given)
        FeedGate(ClientSettings(registry=registry)).check(sql, asked, allow=allow)

    return check


def test_what_is_compatible_goes_on(gate: Gate, double: RegistryDouble) -> None:
    gate(DROP)
    paths = [path.partition("?")[0] for _, path, _ in double.seen]
    assert paths == [
        "/compatibility/subjects/demo.feed.public.t-key/versions",
        "/compatibility/subjects/demo.feed.public.t-value/versions",
    ]


def test_what_is_not_is_refused_with_a_sentence(gate: Gate, double: RegistryDouble) -> None:
    double.compatible, double.reasons = False, ["field c is gone"]
    with pytest.raises(IncompatibleSchema) as error:
        gate(DROP)
    assert "feed public.t: demo.feed.public.t-value would be incompatible: field c is gone" in str(
        error.value
    )
    assert "--allow-incompatible" in str(error.value.detail["hint"])


@pytest.mark.parametrize("how", [{"allow": True}, {"check": "warn"}])
def test_who_says_so_is_warned_no_more(
    gate: Gate, double: RegistryDouble, how: Any, caplog: pytest.LogCaptureFixture
) -> None:
    double.compatible = False
    with caplog.at_level(logging.WARNING):
        gate(DROP, **how)
    assert "would be incompatible" in caplog.text


def test_a_registry_that_is_away_refuses_too_and_soon(gate: Gate) -> None:
    with pytest.raises(IncompatibleSchema, match="not known: the schema registry gave no"):
        gate(DROP, urls="http://127.0.0.1:1", wait_ms=100)
    gate(DROP, urls="http://127.0.0.1:1", wait_ms=100, allow=True)


@pytest.mark.parametrize(
    ("sql", "settings"),
    [
        (DROP, {"check": "off"}),
        (DROP, {"urls": None}),
        ("create table u (id int primary key)", {}),
        ("alter table nobody", {}),
        ("create index i on t (a)", {}),
    ],
)
def test_nobody_is_asked_where_nothing_is_to_be_said(
    gate: Gate, double: RegistryDouble, sql: str, settings: Any
) -> None:
    double.compatible = False

    def never(_: str) -> Outcome:
        raise AssertionError("the master was asked")

    gate(sql, never, **settings)
    assert double.seen == []


def test_a_change_that_shows_nothing_else_asks_no_registry(
    gate: Gate, double: RegistryDouble
) -> None:
    gate("alter table t rename to u")
    assert double.seen == []


def test_one_of_several_that_depends_on_another_is_not_known(gate: Gate) -> None:
    with pytest.raises(IncompatibleSchema, match="not known: table 'u' does not exist"):
        gate("alter table t rename to u; alter table u drop column c")


def test_what_the_master_refuses_it_refuses_itself(gate: Gate) -> None:
    gate("alter table t drop column nobody")


def test_a_master_that_does_not_tell_leaves_it_open(gate: Gate) -> None:
    def earlier(_: str) -> Outcome:
        return Outcome(1, 5, 0, 5, True, answer={"plan": []})

    with pytest.raises(IncompatibleSchema, match="the master is of an earlier release"):
        gate(DROP, earlier)


def test_a_condition_that_ends_the_feed_is_told(double: RegistryDouble) -> None:
    fed = state(encoding=Encoding.PROTOBUF, where="c = 'x'")
    tables = explain(f"EXPLAIN {DROP}").answer["tables"]
    registry = SchemaRegistrySettings(urls=double.url)
    (verdict,) = judge_feeds([fed], tables, registry, "demo")
    assert (verdict.compatible, "column c is gone" in verdict.words) == (False, True)
    assert double.seen == []


def test_a_schema_that_the_registry_has_already_is_not_asked_for(double: RegistryDouble) -> None:
    made = make_feed(catalog().newest(1), encoding=Encoding.AVRO)
    made.keep_schema_id("demo.feed.public.t-key", made.form.key_schema, 1)
    tables = explain(f"EXPLAIN {DROP}").answer["tables"]
    registry = SchemaRegistrySettings(urls=double.url)
    found = judge_feeds([json.loads(made.to_json())], tables, registry, "demo")
    assert [verdict.subject for verdict in found] == ["demo.feed.public.t-value"]


def test_without_the_right_to_read_which_feeds_there_are_it_is_not_known(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(_: Feeds) -> Any:
        raise AccessDenied("no")

    monkeypatch.setattr(Feeds, "states", denied)
    with pytest.raises(IncompatibleSchema, match="setup-acls"):
        gate(DROP)
    gate(DROP, check="off")


def test_a_node_that_serves_sql_asks_before_it_submits(
    double: RegistryDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the rights and the time zone of who wants the change; nothing else is asked about."""
    states = {"public.t": state(encoding=Encoding.AVRO)}
    monkeypatch.setattr(Feeds, "states", lambda _: states)
    submitted: list[ChangeRequest] = []

    class Pending:
        def __init__(self, outcome: Outcome) -> None:
            self._outcome = outcome

        def result(self, _: float) -> Outcome:
            return self._outcome

    class Producer:
        def submit(self, request: ChangeRequest) -> Pending:
            submitted.append(request)
            return Pending(explain(str(request.sql)))

    registry = SchemaRegistrySettings(urls=double.url)
    node: Any = SimpleNamespace(on_tick=None, node=SimpleNamespace(followers=()))
    serving = ServingNode(node, cast(Any, None), ClientSettings(registry=registry))
    monkeypatch.setattr(serving, "_changes", Producer)
    asked = ChangeRequest(b"1", sql=DROP, time_zones=("Europe/Vienna",), as_role="ann")
    serving.submit(asked, 5.0)
    assert [each.sql for each in submitted] == [f"EXPLAIN {DROP}", DROP]
    assert submitted[0].id != asked.id
    assert (submitted[0].as_role, submitted[0].time_zones) == ("ann", ("Europe/Vienna",))
    double.compatible = False
    with pytest.raises(IncompatibleSchema):
        serving.submit(asked, 5.0)
    assert submitted[2:] == [submitted[2]]
    assert str(submitted[2].sql).startswith("EXPLAIN")
