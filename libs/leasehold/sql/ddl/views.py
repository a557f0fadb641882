"""CREATE VIEW and DROP VIEW."""

from __future__ import annotations

from typing import Final

from leasehold.catalog.namespaces import qualified
from leasehold.sql.ddl.drops import CASCADE
from leasehold.sql.ddl.other_objects import read_object_name
from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.names import relation_name, schema_of
from leasehold.sql.syntax.object_statements import (
    CreateView,
    DropAbsent,
    DropView,
    ObjectKind,
    RenameView,
)
from leasehold.sql.syntax.statement import Reading, Span, names_of

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
        schema_of(reading, body["view"]),
    )


def read_rename_view(reading: Reading, body: Body) -> RenameView:
    """ALTER VIEW [IF EXISTS] v RENAME TO w"""
    reading.read("RenameStmt", body)
    relation = body["relation"]
    to = qualified(schema_of(reading, relation), body["newname"])
    position = reading.source.position(relation["location"])
    return RenameView(relation_name(reading, relation), to, bool(body.get("missing_ok")), position)


def read_drop_view(reading: Reading, body: Body) -> tuple[DropView | DropAbsent, ...]:
    """DROP VIEW [IF EXISTS] v, … [CASCADE | RESTRICT]: a statement for each. There is no view in
    a schema that is built in, but for public."""
    reading.read("DropStmt", body)
    exists, cascade = bool(body.get("missing_ok")), body["behavior"] == CASCADE
    spans = reading.listed(Span(reading.behind(reading.verb + 2, "if exists"), reading.span.end))
    named = [read_object_name(ObjectKind.VIEW, node) for node in body["objects"]]
    names = [each.name for each in named if not each.schema]
    read: list[DropView | DropAbsent] = []
    for each, span in zip(named, spans, strict=True):
        position = reading.position(span.first)
        if each.schema:
            read.append(DropAbsent(ObjectKind.VIEW, each, exists, position, DropView.tag))
        else:
            beside = tuple(other for other in names if other != each.name)
            read.append(DropView(each.name, exists, position, cascade, beside))
    return tuple(read)
