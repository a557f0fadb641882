"""CREATE TABLE … AS: a table of the columns of a query, with its rows."""

from __future__ import annotations

from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.names import relation_name
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
_NOTHING_AT_COMMIT = "ONCOMMIT_NOOP"


def read_create_table_as(reading: Reading, body: Body) -> CreateTableAs:
    """CREATE TABLE [IF NOT EXISTS] name [(columns)] AS query [WITH [NO] DATA]"""
    reading.read("CreateTableAsStmt", body)
    into = reading.read("IntoClause", body["into"])
    if "ExecuteStmt" in body["query"]:
        reading.refuse(
            "CREATE TABLE … AS EXECUTE is not supported: CREATE TABLE … AS SELECT is",
            reading.next(reading.verb, "execute"),
        )
    name = relation_name(reading, into["rel"])
    if into.get("onCommit", _NOTHING_AT_COMMIT) != _NOTHING_AT_COMMIT:
        reading.refuse(
            "ON COMMIT is for temporary tables, which are not supported",
            reading.next(reading.verb, "on", "commit"),
        )
    first = reading.behind_name(reading.at(into["rel"]["location"]))
    if reading.word(first) == "(":
        first = reading.closed(first)
    first += 1  # behind AS
    end = reading.span.end
    for said in (("with", "data"), ("with", "no", "data")):
        if reading.said(end - len(said), *said):
            end -= len(said)
    tokens = reading.tokens
    text = reading.source.encoded[tokens[first].begin : tokens[end - 1].end].decode()
    return CreateTableAs(
        name,
        names_of(into.get("colNames", [])),
        text,
        reading.position(first) - 1 - reading.offset,
        bool(body.get("if_not_exists")),
        not into.get("skipData"),
    )
