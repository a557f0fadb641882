"""BEGIN, COMMIT, ROLLBACK, savepoints, and the modes of a transaction."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Final

from leasehold.model.errors import FeatureNotSupported, Refused
from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.as_of import as_of_text
from leasehold.sql.syntax.marks import Mark
from leasehold.sql.syntax.names import relation_name
from leasehold.sql.syntax.options import read_option
from leasehold.sql.syntax.own_session_words import AS_OF, ISOLATION
from leasehold.sql.syntax.positions import with_position
from leasehold.sql.syntax.session_statements import (
    Begin,
    Commit,
    Modes,
    Release,
    Rollback,
    RollbackTo,
    Savepoint,
    SetConstraints,
)
from leasehold.sql.syntax.statement import Reading
from leasehold.values.dates import AsOf

handles(
    "TransactionStmt",
    *("kind", "options", "savepoint_name", "chain", "location"),
    gid="a two-phase transaction",
)
handles("ConstraintsSetStmt", "constraints", "deferred")
_FIELDS: Final = {"transaction_read_only": "read_only", "transaction_deferrable": "deferrable"}


def set_constraints(reading: Reading, body: Body) -> SetConstraints:
    """SET CONSTRAINTS {ALL | name, …} {DEFERRED | IMMEDIATE}"""
    reading.read("ConstraintsSetStmt", body)
    named = tuple(relation_name(reading, node["RangeVar"]) for node in body.get("constraints", []))
    return SetConstraints(named, bool(body.get("deferred")))


def transaction(
    reading: Reading, body: Body
) -> Begin | Commit | Rollback | Savepoint | RollbackTo | Release:
    kind = body["kind"].removeprefix("TRANS_STMT_")
    if kind in ("PREPARE", "COMMIT_PREPARED", "ROLLBACK_PREPARED"):
        said = "PREPARE TRANSACTION" if kind == "PREPARE" else kind.replace("_", " ")
        first = reading.span.first
        word_index = first if kind == "PREPARE" else reading.next(first, "prepared")
        reading.refuse(f"two-phase {said} is not supported", word_index)
    reading.read("TransactionStmt", body)
    match kind:
        case "BEGIN" | "START":
            found = modes(reading, body.get("options", []), reading.parsed.marks)
            return Begin(found) if kind == "BEGIN" else Begin(found, "START TRANSACTION")
        case "COMMIT":
            return Commit(bool(body.get("chain")))
        case "ROLLBACK":
            return Rollback(bool(body.get("chain")))
        case "SAVEPOINT":
            return Savepoint(body["savepoint_name"])
        case "ROLLBACK_TO":
            return RollbackTo(body["savepoint_name"])
        case "RELEASE":
            return Release(body["savepoint_name"])
    raise FeatureNotSupported(f"{kind} is not supported", position=reading.offset + 1)


def modes(reading: Reading, options: list[Any], own: Iterable[Mark]) -> Modes:
    """Return the modes of a transaction. `own` are those that PostgreSQL has no words for. What is
    said twice is as it was said last."""
    said: list[tuple[int, str, Any]] = [
        _own_mode(reading, mark) for mark in own if mark.kind in (ISOLATION, AS_OF)
    ]
    for node in options:
        body = node["DefElem"]
        name = read_option(reading.source, body)
        value = body["arg"]["A_Const"]
        if name == "transaction_isolation":
            said.append((body["location"], "isolation", value["sval"]["sval"]))
        else:
            said.append((body["location"], _FIELDS[name], bool(value["ival"].get("ival"))))
    return Modes(**{name: value for _, name, value in sorted(said, key=itemgetter(0))})


def _own_mode(reading: Reading, mark: Mark) -> tuple[int, str, Any]:
    """Return where the mode stands, its name and what it says."""
    if mark.kind == ISOLATION:
        return mark.begin, "isolation", mark.tokens[-1].word
    return mark.begin, "as_of", _context(reading, mark)


def _context(reading: Reading, mark: Mark) -> AsOf:
    token = mark.tokens[-1]
    text = token.word
    if text.startswith("'"):
        text = text[1:-1].replace("''", "'")
    try:
        return as_of_text(text)
    except Refused as error:
        raise with_position(error, reading.source.position(token.begin)) from None
