"""A bound query → SQLite text. Values are bound, names are made from numbers: nothing of a user's
text becomes SQL.

Emitted natively is only what SQLite does as PostgreSQL would (list in DESIGN.md); all else calls
the catalogue's functions, which the adapter registers under the names used here.
"""

# ruff: noqa: S608 - text is made of numbers and fixed words, values are bound

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from leasehold.model.errors import FeatureNotSupported
from leasehold.sql.binding.bound_tree import (
    Aggregate,
    Apply,
    Bound,
    BoundQuery,
    BoundSelect,
    BoundSet,
    BoundValues,
    Compared,
    CurrentTime,
    Exists,
    Field,
    Key,
    Member,
    Native,
    Output,
    Over,
    Scalar,
    Slot,
    Value,
)
from leasehold.sql.binding.typing import KEYED, ORDER_KEYED, as_key, has_order_key
from leasehold.sql.binding.walk import walk
from leasehold.sql.functions.arrays.array import order_key
from leasehold.sql.functions.function import TEXT, Function, unchanged
from leasehold.sql.functions.system.sequence import COUNTING
from leasehold.sql.planning.emit_from import FromEmitter
from leasehold.sql.planning.emitted import NOTHING, Beside, Emitted, function_name, materialize
from leasehold.sql.planning.key_text import key_text
from leasehold.sql.planning.native import native_text
from leasehold.values.types import Type, null_in_entries, sort_key_of

KEYS: Final = {
    kind.name: Function(f"{kind.name}_key", (kind,), TEXT, sort_key_of(kind) or unchanged)
    for kind in map(Type, sorted(KEYED))
}
_HOLE: Final = re.compile(r"\?([0-9]+)")


class Emitter:
    def __init__(self, parameters: int, beside: Beside = NOTHING) -> None:
        self.made = Emitted(parameters)
        self._from = FromEmitter(self.made, beside, self.expression, self.query)

    def query(self, query: BoundQuery) -> str:
        with_ = self._ctes(query)
        body = query.body
        if isinstance(body, BoundSelect):
            text = self._select(query, body)
        elif isinstance(body, BoundValues):
            text = self._ordered(self._values(body), query.order)
        else:
            text = self._ordered(self._set(body), query.order)
        return with_ + text + self._limits(query)

    def _ctes(self, query: BoundQuery) -> str:
        if not query.ctes:
            return ""
        made = []
        for cte in query.ctes:
            names = _output_names(len(cte.query.columns))
            how = {None: "", True: "MATERIALIZED ", False: "NOT MATERIALIZED "}[cte.materialized]
            body = cte.query.body
            if cte.recursive:
                assert isinstance(body, BoundSet)
                every = "ALL " if body.every else ""
                text = f"{self.nested(body.left)} UNION {every}{self.query(body.right)}"
            else:
                text, draws = self.made.with_draws(lambda q=cte.query: self.query(q))  # type: ignore[misc]
                how = "MATERIALIZED " if draws else how
            made.append(f"w{cte.number}({names}) AS {how}({text})")
        recursive = "RECURSIVE " if any(cte.recursive for cte in query.ctes) else ""
        return f"WITH {recursive}{', '.join(made)} "

    def nested(self, query: BoundQuery) -> str:
        """Return a query as one operand of a set operation."""
        plain = isinstance(query.body, BoundSelect) and query.body.distinct in (None, ())
        if plain and not query.order and not query.ctes and query.limit is query.offset is None:
            return self.query(query)
        return f"SELECT * FROM ({self.query(query)})"

    def _limits(self, query: BoundQuery) -> str:
        text = ""
        if query.limit is not None or query.offset is not None:
            limit = "-1" if query.limit is None else self.expression(query.limit)
            text = f" LIMIT {limit}"
        if query.offset is not None:
            text += f" OFFSET {self.expression(query.offset)}"
        return text

    def _ordered(self, text: str, keys: tuple[Key, ...]) -> str:
        """Return a text with its order. Of a compound SQLite orders columns alone, no expressions
        over them."""
        if any(map(_has_forms, (key.value for key in keys))):
            text = f"SELECT * FROM ({text})"
        return text + self._order(keys)

    def _ordered_outside(self, query: BoundQuery, shown: str, text: str) -> str:
        """An order by what stands for a value of the result. In the SELECT itself its name could be
        that of a column that is read, which SQLite takes first."""
        parts = []
        for number, key in enumerate(query.order):
            name = self._sorted_by(key.value)
            if not isinstance(key.value, Output):
                shown += f", {name} AS s{number}"
                name = f"s{number}"
            parts.append(_directed(name, key))
        body = query.body
        assert isinstance(body, BoundSelect)
        names = _output_names(len(body.outputs))  # with keys and genids of what is verified
        inner = f"SELECT {shown}{text}"
        inner = materialize(inner) if self.made.draws else inner
        return f"SELECT {names} FROM ({inner}) ORDER BY {', '.join(parts)}"

    def _order(self, keys: tuple[Key, ...], outputs: tuple[Bound, ...] = ()) -> str:
        """Return ORDER BY; `outputs` are those of the SELECT that is ordered, where an index may
        have their order."""
        shown = ", ".join(self._key(key, outputs) for key in keys)
        return f" ORDER BY {shown}" if keys else ""

    def _key(self, key: Key, outputs: tuple[Bound, ...]) -> str:
        value = key.value
        if isinstance(value, Output) and outputs and isinstance(outputs[value.number], Field):
            value = outputs[value.number]
        if isinstance(value, Field):
            direction = "DESC" if key.descending else "ASC"
            entry = self._from.entries.get((value.relation, value.name))
            last = null_in_entries(value.kind) == b""  # is a NULL, as in PostgreSQL
            if entry is not None and last and key.nulls_first == key.descending:
                return f"{entry} {direction}"
            if not value.nullable and not _has_forms(value):
                return f"{self.expression(value)} {direction}"
        return _directed(self._sorted_by(value), key)

    def _sorted_by(self, value: Bound) -> str:
        if not isinstance(value, Output):
            return self.expression(as_key(value) if _has_forms(value) else value)
        if not _has_forms(value):
            return str(value.number + 1)
        if has_order_key(value.kind):
            return self._call(order_key(value.kind), f"o{value.number}")
        return key_text(value.kind, f"o{value.number}")

    # ---------------------------------------------------------- bodies

    def _values(self, body: BoundValues) -> str:
        width = len(body.rows[0])
        first, *rest = [[self.expression(part) for part in row] for row in body.rows]
        rows = [f"({', '.join(row)})" for row in rest]
        computed = (p for row in body.rows for p in row if not isinstance(p, Value | Slot))
        if not any(isinstance(node, Field) for part in computed for node in walk(part)):
            shown = ", ".join(f"column{n + 1} AS o{n}" for n in range(width))
            rows.insert(0, f"({', '.join(first)})")
            return f"SELECT {shown} FROM (VALUES {', '.join(rows)})"
        # SQLite names the columns after columns of the query around, if these stand there.
        text = "SELECT " + ", ".join(f"{part} AS o{n}" for n, part in enumerate(first))
        text += f" UNION ALL VALUES {', '.join(rows)}" if rows else ""
        return f"SELECT * FROM ({text})"

    def _set(self, body: BoundSet) -> str:
        left, right = body.left, body.right
        word = body.word.upper()
        kinds = [column.kind for column in left.columns]
        forms = any(k.scale is None and _has_keys([k]) for k in kinds)
        if body.word != "union" and (body.every or forms):
            return self._told_apart(body, kinds)
        if body.word == "union":
            word += " ALL" if body.every else ""
        keyed_union = word == "UNION" and _has_keys(kinds)
        word += " ALL" if keyed_union else ""
        text = f"SELECT * FROM ({self.query(left)}) {word} SELECT * FROM ({self.query(right)})"
        if keyed_union:
            return self._without_equals(text, kinds)
        return text

    def _told_apart(self, body: BoundSet, kinds: list[Type]) -> str:
        """Return INTERSECT and EXCEPT with ALL, or where equal values may look different: rows of
        both sides are grouped by what stands for them (with ALL by their number among equal ones,
        too); the left ones that have, or have not, a right one beside them stay."""
        names = _output_names(len(kinds))
        keys = self._keys(kinds)
        number = f", row_number() OVER (PARTITION BY {keys}) AS n" if body.every else ""
        sides = []
        for side, query in enumerate((body.left, body.right)):
            text, draws = self.made.with_draws(lambda q=query: self.query(q))  # type: ignore[misc]
            text = materialize(text) if draws else text
            sides.append(f"SELECT {names}, {side} AS side{number} FROM ({text})")
        both = " UNION ALL ".join(sides)
        # Beside min(side) alone SQLite shows the columns of a row of that side.
        stays = "count(DISTINCT side) = 2" if body.word == "intersect" else "max(side) = 0"
        by = f"{keys}, n" if body.every else keys
        inner = f"SELECT {names}, min(side) FROM ({both}) GROUP BY {by} HAVING {stays}"
        return f"SELECT {names} FROM ({inner})"

    def _keys(self, kinds: list[Type]) -> str:
        """What stands for o0, o1 … in comparisons."""
        shown: list[str] = []
        for n, kind in enumerate(kinds):
            by_function = kind.name in ORDER_KEYED
            of_number = key_text(kind, f"o{n}") if kind.name in KEYED else f"o{n}"
            shown.append(self._call(order_key(kind), f"o{n}") if by_function else of_number)
        return ", ".join(shown) or "o0"

    def _without_equals(self, text: str, kinds: list[Type]) -> str:
        """Return one of the rows that are equal where equal values may look different, as 1.5 and
        1.50 do."""
        names = _output_names(len(kinds))
        return f"SELECT {names} FROM ({text}) GROUP BY {self._keys(kinds)}"

    def _select(self, query: BoundQuery, body: BoundSelect) -> str:
        terms: list[str] = []
        source = "" if body.source is None else f" FROM {self._from.source(body.source, terms)}"
        outputs = [self.expression(output) for output in body.outputs]
        conditions = terms
        if body.where is not None:
            conditions.append(self.expression(body.where))
        text = source
        if conditions:
            text += f" WHERE {' AND '.join(conditions)}"
        if body.group:
            text += f" GROUP BY {', '.join(self.expression(as_key(g)) for g in body.group)}"
        elif body.aggregated and not _aggregates(body):
            raise FeatureNotSupported(
                "HAVING without GROUP BY and without an aggregate is not supported: write the"
                " condition into a query around this one"
            )
        if body.having is not None:
            text += f" HAVING {self.expression(body.having)}"
        shown = ", ".join(f"{output} AS o{n}" for n, output in enumerate(outputs)) or "1 AS o0"
        if body.distinct:
            return self._distinct_on(query, body, shown, text)
        kinds = [output.kind for output in body.outputs]
        if body.distinct == () and _has_keys(kinds):
            inner = f"SELECT {shown}{text}"
            inner = materialize(inner) if self.made.draws else inner
            return self._without_equals(inner, kinds) + self._order(query.order)
        if body.distinct == ():
            return self._ordered(f"SELECT DISTINCT {shown}{text}", query.order)
        computed = (
            key.value
            for key in query.order
            if isinstance(key.value, Output)
            and not isinstance(body.outputs[key.value.number], Field)
        )
        if any(map(_has_forms, computed)):
            return self._ordered_outside(query, shown, text)
        return f"SELECT {shown}{text}{self._order(query.order, body.outputs)}"

    def _distinct_on(self, query: BoundQuery, body: BoundSelect, shown: str, text: str) -> str:
        def of(part: Bound) -> Bound:
            return body.outputs[part.number] if isinstance(part, Output) else part

        on = ", ".join(self.expression(as_key(of(part))) for part in body.distinct or ())
        keys = tuple(Key(of(k.value), k.descending, k.nulls_first) for k in query.order)
        extra = [f"{self.expression(as_key(key.value))} AS s{n}" for n, key in enumerate(keys)]
        ranked = f"row_number() OVER (PARTITION BY {on}{self._order(keys)}) AS n"
        inner = f"SELECT {', '.join([shown, *extra, ranked])}{text}"
        names = _output_names(len(body.outputs))
        order = ", ".join(
            f"s{n} {'DESC' if k.descending else 'ASC'} NULLS {'FIRST' if k.nulls_first else 'LAST'}"
            for n, k in enumerate(keys)
        )
        return f"SELECT {names} FROM ({inner}) WHERE n = 1{f' ORDER BY {order}' if order else ''}"

    # ---------------------------------------------------------- expressions

    def expression(self, part: Bound) -> str:
        return self._emitters[type(part)](self, part)

    def _value(self, part: Value) -> str:
        return "NULL" if part.value is None else self.made.constant(part.value)

    def _slot(self, part: Slot) -> str:
        return f"?{part.number}"

    def _field(self, part: Field) -> str:
        found = self._from.fields.get((part.relation, part.name))
        return found or f"r{part.relation}.{part.name}"

    def _current_time(self, part: CurrentTime) -> str:
        return self.made.now()

    def _apply(self, part: Apply) -> str:
        return self._call(part.function, *map(self.expression, part.arguments))

    def _call(self, function: Function, *arguments: str) -> str:
        name = function_name(function)
        self.made.functions[name] = function
        self.made.calls_change |= function.volatility != "immutable"
        self.made.calls_stable |= function.volatility == "stable" and not function.zoned
        self.made.calls_stable |= function.steers
        self.made.draws |= function.volatility == "volatile"
        if function.name in COUNTING:
            self.made.counts = True
            self.made.calls_stable |= COUNTING[function.name]
        return f"{name}({', '.join(arguments)})"

    def _native(self, part: Native) -> str:
        word, arguments = part.word, part.arguments
        if word == "key":
            return self._compared_by(arguments[0])
        texts = [self.expression(argument) for argument in arguments]
        return native_text(word, texts)

    def _compared_by(self, part: Bound) -> str:
        """The sort key of a keyed type, for which the value is computed once."""
        if isinstance(part, Value) and part.value is not None:
            key = sort_key_of(part.kind)
            assert key is not None, part.kind
            return self.made.constant(key(part.value))
        text, draws = self.made.with_draws(lambda: self.expression(part))
        return self._call(KEYS[part.kind.name], text) if draws else key_text(part.kind, text)

    def _scalar(self, part: Scalar) -> str:
        text = self.query(part.query)
        if part.single:
            return f"({text})"
        return (
            "(SELECT iif(count(*) > 1, lh_too_many_rows(), o0)"
            f" FROM (SELECT * FROM ({text}) LIMIT 2))"
        )

    def _exists(self, part: Exists) -> str:
        return f"EXISTS ({self.query(part.query)})"

    def _member(self, part: Member) -> str:
        word = "NOT IN" if part.negated else "IN"
        return f"({self.expression(part.operands[0])} {word} ({self.query(part.query)}))"

    def _compared(self, part: Compared) -> str:
        query = self.query(part.query)
        test = self.expression(part.test)
        decided, other, function = ("0", "1", "min") if part.every else ("1", "0", "max")
        return (
            f"(SELECT CASE WHEN {function}(t) = {decided} THEN {decided}"
            f" WHEN count(*) > count(t) THEN NULL ELSE {other} END"
            f" FROM (SELECT {test} AS t FROM ({query}) AS r{part.relation}))"
        )

    def _aggregate(self, part: Aggregate) -> str:
        arguments = [self.expression(argument) for argument in part.arguments]
        if part.name == "group_concat":
            arguments[1] = f"ifnull({arguments[1]}, '')"
        if part.name == "ntile" or part.name == "nth_value":
            arguments[-1] = f"lh_positive({arguments[-1]})"
        inside = ", ".join(arguments) if arguments else ("*" if part.name == "count" else "")
        distinct = "DISTINCT " if part.distinct else ""
        text = f"{self._name_of(part)}({distinct}{inside}{self._order(part.order)})"
        if part.condition is not None:
            text += f" FILTER (WHERE {self.expression(part.condition)})"
        return text if part.over is None else f"{text} OVER ({self._over(part.over)})"

    def _name_of(self, part: Aggregate) -> str:
        if part.function is None:
            return part.name
        name = function_name(part.function) + ("_over" if part.over is not None else "")
        self.made.aggregates[name] = (part.function, part.over is not None)
        return name

    def _over(self, over: Over) -> str:
        parts = []
        if over.partition:
            parts.append(f"PARTITION BY {', '.join(map(self.expression, over.partition))}")
        if over.order:
            parts.append(self._order(over.order).strip())
        frame = over.frame
        if frame is not None:
            bounds = []
            for kind, offset in (
                (frame.start, frame.start_offset),
                (frame.end, frame.end_offset),
            ):
                shown = "" if offset is None else f"{self.expression(offset)} "
                bounds.append(f"{shown}{kind.upper()}")
            exclusion = f" EXCLUDE {frame.exclusion.upper()}" if frame.exclusion else ""
            parts.append(f"{frame.unit.upper()} BETWEEN {' AND '.join(bounds)}{exclusion}")
        return " ".join(parts)

    def _output(self, part: Output) -> str:
        return str(part.number + 1)

    _emitters: Final[dict[type, Callable[[Emitter, Any], str]]] = {
        Value: _value,
        Slot: _slot,
        Field: _field,
        CurrentTime: _current_time,
        Apply: _apply,
        Native: _native,
        Scalar: _scalar,
        Exists: _exists,
        Member: _member,
        Compared: _compared,
        Aggregate: _aggregate,
        Output: _output,
    }


def emit(query: BoundQuery, parameters: int, beside: Beside = NOTHING) -> Emitted:
    """The text of a whole query."""
    emitter = Emitter(parameters, beside)
    made = emitter.made
    made.text = emitter.query(query)
    made.highest = max((int(number) for number in _HOLE.findall(made.text)), default=0)
    return made


def _has_forms(value: Bound) -> bool:
    """Return whether two values that are equal may look different, or are ordered by something
    else."""
    kind = value.kind
    if kind.name in KEYED:
        same = kind.scale is not None and isinstance(value, Field)
        return not same and not (isinstance(value, Native) and value.word == "key")
    return has_order_key(kind)


def _directed(text: str, key: Key) -> str:
    direction = "DESC" if key.descending else "ASC"
    return f"{text} {direction} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


def _output_names(count: int) -> str:
    """Return the names of so many columns in SQLite, where a query without any has one for all."""
    return ", ".join(f"o{n}" for n in range(count)) or "o0"


def _has_keys(kinds: list[Type]) -> bool:
    """Return whether one of the types has equal values that look different."""
    return any(kind.name in KEYED or kind.name in ORDER_KEYED for kind in kinds)


def _aggregates(body: BoundSelect) -> bool:
    parts = [*body.outputs, *([body.having] if body.having is not None else [])]
    return any(isinstance(n, Aggregate) and n.over is None for p in parts for n in walk(p))
