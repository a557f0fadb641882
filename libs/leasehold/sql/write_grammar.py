"""Words → the tree of INSERT, UPDATE and DELETE; the queries inside are `query_grammar.py`'s."""

from __future__ import annotations

from typing import Protocol

from leasehold.model.errors import SyntaxInvalid
from leasehold.sql.query_expression import Expressions
from leasehold.sql.query_lexer import Words
from leasehold.sql.syntax.tree import (
    Assignment,
    Conflict,
    Delete,
    Insert,
    Node,
    Query,
    RowPart,
    Source,
    TableName,
    Target,
    Update,
    With,
)


class Queries(Protocol):
    """What is asked of the grammar of queries."""

    words: Words
    expressions: Expressions

    def query(self) -> Query: ...

    def sources(self) -> Source:
        """What stands behind FROM, or USING."""
        ...

    def targets(self) -> tuple[Target, ...]: ...

    def names(self) -> tuple[str, ...]:
        """(a, b)."""
        ...

    def table_name(self) -> tuple[str, str]:
        """(schema or "", name)."""
        ...

    def row(self) -> tuple[Node, ...]: ...


class Writes:
    """Each from its first word on, behind WITH."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._words, self._expressions = queries.words, queries.expressions

    def _target_table(self, *, needs_as: bool = False) -> TableName:
        words = self._words
        words.take("only")
        at = words.position
        schema, name = self._queries.table_name()
        alias = ""
        bare = words.is_name() and words.said() != "set" and not needs_as
        if words.take("as") or bare:
            alias = words.name()
        return TableName(at, name, alias, (), schema)

    def insert(self, ctes: With | None) -> Insert:
        words = self._words
        at = words.position
        words.expect("insert", "into")
        table = self._target_table(needs_as=True)
        columns: tuple[tuple[str, int], ...] | None = None
        if words.at("(") and not self._expressions.at_query():
            words.advance()
            named: list[tuple[str, int]] = []
            while True:
                place = words.position
                named.append((words.name(), place))
                if not words.take(","):
                    break
            words.expect(")")
            columns = tuple(named)
        overriding = ""
        if words.at("overriding"):
            words.advance()
            overriding = "user" if words.at("user") else "system"
            words.expect(overriding, "value")
        source = None
        if overriding or not words.take("default", "values"):
            source = self._queries.query()
        conflict = self._conflict() if words.at("on") else None
        returning = self._returning()
        return Insert(at, table, columns, source, conflict, returning, ctes, overriding)

    def _conflict(self) -> Conflict:
        words = self._words
        at = words.position
        words.expect("on", "conflict")
        columns: tuple[str, ...] = ()
        constraint = ""
        if words.at("("):
            columns = self._queries.names()
            if words.at("where"):
                words.refuse("ON CONFLICT on a partial index")
        elif words.take("on", "constraint"):
            constraint = words.name()
        words.expect("do")
        if words.take("nothing"):
            return Conflict(at, columns, constraint, (), None)
        words.expect("update", "set")
        if not columns and not constraint:
            raise SyntaxInvalid(
                "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                position=at,
            )
        updates = self._assignments()
        where = self._expressions.expression() if words.take("where") else None
        return Conflict(at, columns, constraint, updates, where)

    def _assignments(self) -> tuple[Assignment, ...]:
        found: list[Assignment] = []
        while True:
            found += self._assignment()
            if not self._words.take(","):
                return tuple(found)

    def _assignment(self) -> list[Assignment]:
        words = self._words
        at = words.position
        if words.at("("):
            columns = self._queries.names()
            words.expect("=")
            if words.at("(") and self._expressions.at_query(1):
                words.expect("(")
                query, width = self._queries.query(), len(columns)
                words.expect(")")
                parts = (RowPart(at, query, n, width) for n in range(width))
                return [Assignment(at, c, v) for c, v in zip(columns, parts, strict=True)]
            words.take("row")
            values = self._queries.row()
            if len(values) != len(columns):
                raise SyntaxInvalid(
                    "number of columns does not match number of values", position=at
                )
            return [Assignment(at, c, v) for c, v in zip(columns, values, strict=True)]
        column = words.name()
        if words.at(".") or words.at("["):
            words.refuse("a part of a column")
        words.expect("=")
        return [Assignment(at, column, self._expressions.expression())]

    def _returning(self) -> tuple[Target, ...]:
        return self._queries.targets() if self._words.take("returning") else ()

    def update(self, ctes: With | None) -> Update:
        words = self._words
        at = words.position
        words.expect("update")
        table = self._target_table()
        words.expect("set")
        assignments = self._assignments()
        source = self._queries.sources() if words.take("from") else None
        where = self._where()
        return Update(at, table, assignments, source, where, self._returning(), ctes)

    def delete(self, ctes: With | None) -> Delete:
        words = self._words
        at = words.position
        words.expect("delete", "from")
        table = self._target_table()
        source = self._queries.sources() if words.take("using") else None
        where = self._where()
        return Delete(at, table, source, where, self._returning(), ctes)

    def _where(self) -> Node | None:
        words = self._words
        if not words.take("where"):
            return None
        if words.at("current", "of"):
            words.refuse("WHERE CURRENT OF")
        return self._expressions.expression()
