"""Whether feeds by a schema registry can go on when a table has changed, asked before the change.

Whoever submits the change asks: the master makes no call to others in its turn. The master says
what the tables are like when the change has ended (EXPLAIN), the feeds' states which columns they
tell, and the registry whether a schema of those may follow the ones that it has.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from leasehold import __version__
from leasehold.adapters.http.schema_registry import SchemaRegistry
from leasehold.adapters.kafka.access import AccessDenied
from leasehold.admin.feeds import Feeds
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.events.debezium.binary_form import BinaryForm
from leasehold.events.debezium.definition import Encoding
from leasehold.model.errors import (
    IncompatibleSchema,
    LeaseholdError,
    MalformedRequest,
)
from leasehold.model.records.requests import Outcome
from leasehold.replication.feed_state import Feed
from leasehold.settings.client import ClientSettings
from leasehold.settings.schema_registry import OFF, WARN, SchemaRegistrySettings
from leasehold.sql.ddl.schema_statements import parse_statements
from leasehold.sql.syntax.statements import (
    AlterTable,
)

LOG: Final = logging.getLogger("leasehold.feeds")
WORDS_CHARACTERS_MAX: Final = 4_000
WAIT_S: Final = 5.0
"""How long whoever submits a change waits for the registry."""


ALLOW: Final = "--allow-incompatible, or LEASEHOLD_REGISTRY_CHECK=warn, submits it all the same"


class FeedVerdict(NamedTuple):
    """What a registry says of a feed's next schema; `compatible` is None where it has not said, and
    `reasons` then say why."""

    feed: str
    subject: str
    compatible: bool | None
    reasons: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """A sentence for whoever wants to change the table."""
        why = f": {'; '.join(self.reasons)}" if self.reasons else ""
        if self.compatible is None:
            return f"feed {self.feed}: whether {self.subject} stays compatible is not known{why}"
        verdict = "stays compatible" if self.compatible else "would be incompatible"
        return f"feed {self.feed}: {self.subject} {verdict}{why}"


def encoded_feeds(states: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the states of those feeds that go on and have schemas in a registry."""
    plain = Encoding.JSON.value
    return [
        state
        for state in states.values()
        if state["status"] == "on" and state["definition"].get("encoding", plain) != plain
    ]


def judge_feeds(
    states: Sequence[Mapping[str, Any]],
    tables: Sequence[Any],
    registry: SchemaRegistrySettings,
    database: str,
) -> list[FeedVerdict]:
    """Return what the registry says of the schemas that these feeds will have when `tables`, as
    EXPLAIN says them, are there. One that is away answers for nothing, and is waited for once."""
    found: list[FeedVerdict] = []
    asked = SchemaRegistry(registry, min(WAIT_S, registry.wait_ms / 1e3))
    for state in states:
        for table in map(from_wire, tables):
            if state["table_id"] not in (table.table_id, table.former):
                continue
            try:
                found += _judge(asked, state, table, database)
            except LeaseholdError as error:
                topic = str(state["topic"])
                verdict = FeedVerdict(str(state["definition"]["table"]), topic, None)
                found.append(verdict._replace(reasons=(error.message,)))
                if not isinstance(error, MalformedRequest):
                    return found
    return found


class FeedGate:
    """What stands between a schema change and the master where feeds have their schemas in a
    registry. Of several statements each ALTER TABLE is judged by itself."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings

    def check(self, sql: str, explain: Callable[[str], Outcome], *, allow: bool = False) -> None:
        """Return where the change may be submitted. `explain` submits an EXPLAIN. `allow`: what is
        wrong is logged, no more. Raises IncompatibleSchema, and BusUnavailable."""
        registry = self._settings.registry
        if registry.urls is None or registry.check == OFF:
            return
        alters, count = _alters(sql)
        if not alters:
            return
        words: list[str] = []
        feeds: list[Mapping[str, Any]] = []
        try:
            feeds = encoded_feeds(Feeds(self._settings).states())
        except AccessDenied as error:
            words.append(f"which feeds there are is not known (setup-acls): {error.message}")
        if not feeds:
            alters = []
        for each in alters:
            explained = explain(f"EXPLAIN {each}")
            if explained.lsn:
                words += self._judge(feeds, explained)
            elif count > 1:  # it may rest on another one
                words.append(f"whether feeds can go on is not known: {explained.message}")
        if words and not allow and registry.check != WARN:
            raise IncompatibleSchema(
                f"the change was not submitted: {'; '.join(words)[:WORDS_CHARACTERS_MAX]}",
                hint=f"{ALLOW}; a feed whose schema the registry refuses then fails.",
            )
        for told in words:
            LOG.warning("%s", told)

    def _judge(self, feeds: Sequence[Mapping[str, Any]], explained: Outcome) -> list[str]:
        """Return what stands against a change, of which the master has told the plan."""
        plan = explained.answer if isinstance(explained.answer, dict) else {}
        if "tables" not in plan:
            return ["whether feeds can go on is not known: the master is of an earlier release"]
        registry, database = self._settings.registry, self._settings.cluster.database
        verdicts = judge_feeds(feeds, plan["tables"], registry, database)
        return [verdict.words for verdict in verdicts if not verdict.compatible]


def _alters(sql: str) -> tuple[list[str], int]:
    """Return the statements of a text that may change what feeds tell, and how many it has in all;
    none of one that can't be read, which the master says."""
    try:
        said = parse_statements(sql)
    except LeaseholdError:
        return [], 0
    return [each.sql for each in said if isinstance(each.statement, AlterTable)], len(said)


def _judge(
    registry: SchemaRegistry, state: Mapping[str, Any], table: Descriptor, database: str
) -> Iterator[FeedVerdict]:
    feed = Feed.restore(database, __version__, json.dumps(state).encode())
    feed.adapt(table)
    if not feed.is_on:
        yield FeedVerdict(feed.name, feed.topic, False, (feed.words,))
        return
    form = feed.form
    assert isinstance(form, BinaryForm), feed.name
    schemas = [("value", form.value_schema)]
    if form.key_columns:
        schemas.insert(0, ("key", form.key_schema))
    for of, text in schemas:
        subject = f"{form.topic}-{of}"
        if feed.schema_id(subject, text) is None:
            compatible, reasons = registry.verdict(subject, form.wire.SCHEMA_TYPE, text)
            yield FeedVerdict(feed.name, subject, compatible, reasons)
