"""PostgreSQL's tree of INSERT, UPDATE, DELETE and MERGE → `tree.py`'s."""

from __future__ import annotations

from typing import Final

from leasehold.catalog.namespaces import qualified
from leasehold.catalog.schema_names import PG_TEMP, SCHEMAS
from leasehold.model.errors import SyntaxInvalid
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.accounting import Body, Sentence, handles, refuse
from leasehold.sql.syntax.queries import Queries

_INSERT: Final = handles(
    "InsertStmt",
    *("relation", "cols", "selectStmt", "onConflictClause", "returningClause", "withClause"),
    "override",
)
_COLUMN: Final = frozenset({"name", "location"})
_ASSIGNED: Final = frozenset({"name", "val", "location"})
_CONFLICT: Final = handles(
    "OnConflictClause", "action", "infer", "targetList", "whereClause", "location"
)
_INFER: Final = handles(
    "InferClause",
    *("indexElems", "conname", "location"),
    whereClause="ON CONFLICT on a partial index",
)
_KEY: Final = frozenset({"name", "ordering", "nulls_ordering", "location"})
_RETURNING: Final = handles("ReturningClause", "exprs", options="RETURNING WITH")
_UPDATE: Final = handles(
    "UpdateStmt",
    *("relation", "targetList", "whereClause", "fromClause", "returningClause", "withClause"),
)
_DELETE: Final = handles(
    "DeleteStmt", "relation", "usingClause", "whereClause", "returningClause", "withClause"
)
_MERGE: Final = handles(
    "MergeStmt",
    *("relation", "sourceRelation", "joinCondition", "mergeWhenClauses", "withClause"),
    returningClause=Sentence(
        "returning",
        "RETURNING of MERGE is not supported, as in PostgreSQL 15: use INSERT … ON CONFLICT or"
        " UPDATE with RETURNING",
    ),
)
_WHEN: Final = handles(
    "MergeWhenClause",
    *("matchKind", "commandType", "override", "condition", "targetList", "values"),
)
_MATCHED: Final = {"MERGE_WHEN_MATCHED": True, "MERGE_WHEN_NOT_MATCHED_BY_TARGET": False}
_PART: Final = handles("MultiAssignRef", "source", "colno", "ncolumns")
_OVERRIDING: Final = {"OVERRIDING_USER_VALUE": "user", "OVERRIDING_SYSTEM_VALUE": "system"}


class Writes:
    """The reader of statements that write: a whole one, and those inside its WITH."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._expressions = queries.expressions
        queries.read_write = self.read

    def read(self, kind: str, body: Body, *, top: bool = False) -> tree.Write:
        """Read a node of that kind; in the WITH of the whole statement (`top`) others may write."""
        match kind:
            case "InsertStmt":
                return self._insert(body, top=top)
            case "UpdateStmt":
                return self._update(body, top=top)
            case "MergeStmt":
                return self._merge(body, top=top)
        return self._delete(body, top=top)

    def _insert(self, body: Body, *, top: bool) -> tree.Insert:
        check = self._expressions.check
        check("InsertStmt", body, _INSERT)
        ctes = self._ctes(body, top=top)
        table = self._queries.table(body["relation"])
        columns = self._columns(body["cols"]) if "cols" in body else None
        query = self._expressions.query(body["selectStmt"]) if "selectStmt" in body else None
        conflict = None
        if "onConflictClause" in body:
            conflict = self._conflict(body["onConflictClause"], body["relation"])
        overriding = _OVERRIDING.get(body["override"], "")
        returning = self._returning(body)
        return tree.Insert(
            *(table.at, table, columns, query, conflict, returning, ctes, overriding)
        )

    def _columns(self, nodes: list[Body]) -> tuple[tuple[str, int], ...]:
        named = [node["ResTarget"] for node in nodes]
        for one in named:
            self._expressions.check("ResTarget", one, _COLUMN)
        return tuple((one["name"], self._expressions.at(one)) for one in named)

    def _ctes(self, body: Body, *, top: bool) -> tree.With | None:
        if "withClause" not in body:
            return None
        return self._queries.with_clause(body["withClause"], top=top)

    def _conflict(self, body: Body, relation: Body) -> tree.Conflict:
        check = self._expressions.check
        check("OnConflictClause", body, _CONFLICT)
        at = self._expressions.at(body)
        columns: list[str] = []
        constraint = ""
        if "infer" in body:
            infer = body["infer"]
            check("InferClause", infer, _INFER)
            constraint = infer.get("conname", "")
            schema = relation.get("schemaname", "")
            if constraint and schema != PG_TEMP and schema not in SCHEMAS:
                constraint = qualified(schema, constraint)
            for node in infer.get("indexElems", ()):
                key = node["IndexElem"]
                if not key.keys() <= _KEY:
                    refuse("ON CONFLICT on an expression", at)
                columns.append(key["name"])
        if body["action"] == "ONCONFLICT_NOTHING":
            return tree.Conflict(at, tuple(columns), constraint, (), None)
        if not columns and not constraint:
            raise SyntaxInvalid(
                "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                position=at,
            )
        updates = self._assignments(body["targetList"])
        where = self._expressions.expression(body["whereClause"]) if "whereClause" in body else None
        return tree.Conflict(at, tuple(columns), constraint, updates, where)

    def _assignments(self, nodes: list[Body]) -> tuple[tree.Assignment, ...]:
        found: list[tree.Assignment] = []
        query: tree.Query | None = None  # of SET (a, b) = (SELECT …): one for all of its columns
        for node in nodes:
            body = node["ResTarget"]
            self._expressions.check("ResTarget", body, _ASSIGNED)
            at = self._expressions.at(body)
            part = body["val"].get("MultiAssignRef")
            if part is None:
                value = self._expressions.expression(body["val"])
            else:
                self._expressions.check("MultiAssignRef", part, _PART)
                if part["colno"] == 1:
                    query = self._row(part)
                value = self._part(part, query, at)
            found.append(tree.Assignment(at, body["name"], value))
        return tuple(found)

    def _row(self, part: Body) -> tree.Query | None:
        link = part["source"].get("SubLink")
        if link is None:
            return None
        found = self._expressions.expression(part["source"])
        if not isinstance(found, tree.SubQuery) or found.exists:
            refuse("SET (…) = of one value", found.at)
        return found.query

    def _part(self, part: Body, query: tree.Query | None, at: int) -> tree.Node:
        """Return a column's part of the right side, which each column's mention holds whole: of a
        row only its own part is read."""
        number, width = part["colno"] - 1, part["ncolumns"]
        if query is not None:
            return tree.RowPart(at, query, number, width)
        row = part["source"].get("RowExpr")
        if row is None:
            refuse("SET (…) = of what is no row and no query", at)
        values = row.get("args", [])
        if len(values) != width:
            raise SyntaxInvalid("number of columns does not match number of values", position=at)
        return self._expressions.expression(values[number])

    def _returning(self, body: Body) -> tuple[tree.Target, ...]:
        if "returningClause" not in body:
            return ()
        clause = body["returningClause"]
        self._expressions.check("ReturningClause", clause, _RETURNING)
        return self._queries.targets(clause["exprs"])

    def _update(self, body: Body, *, top: bool) -> tree.Update:
        self._expressions.check("UpdateStmt", body, _UPDATE)
        ctes = self._ctes(body, top=top)
        table = self._queries.table(body["relation"])
        assignments = self._assignments(body["targetList"])
        source = self._queries.sources(body["fromClause"]) if "fromClause" in body else None
        where = self._where(body)
        return tree.Update(table.at, table, assignments, source, where, self._returning(body), ctes)

    def _delete(self, body: Body, *, top: bool) -> tree.Delete:
        self._expressions.check("DeleteStmt", body, _DELETE)
        ctes = self._ctes(body, top=top)
        table = self._queries.table(body["relation"])
        source = self._queries.sources(body["usingClause"]) if "usingClause" in body else None
        where = self._where(body)
        return tree.Delete(table.at, table, source, where, self._returning(body), ctes)

    def _where(self, body: Body) -> tree.Node | None:
        if "whereClause" not in body:
            return None
        return self._expressions.expression(body["whereClause"])

    # ---------------------------------------------------------- MERGE

    def _merge(self, body: Body, *, top: bool) -> tree.Merge:
        self._expressions.check("MergeStmt", body, _MERGE)
        ctes = self._ctes(body, top=top)
        if ctes is not None and ctes.recursive:
            raise SyntaxInvalid(
                "WITH RECURSIVE is not supported for MERGE statement", position=ctes.at
            )
        table = self._queries.table(body["relation"])
        source = self._queries.sources([body["sourceRelation"]])
        condition = self._expressions.expression(body["joinCondition"])
        actions = [
            self._when(node["MergeWhenClause"], table.at) for node in body["mergeWhenClauses"]
        ]
        return tree.Merge(table.at, table, source, condition, tuple(actions), ctes)

    def _when(self, body: Body, at: int) -> tree.MergeAction:
        """Read a WHEN, which does not know its place: that of the table, `at`, is told."""
        self._expressions.check("MergeWhenClause", body, _WHEN)
        matched = _MATCHED.get(body["matchKind"])
        if matched is None:
            refuse("WHEN NOT MATCHED BY SOURCE", at)
        condition = None
        if "condition" in body:
            condition = self._expressions.expression(body["condition"])
        kind = body["commandType"].removeprefix("CMD_")
        if kind == "UPDATE":
            assignments = self._assignments(body["targetList"])
            return tree.MergeAction(kind, matched, condition, assignments)
        if kind != "INSERT":
            return tree.MergeAction(kind, matched, condition)
        columns = self._columns(body["targetList"]) if "targetList" in body else None
        values = self._expressions.listed(body["values"]) if "values" in body else None
        overriding = _OVERRIDING.get(body["override"], "")
        return tree.MergeAction(kind, matched, condition, (), columns, values, overriding)
