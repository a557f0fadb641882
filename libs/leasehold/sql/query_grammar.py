"""Words → the tree of a statement that reads or writes rows. What no rule takes is PostgreSQL's
syntax error at its place; what PostgreSQL has and this does not is 0A000 with a sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from leasehold.model.errors import FeatureNotSupported, OutOfRange, SyntaxInvalid
from leasehold.sql.explain_grammar import reads_asked
from leasehold.sql.query_expression import Expressions
from leasehold.sql.query_lexer import END, NAME, WORD, Words, words_of
from leasehold.sql.syntax.tree import (
    SELECTV,
    Call,
    CallSource,
    Constant,
    Cte,
    Explain,
    GroupingSets,
    Join,
    Node,
    Query,
    QuerySource,
    Select,
    SetOperation,
    Source,
    Star,
    Statement,
    TableName,
    Target,
    Values,
    Visits,
    Window,
    With,
)
from leasehold.sql.write_grammar import Writes

_JOINS: Final = frozenset({"join", "inner", "left", "right", "full", "cross", "natural"})
_NO_LABEL: Final = frozenset(
    {
        *("array", "as", "char", "character", "create", "day", "except", "fetch", "filter", "for"),
        *("from", "grant", "group", "having", "hour", "intersect", "into", "isnull", "limit"),
        *("minute", "month", "notnull", "offset", "on", "order", "over", "overlaps", "precision"),
        *("returning", "second", "to", "union", "varying", "where", "window", "with", "within"),
        *("without", "year"),
    }
)
"""After an expression without AS these are no names (PostgreSQL's AS_LABEL)."""

GROUPING_SETS_DEEP_MAX: Final = 24

STATEMENTS: Final = frozenset(
    {"select", "selectv", "values", "with", "table", "insert", "update", "delete", "explain", "("}
)
"""The words that a statement of this grammar begins with."""


def read_statement(text: str) -> tuple[Statement, int]:
    """The tree of one statement and the highest number of its parameters.

    Raises SyntaxInvalid and FeatureNotSupported with positions, OutOfRange for the limits.
    """
    words = Words(words_of(text))
    grammar = _Grammar(words)
    while words.take(";"):
        pass
    if words.peek().kind == END:
        raise SyntaxInvalid("the text holds no statement", position=1)
    statement = grammar.statement()
    while words.take(";"):
        pass
    if words.peek().kind != END:
        raise words.unexpected()
    return statement, grammar.expressions.parameters


class _Grammar:
    def __init__(self, words: Words) -> None:
        self.words = words
        self.expressions = Expressions(words, self.query)
        self._verified = False
        self._nesting = 0
        self._writes = Writes(self)

    def statement(self) -> Statement:
        words = self.words
        at = words.position
        if words.take("explain"):
            reads = reads_asked(words)
            inner = self.statement()
            if isinstance(inner, Explain):
                raise SyntaxInvalid("syntax error at or near 'explain'", position=inner.at)
            return Explain(at, inner, reads)
        ctes = self._with() if words.at("with") else None
        match words.said():
            case "insert":
                return self._writes.insert(ctes)
            case "update":
                return self._writes.update(ctes)
            case "delete":
                return self._writes.delete(ctes)
            case "merge":
                words.refuse("MERGE")
            case "selectv":
                return self._selectv(at, ctes)
        query = self._query_after(at, ctes)
        return self._visits(query) if words.at("for") else query

    def _selectv(self, at: int, ctes: With | None) -> Query:
        """Of all that stands beside it with UNION and its like, which may say the word, too."""
        self._verified = True
        query = self._query_after(at, ctes)
        self._verified = False
        return replace(query, visits=Visits(at, SELECTV))

    def _visits(self, query: Query) -> Query:
        """FOR UPDATE and the like: all the same here, since nothing is locked and rows are verified
        at COMMIT."""
        words = self.words
        at = words.position
        words.expect("for")
        for strength in (("update",), ("no", "key", "update"), ("share",), ("key", "share")):
            if words.take(*strength):
                break
        else:
            raise words.unexpected()
        said = f"FOR {' '.join(strength).upper()}"
        of = [words.name()] if words.take("of") else []
        while of and words.take(","):
            of.append(words.name())
        if words.at("skip"):
            words.refuse(f"{said} SKIP LOCKED: nothing is locked; it")
        words.take("nowait")
        if words.at("for"):
            words.refuse(f"a second {said}")
        return replace(query, visits=Visits(at, said, tuple(of)))

    # ---------------------------------------------------------- queries

    def query(self) -> Query:
        at = self.words.position
        verified, self._verified = self._verified, False
        found = self._query_after(at, self._with() if self.words.at("with") else None)
        if self.words.at("for"):
            self.words.refuse("FOR UPDATE or SHARE in a query inside another one")
        self._verified = verified
        return found

    def _query_after(self, at: int, ctes: With | None) -> Query:
        body = self._set_operation(0)
        expressions, words = self.expressions, self.words
        order = expressions.order_by()
        limit: Node | None = None
        offset: Node | None = None
        limited = False
        while words.said() in ("limit", "offset", "fetch"):
            if words.at("offset") and offset is None:
                words.advance()
                offset = expressions.expression()
                if not words.take("rows"):
                    words.take("row")
            elif words.at("limit") and not limited:
                words.advance()
                limited = True
                limit = None if words.take("all") else expressions.expression()
                if words.at(","):
                    raise words.unexpected()
            elif words.at("fetch") and not limited:
                limited = True
                limit = self._fetch()
            else:
                raise words.unexpected()
        if words.at("into"):
            words.refuse("SELECT INTO")
        simple = isinstance(body, Query)
        if simple and not order and limit is None and offset is None and ctes is None:
            assert isinstance(body, Query)
            return body
        if isinstance(body, Query):
            # (SELECT … LIMIT 3) ORDER BY …: the inner one is a query of its own.
            inner = QuerySource(body.at, body, "*")
            body = Select(body.at, (Target(Star(body.at)),), inner)
        return Query(at, body, order, limit, offset, ctes)

    def _fetch(self) -> Node:
        words = self.words
        words.expect("fetch")
        if not words.take("first"):
            words.expect("next")
        at = words.position
        limit: Node = Constant(at, "number", "1")
        if words.said() not in ("row", "rows"):
            limit = self.expressions.expression()
        if not words.take("rows"):
            words.expect("row")
        if words.at("with"):
            words.refuse("FETCH … WITH TIES")
        words.expect("only")
        return limit

    def _with(self) -> With:
        words = self.words
        at = words.position
        words.expect("with")
        recursive = words.take("recursive")
        ctes = [self._cte()]
        while words.take(","):
            ctes.append(self._cte())
        return With(at, recursive, tuple(ctes))

    def _cte(self) -> Cte:
        words = self.words
        at = words.position
        name = words.name()
        columns = self.names() if words.at("(") else ()
        words.expect("as")
        materialized = None
        if words.take("materialized"):
            materialized = True
        elif words.take("not", "materialized"):
            materialized = False
        words.expect("(")
        if words.said() in ("insert", "update", "delete"):
            words.refuse("a statement that writes inside WITH")
        query = self.query()
        words.expect(")")
        if words.said() in ("search", "cycle"):
            words.refuse(words.said().upper())
        return Cte(at, name, columns, query, materialized)

    def names(self) -> tuple[str, ...]:
        words = self.words
        words.expect("(")
        found = [words.name()]
        while words.take(","):
            found.append(words.name())
        words.expect(")")
        return tuple(found)

    def _set_operation(self, level: int) -> Select | Values | SetOperation | Query:
        """UNION and EXCEPT from the left, INTERSECT before them."""
        left = self._operand() if level else self._set_operation(1)
        known = ("intersect",) if level else ("union", "except")
        words = self.words
        while words.said() in known:
            at = words.position
            word = words.advance().text
            every = words.take("all")
            if not every:
                words.take("distinct")
            right = self._operand() if level else self._set_operation(1)
            left = SetOperation(at, word, every, _as_query(left), _as_query(right))
        return left

    def _operand(self) -> Select | Values | SetOperation | Query:
        words = self.words
        at = words.position
        if words.take("("):
            inner = self.query()
            words.expect(")")
            return inner
        if words.take("values"):
            rows = [self.row()]
            while words.take(","):
                rows.append(self.row())
            return Values(at, tuple(rows))
        if words.take("table"):
            return Select(at, (Target(Star(at)),), self._table())
        if not (self._verified and words.take("selectv")):
            words.expect("select")
        return self._select(at)

    def row(self) -> tuple[Node, ...]:
        self.words.expect("(")
        found = self.expressions.listed()
        self.words.expect(")")
        return found

    def _select(self, at: int) -> Select:
        words, expressions = self.words, self.expressions
        distinct: tuple[Node, ...] | None = None
        if words.take("distinct"):
            distinct = ()
            if words.take("on"):
                words.expect("(")
                distinct = expressions.listed()
                words.expect(")")
        else:
            words.take("all")
        targets = self.targets() if not self._at_clause() else ()
        if words.at("into"):
            words.refuse("SELECT INTO")
        source = self.sources() if words.take("from") else None
        where = expressions.expression() if words.take("where") else None
        group: tuple[Node | GroupingSets, ...] = ()
        grouped = words.take("group", "by")
        once = False
        if grouped:
            once = words.take("distinct")
            if not once:
                words.take("all")
            group = self._grouped()
        having = expressions.expression() if words.take("having") else None
        windows: list[tuple[str, Window]] = []
        if words.take("window"):
            while True:
                name = words.name()
                words.expect("as")
                windows.append((name, expressions.window()))
                if not words.take(","):
                    break
        found = tuple(windows)
        return Select(at, targets, source, where, group, grouped, having, distinct, found, once)

    def _grouped(self) -> tuple[Node | GroupingSets, ...]:
        found = [self._grouped_by()]
        while self.words.take(","):
            found.append(self._grouped_by())
        return tuple(found)

    def _grouped_by(self) -> Node | GroupingSets:
        words = self.words
        at = words.position
        if words.take("(", ")"):
            return GroupingSets(at, "sets")
        if words.at("grouping", "sets", "("):
            self._nesting += 1
            if self._nesting > GROUPING_SETS_DEEP_MAX:
                raise OutOfRange("grouping sets are nested too deeply", position=at)
            words.expect("grouping", "sets", "(")
            items = self._grouped()
            words.expect(")")
            self._nesting -= 1
            return GroupingSets(at, "sets", items)
        kind = words.said()
        if kind in ("rollup", "cube") and words.said(1) == "(":
            words.expect(kind, "(")
            listed = self.expressions.listed()
            words.expect(")")
            return GroupingSets(at, kind, listed)
        return self.expressions.expression()

    def _at_clause(self) -> bool:
        """SELECT without anything selected."""
        words = self.words
        return words.peek().kind == END or words.said() in ("from", "where", ")", ";", "union")

    def targets(self) -> tuple[Target, ...]:
        found = [self._target()]
        while self.words.take(","):
            found.append(self._target())
        return tuple(found)

    def _target(self) -> Target:
        words = self.words
        at = words.position
        if words.take("*"):
            return Target(Star(at))
        node = self.expressions.expression()
        if words.take("as"):
            return Target(node, words.label())
        found = words.peek()
        bare = found.kind == NAME or (found.kind == WORD and found.text not in _NO_LABEL)
        return Target(node, words.label()) if bare else Target(node)

    # ---------------------------------------------------------- FROM

    def sources(self) -> Source:
        source = self._joined()
        while self.words.at(","):
            at = self.words.position
            self.words.advance()
            source = Join(at, "cross", source, self._joined())
        return source

    def _joined(self) -> Source:
        words = self.words
        left = self._source()
        while words.said() in _JOINS:
            at = words.position
            natural = words.take("natural")
            if words.take("cross"):
                kind = "cross"
                if natural:
                    raise words.unexpected()
            else:
                kind = self._join_kind()
            words.expect("join")
            right = self._source()
            if kind == "cross" or natural:
                left = Join(at, kind, left, right, natural=natural)
            elif words.take("using"):
                using = self.names()
                alias = words.name() if words.take("as") else ""
                if alias:
                    raise FeatureNotSupported("JOIN … USING … AS is not supported", position=at)
                left = Join(at, kind, left, right, using=using)
            elif words.said() in _JOINS:
                # a JOIN b JOIN c ON … ON …: the right side is a join of its own.
                right = self._joined_from(right)
                words.expect("on")
                left = Join(at, kind, left, right, self.expressions.expression())
            else:
                words.expect("on")
                left = Join(at, kind, left, right, self.expressions.expression())
        return left

    def _join_kind(self) -> str:
        words = self.words
        if words.said() in ("left", "right", "full"):
            kind = words.advance().text
            words.take("outer")
            return kind
        words.take("inner")
        return "inner"

    def _joined_from(self, left: Source) -> Source:
        words = self.words
        at = words.position
        if words.said() in ("natural", "cross"):
            words.refuse("this order of joins: put parentheses; it")
        kind = self._join_kind()
        words.expect("join")
        right = self._source()
        if words.said() in _JOINS:
            right = self._joined_from(right)
        words.expect("on")
        return Join(at, kind, left, right, self.expressions.expression())

    def _source(self) -> Source:
        words = self.words
        at = words.position
        if words.at("rows", "from", "("):
            words.refuse("ROWS FROM")
        lateral = words.take("lateral")
        if words.at("("):
            if self.expressions.at_query(1):
                words.expect("(")
                query = self.query()
                words.expect(")")
                alias, columns = self._alias()
                if not alias:
                    raise SyntaxInvalid("subquery in FROM must have an alias", position=at)
                return QuerySource(at, query, alias, columns, lateral)
            words.expect("(")
            inner = self._joined()
            words.expect(")")
            if not isinstance(inner, Join):
                raise words.unexpected()
            if words.at("as") or words.is_name():
                words.refuse("an alias of a join")
            return inner
        if words.said(1) == "(" or (words.said(1) == "." and words.said(3) == "("):
            node = self.expressions.expression()
            ordinality = words.take("with", "ordinality")
            alias, columns = self._alias()
            if not isinstance(node, Call):
                raise SyntaxInvalid("a function is expected here", position=at)
            return CallSource(at, node, alias, columns, ordinality)
        if lateral:
            raise words.unexpected()
        return self._table()

    def _table(self) -> TableName:
        words = self.words
        words.take("only")
        at = words.position
        schema, name = self.table_name()
        if words.at("tablesample"):
            words.refuse("TABLESAMPLE")
        alias, columns = self._alias()
        return TableName(at, name, alias, columns, schema)

    def table_name(self) -> tuple[str, str]:
        """(schema or "", name)."""
        words = self.words
        schema, name = "", words.name()
        if words.take("."):
            schema, name = name, words.label()
        words.take("*")
        return schema, name

    def _alias(self) -> tuple[str, tuple[str, ...]]:
        words = self.words
        alias = ""
        if words.take("as") or (words.is_name() and words.said() != "set"):
            alias = words.name()
        columns = self.names() if alias and words.at("(") else ()
        return alias, columns


def _as_query(body: Select | Values | SetOperation | Query) -> Query:
    return body if isinstance(body, Query) else Query(body.at, body)
