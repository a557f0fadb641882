"""A feed as it is by now: its table, its columns and rows, its snapshot; and the same as JSON.

What was said of columns by name holds for those columns: under a new name, and where another
element took over with another type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.events.debezium.binary_form import AvroForm, ProtobufForm
from leasehold.events.debezium.definition import Definition, Encoding, decode_definition
from leasehold.events.debezium.envelope import JsonForm
from leasehold.events.debezium.table_form import Image, TableForm
from leasehold.events.rows import public_pairs
from leasehold.model.errors import (
    FeatureNotSupported,
    LeaseholdError,
    MalformedRequest,
    Refused,
    UnknownColumn,
)
from leasehold.rows.filled_by_key import complete_image
from leasehold.sql.expressions.expression import (
    columns_of_expression,
    compile_condition,
    rename_column_in,
    with_exact_numbers,
    without_table,
)

FORMAT: Final = 1
ENCODED_FORMAT: Final = 2
"""Of a feed that is not JSON: a release that knows no other form leaves it out, and must not write
JSON on its topic."""
HELD_FORMAT: Final = 3
"""Of a feed that is held: a release that knows nothing of that would go on with what comes next,
and never tell what was kept."""
FORMATS: Final = (FORMAT, ENCODED_FORMAT, HELD_FORMAT)
SCHEMA_IDS_MAX: Final = 32
"""Numbers of schemas that a feed remembers: those of its newest versions."""
DIGEST_BYTES: Final = 12
ON: Final = "on"
ENDED: Final = "ended"
FAILED: Final = "failed"
REFUSED: Final = "refused"
STATUSES: Final = frozenset({ON, ENDED, FAILED, REFUSED})

Named = tuple[tuple[int, str], ...]
"""Columns by element id, each with the name that it had last."""


class Snapshot(NamedTuple):
    """A snapshot under way: `place` of the last row in FedRows, how many rows were told."""

    place: bytes = b""
    rows: int = 0
    on_demand: bool = False


class Hold(NamedTuple):
    """The reason why a feed tells nothing for now, which is that its schema registry is away. Its
    events are records of a topic meanwhile. `id`: by which these are known from those of a hold
    before; `written` and `told`: numbers of the last one that is there, and of the last one that
    the feed has told, from 1; `bytes`: of all that are there."""

    id: str
    since_us: int
    words: str
    written: int = 0
    told: int = 0
    bytes: int = 0


class Change(NamedTuple):
    """What a feed tells of a row that has changed."""

    op: str
    before: Image | None
    after: Image | None


class Feed:
    """A feed. `form` is set, and `changed` noted, by whoever makes it."""

    def __init__(self, database: str, release: str, definition: Definition, order: str) -> None:
        self._database = database
        self._release = release
        self.definition = definition
        self.order = order
        self.table_id = 0
        self.status = ON
        self.words = ""
        self.since_lsn = 0
        self.snapshot: Snapshot | None = None
        self.hold: Hold | None = None
        self.changed = True  # and is to be stored
        self._schema_ids: dict[str, int] = {}  # by digest, the newest last
        self._columns: Named = ()
        self._where = definition.where
        self._mentioned: Named = ()
        self._form: TableForm | None = None
        self._condition: Callable[[Mapping[int, Any]], int | None] | None = None

    @property
    def name(self) -> str:
        return self.definition.table

    @property
    def topic(self) -> str:
        """The topic's name, which stays what it was when the feed was made."""
        return feed_topic(self._database, self.name)

    @property
    def is_on(self) -> bool:
        return self.status == ON

    @property
    def format(self) -> int:
        """The format of its state."""
        if self.hold is not None:
            return HELD_FORMAT
        return ENCODED_FORMAT if self.definition.encoding.needs_registry else FORMAT

    def schema_id(self, subject: str, text: str) -> int | None:
        """Return the number that a registry has given a schema, None where that is not known."""
        return self._schema_ids.get(_digest(subject, text))

    def keep_schema_id(self, subject: str, text: str, number: int) -> None:
        """Remember the number of a schema, so that the registry need not be asked again."""
        digest = _digest(subject, text)
        self._schema_ids.pop(digest, None)
        self._schema_ids[digest] = number
        while len(self._schema_ids) > SCHEMA_IDS_MAX:
            del self._schema_ids[next(iter(self._schema_ids))]
        self.changed = True

    @property
    def form(self) -> TableForm:
        """The form of its events under the table's version of now."""
        assert self._form is not None, self.name
        return self._form

    def begin(self, table: Descriptor, lsn: int) -> None:
        """Begin behind the commit `lsn` with a table that is there. Raises LeaseholdError where the
        definition doesn't fit it."""
        self.table_id, self.since_lsn = table.table_id, lsn
        self._columns = tuple(
            (table.column(name).element_id, table.column(name).name)
            for name in self.definition.columns
        )
        if self._where:
            text = with_exact_numbers(without_table(self._where, table.name))
            self._where = text
            names = sorted(columns_of_expression(text))
            self._mentioned = tuple(
                (table.column(n).element_id, table.column(n).name) for n in names
            )
        self.adapt(table)
        if not self.is_on:
            raise FeatureNotSupported(self.words)
        self.snapshot = Snapshot() if self.definition.snapshot else None

    def adapt(self, table: Descriptor) -> None:
        """Go on with another version of the table, or with the table that took over from it; ends
        where the condition names a column that is gone."""
        if table.table_id != self.table_id:
            self.table_id, self.changed = table.table_id, True
            if self.snapshot is not None:  # places are those of the other table's keys
                self.snapshot = self.snapshot._replace(place=b"")
        self._columns = self._renamed(self._columns, table)
        try:
            self._adapt_condition(table)
        except LeaseholdError as error:
            self.fail(f"its condition can't be computed any more: {error.message}")
            return
        listed = {element_id for element_id, _ in self._columns}
        keys = set(table.primary_key)
        columns: list[Column] = [
            column
            for column in table.by_name.values()
            if not self.definition.columns or column.element_id in listed | keys
        ]
        self._form = self._form_of(table, tuple(columns))

    def _form_of(self, table: Descriptor, columns: tuple[Column, ...]) -> TableForm:
        definition = self.definition
        of = self._database, self.topic, self.name, table, columns, definition.decimals
        if definition.encoding is Encoding.JSON:
            return JsonForm(*of, self._release, definition.schemas)
        kind = AvroForm if definition.encoding is Encoding.AVRO else ProtobufForm
        return kind(*of, self._release)

    def _adapt_condition(self, table: Descriptor) -> None:
        if not self._where:
            return
        kept = self._renamed(self._mentioned, table)
        if len(kept) < len(self._mentioned):
            gone = {name for _, name in self._mentioned} - {name for _, name in kept}
            raise UnknownColumn(f"column {min(gone, default='')} is gone")
        for (_, old), (_, new) in zip(self._mentioned, kept, strict=True):
            if old != new:
                self._where = rename_column_in(self._where, old, new)
        self._mentioned = kept
        self._condition = compile_condition(self._where, table)

    def _renamed(self, columns: Named, table: Descriptor) -> Named:
        """Return the columns as the table has them now, without those that are gone."""
        found: list[tuple[int, str]] = []
        for element_id, name in columns:
            column = table.by_id.get(element_id)
            if column is None or element_id not in table.public_ids:
                column = table.by_name.get(name)  # it took over, with another type
            if column is not None:
                found.append((column.element_id, column.name))
        self.changed |= tuple(found) != columns
        return tuple(found)

    def end(self, words: str) -> None:
        """End with the table."""
        self._stop(ENDED, words)

    def fail(self, words: str) -> None:
        """End where going on would tell something wrong."""
        self._stop(FAILED, words)

    def refuse(self, words: str) -> None:
        """Be one that never began."""
        self._stop(REFUSED, words)

    def _stop(self, status: str, words: str) -> None:
        self.status, self.words, self.snapshot, self.changed = status, words[:500], None, True
        self.hold = None

    def set_hold(self, hold: Hold | None) -> None:
        """Be held, be it otherwise, or go on."""
        self.hold, self.changed = hold, True

    def start_snapshot(self) -> None:
        """Begin to tell every row, or begin anew."""
        self.snapshot, self.changed = Snapshot(on_demand=True), True

    def stop_snapshot(self) -> None:
        """Tell no more rows of a snapshot."""
        self.snapshot, self.changed = None, True

    def snapshot_went_on(self, place: bytes, rows: int, *, last: bool) -> None:
        """Note how far the snapshot is."""
        assert self.snapshot is not None, self.name
        on = self.snapshot._replace(place=place, rows=self.snapshot.rows + rows)
        self.snapshot, self.changed = None if last else on, True

    def shows(self, image: Image | None) -> bool:
        """Whether a row is one of the feed's; one of which that can't be computed is none."""
        if image is None or self._condition is None:
            return image is not None
        try:
            return self._condition(self._pairs(image)) == 1
        except Refused:
            return False

    def event_of(self, before: Image | None, after: Image | None, *, shown: bool) -> Change | None:
        """Return what is told of a row, None for nothing: a row that comes to the feed's rows is
        made, one that leaves them is deleted. With `shown` False only what its columns show."""
        old = before if self.shows(before) else None
        new = after if self.shows(after) else None
        if old is None and new is None:
            return None
        if old is None:
            return Change("c", None, new)
        if new is None:
            return Change("d", old, None)
        if not shown and self._shown(old) == self._shown(new):
            return None
        return Change("u", old, new)

    def _shown(self, image: Image) -> list[Any]:
        pairs = self._pairs(image)
        return [pairs.get(column.element_id) for column in self.form.columns]

    def _pairs(self, image: Image) -> Mapping[int, Any]:
        table = self.form.descriptor
        values = complete_image(table, image.version, getattr(image, "values", {}))
        return {c.element_id: v for c, v in public_pairs(table, image.key, values)}

    def to_json(self) -> bytes:
        """Return what `restore` takes."""
        body: dict[str, Any] = {
            "format": self.format,
            "order": self.order,
            "definition": self.definition.to_json(),
            "topic": self.topic,
            "table_id": self.table_id,
            "status": self.status,
            "words": self.words,
            "since_lsn": self.since_lsn,
            "columns": [list(each) for each in self._columns],
            "where": self._where,
            "mentioned": [list(each) for each in self._mentioned],
            "snapshot": None,
        }
        if self._schema_ids:
            body["schema_ids"] = self._schema_ids
        if self.hold is not None:
            body["held"] = self.hold._asdict()
        if self.snapshot is not None:
            place, rows, on_demand = self.snapshot
            body["snapshot"] = {"place": place.hex(), "rows": rows, "on_demand": on_demand}
        return json.dumps(body, ensure_ascii=False).encode()

    @classmethod
    def restore(cls, database: str, release: str, value: bytes) -> Feed:
        """Return a feed from its JSON; `adapt` comes next. Raises MalformedRequest."""
        try:
            body = json.loads(value)
            if body["format"] not in FORMATS or body["status"] not in STATUSES:
                raise MalformedRequest("a feed's state is of a release that is not known")
            feed = cls(database, release, decode_definition(body["definition"]), body["order"])
            feed.table_id, feed.since_lsn = int(body["table_id"]), int(body["since_lsn"])
            feed.status, feed.words = str(body["status"]), str(body["words"])
            feed._columns = tuple((int(e), str(name)) for e, name in body["columns"])
            feed._where = str(body["where"])
            feed._mentioned = tuple((int(e), str(name)) for e, name in body["mentioned"])
            ids = body.get("schema_ids", {}).items()
            feed._schema_ids = {str(digest): int(number) for digest, number in ids}
            held = body.get("held")
            if held is not None:
                numbers = [int(held[name]) for name in ("written", "told", "bytes")]
                since = str(held["id"]), int(held["since_us"]), str(held["words"])
                feed.hold = Hold(*since, *numbers)
            found = body["snapshot"]
            if found is not None:
                place, rows = bytes.fromhex(found["place"]), int(found["rows"])
                feed.snapshot = Snapshot(place, rows, bool(found["on_demand"]))
            feed.changed = False
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise MalformedRequest(f"a feed's state can't be read: {error!r:.200}") from error
        return feed


def _digest(subject: str, text: str) -> str:
    return blake2b(f"{subject}\n{text}".encode(), digest_size=DIGEST_BYTES).hexdigest()


def feed_topic(database: str, table: str) -> str:
    """Return the topic of the feed of `schema.table`. Characters that a topic's name can't have
    become `_`, as Debezium has it."""
    allowed = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in table)
    return f"{database}.feed.{allowed}"
