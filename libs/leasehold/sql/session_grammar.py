"""A client's text → its statements: told apart, each read as far as its session needs to know.

Rows are read and written by `query_grammar.py`, schema changes by `ddl.py`, cursors by
`cursor_grammar.py`, COPY by `copy_grammar.py`; what is none of them is read here, and
what nobody knows is PostgreSQL's syntax error, or 0A000 with a sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final, TypeVar

from leasehold.model.errors import Refused
from leasehold.sql import copy_grammar, cursor_grammar
from leasehold.sql.as_of import as_of_text
from leasehold.sql.ddl import parse_ddl
from leasehold.sql.parse import place_of, placed
from leasehold.sql.query_grammar import read_statement
from leasehold.sql.query_lexer import END, NAME, NUMBER, STRING, WORD, Word, Words, words_of
from leasehold.sql.session_statements import (
    Begin,
    CloseCursor,
    Commit,
    CopyIn,
    CopyOut,
    Deallocate,
    DeclareCursor,
    Discard,
    Fetch,
    Meaning,
    Modes,
    NothingToDo,
    Release,
    Reset,
    Rollback,
    RollbackTo,
    RowStatement,
    Savepoint,
    SchemaStatement,
    SessionStatement,
    Set,
    SetModes,
    Show,
)
from leasehold.values.dates import AsOf

T = TypeVar("T")
KEPT_CHARS_MAX: Final = 4_096
KEPT_TEXTS_MAX: Final = 2_000
_ROWS: Final = frozenset(
    {"select", "selectv", "values", "with", "table", "insert", "update", "delete", "merge", "("}
)
_CHANGES: Final = frozenset({"create", "drop", "alter", "truncate"})
_REFUSED: Final = {
    "prepare": "PREPARE: prepare statements by the protocol, as drivers do; the statement itself",
    "execute": "EXECUTE: prepare statements by the protocol, as drivers do; the statement itself",
    "listen": "LISTEN: subscribe to versions and rows by topic; the statement itself",
    "notify": "NOTIFY",
    "lock": "LOCK: rows are verified at COMMIT, and nothing waits for locks; the statement itself",
    "grant": "GRANT",
    "revoke": "REVOKE",
    "comment": "COMMENT",
    "do": "DO",
    "call": "CALL",
    "cluster": "CLUSTER",
    "reindex": "REINDEX",
    "refresh": "REFRESH",
    "reassign": "REASSIGN",
    "security": "SECURITY LABEL",
    "import": "IMPORT",
    "load": "LOAD",
}


_LEVELS: Final = (
    ("read", "committed"),
    ("read", "uncommitted"),
    ("repeatable", "read"),
    ("snapshot",),
    ("linearizable",),
    ("default",),
)


def read_text(text: str) -> tuple[SessionStatement, ...]:
    """The statements between semicolons, () for none. Raises SyntaxInvalid, FeatureNotSupported and
    OutOfRange with positions in `text`, before any of them has run."""
    return _kept(text) if len(text) <= KEPT_CHARS_MAX else _read(text)


def _read(text: str) -> tuple[SessionStatement, ...]:
    parts = _parts(words_of(text))
    found = [_statement(text, part) for part in parts]
    if len(found) > 1:
        for statement in found:
            if isinstance(statement.meaning, RowStatement):
                _shifted(statement.offset, partial(read_statement, statement.text))
    return tuple(found)


_kept: Final = lru_cache(KEPT_TEXTS_MAX)(_read)


def _parts(words: list[Word]) -> list[list[Word]]:
    parts: list[list[Word]] = [[]]
    for word in words[:-1]:
        if word.source == ";":
            parts[-1].append(Word(END, "", word.at, ""))
            parts.append([])
        else:
            parts[-1].append(word)
    parts[-1].append(words[-1])
    return [part for part in parts if len(part) > 1]


def _statement(text: str, part: list[Word]) -> SessionStatement:
    offset = part[0].at - 1
    own = text[offset : part[-1].at - 1].rstrip()
    words = Words(part)
    first = words.said()
    meaning: Meaning
    if first == "explain" and (at := _explained_cursor(words)) is not None:
        cursor = cursor_grammar.declare(words, offset)
        own = own[: at - 1 - offset].ljust(cursor.begin) + own[cursor.begin :]
        return SessionStatement(own, offset, RowStatement(first, cursor))
    if first in _CHANGES or (first == "explain" and _explains_change(words)):
        meaning = _shifted(offset, lambda: SchemaStatement(parse_ddl(own)))
    elif first in _ROWS or first == "explain":
        meaning = RowStatement(first)
    else:
        meaning = _Grammar(words, offset).statement()
    return SessionStatement(own, offset, meaning)


def _explained_cursor(words: Words) -> int | None:
    """Where DECLARE stands behind EXPLAIN; what follows it is next then. None: it does not."""
    ahead = 4 if words.said(1) == "(" and words.said(2) == "reads" else 1
    if words.said(ahead) != "declare":
        return None
    at = words.peek(ahead).at
    for _ in range(ahead + 1):
        words.advance()
    return at


def _explains_change(words: Words) -> bool:
    ahead = 1
    if words.said(1) == "(" and words.said(2) == "ddl":
        return True
    while words.said(ahead) in ("analyze", "analyse", "verbose"):
        ahead += 1
    return words.said(ahead) in _CHANGES


def shifted(error: Refused, offset: int) -> Refused:
    """The refusal of a statement, said of the text that it is in."""
    if "position" not in error.detail or not offset:
        return error
    return placed(error, place_of(error) + offset)


def _shifted(offset: int, work: Callable[[], T]) -> T:
    try:
        return work()
    except Refused as error:
        raise shifted(error, offset) from None


class _Grammar:
    """`offset`: characters of the text before the statement."""

    def __init__(self, words: Words, offset: int) -> None:
        self.words = words
        self.offset = offset

    def statement(self) -> Meaning:
        words = self.words
        if words.peek().kind != WORD:
            raise words.unexpected()
        first = words.said()
        if first in _REFUSED:
            words.refuse(_REFUSED[first])
        reader = getattr(self, f"_{first}", None) if first in _READ else None
        if reader is None:
            raise words.unexpected()
        words.advance()
        meaning: Meaning = reader()
        if words.peek().kind != END:
            raise words.unexpected()
        return meaning

    # ---------------------------------------------------------- transactions

    def _begin(self) -> Begin:
        self._work()
        return Begin(self._modes())

    def _start(self) -> Begin:
        self.words.expect("transaction")
        return Begin(self._modes(), "START TRANSACTION")

    def _commit(self) -> Commit:
        if self.words.at("prepared"):
            self.words.refuse("two-phase COMMIT PREPARED")
        self._work()
        return Commit(self._chain())

    _end = _commit

    def _rollback(self) -> Rollback | RollbackTo:
        if self.words.at("prepared"):
            self.words.refuse("two-phase ROLLBACK PREPARED")
        self._work()
        if self.words.take("to"):
            self.words.take("savepoint")
            return RollbackTo(self.words.name())
        return Rollback(self._chain())

    _abort = _rollback

    def _savepoint(self) -> Savepoint:
        return Savepoint(self.words.name())

    def _release(self) -> Release:
        self.words.take("savepoint")
        return Release(self.words.name())

    def _work(self) -> None:
        if not self.words.take("transaction"):
            self.words.take("work")

    def _chain(self) -> bool:
        if not self.words.take("and"):
            return False
        no = self.words.take("no")
        self.words.expect("chain")
        return not no

    def _modes(self) -> Modes:
        words = self.words
        isolation: str | None = None
        read_only: bool | None = None
        deferrable: bool | None = None
        as_of: AsOf | None = None
        while words.peek().kind != END:
            if words.take("isolation", "level"):
                isolation = self._level()
            elif words.take("read"):
                read_only = not words.take("write")
                if read_only:
                    words.expect("only")
            elif words.take("deferrable"):
                deferrable = True
            elif words.take("not"):
                words.expect("deferrable")
                deferrable = False
            elif words.take("as", "of"):
                as_of = self._as_of()
            else:
                raise words.unexpected()
            words.take(",")
        return Modes(isolation, read_only, deferrable, as_of)

    def _level(self) -> str:
        """PostgreSQL's, or one of those that it has no word for."""
        words = self.words
        for level in _LEVELS:
            if words.take(*level):
                return " ".join(level)
        words.expect("serializable")
        return "serializable"

    def _as_of(self) -> AsOf:
        words = self.words
        if words.said() in ("timestamp", "timestamptz", "datetime", "lsn"):
            words.advance()
        found = words.peek()
        if found.kind not in (STRING, NUMBER):
            raise words.unexpected()
        words.advance()
        try:
            return as_of_text(found.text)
        except Refused as error:
            raise placed(error, found.at) from None

    # ---------------------------------------------------------- settings

    def _set(self) -> Set | SetModes:
        words = self.words
        if words.take("transaction"):
            if words.at("snapshot"):
                words.refuse("SET TRANSACTION SNAPSHOT")
            return SetModes(self._some_modes(), ever=False)
        if words.take("session", "characteristics"):
            words.expect("as", "transaction")
            return SetModes(self._some_modes(), ever=True)
        local = words.take("local")
        if not local and words.at("session") and words.said(1) not in ("=", "to"):
            words.advance()
        if words.at("role") or words.at("authorization") or words.at("constraints"):
            words.refuse(f"SET {words.said().upper()}")
        if words.take("time"):
            words.expect("zone")
            return Set("timezone", self._zone(), local)
        if words.take("names"):
            value = "UTF8" if words.peek().kind == END else self._value()
            return Set("client_encoding", value, local)
        name = self._setting()
        if name == "verifyretry":
            if not words.take("="):
                words.take("to")
            return Set("leasehold.verifyretry", self._value(), local)
        if not words.take("="):
            words.expect("to")
        return Set(name, self._value(), local)

    def _zone(self) -> str | None:
        words = self.words
        if not words.at("interval"):
            return self._value(("local",))
        words.advance()
        found = words.peek()
        if found.kind != STRING:
            raise words.unexpected()
        words.advance()
        if words.take("hour") and words.take("to"):
            words.expect("minute")
        return f"INTERVAL '{found.text}'"

    def _some_modes(self) -> Modes:
        if self.words.peek().kind == END:
            raise self.words.unexpected()
        return self._modes()

    def _setting(self) -> str:
        name = self.words.label()
        while self.words.take("."):
            name += "." + self.words.label()
        return name.lower()

    def _value(self, also_default: tuple[str, ...] = ()) -> str | None:
        words = self.words
        if words.take("default") or (also_default and words.take(*also_default)):
            return None
        parts = [self._part()]
        while words.take(","):
            parts.append(self._part())
        return ", ".join(parts)

    def _part(self) -> str:
        words = self.words
        sign = "-" if words.take("-") else ""
        if not sign:
            words.take("+")
        found = words.peek()
        if found.kind == NUMBER or (not sign and found.kind in (WORD, STRING)):
            words.advance()
            return sign + found.text
        if found.kind == NAME and not sign:
            words.advance()
            return found.source
        raise words.unexpected()

    def _reset(self) -> Reset:
        words = self.words
        if words.take("all"):
            return Reset(None)
        if words.take("time"):
            words.expect("zone")
            return Reset("timezone")
        if words.take("transaction"):
            words.expect("isolation", "level")
            return Reset("transaction_isolation")
        if words.at("role") or words.take("session", "authorization"):
            words.refuse("RESET ROLE")
        return Reset(self._setting())

    def _show(self) -> Show:
        words = self.words
        if words.take("all"):
            return Show(None)
        if words.take("time"):
            words.expect("zone")
            return Show("timezone")
        if words.take("transaction"):
            words.expect("isolation", "level")
            return Show("transaction_isolation")
        name = self._setting()
        return Show("leasehold.verifyretry" if name == "verifyretry" else name)

    # ---------------------------------------------------------- what a session keeps

    def _discard(self) -> Discard:
        for what in ("all", "plans", "temp", "temporary", "sequences"):
            if self.words.take(what):
                return Discard(what)
        raise self.words.unexpected()

    def _deallocate(self) -> Deallocate:
        self.words.take("prepare")
        return Deallocate(None if self.words.take("all") else self.words.name())

    def _declare(self) -> DeclareCursor:
        return cursor_grammar.declare(self.words, self.offset)

    def _fetch(self) -> Fetch:
        return cursor_grammar.fetch(self.words, moves=False)

    def _move(self) -> Fetch:
        return cursor_grammar.fetch(self.words, moves=True)

    def _close(self) -> CloseCursor:
        return cursor_grammar.close(self.words)

    def _unlisten(self) -> NothingToDo:
        if not self.words.take("*"):
            self.words.name()
        return NothingToDo("UNLISTEN")

    def _checkpoint(self) -> NothingToDo:
        return NothingToDo("CHECKPOINT")

    def _vacuum(self) -> NothingToDo:
        """Nodes give back what is dead by themselves."""
        self._rest_of_upkeep()
        return NothingToDo("VACUUM")

    def _analyze(self) -> NothingToDo:
        self._rest_of_upkeep()
        return NothingToDo("ANALYZE")

    _analyse = _analyze

    def _rest_of_upkeep(self) -> None:
        words = self.words
        if words.take("("):
            while not words.take(")"):
                if words.peek().kind == END:
                    raise words.unexpected()
                words.advance()
        while words.said() in ("full", "freeze", "verbose", "analyze", "analyse"):
            words.advance()
        while words.is_name():
            words.name()
            while words.take("."):
                words.label()
            if words.take("("):
                words.name()
                while words.take(","):
                    words.name()
                words.expect(")")
            if not words.take(","):
                break

    def _copy(self) -> CopyIn | CopyOut:
        return copy_grammar.copy(self.words, self.offset)


_READ: Final = frozenset(
    {
        *("begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release"),
        *("set", "reset", "show", "discard", "deallocate", "unlisten"),
        *("declare", "fetch", "move", "close"),
        *("checkpoint", "vacuum", "analyze", "analyse", "copy"),
    }
)
