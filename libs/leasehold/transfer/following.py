"""Follows a source by logical replication, and cuts over to the target.

Changes are read by functions of the source over an ordinary connection: a slot is peeked at, what
came is applied together with its place, and only then the slot is moved on. So nothing is lost when
this process ends anywhere, and nothing counts twice. *Not* by the replication protocol, which
psycopg does not speak: it would save the second decoding of what was peeked and not yet passed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from leasehold.adapters.postgres.source import Source, SourceConnection
from leasehold.model.errors import ConfigurationError, LeaseholdError, QueryCanceled, Refused
from leasehold.transfer.changes import Changes, Reread, upsert_row
from leasehold.transfer.pgoutput import lsn_of_text, lsn_text
from leasehold.transfer.progress import STREAM, Fields, Part, move_part
from leasehold.transfer.quoting import quote_name, quote_names, quote_text
from leasehold.transfer.schema_plan import Plan, PlannedTable
from leasehold.transfer.stream import Gathered, Gathering, StreamPlace
from leasehold.transfer.target import Sent, Target, is_moved_elsewhere

PEEKED_CHANGES: Final = 10_000
"""Of a slot at a time, to the end of a transaction."""
FETCHED_ROWS: Final = 100
LOOK_S: Final = 0.2


class SlotGone(Refused, sqlstate="55000"):
    """The source has no record any more of what has changed since rows were copied."""


class Lag(NamedTuple):
    """How far the target is behind. `applied`: changes in this run."""

    bytes: int
    applied: int


class Following:
    """The following of one import. `tell` hears of the lag about once a look."""

    def __init__(
        self,
        source: Source,
        target: Target,
        name: str,
        schema: str,
        plan: Plan,
        tell: Callable[[Lag], None],
    ) -> None:
        self._source, self._target = source, target
        self._name, self._schema, self._plan = name, schema, plan
        self._tell = tell
        self._stopped = threading.Event()
        self._changes = Changes(plan.tables, schema)
        self._applied = 0
        digest = blake2b(name.encode(), digest_size=6).hexdigest()
        self.slot = f"leasehold_{digest}"
        """Of the publication, too."""

    def stop(self) -> None:
        self._stopped.set()

    # ------------------------------------------------------------ beginning and end

    def check(self, connection: SourceConnection) -> None:
        """Raise ConfigurationError where the source can't be followed, with what to change."""
        level = connection.value("SHOW wal_level")
        if level != "logical":
            raise ConfigurationError(
                f"the source's wal_level is {level}, so its changes can't be followed: set it to"
                " logical and restart the source, or import without --follow"
            )
        refused = [(t.name, t.follow_refusal) for t in self._plan.tables if t.follow_refusal]
        if refused:
            table, why = refused[0]
            more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
            raise ConfigurationError(
                f"table {table!r} can't be followed{more}: {why}; take it out with --exclude, or"
                " import without --follow"
            )

    def begin(self, connection: SourceConnection) -> None:
        """Make publication and slot, before the first row is read. Raises SlotGone where they were
        there and are no more, SourceFailure."""
        kept = self._target.part(self._name, STREAM)
        there = connection.rows(
            "SELECT wal_status FROM pg_replication_slots WHERE slot_name = %s", self.slot
        )
        if kept is not None:
            if not there or there[0][0] == "lost":
                raise SlotGone(
                    f"slot {self.slot} of the source is gone, and with it what has changed since:"
                    " begin anew with --abandon and empty tables"
                )
            return
        if not connection.rows("SELECT 1 FROM pg_publication WHERE pubname = %s", self.slot):
            tables = ", ".join(
                f"{quote_name(self._schema)}.{quote_name(table.name)}"
                for table in self._plan.tables
            )
            options = ""
            if any(table.partitioned for table in self._plan.tables):
                options = " WITH (publish_via_partition_root = true)"
            connection.run(f"CREATE PUBLICATION {self.slot} FOR TABLE {tables}{options}")
        if there:  # of a run that ended before it could keep where the slot begins
            connection.run(f"SELECT pg_drop_replication_slot({quote_text(self.slot)})")
        lsn = connection.value(
            "SELECT lsn::text FROM pg_create_logical_replication_slot(%s, 'pgoutput')", self.slot
        )
        place = StreamPlace(lsn_of_text(lsn))
        self._target.begin_parts(self._name, [Part(STREAM, 0, place.to_text())])

    def drop(self, connection: SourceConnection) -> None:
        """Drop slot and publication, if they are there."""
        connection.rows(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
            " WHERE slot_name = %s",
            self.slot,
        )
        connection.run(f"DROP PUBLICATION IF EXISTS {self.slot}")

    # ------------------------------------------------------------ following

    def follow(self, until: int | None = None) -> None:
        """Apply changes until everything before the LSN `until` is there; None: until stopped.
        Raises QueryCanceled when stopped before that, SlotGone, SchemaChanged, and what the target
        refuses changes with."""
        part = self._target.part(self._name, STREAM)
        if part is None:
            raise Refused(f"import {self._name!r} does not follow: it was begun without --follow")
        with self._source.connect() as reading, self._source.connect() as rows:
            while not self._stopped.is_set():
                now = lsn_of_text(rows.value("SELECT pg_current_wal_flush_lsn()::text"))
                part, changes = self._apply_some(part, reading, rows)
                place = StreamPlace.read(part.place)
                reached = place.lsn
                if not changes:
                    # Whatever was flushed by then has been decoded: it was nothing of ours.
                    reached = max(reached, now)
                rows.rows(
                    "SELECT pg_replication_slot_advance(slot_name, %s::pg_lsn)"
                    " FROM pg_replication_slots WHERE slot_name = %s"
                    " AND confirmed_flush_lsn < %s::pg_lsn",
                    lsn_text(reached),
                    self.slot,
                    lsn_text(reached),
                )
                self._tell(Lag(max(0, now - reached), self._applied))
                if until is not None and reached >= until:
                    return
                if not changes:
                    self._stopped.wait(LOOK_S)
        if until is not None:
            raise QueryCanceled("the following was stopped; give the command again to go on")

    def _apply_some(
        self, part: Part, reading: SourceConnection, rows: SourceConnection
    ) -> tuple[Part, int]:
        """Apply what one look at the slot gives; return where the stream is, and how many changes
        came."""
        query = (
            "SELECT data FROM pg_logical_slot_peek_binary_changes("
            f"{quote_text(self.slot)}, NULL, {PEEKED_CHANGES}, 'proto_version', '1',"
            f" 'publication_names', {quote_text(self.slot)})"
        )
        gathering = Gathering(self._changes, StreamPlace.read(part.place))
        messages = (bytes(data) for (data,) in reading.stream(query, FETCHED_ROWS))
        sent: Sent | None = None
        count = 0
        try:
            for gathered in gathering.gather(messages):
                if sent is not None:
                    self._target.settle(sent)
                operations: list[Fields] = [
                    *gathered.operations,
                    *self._reread(gathered, rows),
                ]
                after = part.moved(gathered.place.to_text(), gathered.changes)
                operations += move_part(self._name, part, after)
                sent = self._target.send(operations, gathered.sql)
                part, count = after, count + gathered.changes
                self._applied += gathered.changes
            if sent is not None:
                self._target.settle(sent)
        except Refused as error:
            raise self._explained(error) from error
        return part, count

    def _reread(self, gathered: Gathered, rows: SourceConnection) -> Sequence[dict[str, object]]:
        if gathered.reread is None:
            return ()
        found = read_row(gathered.reread, self._schema, rows)
        return () if found is None else [upsert_row(gathered.reread.table, found)]

    def _explained(self, error: Refused) -> LeaseholdError:
        if is_moved_elsewhere(error) and error.detail.get("table") == "leasehold_imports":
            return Refused(
                f"import {self._name!r} is followed by another process, too: end one of them"
            )
        made = Refused(f"the target refuses a change with {error.sqlstate}: {error.message}")
        made.detail = error.detail
        return made


def read_row(wanted: Reread, schema: str, rows: SourceConnection) -> Sequence[str | None] | None:
    """Return a row as it is in the source now, as texts; None where it has gone since."""
    table: PlannedTable = wanted.table
    shown = ", ".join(f"({column.read})::text" for column in table.copied)
    keys = ", ".join(
        f"{quote_text(text)}::{kind}"
        for text, kind in zip(wanted.key, table.key_types, strict=True)
    )
    query = (
        f"SELECT {shown} FROM {quote_name(schema)}.{quote_name(table.name)}"
        f" WHERE ({quote_names(table.key)}) = ({keys})"
    )
    found = rows.rows(query)
    return found[0] if found else None
