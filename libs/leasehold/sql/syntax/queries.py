"""PostgreSQL's tree of a query → `tree.py`'s."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from leasehold.catalog.namespaces import qualified
from leasehold.catalog.schema_names import PG_TEMP, SCHEMAS
from leasehold.model.errors import FeatureNotSupported, SyntaxInvalid
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.accounting import (
    Body,
    Sentence,
    handles,
    location_of,
    refuse,
    refuse_node,
    refuse_unread,
)
from leasehold.sql.syntax.depth import too_deep
from leasehold.sql.syntax.expressions import Expressions, items_of, read_names
from leasehold.sql.syntax.scanning import offset_before, offset_of
from leasehold.sql.syntax.source import Source
from leasehold.sql.syntax.windows import read_window

GROUPING_SETS_DEEP_MAX: Final = 24
SET_OPERATIONS_DEEP_MAX: Final = 400
"""Of a chain: with more than 440 SQLite gives up."""

_SELECT: Final = handles(
    "SelectStmt",
    *("distinctClause", "targetList", "fromClause", "whereClause", "groupClause"),
    *("groupDistinct", "havingClause", "windowClause", "valuesLists", "sortClause"),
    *("limitOffset", "limitCount", "limitOption", "lockingClause", "withClause"),
    *("op", "all", "larg", "rarg"),
    intoClause=Sentence("into", "SELECT INTO is not supported: CREATE TABLE … AS SELECT is"),
)
_CLAIMS: Final = {"LockWaitSkip": "skip", "LockWaitError": "nowait"}
_MERGE_WITHIN: Final = Sentence("with", "MERGE not supported in WITH query")
_WITHIN: Final = Sentence(
    "with", "WITH clause containing a data-modifying statement must be at the top level"
)
_TARGET: Final = handles("ResTarget", "name", "val", "location", indirection="a part of a column")
_RELATION: Final = handles(
    "RangeVar",
    # Nothing inherits from a table: ONLY says nothing. Whether it is to last is CREATE's to say.
    *("schemaname", "relname", "inh", "relpersistence", "alias", "location"),
    catalogname="a table of another database",
)
_ALIAS: Final = handles("Alias", "aliasname", "colnames")
_SUBSELECT: Final = handles("RangeSubselect", "lateral", "subquery", "alias")
_FUNCTION: Final = handles(
    "RangeFunction",
    *("lateral", "ordinality", "functions", "alias"),
    is_rowsfrom="ROWS FROM",
    coldeflist="a list of column definitions",
)
_JOIN: Final = handles(
    "JoinExpr",
    *("jointype", "isNatural", "larg", "rarg", "usingClause", "quals"),
    join_using_alias="JOIN … USING … AS",
    alias="an alias of a join",
    later=["rtindex"],
)
_WITH: Final = handles("WithClause", "ctes", "recursive", "location")
_CTE: Final = handles(
    "CommonTableExpr",
    *("ctename", "aliascolnames", "ctematerialized", "ctequery", "location"),
    search_clause="SEARCH",
    cycle_clause="CYCLE",
    later=(
        *("cterecursive", "cterefcount", "ctecolnames", "ctecoltypes", "ctecoltypmods"),
        "ctecolcollations",
    ),
)
_GROUPING_SET: Final = handles("GroupingSet", "kind", "content", "location")
_LOCKING: Final = handles("LockingClause", "lockedRels", "strength", "waitPolicy")

_MATERIALIZED: Final = {"CTEMaterializeAlways": True, "CTEMaterializeNever": False}
_JOINS: Final = {
    "JOIN_INNER": "inner",
    "JOIN_LEFT": "left",
    "JOIN_RIGHT": "right",
    "JOIN_FULL": "full",
}
_SETS: Final = {"GROUPING_SET_ROLLUP": "rollup", "GROUPING_SET_CUBE": "cube"}
_STRENGTHS: Final = {
    "LCS_FORUPDATE": "FOR UPDATE",
    "LCS_FORNOKEYUPDATE": "FOR NO KEY UPDATE",
    "LCS_FORSHARE": "FOR SHARE",
    "LCS_FORKEYSHARE": "FOR KEY SHARE",
}


class Queries:
    """The reader of one statement's queries."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.expressions = Expressions(source, self._within)
        self._sets = 0  # how deep grouping sets are
        self.read_write: Callable[[str, Body], tree.Write] | None = None
        """Reads a statement of WITH that writes, by the kind of its node; None: there are none."""

    def statement(self, body: Body, visits: tree.Visits | None) -> tree.Query:
        """A query that is a statement. `visits`: SELECTV was said, which asks for more than FOR
        UPDATE."""
        query = self._query(body, top=True)
        if "lockingClause" in body:
            asked = self._visits(body["lockingClause"], self._locking_at(body))
            if visits is not None:
                refuse(f"{visits.words} with {asked.words}", asked.at)
            visits = asked
        return query if visits is None else replace(query, visits=visits)

    def _within(self, body: Body) -> tree.Query:
        if "lockingClause" not in body:
            return self._query(body)
        at = self._locking_at(body)
        visits = self._visits(body["lockingClause"], at)
        if not visits.claims:
            refuse(
                f"{visits.words} in a query inside another one, without SKIP LOCKED or NOWAIT,", at
            )
        return replace(self._query(body), visits=visits)

    def _locking_at(self, body: Body) -> int:
        """Return where FOR UPDATE stands, which the tree does not know: behind FROM's first
        table."""
        begin = location_of(body.get("fromClause"), location_of(body))
        return self.source.position(offset_of(self.source, begin, "for"))

    def _visits(self, clauses: list[Body], at: int) -> tree.Visits:
        """Return FOR UPDATE and the like: nothing is locked, and rows are verified at COMMIT. With
        SKIP LOCKED or NOWAIT they are claimed besides."""
        clause = clauses[0]["LockingClause"]
        self.expressions.check("LockingClause", clause, _LOCKING)
        said = _STRENGTHS[clause["strength"]]
        if len(clauses) > 1:
            refuse(f"a second {said}", at)
        of = [self.table(node["RangeVar"]) for node in clause.get("lockedRels", ())]
        claims = _CLAIMS.get(clause["waitPolicy"], "")
        return tree.Visits(at, said, tuple(table.name for table in of), claims)

    # ---------------------------------------------------------- a query

    def _query(self, body: Body, *, top: bool = False) -> tree.Query:
        """Read a query; one that is the whole statement (`top`) may write in its WITH."""
        expressions = self.expressions
        if not body.keys() <= _SELECT:
            refuse_unread(self.source, "SelectStmt", body)
        # What it begins with stands first in the text: names of WITH are looked at first.
        ctes = self.with_clause(body["withClause"], top=top) if "withClause" in body else None
        found = self._body(body)
        order = expressions.order_by(body.get("sortClause", []))
        limit = offset = None
        if "limitCount" in body:
            limit = self._limit(body["limitCount"])
        if "limitOffset" in body:
            offset = expressions.expression(body["limitOffset"])
        if body["limitOption"] == "LIMIT_OPTION_WITH_TIES":
            refuse("FETCH … WITH TIES", found.at if limit is None else limit.at)
        at = found.at if ctes is None else ctes.at
        return tree.Query(at, found, order, limit, offset, ctes)

    def _limit(self, node: Body) -> tree.Node | None:
        """Return the limit, None for LIMIT ALL."""
        found = self.expressions.expression(node)
        is_null = isinstance(found, tree.Constant) and found.kind == "null"
        return None if is_null else found

    def _body(self, body: Body) -> tree.Select | tree.Values | tree.SetOperation:
        if body["op"] != "SETOP_NONE":
            return self._set_operation(body)
        if "valuesLists" in body:
            rows = [self.expressions.listed(items_of(row)) for row in body["valuesLists"]]
            return tree.Values(rows[0][0].at, tuple(rows))
        return self._select(body)

    def _set_operation(self, body: Body) -> tree.SetOperation:
        """A chain of them is deep at its left: its arms are taken from there, one after another."""
        chain = [body]
        while chain[-1]["larg"]["op"] != "SETOP_NONE" and not _is_own_query(chain[-1]["larg"]):
            chain.append(chain[-1]["larg"])
        if len(chain) > SET_OPERATIONS_DEEP_MAX:
            raise too_deep(self.source.position(location_of(body)))
        left = self._arm(chain[-1]["larg"])
        for one in reversed(chain):
            if one is not body and not one.keys() <= _SELECT:
                refuse_unread(self.source, "SelectStmt", one)
            right = self._arm(one["rarg"])
            word = one["op"].removeprefix("SETOP_").lower()
            every = one.get("all", False)
            found = tree.SetOperation(right.at, word, every, left, right)
            left = tree.Query(left.at, found)
        return found

    def _arm(self, body: Body) -> tree.Query:
        self.expressions.enter()
        found = self._within(body)
        self.expressions.leave()
        return found

    def with_clause(self, body: Body, *, top: bool) -> tree.With:
        """Read WITH. Statements that write may stand in that of the whole statement, `top`."""
        self.expressions.check("WithClause", body, _WITH)
        at = self.expressions.at(body)
        ctes = tuple([self._cte(node["CommonTableExpr"], top=top) for node in body["ctes"]])
        return tree.With(at, body.get("recursive", False), ctes)

    def _cte(self, body: Body, *, top: bool) -> tree.Cte:
        self.expressions.check("CommonTableExpr", body, _CTE)
        at = self.expressions.at(body)
        ((kind, inner),) = body["ctequery"].items()
        columns = tuple(read_names(body.get("aliascolnames", [])))
        query: tree.Query | tree.Write
        if kind == "MergeStmt":
            refuse(_MERGE_WITHIN, at)
        if kind in ("InsertStmt", "UpdateStmt", "DeleteStmt"):
            if self.read_write is None or not top:
                refuse(_WITHIN, at)
            query = self.read_write(kind, inner)
        else:
            query = self.expressions.query(body["ctequery"])
        return tree.Cte(
            at, body["ctename"], columns, query, _MATERIALIZED.get(body["ctematerialized"])
        )

    # ---------------------------------------------------------- SELECT

    def _select(self, body: Body) -> tree.Select:
        expressions = self.expressions
        distinct: tuple[tree.Node, ...] | None = None
        if "distinctClause" in body:
            distinct = expressions.listed([node for node in body["distinctClause"] if node])
        targets = self.targets(body.get("targetList", []))
        source = self.sources(body["fromClause"]) if "fromClause" in body else None
        where = expressions.expression(body["whereClause"]) if "whereClause" in body else None
        group = tuple([self._grouped_by(node) for node in body.get("groupClause", ())])
        having = expressions.expression(body["havingClause"]) if "havingClause" in body else None
        windows = tuple(
            [
                (node["WindowDef"]["name"], read_window(expressions, node["WindowDef"]))
                for node in body.get("windowClause", ())
            ]
        )
        if targets:
            at = targets[0].node.at
        else:
            at = 1 if source is None else source.at
        return tree.Select(
            *(at, targets, source, where, group, bool(group), having, distinct, windows),
            sets_once=body.get("groupDistinct", False),
        )

    def targets(self, nodes: list[Body]) -> tuple[tree.Target, ...]:
        return tuple([self._target(node["ResTarget"]) for node in nodes])

    def _target(self, body: Body) -> tree.Target:
        self.expressions.check("ResTarget", body, _TARGET)
        self.expressions.at(body)
        return tree.Target(self.expressions.expression(body["val"]), body.get("name", ""))

    def _grouped_by(self, node: Body) -> tree.Node | tree.GroupingSets:
        body = node.get("GroupingSet")
        if body is None:
            return self.expressions.expression(node)
        self.expressions.check("GroupingSet", body, _GROUPING_SET)
        at = self.expressions.at(body)
        kind = _SETS.get(body["kind"], "sets")
        content = body.get("content", [])
        if kind != "sets":
            return tree.GroupingSets(at, kind, self.expressions.listed(content))
        self._sets += 1
        if self._sets > GROUPING_SETS_DEEP_MAX:
            raise too_deep(at)
        items = tuple([self._grouped_by(item) for item in content])
        self._sets -= 1
        return tree.GroupingSets(at, kind, items)

    # ---------------------------------------------------------- FROM

    def sources(self, nodes: list[Body]) -> tree.Source:
        """What stands between commas is a cross join."""
        found = self._source(nodes[0])
        for node in nodes[1:]:
            right = self._source(node)
            found = tree.Join(right.at, "cross", found, right, listed=True)
        return found

    def _source(self, node: Body) -> tree.Source:
        ((kind, body),) = node.items()
        if kind == "RangeVar":
            return self.table(body)
        if kind == "RangeSubselect":
            return self._subselect(body)
        if kind == "RangeFunction":
            return self._function(body)
        if kind != "JoinExpr":
            refuse_node(self.source, kind, body)
        self.expressions.enter()
        join = self._join(body)
        self.expressions.leave()
        return join

    def table(self, body: Body) -> tree.TableName:
        self.expressions.check("RangeVar", body, _RELATION)
        at = self.expressions.at(body)
        alias, columns = self._alias(body)
        schema, name = body.get("schemaname", ""), body["relname"]
        if schema and schema != PG_TEMP and schema not in SCHEMAS:
            # Of a schema that was made: its name is a part of the relation's.
            called = alias or name
            return tree.TableName(at, qualified(schema, name), called, columns, renamed=bool(alias))
        return tree.TableName(at, name, alias, columns, schema, bool(alias))

    def _alias(self, body: Body) -> tuple[str, tuple[str, ...]]:
        if "alias" not in body:
            return "", ()
        alias = body["alias"]
        self.expressions.check("Alias", alias, _ALIAS)
        return alias["aliasname"], tuple(read_names(alias.get("colnames", [])))

    def _subselect(self, body: Body) -> tree.QuerySource:
        self.expressions.check("RangeSubselect", body, _SUBSELECT)
        query = self.expressions.query(body["subquery"])
        alias, columns = self._alias(body)
        if not alias:
            offset = offset_before(self.source, location_of(body), "(")
            raise SyntaxInvalid(
                "subquery in FROM must have an alias", position=self.source.position(offset)
            )
        return tree.QuerySource(query.at, query, alias, columns, body.get("lateral", False))

    def _function(self, body: Body) -> tree.CallSource:
        self.expressions.check("RangeFunction", body, _FUNCTION)
        called, *columns = items_of(body["functions"][0])
        call = self.expressions.expression(called)
        if not isinstance(call, tree.Call):
            raise FeatureNotSupported(
                "only a call of a function can stand here in FROM: write this one among the"
                " columns of a SELECT",
                position=call.at,
            )
        if any(columns):
            refuse("a list of column definitions", call.at)
        alias, names = self._alias(body)
        return tree.CallSource(call.at, call, alias, names, body.get("ordinality", False))

    def _join(self, body: Body) -> tree.Join:
        self.expressions.check("JoinExpr", body, _JOIN)
        left = self._source(body["larg"])
        right = self._source(body["rarg"])
        at = right.at
        kind = _JOINS[body["jointype"]]
        if body.get("isNatural"):
            return tree.Join(at, kind, left, right, natural=True)
        if "usingClause" in body:
            return tree.Join(at, kind, left, right, using=tuple(read_names(body["usingClause"])))
        if "quals" in body:
            condition = self.expressions.expression(body["quals"])
            return tree.Join(at, kind, left, right, condition)
        return tree.Join(at, "cross", left, right)


def _is_own_query(body: Body) -> bool:
    """Return whether a query stands in parentheses, with an order, a limit or names of its own."""
    own = ("sortClause", "limitCount", "limitOffset", "withClause", "lockingClause")
    return any(name in body for name in own)
