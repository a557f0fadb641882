"""A session for tests of the protocol: a few statements of its own, the rest over SQLite.

It knows enough to be talked to by real clients, and nothing of what SQL means: parameters and
results are of the type that a cast (`$1::integer`), a column's declaration or a literal tells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from threading import Event
from typing import Any

import apsw
import apsw.ext

from leasehold.adapters.os.memory_pool import MemoryPool
from leasehold.model.errors import (
    DivisionByZero,
    DuplicateKey,
    FeatureNotSupported,
    SyntaxInvalid,
    UnknownTable,
)
from leasehold.pgwire.copy.format import CopyFormat
from leasehold.pgwire.session import (
    Column,
    CopySource,
    CopyTarget,
    Deallocated,
    Fetched,
    NoPortals,
    Notice,
    OpenPortals,
    Portal,
    PortalsClosed,
    Report,
    SettingChanged,
    Status,
    TimeLimits,
    WouldBlock,
)
from leasehold.pgwire.values.decoding import make_input
from leasehold.pgwire.wire_errors import CachedResultChanged, InFailedTransaction
from leasehold.replica.notifications import Told
from leasehold.values.declared import BY_NAME
from leasehold.values.oids import WireType
from leasehold.values.time_zone import zone_of
from leasehold.values.types import SYNONYMS, Type, array_of, type_with

SETTINGS = {
    "server_version": "15.0",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "is_superuser": "on",
    "session_authorization": "leasehold",
    "application_name": "",
    "in_hot_standby": "off",
    "default_transaction_read_only": "off",
}
INT = Type("integer")
BIGINT = Type("bigint")
TEXT = Type("text")
_PIECES = re.compile(r"('(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|;)")
_ITEM = re.compile(
    r"(?:\$(?P<n>\d+)|'(?P<text>(?:[^']|'')*)'|(?P<int>-?\d+))"
    r"(?:::(?P<type>(?!as )"
    r"[a-z_\"0-9]+(?: precision)?(?:\([\d, ]+\))?(?:\[\])?))?(?: as (?P<name>\w+))?\s*"
)
_SET = re.compile(r"(?:session |local )?(\w+)\s*(?:=|to|\s)\s*'?([^']*)'?", re.IGNORECASE)
_COPY = re.compile(
    r"copy\s+(\w+)\s*(?:\(([^)]*)\))?\s+from stdin\s*(.*)", re.IGNORECASE | re.DOTALL
)
_BLOCK = {
    "begin": "BEGIN",
    "start": "START TRANSACTION",
    "commit": "COMMIT",
    "end": "COMMIT",
    "rollback": "ROLLBACK",
    "abort": "ROLLBACK",
}
_NOTHING = {
    "vacuum": "VACUUM",
    "truncate": "TRUNCATE TABLE",
    "alter": "ALTER TABLE",
    "savepoint": "SAVEPOINT",
    "release": "RELEASE",
    "unlisten": "UNLISTEN",
    "reset": "RESET",
}


@dataclass
class Shared:
    """Of all sessions of one server. `release` lets every `select wait()` go on."""

    path: str = ""
    release: Event = field(default_factory=Event)
    waiting: Event = field(default_factory=Event)
    gone: Event = field(default_factory=Event)
    fetching: Event = field(default_factory=Event)
    pool: MemoryPool = field(default_factory=lambda: MemoryPool(1 << 30))
    opened: int = 0
    closed: int = 0
    fetched: int = 0
    version: int = 1
    time_limits: TimeLimits = TimeLimits()
    reluctant: Callable[[], bool] = lambda: False


def type_named(text: str) -> WireType:
    name, _, modifiers = text.removesuffix("[]").partition("(")
    name = SYNONYMS.get(name.strip(), name.strip())
    numbers = [int(part) for part in modifiers.rstrip(")").split(",") if part.strip()]
    assert name in BY_NAME, text
    kind = type_with(name, numbers) if numbers else Type(name)
    return array_of(kind) if text.endswith("[]") else kind


@dataclass
class SmallPrepared:
    text: str
    parameters: Sequence[WireType]
    columns: Sequence[Column] | None
    run: Callable[[Sequence[Any]], tuple[Iterator[Sequence[Any]], str]]
    ends_transaction: bool = False
    leaves_failed_block: bool = False
    copy: CopyTarget | None = None
    copies: CopySource | None = None
    binary: bool = False
    answers_whole: bool = False
    version: int = 0


class SmallPortal:
    def __init__(
        self,
        prepared: SmallPrepared,
        values: Sequence[Any],
        session: SmallSession,
    ) -> None:
        self._prepared, self._values, self._shared = prepared, values, session.shared
        self._session = session
        self._rows: Iterator[Sequence[Any]] | None = None
        self._ahead: list[Sequence[Any]] = []  # one, to know the end as soon as it is there
        self._tag = ""
        self._open = session.open_portals
        self._open.add(id(self))

    @property
    def copy(self) -> CopyTarget | None:
        return self._prepared.copy

    def fetch(self, rows_max: int) -> Fetched:
        self._session.may_wait(self._rows is not None)
        if self._rows is None:
            self._rows, self._tag = self._prepared.run(self._values)
        rows = [*self._ahead, *islice(self._rows, rows_max + 1 - len(self._ahead))]
        self._ahead = rows[rows_max:]
        self._shared.fetched += len(rows)
        self._shared.fetching.set()
        return Fetched(rows[:rows_max], None if self._ahead else self._tag)

    def close(self) -> None:
        self._open.discard(id(self))

    def rest(self, *, wholly: bool) -> None:
        self._session.calls.append("rest" if wholly else "rest if there is room")


class SmallCopy:
    def __init__(self, table: str, columns: Sequence[Column], how: CopyFormat, db: Any) -> None:
        self.table, self.columns, self.format = table, columns, how
        self.count = 0
        self._db = db
        marks = ",".join("?" * len(columns))
        self._insert = f"INSERT INTO {table} ({','.join(c.name for c in columns)}) VALUES ({marks})"

    def take(self, rows: Sequence[Sequence[Any]]) -> None:
        self._db.executemany(self._insert, rows)
        self.count += len(rows)


class SmallSession:
    def __init__(self, shared: Shared, user: str = "leasehold", name: str = "") -> None:
        self.shared = shared
        shared.opened += 1
        self.hurried = False
        self.answer_held = False
        self.portals: OpenPortals = NoPortals()
        self.pool = shared.pool
        self.status = Status.IDLE
        self.settings: dict[str, str] = {**SETTINGS, "session_authorization": user}
        if name:
            self.settings["application_name"] = name
        self.zone = zone_of("UTC")
        self.reports: list[Report] = []
        self.notifications: list[Told] = []
        self.calls: list[str] = []
        self.open_portals: set[int] = set()
        self._cancelled: Exception | None = None
        self._db = apsw.Connection(shared.path or ":memory:")
        self._db.set_busy_timeout(30_000)

    @property
    def time_limits(self) -> TimeLimits:
        return self.shared.time_limits

    # --- the port ----------------------------------------------------------------------------

    def statements(self, text: str) -> Sequence[str]:
        self.may_wait(False)
        pieces = [""]
        for piece in _PIECES.split(text):
            if piece == ";":
                pieces.append("")
            elif not piece.startswith("--"):
                pieces[-1] += piece
        found = [piece.strip() for piece in pieces if piece.strip()]
        for piece in found:
            if piece.startswith("syntax"):
                at = text.index("syntax") + 1
                raise SyntaxInvalid('syntax error at or near "syntax"', position=at)
        return found

    def prepare(self, statement: str, types: Sequence[WireType | None]) -> SmallPrepared:
        self.may_wait(False)
        self.calls.append(f"prepare {statement}")
        word = re.split(r"\W", statement.lower(), maxsplit=1)[0]
        exits = word in ("commit", "end", "rollback", "abort")
        if self.status is Status.FAILED and not exits:
            raise InFailedTransaction
        prepared = self._prepared(statement, word, types)
        prepared.leaves_failed_block = exits
        prepared.ends_transaction = exits and " to " not in statement.lower()
        prepared.version = self.shared.version
        return prepared

    def at_bind(self, prepared: SmallPrepared) -> SmallPrepared:
        return prepared

    def bind(self, prepared: SmallPrepared, values: Sequence[Any]) -> Portal:
        self.may_wait(False)
        self.recheck(prepared)
        if prepared.text == "select 1/0":  # which is found out while it is planned
            raise DivisionByZero("division by zero")
        return SmallPortal(prepared, values, self)

    def recheck(self, prepared: SmallPrepared) -> None:
        if "changing" in prepared.text and prepared.version != self.shared.version:
            raise CachedResultChanged("cached plan must not change result type")

    def declared(self, name: str) -> Sequence[Column] | None:
        return None

    def prepare_next(self, name: str, rows_max: int) -> SmallPrepared:
        raise AssertionError("there are no cursors here")

    def close_declared(self, name: str) -> None:
        pass

    def end_batch(self) -> WouldBlock | None:
        self.may_wait(False)
        self.calls.append("end_batch")
        if self.status is Status.IDLE and self._db.in_transaction:
            self._db.execute("COMMIT")
        return None

    def fail(self) -> None:
        self.calls.append("fail")
        if self.status is Status.IDLE:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        else:
            self.status = Status.FAILED

    def take_reports(self) -> Sequence[Report]:
        reports, self.reports = self.reports, []
        return reports

    @property
    def has_notifications(self) -> bool:
        return bool(self.notifications)

    def take_notifications(self, bytes_max: int) -> Sequence[Told]:
        if self.status is not Status.IDLE:
            return ()
        taken, self.notifications = self.notifications[:1], self.notifications[1:]
        return taken

    def cancel(self, reason: Exception) -> None:
        self._cancelled = reason
        self.shared.release.set()

    def close(self) -> None:
        assert not self.open_portals, "every portal is closed before its session"
        self._db.close()
        self.shared.closed += 1
        self.shared.gone.set()

    # --- statements of its own ---------------------------------------------------------------

    def _prepared(self, text: str, word: str, types: Sequence[WireType | None]) -> SmallPrepared:
        lower = text.lower()
        if word in _BLOCK and " to " not in lower:
            return SmallPrepared(text, (), None, lambda values: self._block(_BLOCK[word], text))
        if word == "rollback":
            return SmallPrepared(text, (), None, lambda values: self._back_to_savepoint())
        if word in _NOTHING:
            tag = _NOTHING[word]
            return SmallPrepared(text, (), None, lambda values: (iter(()), tag))
        if word in ("set", "show", "deallocate", "close"):
            return self._of_session(text, word)
        if word == "copy":
            return self._copy(text)
        if lower.startswith("select wait("):
            return SmallPrepared(text, (), [Column("wait", TEXT)], lambda values: self._wait())
        found = re.fullmatch(r"select \* from changing", lower)
        if found:
            columns = [Column(f"c{n}", INT) for n in range(self.shared.version)]
            numbers = [tuple(range(self.shared.version))]
            return SmallPrepared(text, (), columns, lambda values: (iter(numbers), "SELECT"))
        found = re.fullmatch(r"select (?:\* from )?generate_series\((-?\d+), ?(-?\d+)\)", lower)
        if found:
            low, high = int(found[1]), int(found[2])
            columns = [Column("generate_series", INT)]
            return SmallPrepared(
                text, (), columns, lambda values: (((n,) for n in range(low, high + 1)), "SELECT")
            )
        if lower == "select 1/0":
            return SmallPrepared(text, (), [Column("?column?", INT)], _divide)
        items = self._items(text) if lower.startswith("select") else None
        if items is not None:
            return self._echo(text, items, types)
        if lower == "select 1/(select 0)":
            return SmallPrepared(text, (), [Column("?column?", INT)], _divide)
        if lower == "select defect($1)":
            return SmallPrepared(text, [TEXT], [Column("defect", TEXT)], _defect)
        if lower == "select notice":
            return SmallPrepared(text, (), [Column("?column?", INT)], lambda values: self._notice())
        if lower.startswith(("select pg_catalog.version", "select version")):
            row = ("PostgreSQL 15.0 (a small session)",)
            return SmallPrepared(
                text, (), [Column("version", TEXT)], lambda values: (iter([row]), "SELECT")
            )
        if lower.startswith("select pg_advisory_unlock_all"):
            column = Column("pg_advisory_unlock_all", Type("void"))
            return SmallPrepared(text, (), [column], lambda values: (iter([("",)]), "SELECT"))
        return self._sqlite(text, word, types)

    def _block(self, tag: str, text: str) -> tuple[Iterator[Any], str]:
        if tag in ("BEGIN", "START TRANSACTION"):
            if self.status is not Status.IDLE:
                self.reports.append(
                    Notice("WARNING", "25001", "there is already a transaction in progress")
                )
            self.status = Status.BLOCK
            return iter(()), tag
        failed = self.status is Status.FAILED
        if self.status is Status.IDLE:
            self.reports.append(Notice("WARNING", "25P01", "there is no transaction in progress"))
        if self._db.in_transaction:
            self._db.execute("ROLLBACK" if failed else tag)
        self.status = Status.IDLE
        return iter(()), "ROLLBACK" if failed else tag

    def _back_to_savepoint(self) -> tuple[Iterator[Any], str]:
        self.status = Status.BLOCK
        return iter(()), "ROLLBACK"

    def _of_session(self, text: str, word: str) -> SmallPrepared:
        rest = text[len(word) :].strip()
        if word == "show":
            name = next((n for n in self.settings if n.lower() == rest.lower()), "")
            value = self.settings.get(name, "read committed" if "isolation" in rest else "")
            column = Column(rest.lower().replace(" ", "_"), TEXT)
            return SmallPrepared(text, (), [column], lambda values: (iter([(value,)]), "SHOW"))

        def run(values: Sequence[Any]) -> tuple[Iterator[Any], str]:
            if word == "deallocate":
                name = rest.strip('"')
                self.reports.append(Deallocated(None if name.lower() == "all" else name))
                return iter(()), "DEALLOCATE ALL" if name.lower() == "all" else "DEALLOCATE"
            if word == "close":
                self.reports.append(PortalsClosed(None if rest.lower() == "all" else rest))
                return iter(()), "CLOSE CURSOR ALL"
            found = re.match(
                r"(?:session |local )?(\w+)\s*(?:=|to|\s)\s*'?([^']*)'?", rest, re.IGNORECASE
            )
            assert found is not None, text
            name = next((n for n in self.settings if n.lower() == found[1].lower()), found[1])
            if name in self.settings:
                self.settings[name] = found[2]
                self.reports.append(SettingChanged(name, found[2]))
            return iter(()), "SET"

        return SmallPrepared(text, (), None, run)

    def _copy(self, text: str) -> SmallPrepared:
        found = re.match(
            r"copy\s+(\w+)\s*(?:\(([^)]*)\))?\s+from stdin\s*(.*)", text, re.IGNORECASE | re.DOTALL
        )
        if found is None:
            raise FeatureNotSupported("only COPY … FROM STDIN is supported")
        columns = self._table(found[1])
        if found[2]:
            named = [name.strip() for name in found[2].split(",")]
            columns = [column for name in named for column in columns if column.name == name]
        options = found[3].lower()
        how = CopyFormat(csv="csv" in options, header="header" in options)
        target = SmallCopy(found[1], columns, how, self._db)

        def run(values: Sequence[Any]) -> tuple[Iterator[Any], str]:
            return iter(()), f"COPY {target.count}"

        self._begin()
        return SmallPrepared(text, (), None, run, copy=target)

    def may_wait(self, surely: bool = True) -> None:
        """In a hurry what surely waits is called again by a worker, and so is what `reluctant` says
        so of."""
        if self.hurried and (surely or self.shared.reluctant()):
            raise WouldBlock

    def _wait(self) -> tuple[Iterator[Any], str]:
        self.may_wait()
        self.shared.waiting.set()
        assert self.shared.release.wait(60), "nobody let it go on"
        if self._cancelled is not None:
            reason, self._cancelled = self._cancelled, None
            raise reason
        return iter([("done",)]), "SELECT"

    def _notice(self) -> tuple[Iterator[Any], str]:
        self.reports.append(Notice("NOTICE", "00000", "look here", {"hint": "or there"}))
        return iter([(1,)]), "SELECT"

    def _items(self, text: str) -> list[re.Match[str]] | None:
        items, at = [], len("select ")
        while True:
            found = _ITEM.match(text, at)
            if found is None:
                return None
            items.append(found)
            if found.end() == len(text):
                return items
            if text[found.end()] != ",":
                return None
            at = found.end() + 1
            while text[at : at + 1] == " ":
                at += 1

    def _echo(
        self, text: str, items: list[re.Match[str]], types: Sequence[WireType | None]
    ) -> SmallPrepared:
        parameters: dict[int, WireType] = {
            n: kind for n, kind in enumerate(types, 1) if kind is not None
        }
        columns, values = [], []
        for item in items:
            kind: WireType = type_named(item["type"]) if item["type"] else TEXT
            if item["int"] and not item["type"]:
                kind = INT
            if item["n"]:
                n = int(item["n"])
                kind = kind if item["type"] else parameters.get(n, TEXT)
                parameters.setdefault(n, kind)
                values.append((n, None))
            else:
                raw = item["int"] or (item["text"] or "").replace("''", "'")
                values.append((0, make_input(kind, self.zone)(raw)))
            columns.append(Column(item["name"] or "?column?", kind))
        count = max(parameters, default=0)

        def run(given: Sequence[Any]) -> tuple[Iterator[Any], str]:
            return iter([tuple(given[n - 1] if n else value for n, value in values)]), "SELECT"

        return SmallPrepared(
            text, [parameters.get(n, TEXT) for n in range(1, count + 1)], columns, run
        )

    # --- the rest over SQLite ----------------------------------------------------------------

    def _begin(self) -> None:
        if not self._db.in_transaction:
            self._db.execute("BEGIN")

    def _table(self, name: str) -> list[Column]:
        rows = self._db.execute(f"SELECT name, type FROM pragma_table_info('{name}')").fetchall()
        if not rows:
            raise UnknownTable(f'relation "{name}" does not exist', position=13)
        return [Column(str(n), _declared(str(t)), 16384, i) for i, (n, t) in enumerate(rows, 1)]

    def _sqlite(self, text: str, word: str, types: Sequence[WireType | None]) -> SmallPrepared:
        if word == "drop" and "," in text:
            names = text.lower().removeprefix("drop table if exists").split(",")
            return SmallPrepared(text, (), None, lambda values: self._drop(names))
        sql = re.sub(r"with \(fillfactor=\d+\)|::[a-z]+", "", text)
        cast = dict(re.findall(r"\$(\d+)::([a-z0-9]+)", text))
        sql = re.sub(r"\$(\d+)", r"?\1", sql)
        count = max((int(n) for n in re.findall(r"\$(\d+)", text)), default=0)
        parameters: list[WireType] = []
        for n in range(1, count + 1):
            given = types[n - 1] if n <= len(types) else None
            parameters.append(given or (type_named(cast[str(n)]) if str(n) in cast else TEXT))
        self._begin()
        try:
            info = apsw.ext.query_info(self._db, sql)
        except apsw.SQLError as error:
            if "no such table" in str(error):
                raise UnknownTable(str(error)) from None
            raise SyntaxInvalid(str(error)) from None
        described = [Column(name, _declared(kind)) for name, kind in info.description]
        columns = described or None

        def run(values: Sequence[Any]) -> tuple[Iterator[Any], str]:
            self._begin()
            try:
                before = self._db.total_changes()
                rows = self._db.execute(sql, tuple(values)).fetchall()
            except apsw.ConstraintError:
                raise DuplicateKey(
                    "duplicate key value violates unique constraint",
                    table="t",
                    constraint="t_pkey",
                    detail="Key (id)=(1) already exists.",
                ) from None
            changed = self._db.total_changes() - before
            tags: Mapping[str, str] = {
                "insert": f"INSERT 0 {changed}",
                "update": f"UPDATE {changed}",
                "delete": f"DELETE {changed}",
                "create": "CREATE TABLE",
                "drop": "DROP TABLE",
            }
            return iter(rows), tags.get(word, "SELECT")

        return SmallPrepared(text, parameters, columns, run)

    def _drop(self, names: list[str]) -> tuple[Iterator[Any], str]:
        for name in names:
            self._db.execute(f"DROP TABLE IF EXISTS {name}")
        return iter(()), "DROP TABLE"


def _declared(kind: str | None) -> WireType:
    return type_named((kind or "text").lower()) if kind else TEXT


def _divide(values: Sequence[Any]) -> tuple[Iterator[Any], str]:
    raise DivisionByZero("division by zero")


def _defect(values: Sequence[Any]) -> tuple[Iterator[Any], str]:
    raise RuntimeError(f"the values are {values}")
