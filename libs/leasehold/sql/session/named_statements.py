"""PREPARE and EXECUTE as statements of SQL's, and LOCK TABLE."""

from __future__ import annotations

from typing import Final

from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.left_out import TABLE_LOCKS, refuse_left_out
from leasehold.sql.syntax.session_statements import (
    ExecuteStatement,
    LockTables,
    PrepareStatement,
)
from leasehold.sql.syntax.statement import Reading, Span

handles("PrepareStmt", "name", "argtypes", "query")
handles("ExecuteStmt", "name", "params")
handles("LockStmt", "relations", "mode", "nowait")

_ACCESS_SHARE: Final = 1
"""PostgreSQL's number of the mode that its SELECT takes."""


def read_prepare(reading: Reading, body: Body) -> PrepareStatement:
    """PREPARE name [(type, …)] AS statement"""
    reading.read("PrepareStmt", body)
    word_index = reading.behind_name(reading.span.first + 1)
    types: tuple[str, ...] = ()
    if reading.word(word_index) == "(":
        types = _listed(reading, word_index)
        word_index = reading.closed(word_index)
    first = reading.next(word_index, "as") + 1
    return PrepareStatement(
        body["name"],
        types,
        _text(reading, Span(first, reading.span.end)),
        reading.position(first) - 1 - reading.offset,
    )


def read_execute(reading: Reading, body: Body) -> ExecuteStatement:
    """EXECUTE name [(expression, …)]"""
    reading.read("ExecuteStmt", body)
    word_index = reading.behind_name(reading.span.first + 1)
    values = _listed(reading, word_index) if body.get("params") else ()
    return ExecuteStatement(body["name"], values)


def read_lock(reading: Reading, body: Body) -> LockTables:
    """LOCK [TABLE] table, … IN ACCESS SHARE MODE [NOWAIT]"""
    reading.read("LockStmt", body)
    if body["mode"] != _ACCESS_SHARE:
        refuse_left_out(TABLE_LOCKS, reading.offset + 1)
    relations = [each["RangeVar"] for each in body["relations"]]
    return LockTables(tuple((one.get("schemaname", ""), one["relname"]) for one in relations))


def _listed(reading: Reading, opening: int) -> tuple[str, ...]:
    """Return the texts of what stands between commas in the parenthesis that opens there."""
    return tuple(_text(reading, span) for span in reading.listed(reading.within(opening)))


def _text(reading: Reading, span: Span) -> str:
    tokens = reading.tokens
    begin, end = tokens[span.first].begin, tokens[span.end - 1].end
    return reading.source.encoded[begin:end].decode()
