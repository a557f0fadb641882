"""Text → the tree of one statement that reads or writes rows."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from leasehold.model.errors import SyntaxInvalid
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.accounting import Body, handles, refuse_node, refuse_unread
from leasehold.sql.syntax.explaining import read_options
from leasehold.sql.syntax.own_words import SELECTV
from leasehold.sql.syntax.parsing import Parsed, parse
from leasehold.sql.syntax.queries import Queries
from leasehold.sql.syntax.writes import Writes

_QUERIES_KEPT_MAX: Final = 256
_EXPLAIN = handles("ExplainStmt", "query", "options")
_WRITES = frozenset({"InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt"})


def read_statement(text: str) -> tuple[tree.Statement, int]:
    """The tree of one statement and the highest number of its parameters.

    Raises SyntaxInvalid and FeatureNotSupported with positions, OutOfRange and TooComplex for the
    limits.
    """
    statements = parse(text)
    if not statements:
        raise SyntaxInvalid("the text holds no statement", position=1)
    if len(statements) > 1:
        raise SyntaxInvalid(
            "one statement at a time: a second one follows here",
            position=statements[1].source.position(statements[1].begin),
        )
    return statement_of(statements[0])


def statement_of(parsed: Parsed) -> tuple[tree.Statement, int]:
    """What `read_statement` gives, of a statement that is parsed."""
    queries = Queries(parsed.source)
    if parsed.kind != "ExplainStmt":
        return _statement(parsed, queries, parsed.kind, parsed.body), _numbered(queries)
    body = parsed.body
    if not body.keys() <= _EXPLAIN:
        refuse_unread(parsed.source, "ExplainStmt", body)
    asked = read_options(parsed.source, body.get("options", []))
    ((kind, inner),) = body["query"].items()
    at = parsed.source.position(parsed.begin)
    found = _statement(parsed, queries, kind, inner)
    return tree.Explain(at, found, asked.reads, asked.as_json), _numbered(queries)


def _numbered(queries: Queries) -> int:
    return queries.expressions.parameters


def _statement(parsed: Parsed, queries: Queries, kind: str, body: Body) -> tree.Query | tree.Write:
    writes = Writes(queries)
    if kind == "SelectStmt":
        visits = None
        for mark in parsed.marks:
            if mark.kind == SELECTV:
                visits = tree.Visits(parsed.source.position(mark.begin), SELECTV)
                break
        return queries.statement(body, visits)
    if kind not in _WRITES:
        refuse_node(parsed.source, kind, body, parsed.begin)
    return writes.read(kind, body, top=True)


@lru_cache(_QUERIES_KEPT_MAX)
def read_query(text: str) -> tree.Query:
    """Return the tree of a view's query. Raises what reading a statement raises."""
    statement, _ = read_statement(text)
    assert isinstance(statement, tree.Query), "looked at when it was made"
    return statement
