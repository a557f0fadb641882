"""Feeds of tables as their owner sees them: states from the changefeed's topic, orders to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from leasehold.adapters.kafka.whole_topic import read_compacted
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.adapters.os.clock import boottime_ns
from leasehold.events.debezium.definition import (
    CreateFeed,
    Definition,
    DropFeed,
    Order,
    SnapshotSignal,
    encode_order,
)
from leasehold.model.errors import BusUnavailable, MalformedRequest, OutcomeUnknown
from leasehold.replication.feed_state import STATUSES
from leasehold.settings.client import ClientSettings

STATE_PREFIX: Final = b"feed/"
CLIENT_ID: Final = "leasehold-feeds"
SEND_TIMEOUT_S: Final = 10.0


class Feeds:
    """The feeds of one database."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings

    def states(self) -> dict[str, Mapping[str, Any]]:
        """Return each feed's state by name. Raises BusUnavailable."""
        topic = self._settings.topics.changefeed.name
        found: dict[str, Mapping[str, Any]] = {}
        for key, value in sorted(read_compacted(self._settings.kafka, CLIENT_ID, topic).items()):
            if not key.startswith(STATE_PREFIX):
                continue
            try:
                state = _read_state(value)
            except MalformedRequest:
                continue  # of a newer release
            found[str(state["definition"]["table"])] = state
        return found

    def create(self, definition: Definition, timeout_s: float) -> Mapping[str, Any]:
        """Ask for a feed, and return its state once the changefeed has said one. Raises
        OutcomeUnknown where it has not in that time, and BusUnavailable."""
        order = CreateFeed(str(uuid4()), definition)
        self._send(order)
        until_ns = boottime_ns() + int(timeout_s * 1e9)
        while boottime_ns() < until_ns:
            state = self.states().get(definition.table)
            if state is not None and state["order"] == order.order:
                return state
        raise OutcomeUnknown(
            f"the changefeed has not said within {timeout_s:g} s what became of the feed of"
            f" {definition.table}: is it running? `leasehold feed list` tells"
        )

    def drop(self, table: str) -> None:
        """Ask for a feed's end. Raises BusUnavailable."""
        self._send(DropFeed(str(uuid4()), table))

    def signal(self, tables: tuple[str, ...], *, stop: bool) -> None:
        """Ask for a snapshot of feeds, or for the end of one. Raises BusUnavailable."""
        self._send(SnapshotSignal(str(uuid4()), tables, stop))

    def _send(self, order: Order) -> None:
        topic = self._settings.topics.feeds.name
        writer = TopicWriter(self._settings.kafka, CLIENT_ID, topic=topic)
        try:
            writer.send(
                topic,
                0,
                f"{self._settings.topics.database}.feed".encode(),
                encode_order(order),
                token=order,
            )
            until_ns = boottime_ns() + int(SEND_TIMEOUT_S * 1e9)
            while boottime_ns() < until_ns:
                for delivery in writer.deliveries(0.1):
                    if delivery.error is not None:
                        raise BusUnavailable(f"the order was not sent: {delivery.error}")
                    return
            raise BusUnavailable(
                f"topic {topic} did not take the order within {SEND_TIMEOUT_S:g} s"
            )
        finally:
            writer.close(1.0)


def concern_feeds(
    states: Mapping[str, Mapping[str, Any]], changes: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return what changes for readers of tables (`ReaderChange`) as those of feeds find it: of a
    feed with a list of columns only these, and the key. A condition that names a column which goes
    ends the feed."""
    told = []
    for name, state in states.items():
        listed = {column for _, column in state["columns"]}
        mentioned = {column for _, column in state["mentioned"]}
        for change in changes:
            if state["status"] != "on" or state["table_id"] != change["table_id"]:
                continue
            column, words, breaks = change["column"], change["words"], change["breaks"]
            if breaks and column in mentioned and words == f"{column} goes":
                words += ", which its condition names: the feed fails"
            elif column and listed and column not in listed:
                continue
            told.append({"feed": name, "column": column, "words": words, "breaks": breaks})
    return told


def _read_state(value: bytes) -> Mapping[str, Any]:
    """Raises MalformedRequest."""
    try:
        state = json.loads(value)
        if state["status"] in STATUSES and state["definition"]["table"]:
            return dict(state)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise MalformedRequest(f"no state of a feed: {error!r:.100}") from error
    raise MalformedRequest("a feed's state is of a release that is not known")
