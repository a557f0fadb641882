"""DROP TABLE, INDEX and SEQUENCE, and TRUNCATE."""

from __future__ import annotations

from typing import Final

from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.names import listed_name, relation_name
from leasehold.sql.syntax.statement import Reading, Span, names_of
from leasehold.sql.syntax.statements import (
    DropIndex,
    DropSequence,
    DropTable,
    TableNamed,
    Truncate,
)

handles("DropStmt", "objects", "removeType", "behavior", "missing_ok", "concurrent")
handles("TruncateStmt", "relations", "restart_seqs", "behavior")

CASCADE: Final = "DROP_CASCADE"


def read_drop_table(reading: Reading, body: Body) -> tuple[DropTable, ...]:
    """DROP TABLE [IF EXISTS] t, … [RESTRICT | CASCADE]: a statement for each of the tables."""
    named = listed_relations(reading, body)
    exists, cascade = bool(body.get("missing_ok")), body["behavior"] == CASCADE
    names = [name for name, _ in named]
    return tuple(
        DropTable(
            name,
            exists,
            reading.position(word_index),
            cascade,
            tuple(other for other in names if other != name),
        )
        for name, word_index in named
    )


def read_drop_index(reading: Reading, body: Body) -> tuple[DropIndex, ...]:
    """DROP INDEX [CONCURRENTLY] [IF EXISTS] i, … [CASCADE | RESTRICT]: a statement for each."""
    named = listed_relations(reading, body)
    exists, cascade = bool(body.get("missing_ok")), body["behavior"] == CASCADE
    if body.get("concurrent") and len(named) > 1:
        sentence = "DROP INDEX CONCURRENTLY does not support dropping multiple objects"
        reading.refuse(sentence, named[1][1] - 1)
    if body.get("concurrent") and cascade:
        sentence = "DROP INDEX CONCURRENTLY does not support CASCADE"
        reading.refuse(sentence, reading.behind_name(named[0][1]))
    return tuple(
        DropIndex(name, exists, reading.position(word_index), cascade) for name, word_index in named
    )


def read_drop_sequence(reading: Reading, body: Body) -> tuple[DropSequence, ...]:
    """DROP SEQUENCE [IF EXISTS] s, … [CASCADE | RESTRICT]: a statement for each."""
    exists, cascade = bool(body.get("missing_ok")), body["behavior"] == CASCADE
    return tuple(
        DropSequence(name, exists, reading.position(word_index), cascade=cascade)
        for name, word_index in listed_relations(reading, body)
    )


def listed_relations(reading: Reading, body: Body) -> list[tuple[str, int]]:
    """The names, and where each of them stands, which the tree does not tell."""
    reading.read("DropStmt", body)
    first = reading.behind(reading.verb + 2, "concurrently", "if exists")
    spans = reading.listed(Span(first, reading.span.end))
    return [
        (listed_name(reading, names_of(node["List"]["items"]), span.first), span.first)
        for node, span in zip(body["objects"], spans, strict=True)
    ]


def read_truncate(reading: Reading, body: Body) -> Truncate:
    """TRUNCATE [TABLE] [ONLY] t [*], … [RESTART | CONTINUE IDENTITY] [CASCADE | RESTRICT]"""
    reading.read("TruncateStmt", body)
    tables = tuple(_truncated(reading, node["RangeVar"]) for node in body["relations"])
    return Truncate(tables, bool(body.get("restart_seqs")), body["behavior"] == CASCADE)


def _truncated(reading: Reading, body: Body) -> TableNamed:
    name = relation_name(reading, body)
    return TableNamed(name, reading.source.position(body["location"]))
