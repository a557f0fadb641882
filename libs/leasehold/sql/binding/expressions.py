"""The tree of an expression → a bound one: names resolved, types known, PostgreSQL's meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from leasehold.model.budget import charge
from leasehold.model.errors import (
    FeatureNotSupported,
    Refused,
    SyntaxInvalid,
    UnknownFunction,
    WrongType,
)
from leasehold.sql.binding import (
    aggregates,
    arrays,
    grouping_sets,
    row_values,
)
from leasehold.sql.binding import (
    overlaps as query_overlaps,
)
from leasehold.sql.binding.aggregates import AGGREGATES, WINDOWS
from leasehold.sql.binding.bound_tree import (
    OPEN,
    Bound,
    BoundQuery,
    BoundSelect,
    Compared,
    CurrentTime,
    Exists,
    Field,
    Key,
    Member,
    Native,
    Scalar,
    Slot,
    Value,
    join_parts,
)
from leasehold.sql.binding.needed_privileges import Needs
from leasehold.sql.binding.order import as_sort_key
from leasehold.sql.binding.planning_work import BIND_WORK
from leasehold.sql.binding.scope import Scope
from leasehold.sql.binding.typing import (
    COMPARISONS,
    KEYED,
    ORDER_KEYED,
    PLAIN,
    Typing,
    as_key,
    known_or_none,
    without_length,
)
from leasehold.sql.binding.walk import draws, refuse_copies
from leasehold.sql.functions.function import BOOLEAN, TEXT, TIMESTAMPTZ
from leasehold.sql.functions.registry import SET_NAMES, function_for
from leasehold.sql.functions.resolution import nullif_type, number_constant
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.null_counts import NULL_COUNTS, count_nulls
from leasehold.sql.syntax.positions import refused_at
from leasehold.sql.syntax.types import type_of
from leasehold.values.catalog_types import SYSTEM_TYPES
from leasehold.values.enums import Enumeration
from leasehold.values.types import Type, element_of

_DATETIMES: Final = {
    "now": "timestamptz",
    "current_timestamp": "timestamptz",
    "transaction_timestamp": "timestamptz",
    "statement_timestamp": "timestamptz",
    "localtimestamp": "timestamp",
    "localtime": "time",
    "current_time": "timetz",
    "current_date": "date",
}
LISTED_CONSTANTS_MAX: Final = 1_000
"""Of IN (…): more stand in one array, since SQLite takes 32,766 values for a statement."""
_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


class Queries(Protocol):
    """What an expression needs of the binder of queries."""

    typing: Typing
    needs: Needs

    def bind_query(self, query: tree.Query, parent: Scope | None) -> BoundQuery: ...

    def new_relation(self) -> int: ...

    def find_enum(self, name: str) -> Enumeration | None: ...

    def as_called(self, kind: Type) -> Type: ...


class Expressions:
    """The binder of the expressions of one level of a query. `clause` is the clause that they stand
    in, for what may not stand there."""

    def __init__(self, queries: Queries, scope: Scope) -> None:
        self.queries = queries
        self.typing = queries.typing
        self.scope = scope
        self.clause = ""
        self.windows: dict[str, tree.Window] = {}
        self.sets = arrays.Sets()
        self.only_rows = row_values.OnlyRows()
        self.inside = 0  # aggregates around

    def bind(self, node: tree.Node) -> Bound:
        charge(BIND_WORK)
        found = self._binders.get(type(node))
        if found is None:
            raise SyntaxInvalid("syntax error at or near '*'", position=node.at)
        return found(self, node)

    def settle(self, node: tree.Node) -> Bound:
        return self.typing.settle(self.bind(node), node.at)

    def bind_condition(self, node: tree.Node, what: str) -> Bound:
        bound = self.bind(node)
        kind = self.typing.kind_of(bound)
        if kind not in (OPEN, BOOLEAN):
            raise WrongType(
                f"argument of {what} must be type boolean, not type {kind}", position=node.at
            )
        return self.typing.convert(bound, BOOLEAN, node.at)

    # ---------------------------------------------------------- leaves

    def _constant(self, node: tree.Constant) -> Bound:
        match node.kind:
            case "string":
                return Value(OPEN, node.text)
            case "null":
                return Value(OPEN, None)
            case "number":
                with refused_at(node.at):
                    return Value(*number_constant(node.text))
        return Value(BOOLEAN, int(node.kind == "true"))

    def _parameter(self, node: tree.Parameter) -> Bound:
        return Slot(node.number, self.typing.types.get(node.number, OPEN))

    def _name(self, node: tree.Name) -> Bound:
        bound, scope = self.scope.resolve(node.said, node.at)
        self.queries.needs.read(bound)
        for field in (bound,) if isinstance(bound, Field) else ():
            if not (scope is self.scope and self.inside):
                scope.mentions.append((field, node.at))
        return bound

    def _default(self, node: tree.DefaultWord) -> Bound:
        raise SyntaxInvalid("DEFAULT is not allowed in this context", position=node.at)

    # ---------------------------------------------------------- operators

    def _unary(self, node: tree.Unary) -> Bound:
        part = self.bind(node.operand)
        kind = self.typing.kind_of(part)
        if node.sign == "+":
            return part
        with refused_at(node.at):
            function = function_for(node.sign, (known_or_none(kind),))
        return self.typing.call(function, [part], node.at)

    def _binary(self, node: tree.Binary) -> Bound:
        if node.sign in COMPARISONS:
            if isinstance(node.left, tree.RowOf) or isinstance(node.right, tree.RowOf):
                return row_values.compare_rows(self, node)
            left, right = self.bind(node.left), self.bind(node.right)
            return self.typing.compare(node.sign, left, right, node.at)
        left, right = self.bind(node.left), self.bind(node.right)
        return self.typing.operate(node.sign, left, right, node.at)

    def _logic(self, node: tree.Logic) -> Bound:
        parts = tuple(self.bind_condition(part, node.word.upper()) for part in node.parts)
        return Native(node.word, parts, BOOLEAN)

    def _test(self, node: tree.Test) -> Bound:
        word = f"is {'not ' if node.negated else ''}"
        if node.what in ("true", "false", "unknown"):
            part = self.bind_condition(node.operand, f"IS {node.what.upper()}")
            return Native(
                f"{word}{'null' if node.what == 'unknown' else node.what}", (part,), BOOLEAN
            )
        if isinstance(node.operand, tree.RowOf):
            # A row is null when all its fields are, and "is not null" when none is.
            fields = [self.bind(item) for item in node.operand.items]
            return join_parts("and", tuple(Native(f"{word}null", (f,), BOOLEAN) for f in fields))
        return Native(f"{word}null", (self.bind(node.operand),), BOOLEAN)

    def _distinct(self, node: tree.Distinct) -> Bound:
        if isinstance(node.left, tree.RowOf) or isinstance(node.right, tree.RowOf):
            raise FeatureNotSupported(
                "IS DISTINCT FROM over rows is not supported", position=node.at
            )
        left, right = self.bind(node.left), self.bind(node.right)
        kind = self.typing.comparison_type("=", left, right, node.at)
        kinds = {self.typing.kind_of(left), self.typing.kind_of(right)} - {OPEN}
        if kind is None and len(kinds) == 1 and all(map(element_of, kinds)):
            kind = kinds.pop()
        if kind is None:
            raise FeatureNotSupported(
                "IS DISTINCT FROM of these types is not supported", position=node.at
            )
        left = as_key(self.typing.convert(left, kind, node.at))
        right = as_key(self.typing.convert(right, kind, node.at))
        return Native("same as" if node.negated else "other than", (left, right), BOOLEAN)

    def _between(self, node: tree.Between) -> Bound:
        part, low, high = (self.bind(n) for n in (node.operand, node.low, node.high))
        refuse_copies(2, node.at, *((part, low, high) if node.symmetric else (part,)))
        compared = self.typing.compare
        inside: Bound = Native(
            "and",
            (compared(">=", part, low, node.at), compared("<=", part, high, node.at)),
            BOOLEAN,
        )
        if node.symmetric:
            other = (compared(">=", part, high, node.at), compared("<=", part, low, node.at))
            inside = Native("or", (inside, Native("and", other, BOOLEAN)), BOOLEAN)
        return Native("not", (inside,), BOOLEAN) if node.negated else inside

    def _in(self, node: tree.InList) -> Bound:
        if isinstance(node.operand, tree.RowOf):
            tests: list[Bound] = []
            for item in node.items:
                test = tree.Binary(node.at, "=", node.operand, item)
                tests.append(row_values.compare_rows(self, test))
                if len(tests) == 1:
                    refuse_copies(len(node.items), node.at, tests[0])
            found = join_parts("or", tuple(tests))
            if len(tests) > 1 and draws(tests[0]):
                raise _computed_again("(…) IN", node.at)
            return Native("not", (found,), BOOLEAN) if node.negated else found
        parts = [self.bind(n) for n in (node.operand, *node.items)]
        try:
            kind = self.typing.find_common(parts, node.at, "IN")
        except WrongType:
            kind = None
        if kind == OPEN:
            kind = TEXT
        if kind is None or not (kind.name in PLAIN or kind.name in KEYED | ORDER_KEYED):
            equal = [self.typing.compare("=", parts[0], p, node.at) for p in parts[1:]]
            found = join_parts("or", tuple(equal))
            if len(equal) > 1 and draws(parts[0]):
                raise _computed_again("IN", node.at)
        else:
            operand, *items = [self.typing.convert(part, kind, node.at) for part in parts]
            constants = [item for item in items if isinstance(item, Value)]
            many = len(items) > LISTED_CONSTANTS_MAX and len(constants) == len(items)
            if many and kind.name not in SYSTEM_TYPES:
                found = arrays.bind_in_array(self, operand, constants, kind)
            else:
                found = Native("in", tuple(map(as_key, (operand, *items))), BOOLEAN)
        return Native("not", (found,), BOOLEAN) if node.negated else found

    def _like(self, node: tree.Like) -> Bound:
        typing = self.typing
        left, pattern = self.bind(node.operand), self.bind(node.pattern)
        if node.escape is not None:
            escape = typing.convert(self.bind(node.escape), TEXT, node.at)
            pattern = self.call("like_escape", [typing.settle(pattern, node.at), escape], node.at)
        sign = "~~*" if node.insensitive else "~~"
        found = typing.operate(sign, left, pattern, node.at)
        return Native("not", (found,), BOOLEAN) if node.negated else found

    def _case(self, node: tree.Case) -> Bound:
        typing = self.typing
        conditions: list[Bound] = []
        subject = None if node.subject is None else self.settle(node.subject)
        if subject is not None:
            refuse_copies(len(node.branches), node.at, subject)
        for test, _ in node.branches:
            if subject is None:
                conditions.append(self.bind_condition(test, "CASE/WHEN"))
            else:
                conditions.append(typing.compare("=", subject, self.bind(test), test.at))
        results = [self.bind(result) for _, result in node.branches]
        results.append(Value(OPEN, None) if node.default is None else self.bind(node.default))
        places = [result.at for _, result in node.branches]
        places.append(node.at if node.default is None else node.default.at)
        kind, results = typing.unify(results, node.at, "CASE", places)
        parts: list[Bound] = []
        word = "case"
        if subject is not None and len(conditions) > 1 and draws(subject):
            conditions = [_other_side(part, subject, node.at) for part in conditions]
            word, parts = "case of", [subject]
        for condition, result in zip(conditions, results, strict=False):
            parts += (condition, result)
        return Native(word, (*parts, results[-1]), kind)

    def _cast(self, node: tree.Cast) -> Bound:
        if isinstance(node.operand, tree.ArrayOf) and node.target.array:
            target = type_of(node.target, self.queries.find_enum)
            return arrays.bind_array(self, node.operand, target)
        part = self.bind(node.operand)
        at = node.operand.at if self.typing.kind_of(part) == OPEN else node.at
        return self.typing.cast(part, type_of(node.target, self.queries.find_enum), at)

    def _collated(self, node: tree.Collated) -> Bound:
        part = self.bind(node.operand)
        kind = self.typing.kind_of(part)
        if kind != OPEN and kind.name not in ("text", "varchar", "char", "name"):
            raise WrongType(f"collations are not supported by type {kind}", position=node.at)
        return part

    def _row(self, node: tree.RowOf) -> Bound:
        raise FeatureNotSupported("a row as a value is not supported", position=node.at)

    # ---------------------------------------------------------- queries inside

    def _subquery(self, node: tree.SubQuery) -> Bound:
        query = self.queries.bind_query(node.query, self.scope)
        if node.exists:
            return Exists(query, BOOLEAN)
        if len(query.columns) != 1:
            raise SyntaxInvalid("subquery must return only one column", position=node.at)
        return Scalar(query, query.columns[0].kind, _gives_one_row(query))

    def _quantified(self, node: tree.Quantified) -> Bound:
        operands = (
            [self.bind(item) for item in node.operand.items]
            if isinstance(node.operand, tree.RowOf)
            else [self.bind(node.operand)]
        )
        query = self.queries.bind_query(node.query, self.scope)
        if len(query.columns) != len(operands):
            few = "few" if len(query.columns) < len(operands) else "many"
            raise SyntaxInvalid(f"subquery has too {few} columns", position=node.at)
        relation = self.queries.new_relation()
        fields: list[Bound] = [
            Field(relation, f"o{n}", column.kind, column.nullable)
            for n, column in enumerate(query.columns)
        ]
        if len(operands) == 1:
            test = self.typing.test(node.sign, operands[0], fields[0], node.at)
        elif node.sign not in COMPARISONS:
            raise FeatureNotSupported(
                f"{node.sign} ANY or ALL over rows is not supported", position=node.at
            )
        else:
            pairs = list(zip(operands, fields, strict=True))
            test = row_values.bind_row_test(self, node.sign, pairs, node.at)
        member = _as_member(test, fields, query, node)
        if draws(*operands) and (member is None or len(operands) > 1):
            raise _computed_again("comparing with the rows of a query", node.at)
        return member or Compared(test, query, relation, node.every, BOOLEAN)

    # ---------------------------------------------------------- functions

    def _call(self, node: tree.Call) -> Bound:
        name = node.name
        if name in AGGREGATES or name in WINDOWS or node.over is not None:
            return aggregates.bind_aggregate(self, node)
        if node.star or node.distinct or node.order or node.filter is not None:
            raise SyntaxInvalid(f"{name} is not an aggregate function", position=node.at)
        if name in _DATETIMES and not node.arguments:
            now = CurrentTime(TIMESTAMPTZ)
            return self.typing.cast(now, Type(_DATETIMES[name]), node.at)
        if name in ("coalesce", "greatest", "least", "nullif"):
            return self._list_function(node)
        if name in NULL_COUNTS and node.arguments:
            return self.bind(count_nulls(node))
        if name == "pg_typeof" and len(node.arguments) == 1:
            kind = self.typing.kind_of(self.bind(node.arguments[0]))
            if kind == OPEN:
                raise FeatureNotSupported("pg_typeof of unknown is not supported", position=node.at)
            said = str(without_length(self.queries.as_called(kind)))
            return self.typing.cast(Value(TEXT, said), Type("regtype"), node.at)
        if name == grouping_sets.NAME:
            return grouping_sets.bind_grouping(self, node)
        if name == query_overlaps.NAME:
            return query_overlaps.bind_overlaps(self, node)
        if name in SET_NAMES:
            return self.sets.field(self, node)
        return self.call(name, [self.bind(argument) for argument in node.arguments], node.at)

    def call(self, name: str, arguments: list[Bound], at: int) -> Bound:
        kinds = [self.typing.kind_of(argument) for argument in arguments]
        with refused_at(at):
            function = function_for(name, tuple(known_or_none(kind) for kind in kinds))
        return self.typing.call(function, arguments, at)

    def _list_function(self, node: tree.Call) -> Bound:
        parts = [self.bind(argument) for argument in node.arguments]
        name, at = node.name, node.at
        if name == "nullif":
            if len(parts) != 2:
                raise SyntaxInvalid("NULLIF takes two arguments", position=at)
            left, other = parts[0], self.typing.kind_of(parts[1])
            if self.typing.kind_of(left) == OPEN and other != OPEN:
                left = self.typing.convert(left, without_length(other), at)
            left = self.typing.settle(left, at)
            left = self.typing.convert(left, nullif_type(left.kind, other), at)
            equal = self.typing.compare("=", left, parts[1], at)
            if isinstance(equal, Native) and equal.word == "=" and equal.arguments[0] is left:
                return Native("nullif", equal.arguments, left.kind)  # it computes each once
            if draws(left):
                raise _computed_again("NULLIF", at)
            return Native("case", (equal, Value(left.kind, None), left), left.kind)
        if not parts:
            raise SyntaxInvalid(f"{name.upper()} takes at least one argument", position=at)
        kind, parts = self.typing.unify(parts, at, name.upper())
        if name == "coalesce":
            return Native("coalesce", tuple(parts), kind) if len(parts) > 1 else parts[0]
        # char(n) is stored without the blanks that fill it up, which count for nothing.
        if kind.name not in PLAIN | KEYED | ORDER_KEYED and kind.name != "char":
            raise UnknownFunction(
                f"could not identify a comparison function for type {kind}", position=at
            )
        by = " by key" if kind.name in KEYED else " by order" if kind.name in ORDER_KEYED else ""
        word = f"{name}{by}"
        return Native(word, tuple(parts), kind)

    def bind_sort_keys(self, keys: tuple[tree.SortKey, ...]) -> tuple[Key, ...]:
        return tuple(
            Key(as_sort_key(self.settle(key.node), key.node.at), key.descending, key.first)
            for key in keys
        )

    _binders: Final[dict[type, Callable[..., Bound]]] = {
        tree.Constant: _constant,
        tree.Parameter: _parameter,
        tree.Name: _name,
        tree.DefaultWord: _default,
        tree.Unary: _unary,
        tree.Binary: _binary,
        tree.Logic: _logic,
        tree.Test: _test,
        tree.Distinct: _distinct,
        tree.Between: _between,
        tree.InList: _in,
        tree.Quantified: _quantified,
        tree.OverArray: arrays.bind_over_array,
        tree.ArrayOf: arrays.bind_array,
        tree.ArrayQuery: arrays.bind_array_query,
        tree.Subscript: arrays.bind_subscript,
        tree.Like: _like,
        tree.Case: _case,
        tree.Cast: _cast,
        tree.Collated: _collated,
        tree.RowOf: _row,
        tree.RowPart: lambda self, node: self.only_rows.part(self, node),
        tree.SubQuery: _subquery,
        tree.Call: _call,
    }


def _other_side(test: Bound, subject: Bound, at: int) -> Bound:
    """What SQLite's own CASE compares its subject with, which it computes once."""
    if isinstance(test, Native) and test.word == "=" and test.arguments[0] is subject:
        return test.arguments[1]
    raise _computed_again("CASE", at)


def _computed_again(what: str, at: int) -> Refused:
    return FeatureNotSupported(
        f"{what} of a value that changes from call to call is not supported: compute it in a query"
        " in FROM",
        position=at,
    )


def _as_member(
    test: Bound, fields: list[Bound], query: BoundQuery, node: tree.Quantified
) -> Bound | None:
    """Return IN or NOT IN where the query's columns are compared as they are, so that SQLite
    computes what is looked for once; else None."""
    if (node.sign, node.every) not in (("=", False), ("<>", True)) or len(fields) > 1:
        return None
    if not isinstance(test, Native) or test.word != node.sign:
        return None
    (sought, compared) = test.arguments
    if isinstance(compared, Native) and compared.word == "same":  # of another type, stored alike
        (compared,) = compared.arguments
    return Member((sought,), query, node.every, BOOLEAN) if compared == fields[0] else None


def _gives_one_row(query: BoundQuery) -> bool:
    body = query.body
    if isinstance(body, BoundSelect):
        if body.aggregated and not body.group:
            return True
        if body.source is None:
            return True
    limit = query.limit
    return isinstance(limit, Value) and limit.value in (0, 1)
