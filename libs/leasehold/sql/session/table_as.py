"""CREATE TABLE … AS: a table of the columns of a query, with its rows."""

from __future__ import annotations

from typing import Final

from leasehold.model.errors import InvalidDefinition
from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.names import is_temporary, relation_name, schema_of
from leasehold.sql.syntax.session_statements import CreateTableAs
from leasehold.sql.syntax.statement import Reading, names_of

handles(
    "CreateTableAsStmt",
    *("query", "into", "objtype", "if_not_exists"),
    later=("is_select_into",),
)
handles(
    "IntoClause",
    *("rel", "colNames", "onCommit", "skipData"),
    options="WITH (…) of a table",
    accessMethod="USING of a table",
    tableSpaceName="TABLESPACE",
    viewQuery="a materialized view",
)
_ON_COMMIT: Final = {
    "ONCOMMIT_PRESERVE_ROWS": "PRESERVE ROWS",
    "ONCOMMIT_DELETE_ROWS": "DELETE ROWS",
    "ONCOMMIT_DROP": "DROP",
}


def read_create_table_as(reading: Reading, body: Body) -> CreateTableAs:
    """CREATE TABLE [IF NOT EXISTS] name [(columns)] AS query [WITH [NO] DATA]"""
    reading.read("CreateTableAsStmt", body)
    into = reading.read("IntoClause", body["into"])
    if "ExecuteStmt" in body["query"]:
        reading.refuse(
            "CREATE TABLE … AS EXECUTE is not supported: CREATE TABLE … AS SELECT is",
            reading.next(reading.verb, "execute"),
        )
    name = relation_name(reading, into["rel"], temporary=True)
    temporary = is_temporary(into["rel"])
    on_commit = _ON_COMMIT.get(into.get("onCommit", ""), "")
    if on_commit and not temporary:
        place = reading.position(reading.next(reading.verb, "on", "commit"))
        raise InvalidDefinition("ON COMMIT can only be used on temporary tables", position=place)
    first = reading.behind_name(reading.at(into["rel"]["location"]))
    if reading.word(first) == "(":
        first = reading.closed(first)
    first = reading.next(first, "as") + 1
    end = reading.span.end
    for said in (("with", "data"), ("with", "no", "data")):
        if reading.said(end - len(said), *said):
            end -= len(said)
    tokens = reading.tokens
    text = reading.source.encoded[tokens[first].begin : tokens[end - 1].end].decode()
    return CreateTableAs(
        name,
        schema_of(reading, into["rel"]),
        names_of(into.get("colNames", [])),
        text,
        reading.position(first) - 1 - reading.offset,
        bool(body.get("if_not_exists")),
        not into.get("skipData"),
        temporary,
        on_commit,
    )
