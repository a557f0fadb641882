"""A client's text → its statements: told apart, each read as far as its session needs to know.

What reads or writes rows is read further where it is planned; a text of several statements has each
of them read at once, so that what is wrong with the last is said before the first one runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from leasehold.model.errors import FeatureNotSupported, Refused
from leasehold.sql.ddl.schema_statements import (
    CHANGE_KINDS,
    STATEMENT_BYTES_MAX,
    parse_ddl,
    schema_statements,
)
from leasehold.sql.session.copying import copied
from leasehold.sql.session.cursors import declared, explained_cursor, fetched
from leasehold.sql.session.do_code import read_do
from leasehold.sql.session.named_statements import read_execute, read_lock, read_prepare
from leasehold.sql.session.search_path import shift_back
from leasehold.sql.session.settings import set_or_reset, shown
from leasehold.sql.session.table_as import read_create_table_as
from leasehold.sql.session.transactions import set_constraints, transaction
from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.parsing import parse
from leasehold.sql.syntax.positions import position_of, with_position
from leasehold.sql.syntax.reading import statement_of
from leasehold.sql.syntax.session_statements import (
    CloseCursor,
    Deallocate,
    Discard,
    Listen,
    Meaning,
    NothingToDo,
    Notify,
    RowStatement,
    SchemaStatement,
    SessionStatement,
    Unlisten,
)
from leasehold.sql.syntax.statement import Reading, Words

KEPT_CHARS_MAX: Final = 4_096
KEPT_TEXTS_MAX: Final = 2_000

handles("DiscardStmt", "target")
handles("DeallocateStmt", "name", "isall", "location")
handles("ClosePortalStmt", "portalname")
handles("ListenStmt", "conditionname")
handles("UnlistenStmt", "conditionname")
handles("NotifyStmt", "conditionname", "payload")
handles("CheckPointStmt")
handles("VacuumStmt", "options", "rels", "is_vacuumcmd")

_ROWS: Final = frozenset({"SelectStmt", "InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt"})
_CHANGES: Final = frozenset({"create", "drop", "alter", "truncate"})
_REFUSED: Final = {"security": "SECURITY LABEL"}


def read_text(text: str) -> tuple[SessionStatement, ...]:
    """The statements between semicolons, () for none. Raises SyntaxInvalid, FeatureNotSupported and
    OutOfRange with positions in `text`, before any of them has run."""
    return _kept(text) if len(text) <= KEPT_CHARS_MAX else _read(text)


def _read(text: str) -> tuple[SessionStatement, ...]:
    parsed = parse(text)
    if not parsed:
        return ()
    words = Words(parsed[0].source)
    readings = [Reading(one, words) for one in parsed]
    found = [_statement(reading) for reading in readings]
    if len(found) > 1:
        for reading, statement in zip(readings, found, strict=True):
            if isinstance(statement.meaning, RowStatement) and statement.meaning.cursor is None:
                statement_of(reading.parsed)
    return tuple(found)


_kept: Final = lru_cache(KEPT_TEXTS_MAX)(_read)


def _statement(reading: Reading) -> SessionStatement:
    text, offset = reading.parsed.text, reading.offset
    kind, body = reading.parsed.kind, reading.parsed.body
    if kind == "ExplainStmt" and "DeclareCursorStmt" in body["query"]:
        cursor, text = explained_cursor(reading, body["query"]["DeclareCursorStmt"], text)
        return SessionStatement(text, offset, RowStatement("explain", cursor))
    return SessionStatement(text, offset, _meaning(reading, kind, body, text))


def _meaning(reading: Reading, kind: str, body: Body, text: str) -> Meaning:
    if kind in _ROWS:
        return RowStatement(first_word(text))
    if kind == "CreateTableAsStmt" and body["objtype"] == "OBJECT_TABLE":
        return read_create_table_as(reading, body)
    converter = _CONVERTERS.get(kind)
    if converter is not None:
        return converter(reading, body)
    if kind == "ExplainStmt":
        return RowStatement("explain")
    if kind in CHANGE_KINDS or reading.word(reading.verb) in _CHANGES:
        return _schema(reading, text)
    first = reading.word(reading.span.first)
    raise FeatureNotSupported(
        f"{_REFUSED.get(first, first.upper()):.200} is not supported", position=reading.offset + 1
    )


def _schema(reading: Reading, text: str) -> SchemaStatement:
    """The places in a schema change count in its own text, which goes to the master alone."""
    offset = reading.offset
    if not offset and len(text.encode()) <= STATEMENT_BYTES_MAX:
        return SchemaStatement(schema_statements(reading)[0])
    try:
        return SchemaStatement(parse_ddl(text))
    except Refused as error:
        raise shifted(error, offset) from None


def first_word(text: str) -> str:
    """Return the first word of a statement that has no comment before it, in lower case, or a
    parenthesis."""
    end = 0
    while end < len(text) and text[end].isalpha():
        end += 1
    return text[: max(end, 1)].lower()


def shifted(error: Refused, offset: int) -> Refused:
    """The refusal of a statement, said of the text that it is in."""
    if "position" not in error.detail or not offset:
        return error
    return with_position(error, position_of(error) + offset)


def as_said(error: Refused, statement: SessionStatement) -> Refused:
    """The refusal of a statement, said of the client's text and in its words."""
    error = shifted(error, statement.offset)
    for named, said in statement.called:
        error.message = error.message.replace(f'"{named}"', f'"{said}"')
        error.message = error.message.replace(f"'{named}'", f"'{said}'")
    if not statement.insertions or "position" not in error.detail:
        return error
    return with_position(error, shift_back(position_of(error), statement.insertions))


# ------------------------------------------------------------------ what a session keeps


def _discard(reading: Reading, body: Body) -> Discard:
    reading.read("DiscardStmt", body)
    return Discard(str(body["target"]).removeprefix("DISCARD_").lower())


def _deallocate(reading: Reading, body: Body) -> Deallocate:
    reading.read("DeallocateStmt", body)
    return Deallocate(None if body.get("isall") else body["name"])


def _close(reading: Reading, body: Body) -> CloseCursor:
    reading.read("ClosePortalStmt", body)
    return CloseCursor(body.get("portalname"))


# ------------------------------------------------------------------ what is told to others


def _listen(reading: Reading, body: Body) -> Listen:
    reading.read("ListenStmt", body)
    return Listen(body["conditionname"])


def _unlisten(reading: Reading, body: Body) -> Unlisten:
    reading.read("UnlistenStmt", body)
    return Unlisten(body.get("conditionname"))


def _notify(reading: Reading, body: Body) -> Notify:
    reading.read("NotifyStmt", body)
    return Notify(body["conditionname"], body.get("payload", ""))


# ------------------------------------------------------------------ what has no work here


def _checkpoint(reading: Reading, body: Body) -> NothingToDo:
    reading.read("CheckPointStmt", body)
    return NothingToDo("CHECKPOINT")


def _vacuum(reading: Reading, body: Body) -> NothingToDo:
    """Nodes give back what is dead by themselves, whatever the options say."""
    reading.read("VacuumStmt", body)
    return NothingToDo("VACUUM" if body.get("is_vacuumcmd") else "ANALYZE")


_CONVERTERS: Final[Mapping[str, Callable[[Reading, Body], Meaning]]] = {
    "TransactionStmt": transaction,
    "ConstraintsSetStmt": set_constraints,
    "VariableSetStmt": set_or_reset,
    "VariableShowStmt": shown,
    "DiscardStmt": _discard,
    "DeallocateStmt": _deallocate,
    "PrepareStmt": read_prepare,
    "ExecuteStmt": read_execute,
    "LockStmt": read_lock,
    "DeclareCursorStmt": declared,
    "FetchStmt": fetched,
    "ClosePortalStmt": _close,
    "ListenStmt": _listen,
    "UnlistenStmt": _unlisten,
    "NotifyStmt": _notify,
    "CheckPointStmt": _checkpoint,
    "VacuumStmt": _vacuum,
    "CopyStmt": copied,
    "DoStmt": lambda reading, body: read_do(reading, body, read_text),
}
