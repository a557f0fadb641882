"""The port between the wire and SQL: what a connection asks of the one who runs its statements.

The wire owns the protocol: names of prepared statements and portals, formats of values, skipping
after errors, counting rows, COPY's text. A session owns meaning: text → statement, types, rows,
transactions. Values are storage values (`values/storage.py`).

Calls, in the order in which they can come; all from one thread at a time, except `cancel`:

    statements(text)             each simple Query, each Parse
      prepare(statement, types)  before it runs; at Parse, or at its turn in a simple Query
        bind(prepared, values)   a portal; nothing has run yet
          portal.fetch(n)        runs it, as often as rows are wanted; portal.close() ends it
          portal.copy.take(rows) COPY … FROM STDIN only, before the one fetch
    end_batch()                  at Sync, and after the last statement of a simple Query
    fail()                       once after every error that was answered, whoever raised it

Whoever calls may be in a hurry (`hurried`): others wait for the same thread. Then what would wait,
or take long, raises `WouldBlock` before anything of it has happened, and is called again the same
way.
`end_batch` gives it back: each commit waits, and an exception through a dozen calls costs as much
as one of its statements.

What counts as one transaction: everything from the end of one batch to the end of the next, unless
BEGIN makes it a block, to which belongs what came before it in its batch. `end_batch` outside a
block commits; what it raises is the answer. `fail` rolls back (outside a block) or makes the block
a failed one (status FAILED): then `prepare` and `bind` raise InFailedTransaction for all but
COMMIT, ROLLBACK and ROLLBACK TO, and COMMIT ends the block with the tag ROLLBACK. After `fail`
outside a block status is IDLE.

Every method may raise an error of the tree in `model/errors.py`; its detail may name `position`
(characters from 1 in the text given to `statements`), `detail`, `hint`, `table`, `column`,
`constraint`, `type`, `where`, which travel as fields of the answer. Any other exception is a defect
and is answered as XX000.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeAlias
from zoneinfo import ZoneInfo

from leasehold.model.budget import Pool
from leasehold.pgwire.copy.format import CopyFormat
from leasehold.values.oids import WireType


class WouldBlock(Exception):
    """Raised by a call in a hurry that would wait. With `until` None it is to be made again where
    waiting holds up nobody. Else `until(soon)` has `soon` called, by any thread, when it is worth
    making it again, and after `timeout_s` it is at the latest. `begun` means that it has to be made
    again, even if nobody is there to hear of it."""

    def __init__(
        self,
        until: Callable[[Callable[[], None]], None] | None = None,
        timeout_s: float = 60.0,
        *,
        begun: bool = False,
    ) -> None:
        super().__init__()
        self.until = until
        self.timeout_s = timeout_s
        self.begun = begun


class Status(Enum):
    """The state of a session's transaction, as ReadyForQuery tells it."""

    __hash__ = object.__hash__  # members are one each; by name it would be computed each time

    IDLE = b"I"
    BLOCK = b"T"
    FAILED = b"E"


class Column(NamedTuple):
    """A column of a result. `table` and `position` are the table's id and the column's place from
    1, if it is one of a table, else 0."""

    name: str
    type: WireType
    table: int = 0
    position: int = 0


class Fetched(NamedTuple):
    """Rows of a portal. `tag` is None while there may be more. SELECT gets the number of rows that
    this Execute sent, and so does a tag that counts rows which are sent (`FETCH 3`, `INSERT 0 3` of
    RETURNING); every other one is whole (`COMMIT`, `COPY 5`, `UPDATE 3`)."""

    rows: Sequence[Sequence[Any]]
    tag: str | None


class CopySource(NamedTuple):
    """What COPY … TO STDOUT writes, and how; the portal's rows are its rows."""

    columns: Sequence[Column]
    format: CopyFormat


class Prepared(Protocol):
    """A statement that was looked up. `parameters` has a type for each $n. `columns` is None where
    no rows come (() is a row of nothing), also where it `copies`: then rows are told as COPY … TO
    STDOUT. `binary` says that its rows are told in binary in the simple protocol, too (FETCH from a
    BINARY cursor). What `answers_whole` is no query, whose rows come while it runs, so the simple
    protocol tells its columns once it has done what it does: an error comes without them.
    `ends_transaction` is true of COMMIT and ROLLBACK, after which no portal is left, and
    `leaves_failed_block` of these and ROLLBACK TO."""

    @property
    def parameters(self) -> Sequence[WireType]: ...
    @property
    def columns(self) -> Sequence[Column] | None: ...
    @property
    def copies(self) -> CopySource | None: ...
    @property
    def binary(self) -> bool: ...
    @property
    def answers_whole(self) -> bool: ...
    @property
    def ends_transaction(self) -> bool: ...
    @property
    def leaves_failed_block(self) -> bool: ...


class CopyTarget(Protocol):
    """The place where rows of COPY … FROM STDIN go."""

    @property
    def table(self) -> str: ...
    @property
    def columns(self) -> Sequence[Column]: ...
    @property
    def format(self) -> CopyFormat: ...

    def take(self, rows: Sequence[Sequence[Any]]) -> None:
        """Take rows that have a value for each of `columns`, in their order."""


class Portal(Protocol):
    """A statement bound to values. `copy` is None unless it is COPY … FROM STDIN."""

    @property
    def copy(self) -> CopyTarget | None: ...

    def fetch(self, rows_max: int) -> Fetched:
        """Return the next rows, at most `rows_max` (≥ 1). Called no more once it gave a tag."""

    def close(self) -> None:
        """Give back what it holds. Also after an error; raises nothing."""

    def rest(self, *, wholly: bool) -> None:
        """Hold nothing that others would wait for, since more rows are wanted, but perhaps not
        soon. Unless `wholly`, rows are kept that have no room elsewhere and that the client still
        takes; else an error comes in their place. May be called again. Raises what `fetch` raises,
        and is called no more then."""


class Notice(NamedTuple):
    """A notice for the client. `severity` is NOTICE, WARNING, INFO …, `detail` is as that of
    errors."""

    severity: str
    sqlstate: str
    message: str
    detail: Mapping[str, object] = {}


class Notification(Protocol):
    """What was told to a channel (NOTIFY). `process`: of the session of this node that has told it,
    else 0."""

    @property
    def channel(self) -> str: ...
    @property
    def payload(self) -> str: ...
    @property
    def process(self) -> int: ...


class SettingChanged(NamedTuple):
    """The new value of a setting that clients are told of (`settings`)."""

    name: str
    value: str


class Deallocated(NamedTuple):
    """A DEALLOCATE: the named prepared statement goes, or with None all of them."""

    name: str | None


class PortalsClosed(NamedTuple):
    """A CLOSE of one name, or with None of all."""

    name: str | None


class TimeLimits(NamedTuple):
    """The limits of a session's times in seconds; 0 is none."""

    statement_s: float = 0.0
    idle_s: float = 0.0
    idle_in_transaction_s: float = 0.0


class OpenPortal(Protocol):
    """A portal that the protocol has bound, as statements see it that name it (FETCH, MOVE).
    `failed` says that it can't be run any more."""

    @property
    def failed(self) -> bool: ...

    @property
    def columns(self) -> Sequence[Column] | None: ...

    def take(self, rows_max: int) -> Sequence[Sequence[Any]]:
        """Return the next rows, [] at the end. Raises what `Portal.fetch` raises."""


class OpenPortals(Protocol):
    """The portals of the connection. `mark` returns a savepoint's mark; `back_to` closes those that
    were bound since."""

    def find(self, name: str) -> OpenPortal | None: ...
    def mark(self) -> int: ...
    def back_to(self, mark: int) -> None: ...


class NoPortals:
    """The portals of a session that nobody binds any to."""

    def find(self, name: str) -> OpenPortal | None:
        return None

    def mark(self) -> int:
        return 0

    def back_to(self, mark: int) -> None:
        """Do nothing: no portal was bound since."""


class Recounted(NamedTuple):
    """The tag of a batch's only statement, which has run again before its client was told (see
    `Session.answer_held`)."""

    tag: str


Report: TypeAlias = Notice | SettingChanged | Deallocated | PortalsClosed | Recounted


class Session(Protocol):
    """The session of one client. It is made when the client was let in; `close` is the last
    call."""

    hurried: bool
    """Set before calls by whoever makes them; only then `WouldBlock` is raised."""
    portals: OpenPortals
    """Set by whoever makes calls, if there are any."""
    answer_held: bool
    """Set before `end_batch`: had the batch one statement only, and was its client not told yet
    what that came to? Then it may come to another count (`Recounted`), or to its error."""

    @property
    def status(self) -> Status: ...

    @property
    def pool(self) -> Pool | None:
        """The memory of the node, of which values of portals are taken."""

    @property
    def settings(self) -> Mapping[str, str]:
        """What clients are told at the start and on every change: `server_version`, `TimeZone` …"""

    @property
    def zone(self) -> ZoneInfo:
        """The TimeZone. The same object as long as no other one is set."""

    @property
    def time_limits(self) -> TimeLimits:
        """The limits as they are set now; read from another thread."""

    def statements(self, text: str) -> Sequence[Any]:
        """Return the statements of a text, told apart and read, not yet looked up; () for an empty
        one."""

    def prepare(self, statement: Any, types: Sequence[WireType | None]) -> Prepared:
        """Look everything up. `types` are those of the first parameters, None where the client left
        one open."""

    def at_bind(self, prepared: Any) -> Prepared:
        """Return what a prepared statement is now: another one for FETCH, which gives what its
        cursor gives."""

    def bind(self, prepared: Any, values: Sequence[Any]) -> Portal:
        """Return a portal over what `prepare` gave. Raises CachedResultChanged if a schema change
        gave it other columns since."""

    def recheck(self, prepared: Any) -> None:
        """Raise CachedResultChanged as `bind` would: a client is about to be told the columns."""

    def declared(self, name: str) -> Sequence[Column] | None:
        """Return the columns of a cursor that a statement has declared (DECLARE), or None if there
        is none."""

    def prepare_next(self, name: str, rows_max: int) -> Prepared:
        """Return a statement that gives the next rows of such a cursor; 0 means all of them."""

    def close_declared(self, name: str) -> None:
        """Close such a cursor, if there is one of that name."""

    def end_batch(self) -> WouldBlock | None: ...

    def fail(self) -> None: ...

    def take_reports(self) -> Sequence[Report]:
        """Return what was to be told since the last call, in order."""

    @property
    def has_notifications(self) -> bool:
        """Whether something waits that was told to a channel that it listens to; asked by any
        thread."""

    def take_notifications(self, bytes_max: int) -> Sequence[Notification]:
        """Return the oldest of what waits, about so many bytes of it; () inside of a block."""

    def cancel(self, reason: Exception) -> None:
        """Make what runs now end soon by raising `reason`, from any thread, at any time. Where
        nothing runs nothing happens, and the next statement is not touched."""

    def close(self) -> None:
        """Roll back and give back everything; raises nothing."""
