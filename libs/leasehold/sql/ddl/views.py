"""CREATE VIEW and DROP VIEW."""

from __future__ import annotations

from typing import Final

from leasehold.sql.ddl.drops import CASCADE, listed_relations
from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.names import relation_name
from leasehold.sql.syntax.statement import Reading, Span, names_of
from leasehold.sql.syntax.statements import CreateView, DropView

handles(
    "ViewStmt",
    *("view", "query", "replace", "aliases", "withCheckOption"),
    options="WITH (…) of a view",
)
_NO_CHECK: Final = "NO_CHECK_OPTION"


def read_create_view(reading: Reading, body: Body) -> CreateView:
    """CREATE [OR REPLACE] VIEW name [(columns)] AS query"""
    reading.read("ViewStmt", body)
    if body.get("withCheckOption", _NO_CHECK) != _NO_CHECK:
        reading.refuse(
            "WITH CHECK OPTION is not supported: views are only read here, write to their tables",
            reading.next(reading.verb, "with"),
        )
    kind = reading.behind(reading.verb + 1, "or replace")
    if reading.word(kind) == "recursive":
        reading.refuse(
            "CREATE RECURSIVE VIEW is not supported: CREATE VIEW … AS WITH RECURSIVE is", kind
        )
    name = relation_name(reading, body["view"])
    first = reading.at(body["view"]["location"])
    word_index = reading.behind_name(first)
    if reading.word(word_index) == "(":
        word_index = reading.closed(word_index)
    begin = word_index + 1  # behind AS
    tokens, end = reading.tokens, reading.span.end
    query = Span(begin, end)
    text = reading.source.encoded[tokens[query.first].begin : tokens[query.end - 1].end].decode()
    return CreateView(
        name,
        names_of(body.get("aliases", [])),
        text,
        bool(body.get("replace")),
        reading.position(first),
        reading.position(begin) - 1 - reading.offset,
    )


def read_drop_view(reading: Reading, body: Body) -> tuple[DropView, ...]:
    """DROP VIEW [IF EXISTS] v, … [CASCADE | RESTRICT]: a statement for each."""
    exists, cascade = bool(body.get("missing_ok")), body["behavior"] == CASCADE
    named = listed_relations(reading, body)
    names = [name for name, _ in named]
    return tuple(
        DropView(
            name,
            exists,
            reading.position(word_index),
            cascade,
            tuple(other for other in names if other != name),
        )
        for name, word_index in named
    )
