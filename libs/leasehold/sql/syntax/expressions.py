"""PostgreSQL's tree of an expression → `tree.py`'s."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from leasehold.catalog.schema_names import INFORMATION_SCHEMA, LEASEHOLD, PUBLIC, SCHEMAS
from leasehold.model.errors import FeatureNotSupported, OutOfRange, Refused, SyntaxInvalid
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.accounting import Body, handles, refuse, refuse_node, refuse_unread
from leasehold.sql.syntax.depth import too_deep
from leasehold.sql.syntax.present_times import PRECISION_MAX, PRESENT_TIMES
from leasehold.sql.syntax.source import Source
from leasehold.sql.syntax.types import IntervalFields, read_type_name
from leasehold.sql.syntax.windows import read_over
from leasehold.values.interval import span_of_fields, stored_form, text_of

PARAMETERS_MAX: Final = 1_000
DEPTH_MAX: Final = 100
"""Levels of a tree, queries in queries with them: whoever reads it may recurse so far."""

_BASED_DIGITS_MAX: Final = 1_000
COLLATIONS: Final = frozenset({"default", "C", "POSIX", "ucs_basic"})
_BEFORE_OPERANDS: Final = frozenset({"+", "-", "~", "@", "|/", "||/"})
_QUALIFIED: Final = tuple(sorted(SCHEMAS))
_OF_TABLE: Final = 3
"""Parts of the name of a column behind its table's and its schema's."""

_A_EXPR: Final = handles(
    "A_Expr",
    *("kind", "name", "lexpr", "rexpr", "location"),
    *("rexpr_list_start", "rexpr_list_end"),  # where IN's parentheses stand: nobody asks
)
_A_CONST: Final = handles(
    "A_Const",
    *("ival", "fval", "boolval", "sval", "isnull", "location"),
    bsval="a constant of bits (B'…', X'…')",
)
_COLUMN_REF: Final = handles("ColumnRef", "fields", "location")
_PARAM_REF: Final = handles("ParamRef", "number", "location")
_BOOL_EXPR: Final = handles("BoolExpr", "boolop", "args", "location", later=["xpr"])
_NULL_TEST: Final = handles(
    "NullTest", "arg", "nulltesttype", "location", later=["xpr", "argisrow"]
)
_BOOLEAN_TEST: Final = handles("BooleanTest", "arg", "booltesttype", "location", later=["xpr"])
_SUB_LINK: Final = handles(
    "SubLink",
    *("subLinkType", "testexpr", "operName", "subselect", "location"),
    later=["xpr", "subLinkId"],
)
_TYPE_CAST: Final = handles("TypeCast", "arg", "typeName", "location")
_COLLATE: Final = handles("CollateClause", "arg", "collname", "location")
_FUNC_CALL: Final = handles(
    "FuncCall",
    *("funcname", "args", "agg_order", "agg_filter", "over", "agg_star", "agg_distinct"),
    *("funcformat", "location"),
    agg_within_group="WITHIN GROUP",
    func_variadic="VARIADIC",
)
_VALUE_FUNCTION: Final = handles(
    "SQLValueFunction", "op", "typmod", "location", later=["xpr", "type"]
)
_COALESCE: Final = handles(
    "CoalesceExpr", "args", "location", later=["xpr", "coalescetype", "coalescecollid"]
)
_MIN_MAX: Final = handles(
    "MinMaxExpr",
    *("op", "args", "location"),
    later=["xpr", "minmaxtype", "minmaxcollid", "inputcollid"],
)
_GROUPING: Final = handles("GroupingFunc", "args", "location", later=["xpr", "refs", "agglevelsup"])
_CASE: Final = handles(
    "CaseExpr",
    *("arg", "args", "defresult", "location"),
    later=["xpr", "casetype", "casecollid"],
)
_WHEN: Final = handles("CaseWhen", "expr", "result", "location", later=["xpr"])
_ROW: Final = handles(
    "RowExpr", "args", "row_format", "location", later=["xpr", "row_typeid", "colnames"]
)
_ARRAY: Final = handles("A_ArrayExpr", "elements", "location", "list_start", "list_end")
_INDIRECTION: Final = handles("A_Indirection", "arg", "indirection")
_INDICES: Final = handles("A_Indices", "is_slice", "lidx", "uidx")
_SORT_BY: Final = handles(
    "SortBy",
    *("node", "sortby_dir", "sortby_nulls", "location"),
    useOp="ORDER BY … USING",
)
_DEFAULT: Final = handles(
    "SetToDefault", "location", later=["xpr", "typeId", "typeMod", "collation"]
)

_TRUTHS: Final = {
    "IS_TRUE": ("true", False),
    "IS_NOT_TRUE": ("true", True),
    "IS_FALSE": ("false", False),
    "IS_NOT_FALSE": ("false", True),
    "IS_UNKNOWN": ("unknown", False),
    "IS_NOT_UNKNOWN": ("unknown", True),
}
_NULLS: Final = {"SORTBY_NULLS_FIRST": True, "SORTBY_NULLS_LAST": False}


class Expressions:
    """The reader of one statement's expressions. `query` reads a query's body."""

    def __init__(self, source: Source, query: Callable[[Body], tree.Query]) -> None:
        self.source = source
        self.parameters = 0  # the highest number met
        self._query = query
        self._depth = 0
        self._near = 0  # the last place that was known

    def expression(self, node: Body) -> tree.Node:
        """Raises FeatureNotSupported for what is not read here, TooComplex above DEPTH_MAX."""
        ((kind, body),) = node.items()
        read = self._readers.get(kind)
        if read is None:
            refuse_node(self.source, kind, body, self._near)
        self.enter()
        found = read(self, body)
        self.leave()
        return found

    def listed(self, nodes: list[Body]) -> tuple[tree.Node, ...]:
        return tuple([self.expression(node) for node in nodes])

    def enter(self) -> None:
        """Go one level deeper, in an expression or a query. Raises TooComplex above DEPTH_MAX."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise too_deep(self.source.position(self._near))

    def leave(self) -> None:
        self._depth -= 1

    def at(self, body: Body) -> int:
        """A node's position; what the parser itself puts in is where the last one was."""
        location = body.get("location", 0)
        if location < 0:
            location = self._near
        else:
            self._near = location
        return self.source.position(location)

    def check(self, kind: str, body: Body, read: frozenset[str]) -> None:
        """Raises FeatureNotSupported where more is said than is read."""
        if not body.keys() <= read:
            refuse_unread(self.source, kind, body, self._near)

    # ---------------------------------------------------------- operators

    def _operation(self, body: Body) -> tree.Node:
        self.check("A_Expr", body, _A_EXPR)
        return self._operations[body["kind"]](self, body, self.at(body))

    def _operator(self, body: Body, at: int) -> tree.Node:
        sign = self._sign(body["name"], at)
        right = body["rexpr"]
        if "lexpr" in body:
            left = self.expression(body["lexpr"])
            return tree.Binary(at, sign, left, self.expression(right))
        if sign not in _BEFORE_OPERANDS:
            refuse(f"the operator {sign} before an operand", at)
        return tree.Unary(at, sign, self.expression(right))

    def _sign(self, names: list[Body], at: int) -> str:
        *schemas, sign = read_names(names)
        if schemas not in ([], ["pg_catalog"]):
            refuse(f"an operator of the schema {schemas[0]!r:.80}", at)
        return sign

    def _over_array(self, body: Body, at: int) -> tree.Node:
        sign = self._sign(body["name"], at)
        left = self.expression(body["lexpr"])
        every = body["kind"] == "AEXPR_OP_ALL"
        return tree.OverArray(at, left, sign, every, self.expression(body["rexpr"]))

    def _distinct(self, body: Body, at: int) -> tree.Node:
        left = self.expression(body["lexpr"])
        negated = body["kind"] == "AEXPR_NOT_DISTINCT"
        return tree.Distinct(at, left, self.expression(body["rexpr"]), negated)

    def _null_if(self, body: Body, at: int) -> tree.Node:
        left = self.expression(body["lexpr"])
        return tree.Call(at, "nullif", (left, self.expression(body["rexpr"])))

    def _in_list(self, body: Body, at: int) -> tree.Node:
        operand = self.expression(body["lexpr"])
        items = self.listed(items_of(body["rexpr"]))
        return tree.InList(at, operand, items, self._sign(body["name"], at) == "<>")

    def _like(self, body: Body, at: int) -> tree.Node:
        sign = self._sign(body["name"], at)
        operand = self.expression(body["lexpr"])
        pattern, *escape = self._pattern(body["rexpr"], "like_escape")
        return tree.Like(
            *(at, operand, pattern, escape[0] if escape else None),
            *(sign[0] == "!", body["kind"] == "AEXPR_ILIKE"),
        )

    def _similar(self, body: Body, at: int) -> tree.Node:
        """Return SIMILAR TO as PostgreSQL reads it: a regular expression that the pattern is made
        to."""
        operand = self.expression(body["lexpr"])
        arguments = tuple(self._pattern(body["rexpr"], "similar_to_escape"))
        pattern = tree.Call(at, "similar_to_escape", arguments)
        return tree.Binary(at, self._sign(body["name"], at), operand, pattern)

    def _pattern(self, node: Body, escaped: str) -> list[tree.Node]:
        """Return a pattern, and what stands behind ESCAPE, which the parser makes a call of. A call
        that somebody has written has another form."""
        call = node.get("FuncCall")
        if call is not None and read_names(call["funcname"]) == ["pg_catalog", escaped]:
            return [self.expression(argument) for argument in call["args"]]
        return [self.expression(node)]

    def _between(self, body: Body, at: int) -> tree.Node:
        operand = self.expression(body["lexpr"])
        low, high = self.listed(items_of(body["rexpr"]))
        kind = body["kind"]
        negated, symmetric = kind.startswith("AEXPR_NOT"), kind.endswith("SYM")
        return tree.Between(at, operand, low, high, negated, symmetric)

    def _logic(self, body: Body) -> tree.Node:
        self.check("BoolExpr", body, _BOOL_EXPR)
        at = self.at(body)
        word = body["boolop"].removesuffix("_EXPR").lower()
        if word == "not":
            member = body["args"][0].get("SubLink")
            if member is not None and _is_member_test(member):
                found = self._sub_link(member)
                assert isinstance(found, tree.Quantified)
                return replace(found, at=at, sign="<>", every=True)
        return tree.Logic(at, word, self.listed(body["args"]))

    def _null_test(self, body: Body) -> tree.Node:
        self.check("NullTest", body, _NULL_TEST)
        at = self.at(body)
        negated = body["nulltesttype"] == "IS_NOT_NULL"
        return tree.Test(at, self.expression(body["arg"]), "null", negated)

    def _boolean_test(self, body: Body) -> tree.Node:
        self.check("BooleanTest", body, _BOOLEAN_TEST)
        at = self.at(body)
        what, negated = _TRUTHS[body["booltesttype"]]
        return tree.Test(at, self.expression(body["arg"]), what, negated)

    def _sub_link(self, body: Body) -> tree.Node:
        self.check("SubLink", body, _SUB_LINK)
        at = self.at(body)
        kind = body["subLinkType"]
        if kind in ("ANY_SUBLINK", "ALL_SUBLINK"):
            operand = self.expression(body["testexpr"])
            sign = self._sign(body["operName"], at) if "operName" in body else "="
            query = self.query(body["subselect"])
            return tree.Quantified(at, operand, sign, kind == "ALL_SUBLINK", query)
        query = self.query(body["subselect"])
        if kind == "ARRAY_SUBLINK":
            return tree.ArrayQuery(at, query)
        assert kind in ("EXISTS_SUBLINK", "EXPR_SUBLINK"), kind
        return tree.SubQuery(at, query, exists=kind == "EXISTS_SUBLINK")

    def query(self, node: Body) -> tree.Query:
        """Return the query of a node; what a query's place in the grammar takes is always one."""
        self.enter()
        found = self._query(node["SelectStmt"])
        self.leave()
        return found

    # ---------------------------------------------------------- casts

    def _cast(self, body: Body) -> tree.Node:
        self.check("TypeCast", body, _TYPE_CAST)
        location = body.get("location", 0)
        offset = body["typeName"].get("location", 0) if location < 0 else location
        at = self.at({"location": offset})
        target, fields = read_type_name(self.source, body["typeName"], self._near)
        operand = self.expression(body["arg"])
        if fields is not None:
            operand = _with_fields(operand, fields, at)
        return tree.Cast(at, operand, target)

    def _collated(self, body: Body) -> tree.Node:
        self.check("CollateClause", body, _COLLATE)
        at = self.at(body)
        name = read_names(body["collname"])[-1]
        if name not in COLLATIONS:
            raise FeatureNotSupported(
                f"the collation {name!r} is not supported: text is ordered by its bytes, as"
                ' collation "C" does',
                position=at,
            )
        return tree.Collated(at, self.expression(body["arg"]))

    # ---------------------------------------------------------- operands

    def _constant(self, body: Body) -> tree.Node:
        self.check("A_Const", body, _A_CONST)
        at = self.at(body)
        if "sval" in body:
            return tree.Constant(at, "string", body["sval"].get("sval", ""))
        if "ival" in body:
            return tree.Constant(at, "number", str(body["ival"].get("ival", 0)))
        if "fval" in body:
            return tree.Constant(at, "number", _plain_number(body["fval"]["fval"]))
        if "boolval" in body:
            return tree.Constant(at, "true" if body["boolval"].get("boolval") else "false")
        assert body.get("isnull"), body
        return tree.Constant(at, "null")

    def _parameter(self, body: Body) -> tree.Node:
        self.check("ParamRef", body, _PARAM_REF)
        at = self.at(body)
        number = body.get("number", 0)
        if not 1 <= number <= PARAMETERS_MAX:
            raise SyntaxInvalid(f"there is no parameter ${number}", position=at)
        self.parameters = max(self.parameters, number)
        return tree.Parameter(at, number)

    def _column(self, body: Body) -> tree.Node:
        self.check("ColumnRef", body, _COLUMN_REF)
        at = self.at(body)
        fields = body["fields"]
        star = "A_Star" in fields[-1]
        parts = read_names(fields[:-1] if star else fields)
        in_public = False
        if len(parts) == _OF_TABLE - star and parts[0] in _QUALIFIED:
            in_public = parts[0] == PUBLIC
            parts = parts[1:]
        if len(parts) > _OF_TABLE - star:
            refuse("a column of another database", at)
        if star:
            return tree.Star(at, tuple(parts), in_public)
        return tree.Name(at, tuple(parts), in_public)

    def _row(self, body: Body) -> tree.Node:
        self.check("RowExpr", body, _ROW)
        return tree.RowOf(self.at(body), self.listed(body.get("args", [])))

    def _array(self, body: Body) -> tree.Node:
        self.check("A_ArrayExpr", body, _ARRAY)
        at = self.at(body)
        elements = body.get("elements", [])
        return tree.ArrayOf(at, self.listed(elements))

    def _indirection(self, body: Body) -> tree.Node:
        self.check("A_Indirection", body, _INDIRECTION)
        found = self.expression(body["arg"])
        at = self.source.position(self._near)
        for step in body["indirection"]:
            indices = step.get("A_Indices")
            if indices is None:
                found = self._field(found, step, at)
                continue
            self.check("A_Indices", indices, _INDICES)
            is_slice = indices.get("is_slice", False)
            low, high = indices.get("lidx"), indices.get("uidx")
            if not is_slice:
                low, high = high, None
            self.enter()  # each stands within the next one
            found = tree.Subscript(
                at,
                found,
                None if low is None else self.expression(low),
                None if high is None else self.expression(high),
                is_slice,
            )
        for _ in body["indirection"]:
            self.leave()
        return found

    def _field(self, value: tree.Node, step: Body, at: int) -> tree.Node:
        """Return (value).name, of the one kind of record that there is."""
        name = step.get("String", {}).get("sval", "")
        if name not in tree.RECORD_FIELDS:
            refuse("a field of a value", at)
        self.enter()
        return tree.Call(at, f"{tree.FIELD_OF}{name}", (value,))

    def _case(self, body: Body) -> tree.Node:
        self.check("CaseExpr", body, _CASE)
        at = self.at(body)
        subject = self.expression(body["arg"]) if "arg" in body else None
        branches: list[tuple[tree.Node, tree.Node]] = []
        for node in body["args"]:
            branch = node["CaseWhen"]
            self.check("CaseWhen", branch, _WHEN)
            condition = self.expression(branch["expr"])
            branches.append((condition, self.expression(branch["result"])))
        default = self.expression(body["defresult"]) if "defresult" in body else None
        return tree.Case(at, subject, tuple(branches), default)

    def _default(self, body: Body) -> tree.Node:
        self.check("SetToDefault", body, _DEFAULT)
        return tree.DefaultWord(self.at(body))

    # ---------------------------------------------------------- functions

    def _call(self, body: Body) -> tree.Node:
        self.check("FuncCall", body, _FUNC_CALL)
        names = read_names(body["funcname"])
        given = body.get("args", [])
        if body.get("location", 0) < 0 and names[-1] == "timezone" and len(given) == 1:
            refuse("AT LOCAL", self.source.position(self._near))
        at = self.at(body)
        condition = body.get("agg_filter")
        over = body.get("over")
        return tree.Call(
            at,
            self._function(names, at),
            self._arguments(names[-1], body, given),
            star=body.get("agg_star", False),
            distinct=body.get("agg_distinct", False),
            order=self.order_by(body.get("agg_order", [])),
            filter=None if condition is None else self.expression(condition),
            over=None if over is None else read_over(self, over),
        )

    def _function(self, names: list[str], at: int) -> str:
        if names == [INFORMATION_SCHEMA, tree.EXPAND_ARRAY]:
            return tree.EXPAND_ARRAY
        if names[:-1] not in ([], ["pg_catalog"], [LEASEHOLD]):
            refuse(f"a function of the schema {names[0]!r:.80}", at)
        return ".".join(names) if names[0] == LEASEHOLD and len(names) > 1 else names[-1]

    def _arguments(self, name: str, body: Body, given: list[Body]) -> tuple[tree.Node, ...]:
        found = self.listed(given)
        in_words = body.get("funcformat") == "COERCE_SQL_SYNTAX"
        if in_words and name == "extract" and isinstance(found[0], tree.Constant):
            return (replace(found[0], text=found[0].text.lower()), *found[1:])
        return found

    def _value_function(self, body: Body) -> tree.Node:
        self.check("SQLValueFunction", body, _VALUE_FUNCTION)
        at = self.at(body)
        word = body["op"].removeprefix("SVFOP_").removesuffix("_N").lower()
        digits = body.get("typmod", 0)
        if digits < 0:
            return tree.Call(at, word)
        kind = tree.TypeName(at, PRESENT_TIMES[word], (min(digits, PRECISION_MAX),))
        return tree.Cast(at, tree.Call(at, word), kind)

    def _coalesce(self, body: Body) -> tree.Node:
        self.check("CoalesceExpr", body, _COALESCE)
        return tree.Call(self.at(body), "coalesce", self.listed(body["args"]))

    def _extreme(self, body: Body) -> tree.Node:
        self.check("MinMaxExpr", body, _MIN_MAX)
        name = body["op"].removeprefix("IS_").lower()
        return tree.Call(self.at(body), name, self.listed(body["args"]))

    def _grouping(self, body: Body) -> tree.Node:
        self.check("GroupingFunc", body, _GROUPING)
        return tree.Call(self.at(body), "grouping", self.listed(body["args"]))

    # ---------------------------------------------------------- orders

    def order_by(self, nodes: list[Body]) -> tuple[tree.SortKey, ...]:
        return tuple([self._sort_key(node["SortBy"]) for node in nodes])

    def _sort_key(self, body: Body) -> tree.SortKey:
        self.check("SortBy", body, _SORT_BY)
        node = self.expression(body["node"])
        descending = body.get("sortby_dir") == "SORTBY_DESC"
        return tree.SortKey(node, descending, _NULLS.get(body["sortby_nulls"]))

    _operations: Final[dict[str, Callable[[Expressions, Body, int], tree.Node]]] = {
        "AEXPR_OP": _operator,
        "AEXPR_OP_ANY": _over_array,
        "AEXPR_OP_ALL": _over_array,
        "AEXPR_DISTINCT": _distinct,
        "AEXPR_NOT_DISTINCT": _distinct,
        "AEXPR_NULLIF": _null_if,
        "AEXPR_IN": _in_list,
        "AEXPR_LIKE": _like,
        "AEXPR_ILIKE": _like,
        "AEXPR_SIMILAR": _similar,
        "AEXPR_BETWEEN": _between,
        "AEXPR_NOT_BETWEEN": _between,
        "AEXPR_BETWEEN_SYM": _between,
        "AEXPR_NOT_BETWEEN_SYM": _between,
    }
    _readers: Final[dict[str, Callable[[Expressions, Body], tree.Node]]] = {
        "A_Expr": _operation,
        "BoolExpr": _logic,
        "NullTest": _null_test,
        "BooleanTest": _boolean_test,
        "SubLink": _sub_link,
        "TypeCast": _cast,
        "CollateClause": _collated,
        "A_Const": _constant,
        "ParamRef": _parameter,
        "ColumnRef": _column,
        "RowExpr": _row,
        "A_ArrayExpr": _array,
        "A_Indirection": _indirection,
        "CaseExpr": _case,
        "SetToDefault": _default,
        "FuncCall": _call,
        "SQLValueFunction": _value_function,
        "CoalesceExpr": _coalesce,
        "MinMaxExpr": _extreme,
        "GroupingFunc": _grouping,
    }


def read_names(nodes: list[Body]) -> list[str]:
    """Return the names of a list."""
    return [node["String"].get("sval", "") for node in nodes]


def items_of(node: Body) -> list[Body]:
    items: list[Body] = node["List"]["items"]
    return items


def _is_member_test(body: Body) -> bool:
    """Return whether it is IN (query); = ANY of it has the operator's name."""
    return body["subLinkType"] == "ANY_SUBLINK" and "operName" not in body


def _plain_number(text: str) -> str:
    """0x1F, 0b1 and 1_000 in digits alone: of numbers above 32 bits the parser gives the text."""
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    digits = digits.replace("_", "")
    base = {"0x": 16, "0o": 8, "0b": 2}.get(digits[:2].lower())
    if base is None:
        return sign + digits
    if len(digits) > _BASED_DIGITS_MAX:
        raise OutOfRange(f"a constant in base {base} has at most {_BASED_DIGITS_MAX} digits")
    return sign + str(int(digits, base))


def _with_fields(operand: tree.Node, fields: IntervalFields, at: int) -> tree.Node:
    """INTERVAL '1' DAY: the text that has these units."""
    if not isinstance(operand, tree.Constant) or operand.kind != "string":
        refuse("a cast to INTERVAL with fields: write them behind a constant; it", at)
    try:
        span = span_of_fields(operand.text, *fields)
        return replace(operand, text=text_of(stored_form(span)))
    except Refused as error:
        said: dict[str, Any] = {**error.detail, "position": operand.at}
        raise type(error)(error.message, **said) from error
