"""Rows topics of forgotten tables, which the changefeed has made and deletes.

A topic goes when the transaction is over in which its table's keys went. That it has to go stands
in that very transaction, on the changefeed's own topic, until it is gone: so it goes although the
process ends in between, and twice does no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from leasehold.model.errors import BusUnavailable
from leasehold.model.topics import Topics
from leasehold.replication.changefeed import number_of_key

KEY_PREFIX: Final = b"gone/"
AGAIN_NS: Final = 60_000_000_000
"""How long after a failure it is tried again: a broker that is away, or a right that is missing."""
LOG: Final = logging.getLogger("leasehold.changefeed")


class Deletes(Protocol):
    def delete(self, name: str) -> None:
        """Raises BusUnavailable."""
        ...


class GoneTopics:
    """The rows topics that are to be deleted. For one thread."""

    def __init__(self, admin: Deletes, topics: Topics) -> None:
        self._admin = admin
        self._topics = topics
        self._new: dict[int, None] = {}  # to be remembered by the next transaction
        self._known: dict[int, None] = {}  # remembered, and not deleted yet
        self._deleted: dict[int, None] = {}  # to be forgotten by the next transaction
        self._next_ns = 0

    def restore(self, stored: Mapping[bytes, bytes | None]) -> None:
        """Take what an earlier process had to delete; `stored` is the changefeed's topic by key.
        Keys of another form are nobody's."""
        wanted = (number_of_key(key, KEY_PREFIX) for key in sorted(stored) if stored[key])
        self._known = {table_id: None for table_id in wanted if table_id is not None}

    def add(self, table_id: int) -> None:
        """Note a table whose keys go with the next transaction."""
        self._new[table_id] = None

    def list_changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield (key, value) for the transaction that is made now; the same if it is made again."""
        for table_id in self._deleted:
            yield KEY_PREFIX + b"%d" % table_id, None
        for table_id in self._new:
            yield KEY_PREFIX + b"%d" % table_id, b"1"

    def published(self) -> None:
        """Note that this transaction is over."""
        self._deleted = {}
        self._known |= self._new
        self._new = {}

    def delete(self, now_ns: int) -> None:
        """Delete one topic whose time has come; a failure is logged and tried again later."""
        if not self._known or now_ns < self._next_ns:
            return
        table_id = next(iter(self._known))
        name = self._topics.rows(table_id).name
        try:
            self._admin.delete(name)
        except BusUnavailable as error:
            LOG.warning(
                "topic %s of a table that was dropped can't be deleted now, tried again in a"
                " minute: %s",
                name,
                error.message,
            )
            self._next_ns = now_ns + AGAIN_NS
            return
        LOG.info("topic %s of a table that was dropped is deleted", name)
        del self._known[table_id]
        self._deleted[table_id] = None
