"""Intakes as their owner sees them: what each has stored, and how far behind it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from leasehold.adapters.kafka.leader_wait import ask_once_led
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.adapters.kafka.whole_topic import read_compacted
from leasehold.adapters.os.clock import unix_us
from leasehold.model.errors import BusUnavailable
from leasehold.model.time_units import US_PER_MS
from leasehold.settings.client import ClientSettings

CLIENT_ID: Final = "leasehold-intakes"
SILENT_MS: Final = 20_000
"""An intake says each 5 s that it is at work."""
PLACE: Final = "place"
STATE: Final = "state"
NAMES_MAX: Final = 1_000


class PartitionPlace(NamedTuple):
    """A partition that an intake reads. `end` None: that is not known, as of a topic that is
    gone."""

    topic: str
    partition: int
    next: int
    end: int | None

    @property
    def lag(self) -> int | None:
        """How many offsets wait."""
        return None if self.end is None else max(0, self.end - self.next)


class IntakeView(NamedTuple):
    """An intake. `state`: what it said last, {} where it has said nothing."""

    name: str
    state: Mapping[str, Any]
    places: tuple[PartitionPlace, ...]

    @property
    def silent_ms(self) -> int | None:
        """How long nothing was heard of it."""
        said = self.state.get("at_us")
        return None if said is None else max(0, (unix_us() - int(said)) // US_PER_MS)

    @property
    def is_at_work(self) -> bool:
        silent_ms = self.silent_ms
        return silent_ms is not None and silent_ms <= SILENT_MS

    @property
    def held(self) -> list[Mapping[str, Any]]:
        """What does not go on."""
        return list(self.state.get("held", ()))


class Intakes:
    """The intakes of one database."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings

    def views(self) -> list[IntakeView]:
        """Return every intake that has ever stored a place, by name. Raises BusUnavailable."""
        topic = self._settings.topics.intake.name
        reader = TopicReader(self._settings.kafka, CLIENT_ID)
        try:
            if not _is_there(reader, topic):
                return []
            stored = read_compacted(self._settings.kafka, CLIENT_ID, topic)
            states: dict[str, Mapping[str, Any]] = {}
            places: dict[str, list[PartitionPlace]] = {}
            for key, value in sorted(stored.items()):
                kind, _, rest = key.decode("utf-8", "replace").partition("/")
                body = _object(value)
                if kind == STATE:
                    states[rest] = body
                elif kind == PLACE and rest.count("/") == 2 and "next" in body:
                    name, source, partition = rest.split("/")
                    place = _place(reader, source, partition, body)
                    places.setdefault(name, []).append(place)
            names = sorted(states.keys() | places.keys())[:NAMES_MAX]
            return [
                IntakeView(name, states.get(name, {}), tuple(places.get(name, ())))
                for name in names
            ]
        finally:
            reader.close()


def _is_there(reader: TopicReader, topic: str) -> bool:
    try:
        return reader.partitions(topic) > 0
    except BusUnavailable as error:
        if "has no topic" in error.message:
            return False
        raise


def _place(
    reader: TopicReader, topic: str, partition: str, body: Mapping[str, Any]
) -> PartitionPlace:
    number = int(partition) if partition.isdecimal() else 0
    end: int | None = None
    try:
        end = ask_once_led(lambda: reader.end_offset(topic, number))
    except BusUnavailable:
        end = None  # it is gone, or nobody may look at it
    return PartitionPlace(topic, number, int(body["next"]), end)


def _object(value: bytes) -> dict[str, Any]:
    try:
        body = json.loads(value)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}
