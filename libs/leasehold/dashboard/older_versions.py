"""Finds the version before a table's newest: while a step of a schema change is under way, both
live, and somebody may be on either."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.whole_topic import read_to_end
from leasehold.admin.view import ClusterView, TableView
from leasehold.model.errors import MalformedRequest
from leasehold.model.records.events import VersionEvent
from leasehold.settings.client import ClientSettings

READ_TIMEOUT_S: Final = 5.0
EVENTS_MAX: Final = 1_000
"""So many of the newest events of all tables are looked at: a table whose older version lives has
got its newest one a moment ago."""
KNOWN_MAX: Final = 500


class OlderVersions:
    """What was found stays known, as a version never changes. For several threads."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[int, int], TableView] = OrderedDict()

    def find(self, view: ClusterView, newest: TableView) -> TableView | None:
        """Return the version before; None where the newest events do not have it. Raises
        BusUnavailable."""
        wanted = newest.event.table_id, newest.event.version - 1
        for change in view.recent:
            for seen in (change.after, change.before):
                if seen is not None and (seen.event.table_id, seen.event.version) == wanted:
                    return seen
        with self._lock:
            if wanted not in self._known:
                self._read()
            return self._known.get(wanted)

    def _read(self) -> None:
        codec = MessagePackCodec()
        topic = self._settings.topics.versions_history.name
        for record in read_to_end(
            self._settings.kafka,
            "leasehold-older-versions",
            topic,
            READ_TIMEOUT_S,
            newest_max=EVENTS_MAX,
        ):
            try:
                event = codec.decode_as(VersionEvent, record.value or b"")
            except MalformedRequest:
                continue  # of a newer release, or nobody's
            self._known[event.table_id, event.version] = TableView(event)
            while len(self._known) > KNOWN_MAX:
                self._known.popitem(last=False)
