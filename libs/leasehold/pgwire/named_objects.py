"""Prepared statements and portals of one connection, by name; the empty name is the unnamed one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from zoneinfo import ZoneInfo

from leasehold.model.budget import GRAIN_BYTES, UNBOUNDED_BYTES, Budget, Pool
from leasehold.model.errors import OutOfMemory
from leasehold.pgwire.copy.output import copy_out_form
from leasehold.pgwire.limits import Limits
from leasehold.pgwire.session import (
    Column,
    CopySource,
    CopyTarget,
    Fetched,
    Portal,
    Prepared,
    WouldBlock,
)
from leasehold.pgwire.values.decoding import Decoder
from leasehold.pgwire.values.formats import (
    Formats,
    ResultForm,
    make_decoders,
    make_result_form,
)
from leasehold.pgwire.wire_errors import (
    DuplicatePortal,
    DuplicatePreparedStatement,
    LimitExceeded,
    UnknownPortal,
    UnknownPreparedStatement,
)
from leasehold.values.oids import WireType

FORMS_MAX: Final = 8
MADE_KEPT_MAX: Final = 200
UNCOUNTED_BYTES: Final = GRAIN_BYTES
"""Of the values of a connection's portals: so many are not taken of the node's memory, which each
Bind would ask for otherwise."""
MADE_TEXT_BYTES_MAX: Final = 16 * 1024
"""Of a statement that is kept when its client does not name it any more."""


class EmptyStatement:
    """What an empty text prepares; nobody runs it."""

    parameters: Sequence[WireType] = ()
    columns: Sequence[Column] | None = None
    copies: CopySource | None = None
    binary = False
    answers_whole = False
    ends_transaction = False
    leaves_failed_block = True


class EmptyPortal:
    copy: CopyTarget | None = None

    def fetch(self, rows_max: int) -> Fetched:
        raise AssertionError("an empty query is not run")

    def close(self) -> None:
        pass

    def rest(self, *, wholly: bool) -> None:
        pass


class NamedStatement:
    """A prepared statement with the codecs that were made for it."""

    __slots__ = ("_decoders", "_results", "prepared")

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self._decoders: dict[Formats, tuple[ZoneInfo, list[Decoder]]] = {}
        self._results: dict[Formats, tuple[ZoneInfo, ResultForm]] = {}

    def decoders(self, formats: Formats, zone: ZoneInfo) -> list[Decoder]:
        kept = self._decoders.get(formats)
        if kept is not None and kept[0] is zone:
            return kept[1]
        made = make_decoders(self.prepared.parameters, formats, zone)
        if len(self._decoders) < FORMS_MAX:
            self._decoders[formats] = (zone, made)
        return made

    def result(self, formats: Formats, zone: ZoneInfo) -> ResultForm | None:
        """Return how rows of these formats are said, or None if no rows come."""
        if self.prepared.copies is not None:
            return copy_out_form(self.prepared.copies, zone)
        columns = self.prepared.columns
        if columns is None:
            return None
        kept = self._results.get(formats)
        if kept is not None and kept[0] is zone:
            return kept[1]
        made = make_result_form(columns, formats, zone)
        if len(self._results) < FORMS_MAX:
            self._results[formats] = (zone, made)
        return made


class NamedPortal:
    """A bound statement, with what was sent of its rows. `tag` is None until it has run to its end,
    `sent` counts rows of the Execute that is under way, `described` says that the client knows what
    comes (columns or COPY's data), `failed` that it can't be run any more. `number` rises."""

    __slots__ = (
        "_error",
        "described",
        "failed",
        "number",
        "portal",
        "result",
        "sent",
        "statement",
        "tag",
    )

    def __init__(
        self, statement: NamedStatement, portal: Portal, result: ResultForm | None
    ) -> None:
        self.statement = statement
        self.portal = portal
        self.result = result
        self.tag: str | None = None
        self.sent = 0
        self.described = False
        self.failed = False
        self.number = 0
        self._error: Exception | None = None

    @property
    def copies(self) -> bool:
        return self.result is not None and self.result.copies

    @property
    def columns(self) -> Sequence[Column] | None:
        return self.statement.prepared.columns

    def take(self, rows_max: int) -> Sequence[Sequence[Any]]:
        """Return the next rows, fewer than `rows_max` at its end. Rows before an error are not
        given."""
        rows: list[Sequence[Any]] = []
        while self.tag is None and len(rows) < rows_max:
            part, self.tag = self.fetch(rows_max - len(rows))
            rows += part
        return rows

    def rest(self, *, wholly: bool) -> None:
        """Put rows aside as `Portal.rest` does; what that raises comes in the place of the next
        row."""
        if self.tag is not None or self._error is not None:
            return
        try:
            self.portal.rest(wholly=wholly)
        except WouldBlock:
            raise
        except Exception as error:  # noqa: BLE001 - `fetch` raises it
            self._error = error.with_traceback(None)

    def fetch(self, rows_max: int) -> Fetched:
        try:
            error, self._error = self._error, None
            if error is not None:
                raise error
            return self.portal.fetch(rows_max)
        except WouldBlock:
            raise
        except BaseException:
            self.failed = True
            raise


class NamedObjects:
    """The prepared statements and portals of one connection."""

    def __init__(self, limits: Limits, pool: Pool | None = None) -> None:
        """Keep none yet. Values of portals are taken of `pool`, the memory of the node."""
        self._limits = limits
        self._memory = Budget(UNBOUNDED_BYTES, pool)
        self._statements: dict[str, NamedStatement] = {}
        self._portals: dict[str, NamedPortal] = {}
        self._bound = 0
        self._text_bytes: dict[str, int] = {}
        self._text_bytes_sum = 0
        self._value_bytes: dict[str, int] = {}
        self._value_bytes_sum = 0
        # By identity: a driver without names prepares the same statement again and again. What is
        # kept here holds it, so no id comes twice.
        self._made: dict[int, NamedStatement] = {}

    def statement(self, name: str) -> NamedStatement:
        found = self._statements.get(name)
        if found is None:
            which = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise UnknownPreparedStatement(f"{which} does not exist")
        return found

    def keep_statement(self, name: str, prepared: Prepared, size: int) -> None:
        """Keep a statement, whose text has `size` bytes. Raises DuplicatePreparedStatement,
        LimitExceeded."""
        if name and name in self._statements:
            raise DuplicatePreparedStatement(f'prepared statement "{name}" already exists')
        if len(self._statements) >= self._limits.statements_max:
            raise LimitExceeded(
                f"{len(self._statements)} prepared statements exist on this connection",
                hint="Close some of them, or DEALLOCATE ALL.",
            )
        limit = self._limits.statement_texts_bytes_max
        if self._text_bytes_sum + size > limit:
            raise LimitExceeded(
                f"the prepared statements of this connection would have more than {limit} bytes of"
                " text",
                hint="Close some of them, or DEALLOCATE ALL.",
            )
        self._statements[name] = self.with_codecs(prepared, size)
        self._text_bytes[name] = size
        self._text_bytes_sum += size

    def with_codecs(self, prepared: Prepared, size: int) -> NamedStatement:
        """Return the statement with its codecs, the same one for what was prepared before, unless
        its text, of `size` bytes, is too long to be kept for nobody."""
        if size > MADE_TEXT_BYTES_MAX:
            return NamedStatement(prepared)
        made = self._made.get(id(prepared))
        if made is None:
            if len(self._made) >= MADE_KEPT_MAX:
                self._made.clear()
            made = self._made[id(prepared)] = NamedStatement(prepared)
        return made

    def drop_statement(self, name: str) -> None:
        self._statements.pop(name, None)
        self._text_bytes_sum -= self._text_bytes.pop(name, 0)

    def deallocate(self, name: str | None) -> None:
        """Drop one statement, or with None all. Raises UnknownPreparedStatement."""
        if name is None:
            self._statements.clear()
            self._text_bytes.clear()
            self._text_bytes_sum = 0
        else:
            self.statement(name)
            self.drop_statement(name)

    def portal(self, name: str) -> NamedPortal:
        found = self._portals.get(name)
        if found is None:
            raise UnknownPortal(f'portal "{name}" does not exist')
        return found

    def find(self, name: str) -> NamedPortal | None:
        return self._portals.get(name)

    def make_room(self, name: str, size: int) -> None:
        """Make room for a portal of that name, whose values have `size` bytes: the unnamed one
        gives way. Raises DuplicatePortal, LimitExceeded."""
        if not name:
            self.drop_portal("")
        elif name in self._portals:
            raise DuplicatePortal(f'cursor "{name}" already exists')
        if len(self._portals) >= self._limits.portals_max:
            raise LimitExceeded(
                f"{len(self._portals)} portals are open on this connection",
                hint="Close some of them, or end the transaction.",
            )
        limit = self._limits.portal_values_bytes_max
        if self._value_bytes_sum + size > limit:
            raise LimitExceeded(
                f"the portals of this connection would have more than {limit} bytes of values",
                hint="Close some of them, or end the transaction.",
            )

    def mark(self) -> int:
        return self._bound

    def back_to(self, mark: int) -> None:
        for name in [name for name, found in self._portals.items() if found.number > mark]:
            self.drop_portal(name)

    def keep_portal(self, name: str, portal: NamedPortal, size: int) -> None:
        """Keep a portal for which there is room, whose values have `size` bytes. Raises
        OutOfMemory, of the node, and the portal is closed then."""
        values = self._value_bytes_sum + size
        if values > UNCOUNTED_BYTES:
            try:
                self._memory.hold(values - self._memory.held)
            except OutOfMemory:
                portal.portal.close()
                raise
        self._value_bytes[name] = size
        self._value_bytes_sum = values
        self._bound += 1
        portal.number = self._bound
        self._portals[name] = portal

    def drop_portal(self, name: str) -> None:
        found = self._portals.pop(name, None)
        if found is not None:
            self._value_bytes_sum -= self._value_bytes.pop(name)
            if self._memory.held:
                if self._value_bytes_sum > UNCOUNTED_BYTES:
                    self._memory.give_back(self._memory.held - self._value_bytes_sum)
                else:
                    self._memory.close()
            found.portal.close()

    def rest(self, *, wholly: bool) -> None:
        """Put aside rows of all portals, whose client takes its time until it asks for more, or
        takes what it has."""
        for found in self._portals.values():
            found.rest(wholly=wholly)

    def drop_portals(self) -> None:
        while self._portals:
            self.drop_portal(next(iter(self._portals)))

    def close_portals(self, name: str | None) -> None:
        """Close one portal, or with None all. Raises UnknownPortal."""
        if name is None:
            self.drop_portals()
        else:
            self.portal(name)
            self.drop_portal(name)


def empty_portal(statement: NamedStatement) -> NamedPortal:
    return NamedPortal(statement, EmptyPortal(), None)


def is_empty(statement: NamedStatement) -> bool:
    prepared: Any = statement.prepared
    return isinstance(prepared, EmptyStatement)
