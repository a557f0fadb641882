"""What a client may say to its session, read but not looked up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from leasehold.sql.syntax.cursor_movement import Movement
from leasehold.sql.syntax.procedural import CodeBlock
from leasehold.sql.syntax.statements import (
    Explain as ExplainChange,
)
from leasehold.sql.syntax.statements import (
    Statement as Change,
)
from leasehold.values.dates import AsOf


@dataclass(frozen=True, slots=True)
class RowStatement:
    """Reads or writes rows: `syntax/reading.py` reads it. `verb`: its first word. `cursor`: what
    EXPLAIN DECLARE says beside its query; blanks stand for it in the statement's text."""

    verb: str
    cursor: DeclareCursor | None = None


@dataclass(frozen=True, slots=True)
class SchemaStatement:
    """A schema change, for the master, or EXPLAIN of one."""

    change: Change

    @property
    def explains(self) -> bool:
        return isinstance(self.change, ExplainChange)


@dataclass(frozen=True, slots=True)
class Modes:
    """The modes of a transaction; None leaves one as it is."""

    isolation: str | None = None
    read_only: bool | None = None
    deferrable: bool | None = None
    as_of: AsOf | None = None


@dataclass(frozen=True, slots=True)
class Begin:
    modes: Modes
    tag: str = "BEGIN"


@dataclass(frozen=True, slots=True)
class Commit:
    chain: bool = False


@dataclass(frozen=True, slots=True)
class Rollback:
    chain: bool = False


@dataclass(frozen=True, slots=True)
class Savepoint:
    name: str


@dataclass(frozen=True, slots=True)
class RollbackTo:
    name: str


@dataclass(frozen=True, slots=True)
class Release:
    name: str


@dataclass(frozen=True, slots=True)
class SetModes:
    """SET TRANSACTION; `ever`: SET SESSION CHARACTERISTICS AS TRANSACTION."""

    modes: Modes
    ever: bool


@dataclass(frozen=True, slots=True)
class SetConstraints:
    """SET CONSTRAINTS; `names` () is ALL."""

    names: tuple[str, ...]
    deferred: bool


@dataclass(frozen=True, slots=True)
class Set:
    """SET. `value` None is DEFAULT; `local`: until the transaction ends."""

    name: str
    value: str | None
    local: bool = False


@dataclass(frozen=True, slots=True)
class Reset:
    """RESET; `name` None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW; `name` None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Discard:
    what: str


@dataclass(frozen=True, slots=True)
class Deallocate:
    name: str | None


@dataclass(frozen=True, slots=True)
class PrepareStatement:
    """PREPARE of a statement, whose text begins behind `begin` characters of this one's own.
    `types` are texts."""

    name: str
    types: tuple[str, ...]
    text: str
    begin: int


@dataclass(frozen=True, slots=True)
class ExecuteStatement:
    """EXECUTE; `arguments` are texts of expressions."""

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LockTables:
    """LOCK TABLE … IN ACCESS SHARE MODE. `tables`: each one's schema, "" = by the search path, and
    name."""

    tables: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class DeclareCursor:
    """DECLARE CURSOR. `begin` is where its query stands in the statement's text, in characters from
    0; `verb` is that one's first word. `scrolls` None: nothing is said of it. `both` are options
    that exclude each other."""

    name: str
    begin: int
    verb: str
    binary: bool = False
    insensitive: bool = False
    scrolls: bool | None = None
    hold: bool = False
    both: str = ""


@dataclass(frozen=True, slots=True)
class Fetch:
    """FETCH, or MOVE (`moves`)."""

    name: str
    movement: Movement
    moves: bool


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """CLOSE; `name` None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Listen:
    channel: str


@dataclass(frozen=True, slots=True)
class Unlisten:
    """UNLISTEN; `channel` None is *."""

    channel: str | None


@dataclass(frozen=True, slots=True)
class Notify:
    channel: str
    payload: str = ""


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """What has no work here and is said by clients as a matter of course: VACUUM, ANALYZE,
    CHECKPOINT."""

    tag: str


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """The options of COPY. `force_quote`, `force_null` and `force_not_null` are columns with their
    positions; None is all."""

    csv: bool = False
    binary: bool = False
    delimiter: str | None = None
    null: str | None = None
    header: bool = False
    header_matches: bool = False
    quote: str | None = None
    escape: str | None = None
    force_quote: tuple[tuple[str, int], ...] | None = ()
    force_null: tuple[tuple[str, int], ...] = ()
    force_not_null: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class CopyIn:
    """COPY … FROM STDIN. `columns` None: all, in order."""

    table: str
    at: int
    columns: tuple[tuple[str, int], ...] | None
    options: CopyOptions


@dataclass(frozen=True, slots=True)
class CopyOut:
    """COPY … TO STDOUT of a table, or of a query (`span`: where it stands in the statement's text,
    characters from 0)."""

    table: str
    at: int
    columns: tuple[tuple[str, int], ...] | None
    options: CopyOptions
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class CreateTableAs:
    """CREATE TABLE … AS of a query, whose text begins behind `begin` characters of the statement's
    own. `with_rows` False: WITH NO DATA. `name` is behind its schema, which is "" for public.
    `temporary`: it is the session's own, and `on_commit` says in SQL what becomes of it then, "" =
    nothing."""

    name: str
    schema: str
    columns: tuple[str, ...]
    query: str
    begin: int
    if_not_exists: bool = False
    with_rows: bool = True
    temporary: bool = False
    on_commit: str = ""


@dataclass(frozen=True, slots=True)
class Do:
    """DO of code that is known. `is_placed`: places in its statements are places in the client's
    text, which has the code as it is meant."""

    block: CodeBlock
    is_placed: bool


Meaning: TypeAlias = (
    RowStatement
    | SchemaStatement
    | Do
    | CreateTableAs
    | Begin
    | Commit
    | Rollback
    | Savepoint
    | RollbackTo
    | Release
    | SetModes
    | SetConstraints
    | Set
    | Reset
    | Show
    | Discard
    | Deallocate
    | PrepareStatement
    | ExecuteStatement
    | LockTables
    | DeclareCursor
    | Fetch
    | CloseCursor
    | Listen
    | Unlisten
    | Notify
    | NothingToDo
    | CopyIn
    | CopyOut
)


class Insertion(NamedTuple):
    """Characters of ours in a text: the first of them is its `position`-th; `length` of them."""

    position: int
    length: int


@dataclass(frozen=True, slots=True)
class SessionStatement:
    """A statement of a client's text, before which stand `offset` characters.

    One whose names were looked up by a search path (`search_path.qualify`) has the schemas in its
    text: `said` is what its client said, `insertions` what was put into the client's text, and
    `called` the names of what it names, each with the one that was said."""

    text: str
    offset: int
    meaning: Meaning
    said: SessionStatement | None = None
    insertions: tuple[Insertion, ...] = ()
    called: tuple[tuple[str, str], ...] = ()

    @property
    def leaves_failed_block(self) -> bool:
        return isinstance(self.meaning, (Commit, Rollback, RollbackTo))

    @property
    def ends_transaction(self) -> bool:
        return isinstance(self.meaning, (Commit, Rollback))
