"""What is read over HTTP on a replicant: rows by key, ranges, the changes of a table. It answers as
coherently as SQL does there, and writes nothing."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Generator, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from leasehold.adapters.codec.json_text import json_text
from leasehold.adapters.os.clock import boottime_ns
from leasehold.adapters.sqlite.snapshot import SqliteSnapshot
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.access import check_privilege
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.part import Part
from leasehold.catalog.privileges import Privilege
from leasehold.catalog.states import READABLE
from leasehold.model.errors import (
    InsufficientPrivilege,
    LeaseholdError,
    MalformedRequest,
    NotAuthentic,
    NotCoherent,
    NotHeldHere,
    Refused,
    UnknownTable,
)
from leasehold.model.time_units import NS_PER_S
from leasehold.replica.reads import key_in
from leasehold.replica.row_feed import Following, RowFeed, RowMoved
from leasehold.replica.row_values import named
from leasehold.rows.filled_by_key import complete_image
from leasehold.transaction.binding import binding
from leasehold.values.storage import from_storage

ROWS_MAX: Final = 10_000
ROWS_DEFAULT: Final = 100
WAIT_MS_MAX: Final = 30_000
BEAT_S: Final = 1.0
"""How often it is said up to where all changes were told."""
INTEGERS: Final = frozenset({"smallint", "integer", "bigint"})
PREFIX: Final = "/v1/"
LOG: Final = logging.getLogger("leasehold.http")

STATUS_OF: Final = (
    (NotCoherent, HTTPStatus.SERVICE_UNAVAILABLE),
    (UnknownTable, HTTPStatus.NOT_FOUND),
    (InsufficientPrivilege, HTTPStatus.FORBIDDEN),
    (NotAuthentic, HTTPStatus.UNAUTHORIZED),
    (NotHeldHere, HTTPStatus.MISDIRECTED_REQUEST),
    (Refused, HTTPStatus.BAD_REQUEST),
)
"""The first that fits; anything else is 500."""


class Answer(NamedTuple):
    """An answer of JSON, or a stream of events."""

    status: HTTPStatus
    body: dict[str, Any]
    events: Iterator[bytes] | None = None


class Node(NamedTuple):
    """The node that is read on. `check`: raises what stopped it."""

    store: SqliteStore
    coherent: Callable[[], bool]
    feed: RowFeed
    check: Callable[[], None]


class HttpReads:
    """Answers requests; any thread may ask."""

    def __init__(self, node: Node, token: str, role: str = "") -> None:
        self.node = node
        self._token = token.encode()
        self._role = role

    def answer(self, target: str, authorization: str, last_event: str = "") -> Answer:
        """Return the answer to a GET. Never raises for what comes from outside."""
        try:
            if not self._is_let_in(authorization):
                words = "say Authorization: Bearer … with what LEASEHOLD_HTTP_TOKEN has"
                return _refusal(HTTPStatus.UNAUTHORIZED, NotAuthentic(words))
            return self._route(target, last_event)
        except LeaseholdError as error:
            status = next((s for kind, s in STATUS_OF if isinstance(error, kind)), None)
            return _refusal(status or HTTPStatus.INTERNAL_SERVER_ERROR, error)
        except Exception as error:
            LOG.exception("a request could not be answered")
            return _refusal(HTTPStatus.INTERNAL_SERVER_ERROR, MalformedRequest(str(error)[:200]))

    def _is_let_in(self, authorization: str) -> bool:
        kind, _, given = authorization.partition(" ")
        said = given.strip().encode()
        return hmac.compare_digest(said, self._token) and kind.lower() == "bearer"

    def _route(self, target: str, last_event: str) -> Answer:
        parts = urlsplit(target)
        asked = dict(parse_qsl(parts.query, keep_blank_values=True, max_num_fields=100))
        match parts.path.removeprefix(PREFIX).split("/"):
            case ["status"] if parts.path.startswith(PREFIX):
                return self._status()
            case ["tables", table, "row"] if parts.path.startswith(PREFIX):
                return self._row(unquote(table), asked)
            case ["tables", table, "rows"] if parts.path.startswith(PREFIX):
                return self._rows(unquote(table), asked)
            case ["tables", table, "changes"] if parts.path.startswith(PREFIX):
                return self._changes(unquote(table), asked, last_event)
        return Answer(
            HTTPStatus.NOT_FOUND,
            _error_of(
                MalformedRequest(
                    "there are /v1/status, and of /v1/tables/<table>/: row?<key column>=…,"
                    " rows?from=…&below=…&limit=…, changes?rows=1"
                )
            ),
        )

    # ------------------------------------------------------------ reads

    def snapshot(self, asked: Mapping[str, str]) -> SqliteSnapshot:
        """Return a coherent snapshot (C2), at or after the LSN `after_lsn`. Raises NotCoherent."""
        self.node.check()
        wanted = asked.get("after_lsn")
        if wanted is not None:
            wait_s = min(_number(asked.get("wait_ms", "10000"), "wait_ms"), WAIT_MS_MAX) / 1000
            if not self.node.feed.wait_lsn(_number(wanted, "after_lsn"), wait_s):
                raise NotCoherent(f"LSN {wanted} was not applied here within {wait_s:g} s")
        if not self.node.coherent():
            raise NotCoherent(
                "this replicant is not coherent now: it has no valid lease from the master; ask"
                " again, or another one"
            )
        return self.node.store.open_snapshot()

    def table(self, snapshot: SqliteSnapshot, name: str) -> Descriptor:
        """Return a table that the role may read. Raises UnknownTable, NotHeldHere,
        InsufficientPrivilege."""
        found = snapshot.newest(name)
        if found.sequence is not None:
            raise UnknownTable(f"table {name!r} does not exist", table=name)
        access = snapshot.access
        role_id = access.actor_of(self._role)
        columns = [column.element_id for column in found.by_name.values()]
        table_id = found.table_id
        check_privilege(access, role_id, "table", table_id, columns, Privilege.SELECT, name)
        return found

    def _status(self) -> Answer:
        with self.node.store.open_snapshot() as snapshot:
            told = {
                "coherent": self.node.coherent(),
                "lsn": snapshot.lsn,
                "holds": snapshot.part.words(),
            }
        return Answer(HTTPStatus.OK, told)

    def _row(self, table: str, asked: Mapping[str, str]) -> Answer:
        with self.snapshot(asked) as snapshot:
            descriptor = self.table(snapshot, table)
            given = {
                column.name: _value(column, asked, column.name) for column in descriptor.key_columns
            }
            row = snapshot.get(descriptor, key_in(descriptor, given))
            part = snapshot.part
            shown = None if row is None else part.shown(descriptor, named(descriptor, row))
            lsn = snapshot.lsn
        status = HTTPStatus.NOT_FOUND if shown is None else HTTPStatus.OK
        return Answer(status, {"row": shown, "lsn": lsn})

    def _rows(self, table: str, asked: Mapping[str, str]) -> Answer:
        limit = _number(asked.get("limit", str(ROWS_DEFAULT)), "limit")
        if not 1 <= limit <= ROWS_MAX:
            raise MalformedRequest(f"limit is {limit}; it is from 1 to {ROWS_MAX:,}")
        with self.snapshot(asked) as snapshot:
            descriptor = self.table(snapshot, table)
            column, binds = descriptor.key_columns[0], binding(descriptor)
            low, high = (
                binds.key_prefix((_value(column, asked, name),)) if name in asked else None
                for name in ("from", "below")
            )
            # One more, to see whether that is all.
            found = list(snapshot.scan(descriptor, low, high, rows_max=limit + 1))
            part = snapshot.part
            rows = [part.shown(descriptor, named(descriptor, row)) for _, row in found[:limit]]
            lsn = snapshot.lsn
        return Answer(HTTPStatus.OK, {"rows": rows, "more": len(found) > limit, "lsn": lsn})

    # ------------------------------------------------------------ changes

    def _changes(self, table: str, asked: Mapping[str, str], last_event: str) -> Answer:
        with self.snapshot(asked) as snapshot:
            descriptor = self.table(snapshot, table)
        following = self.node.feed.follow(descriptor.table_id)
        if following is None:
            words = NotCoherent("too many follow changes on this replicant; ask another one")
            return _refusal(HTTPStatus.SERVICE_UNAVAILABLE, words)
        stream = _Stream(self, following.table_id, asked.get("rows") == "1", last_event)
        events = stream.events(following, asked)
        # Begun at once: what has begun is ended, too, when the client goes away.
        return Answer(HTTPStatus.OK, {}, Begun(next(events), events))


class Begun:
    """A stream of which the first event was made. Closing it ends the stream."""

    def __init__(self, first: bytes, events: Generator[bytes, None, None]) -> None:
        self._first: bytes | None = first
        self._events = events

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        first, self._first = self._first, None
        return next(self._events) if first is None else first

    def close(self) -> None:
        self._events.close()


class _Stream:
    """The events of one follower."""

    def __init__(self, reads: HttpReads, table_id: int, rows: bool, last_event: str) -> None:
        self._reads = reads
        self._node = reads.node
        self._table_id = table_id
        self._rows = rows
        self._last_event = last_event
        self._descriptor: Descriptor | None = None

    def events(
        self, following: Following, asked: Mapping[str, str]
    ) -> Generator[bytes, None, None]:
        """Yield events until the table is gone, the role may no longer read it, or too much waits;
        the last one says so."""
        feed = self._node.feed
        try:
            lsn = yield from self._begin(asked)
            if lsn < 0:
                return
            told_ns = boottime_ns()
            while not feed.closed:
                coherent = self._node.coherent()  # C2: before it is looked how far all is here
                moved, upto = feed.wait(following, BEAT_S)
                if following.lost:
                    words = "more changed than was taken: begin again, with rows=1"
                    yield event("lost", {"lsn": lsn, "words": words})
                    return
                new = [each for each in moved if each.lsn > lsn]
                ended = yield from self._tell(new)
                if ended:
                    return
                lsn = max(lsn, upto)
                if not new or boottime_ns() - told_ns >= BEAT_S * NS_PER_S:
                    told_ns = boottime_ns()
                    yield event("at", {"lsn": lsn, "coherent": coherent}, lsn)
        except LeaseholdError as error:
            yield event("ended", _error_of(error)["error"])
        finally:
            feed.leave(following)

    def _begin(self, asked: Mapping[str, str]) -> Generator[bytes, None, int]:
        """Yield what is there, if that is asked for, and return the LSN that it is of; below 0: it
        can't go on where the client was."""
        with self._reads.snapshot(asked) as snapshot:
            lsn = snapshot.lsn
            descriptor = self._known(snapshot)
            assert descriptor is not None, "it was there a moment ago"
            if self._last_event and not self._rows and self._last_event != str(lsn):
                words = f"changes since LSN {self._last_event[:20]} are not kept: begin with rows=1"
                yield event("lost", {"lsn": lsn, "words": words})
                return -1
            yield event("begin", {"table": descriptor.name, "lsn": lsn}, lsn)
            if self._rows:
                for _, row in snapshot.held_rows(descriptor):
                    shown = snapshot.part.shown(descriptor, named(descriptor, row))
                    yield event("row", {"key": _key_of(descriptor, shown), "row": shown}, None)
                yield event("rows", {"lsn": lsn}, lsn)
        return lsn

    def _known(self, snapshot: SqliteSnapshot) -> Descriptor | None:
        """Return the table as it is now, None: it is gone. Raises InsufficientPrivilege."""
        versions = snapshot.versions(self._table_id)
        if not versions or versions[-1].state not in READABLE:
            return None
        found = self._reads.table(snapshot, versions[-1].name)
        return found if found.table_id == self._table_id else None

    def _look(self) -> Generator[bytes, None, bool]:
        """Look at the table; return whether the stream ends with it."""
        with self._node.store.open_snapshot() as snapshot:
            known = self._known(snapshot)
        if known is None:
            yield event("ended", {"code": "42P01", "message": "the table is gone"})
            return True
        before = self._descriptor
        if before is not None and before.version != known.version:
            columns = list(self._node.store.part.shown(known, dict.fromkeys(known.by_name)))
            told = {"table": known.name, "version": known.version, "columns": columns}
            yield event("schema", told)
        self._descriptor = known
        return False

    def _tell(self, moved: list[RowMoved]) -> Generator[bytes, None, bool]:
        ended = yield from self._look()
        if ended:
            return True
        descriptor = self._descriptor
        assert descriptor is not None, "it was looked at"
        for place, each in enumerate(moved):
            last = place + 1 == len(moved) or moved[place + 1].lsn != each.lsn
            yield _told(self._node.store.part, descriptor, each, each.lsn if last else None)
        return False


def _told(part: Part, descriptor: Descriptor, moved: RowMoved, lsn: int | None) -> bytes:
    """Return a change as an event; `lsn`, of a commit's last one, is where a client goes on."""
    if not moved.key:
        return event("truncate", {"lsn": moved.lsn}, lsn)
    key = {
        column.name: from_storage(column.type, value)
        for column, value in zip(descriptor.key_columns, moved.key, strict=True)
    }
    if moved.image is None:
        return event("delete", {"key": key, "lsn": moved.lsn}, lsn)
    values = complete_image(descriptor, moved.version, moved.image)
    row = {
        name: from_storage(column.type, values.get(column.element_id))
        for name, column in descriptor.by_name.items()
    }
    shown = part.shown(descriptor, row)
    return event("row", {"key": key, "row": shown, "lsn": moved.lsn}, lsn)


def event(kind: str, data: Mapping[str, Any], lsn: int | None = None) -> bytes:
    """Return an event of a stream. JSON has no line breaks of its own here."""
    number = "" if lsn is None else f"id: {lsn}\n"
    return f"{number}event: {kind}\ndata: {json_text(dict(data))}\n\n".encode()


def _key_of(descriptor: Descriptor, row: Mapping[str, Any]) -> dict[str, Any]:
    return {column.name: row.get(column.name) for column in descriptor.key_columns}


def _value(column: Column, asked: Mapping[str, str], name: str) -> Any:
    """Return a value as a change request in JSON would give it. Raises MalformedRequest."""
    text = asked.get(name)
    if text is None:
        raise MalformedRequest(f"say {name}=…: {column.name!r} is in the table's primary key")
    if column.type.name in INTEGERS:
        return _number(text, name)
    if column.type.name == "boolean":
        return text.lower() in ("true", "t", "1")
    return text


def _number(text: str, name: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 20):
        raise MalformedRequest(f"{name} is {text[:40]!r}; expected a whole number")
    return int(text)


def _error_of(error: LeaseholdError) -> dict[str, Any]:
    told: dict[str, Any] = {"code": error.sqlstate, "message": error.message}
    if "hint" in error.detail:
        told["hint"] = str(error.detail["hint"])
    return {"error": told}


def _refusal(status: HTTPStatus, error: LeaseholdError) -> Answer:
    return Answer(status, _error_of(error))
