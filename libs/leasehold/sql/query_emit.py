"""A bound query → SQLite text. Values are bound, names are made from numbers: nothing of a user's
text becomes SQL.

Emitted natively is only what SQLite does as PostgreSQL would (list in DESIGN.md); all else calls
the catalogue's functions, which the adapter registers under the names used here.
"""

# ruff: noqa: S608 - text is made of numbers and fixed words, values are bound

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from leasehold.model.errors import FeatureNotSupported
from leasehold.schema.types import Type, element_of
from leasehold.sql import aggregates
from leasehold.sql.catalog_shape import Relation
from leasehold.sql.function import NUMERIC, TEXT, Function
from leasehold.sql.functions_array import order_key
from leasehold.sql.functions_sequence import COUNTING
from leasehold.sql.physical import (
    column_name,
    entries_name,
    history_name,
    lock_name,
    shadow_name,
    table_name,
)
from leasehold.sql.query_bound import (
    Access,
    Aggregate,
    Apply,
    Bound,
    BoundQuery,
    BoundSelect,
    BoundSet,
    BoundSource,
    BoundValues,
    Compared,
    CteSource,
    ElementsSource,
    Exists,
    Field,
    JoinSource,
    Key,
    Member,
    Moment,
    Native,
    Output,
    Over,
    Scalar,
    SeriesSource,
    Slot,
    SubSource,
    SystemSource,
    TableSource,
    Value,
)
from leasehold.sql.query_native import native_text
from leasehold.sql.query_typing import KEYED, keyed
from leasehold.sql.query_walk import walk

_NAMES: dict[Function | aggregates.Aggregate, str] = {}
_NUMBERS: Final = count(1)
OWN_ROWS: Final = "o"
NUMERIC_KEY: Final = Function("numeric_key", (NUMERIC,), TEXT, lambda stored: stored[:-1])
"""Under this name own rows are looked through for one that hides a committed one."""
_HOLE: Final = re.compile(r"\?([0-9]+)")


@dataclass(frozen=True, slots=True)
class Beside:
    """What a mention of a table shows beside, or in the place of, rows that are committed now, by
    table id. `own`: rows that the transaction has written. `past`: it is read as of an LSN, and
    some of its rows were replaced since."""

    own: frozenset[int] = frozenset()
    past: frozenset[int] = frozenset()

    @property
    def tables(self) -> frozenset[int]:
        return self.own | self.past


NOTHING: Final = Beside()


class Emitted:
    """`text` with ?1 … ?P for the parameters and more for `constants`, in their order. `as_of_at`:
    the place of the LSN that is read as of; behind it stands the first genid that is later.

    `highest`: the number of the last hole, behind which values are not taken.
    `draws`: it calls what is random, or changes from call to call; `counts`: of that, what draws
    numbers from sequences.
    `functions` and `aggregates`: of the catalogue, by the name they are called by; the latter
    with whether they run in windows. `systems`: system relations by the name of their table.
    """

    def __init__(self, parameters: int) -> None:
        self.parameters = parameters
        self.text = ""
        self.constants: list[Any] = []
        self.functions: dict[str, Function] = {}
        self.aggregates: dict[str, tuple[aggregates.Aggregate, bool]] = {}
        self.systems: dict[str, Relation] = {}
        self.now_at: int | None = None
        self.as_of_at: int | None = None
        self.highest = 0
        self.calls_change = self.calls_stable = self.draws = self.counts = False
        self._numbers: dict[tuple[type, Any], int] = {}

    @property
    def depends_on_moment(self) -> bool:
        """Does what it gives change from call to call?"""
        return self.now_at is not None or self.calls_change

    @property
    def asks_system(self) -> bool:
        """Does it ask what is no table's, of the database, the session or the node?"""
        return self.calls_stable or bool(self.systems)

    def constant(self, value: Any) -> str:
        name = (type(value), repr(value) if isinstance(value, float) else value)
        number = self._numbers.get(name)
        if number is None:
            self.constants.append(value)
            number = self._numbers[name] = self.parameters + len(self.constants)
        return f"?{number}"

    def now(self) -> str:
        if self.now_at is None:
            self.constants.append(None)
            self.now_at = len(self.constants) - 1
        return f"?{self.parameters + self.now_at + 1}"

    def as_of(self) -> tuple[str, str]:
        """The LSN, and the first genid after it."""
        if self.as_of_at is None:
            self.constants += [None, None]
            self.as_of_at = len(self.constants) - 2
        first = self.parameters + self.as_of_at + 1
        return f"?{first}", f"?{first + 1}"


class Emitter:
    def __init__(self, parameters: int, beside: Beside = NOTHING) -> None:
        self.made = Emitted(parameters)
        self._beside = beside
        self._fields: dict[tuple[int, str], str] = {}
        self._entries: dict[tuple[int, str], str] = {}

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
            names = ", ".join(f"o{n}" for n in range(len(cte.query.columns)))
            how = {None: "", True: "MATERIALIZED ", False: "NOT MATERIALIZED "}[cte.materialized]
            body = cte.query.body
            if cte.recursive:
                assert isinstance(body, BoundSet)
                every = "ALL " if body.every else ""
                text = f"{self.nested(body.left)} UNION {every}{self.query(body.right)}"
            else:
                text, draws = self._with_draws(lambda q=cte.query: self.query(q))  # type: ignore[misc]
                how = "MATERIALIZED " if draws else how
            made.append(f"w{cte.number}({names}) AS {how}({text})")
        recursive = "RECURSIVE " if any(cte.recursive for cte in query.ctes) else ""
        return f"WITH {recursive}{', '.join(made)} "

    def nested(self, query: BoundQuery) -> str:
        """As one operand of a set operation."""
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
        """Of a compound SQLite orders columns alone, no expressions over them."""
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
        names = ", ".join(f"o{n}" for n in range(len(query.columns)))
        inner = f"SELECT {shown}{text}"
        inner = _once(inner) if self.made.draws else inner
        return f"SELECT {names} FROM ({inner}) ORDER BY {', '.join(parts)}"

    def _order(self, keys: tuple[Key, ...], outputs: tuple[Bound, ...] = ()) -> str:
        """`outputs`: those of the SELECT that is ordered, where an index may have their order."""
        shown = ", ".join(self._key(key, outputs) for key in keys)
        return f" ORDER BY {shown}" if keys else ""

    def _key(self, key: Key, outputs: tuple[Bound, ...]) -> str:
        value = key.value
        if isinstance(value, Output) and outputs and isinstance(outputs[value.number], Field):
            value = outputs[value.number]
        if isinstance(value, Field):
            direction = "DESC" if key.descending else "ASC"
            entry = self._entries.get((value.relation, value.name))
            if entry is not None and key.nulls_first == key.descending:
                return f"{entry} {direction}"  # a NULL's x'' sorts last, as in PostgreSQL
            if not value.nullable and not _has_forms(value):
                return f"{self.expression(value)} {direction}"
        return _directed(self._sorted_by(value), key)

    def _sorted_by(self, value: Bound) -> str:
        if not isinstance(value, Output):
            return self.expression(keyed(value) if _has_forms(value) else value)
        if not _has_forms(value):
            return str(value.number + 1)
        if element_of(value.kind):
            return self._call(order_key(value.kind), f"o{value.number}")
        return _key_of(f"o{value.number}")

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
        if body.word == "union":
            word += " ALL" if body.every else ""
        elif body.every:
            return self._counted(body, word)
        kinds = [column.kind for column in left.columns]
        keyed_union = word == "UNION" and _has_keys(kinds)
        word += " ALL" if keyed_union else ""
        text = f"SELECT * FROM ({self.query(left)}) {word} SELECT * FROM ({self.query(right)})"
        if keyed_union:
            return _without_equals(text, kinds)
        return text

    def _counted(self, body: BoundSet, word: str) -> str:
        """INTERSECT ALL and EXCEPT ALL: equal rows are told apart by their number."""
        names = ", ".join(f"o{n}" for n in range(len(body.left.columns)))
        numbered = [
            f"SELECT {names}, row_number() OVER (PARTITION BY {names}) AS n FROM ({self.query(q)})"
            for q in (body.left, body.right)
        ]
        return f"SELECT {names} FROM ({numbered[0]} {word} {numbered[1]})"

    def _select(self, query: BoundQuery, body: BoundSelect) -> str:
        terms: list[str] = []
        source = "" if body.source is None else f" FROM {self._source(body.source, terms)}"
        outputs = [self.expression(output) for output in body.outputs]
        conditions = terms
        if body.where is not None:
            conditions.append(self.expression(body.where))
        text = source
        if conditions:
            text += f" WHERE {' AND '.join(conditions)}"
        if body.group:
            text += f" GROUP BY {', '.join(self.expression(keyed(g)) for g in body.group)}"
        elif body.aggregated and not _aggregates(body):
            raise FeatureNotSupported("HAVING without GROUP BY and without an aggregate")
        if body.having is not None:
            text += f" HAVING {self.expression(body.having)}"
        shown = ", ".join(f"{output} AS o{n}" for n, output in enumerate(outputs)) or "1 AS o0"
        if body.distinct:
            return self._distinct_on(query, body, shown, text)
        kinds = [output.kind for output in body.outputs]
        if body.distinct == () and _has_keys(kinds):
            inner = f"SELECT {shown}{text}"
            inner = _once(inner) if self.made.draws else inner
            return _without_equals(inner, kinds) + self._order(query.order)
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

        on = ", ".join(self.expression(keyed(of(part))) for part in body.distinct or ())
        keys = tuple(Key(of(k.value), k.descending, k.nulls_first) for k in query.order)
        extra = [f"{self.expression(keyed(key.value))} AS s{n}" for n, key in enumerate(keys)]
        ranked = f"row_number() OVER (PARTITION BY {on}{self._order(keys)}) AS n"
        inner = f"SELECT {', '.join([shown, *extra, ranked])}{text}"
        names = ", ".join(f"o{n}" for n in range(len(body.outputs)))
        order = ", ".join(
            f"s{n} {'DESC' if k.descending else 'ASC'} NULLS {'FIRST' if k.nulls_first else 'LAST'}"
            for n, k in enumerate(keys)
        )
        return f"SELECT {names} FROM ({inner}) WHERE n = 1{f' ORDER BY {order}' if order else ''}"

    # ---------------------------------------------------------- FROM

    def _with_draws(self, emit: Callable[[], str]) -> tuple[str, bool]:
        """Its text, and whether what it computes is another thing each time."""
        before, self.made.draws = self.made.draws, False
        text = emit()
        draws = self.made.draws
        self.made.draws |= before
        return text, draws

    def _source(self, source: BoundSource, terms: list[str]) -> str:
        for node in inner_sources(source):
            if isinstance(node, TableSource):
                self._map_fields(node)
        return self._from(source, terms, inner=True)

    def _from(self, source: BoundSource, terms: list[str], *, inner: bool) -> str:
        if not isinstance(source, JoinSource):
            return self._leaf(source, terms, inner=inner)
        left = self._from(source.left, terms, inner=inner and source.kind not in ("right", "full"))
        right_inner = inner and source.kind in ("inner", "cross")
        words = {
            "inner": "JOIN",
            "cross": "JOIN",
            "left": "LEFT JOIN",
            "right": "RIGHT JOIN",
            "full": "FULL JOIN",
        }
        own: list[str] = []
        if isinstance(source.right, JoinSource):
            right = f"({self._from(source.right, terms, inner=False)})"
        else:
            right = self._leaf(
                source.right,
                terms if right_inner else own,
                inner=right_inner,
                optional=source.kind == "left",
            )
        # After the leaf, which says how its columns are written.
        conditions = [] if source.condition is None else [self.expression(source.condition)]
        if (
            right_inner
            and isinstance(source.right, TableSource)
            and source.right.access is not None
        ):
            terms += conditions  # the entries and the rows are two tables: WHERE says it of both
            return f"{left} {words[source.kind]} {right}"
        conditions += own
        on = f" ON {' AND '.join(conditions)}" if conditions else ""
        if not on and source.kind in ("left", "right", "full"):
            on = " ON 1"
        return f"{left} {words[source.kind]} {right}{on}"

    def _leaf(
        self, source: BoundSource, terms: list[str], *, inner: bool, optional: bool = False
    ) -> str:
        match source:
            case TableSource():
                return self._table(source, terms, inner=inner, optional=optional)
            case SystemSource():
                return f"{self._system(source.system)} AS r{source.relation}"
            case SubSource():
                text, draws = self._with_draws(lambda: self.query(source.query))
                return f"({_once(text) if draws else text}) AS r{source.relation}"
            case CteSource():
                return f"w{source.cte} AS r{source.relation}"
            case SeriesSource():
                arguments = ", ".join(map(self.expression, source.arguments))
                return f"lh_series({arguments}) AS r{source.relation}"
            case ElementsSource():
                name = "lh_members" if source.members else "lh_elements"
                arguments = ", ".join(map(self.expression, source.arguments))
                return f"{name}({arguments}) AS r{source.relation}"
        raise AssertionError(source)

    def _system(self, relation: Relation) -> str:
        name = f"lh_{relation.schema}_{relation.name}"
        self.made.systems[name] = relation
        return name

    def _table(self, source: TableSource, terms: list[str], *, inner: bool, optional: bool) -> str:
        name = table_name(source.descriptor.table_id)
        relation, access = source.relation, source.access
        if source.descriptor.table_id in self._beside.tables:
            return f"({self._versions(source)}) AS r{relation}"
        if access is None or not (inner or optional):
            return f"{name} AS r{relation}"
        entries = entries_name(source.descriptor.table_id, access.index.element_id)
        found = self._index_terms(relation, access)
        keys = [column_name(e) for e in source.descriptor.primary_key]
        if optional:
            self._hide(source, access)
            # Beside an outer join the entries are looked at, not joined.
            terms.append(self._in_entries(source, f"r{relation}"))
            return f"{name} AS r{relation}"
        terms += found
        if access.covering:
            return f"{entries} AS i{relation}"
        link = " AND ".join(f"r{relation}.{key} = i{relation}.p{n}" for n, key in enumerate(keys))
        word = "CROSS JOIN" if access.order else "JOIN"
        return f"{entries} AS i{relation} {word} {name} AS r{relation} ON {link}"

    def _in_entries(self, source: TableSource, alias: str) -> str:
        """The condition that a row's key is among the entries that are sought."""
        relation, access = source.relation, source.access
        assert access is not None
        entries = entries_name(source.descriptor.table_id, access.index.element_id)
        names = [column_name(e) for e in source.descriptor.primary_key]
        shown = ", ".join(f"i{relation}.p{n}" for n in range(len(names)))
        mine = ", ".join(f"{alias}.{name}" for name in names)
        mine = f"({mine})" if len(names) > 1 else mine
        terms = " AND ".join(self._index_terms(relation, access))
        return f"{mine} IN (SELECT {shown} FROM {entries} AS i{relation} WHERE {terms})"

    def _index_terms(self, relation: int, access: Access) -> list[str]:
        found = []
        for n, value in enumerate(access.equal):
            shown = "x''" if value == Value(value.kind, None) else self.expression(value)
            found.append(f"i{relation}.k{n} = {shown}")
        part = f"i{relation}.k{len(access.equal)}"
        if access.items:
            found.append(f"{part} IN ({', '.join(map(self.expression, access.items))})")
        if access.members is not None:
            found.append(f"{part} IN ({self.query(access.members)})")
        if access.low is not None:
            sign = ">=" if access.low[1] else ">"
            found.append(f"{part} {sign} {self.expression(access.low[0])}")
        if access.high is not None:
            sign = "<=" if access.high[1] else "<"
            found.append(f"{part} {sign} {self.expression(access.high[0])}")
        elif access.low is not None:
            found.append(f"{part} < x''")  # where NULLs begin
        return found

    def _map_fields(self, source: TableSource) -> None:
        """What an index's entry has of a row is read there, where the row itself is not."""
        access, relation = source.access, source.relation
        if access is None or source.descriptor.table_id in self._beside.tables:
            return
        descriptor, index = source.descriptor, access.index
        for n, element in enumerate(index.columns):
            if element:
                self._entries.setdefault((relation, column_name(element)), f"i{relation}.k{n}")
        if not access.covering:
            self._hide(source, access)
            return
        for n, element in enumerate(index.included):
            self._fields[relation, column_name(element)] = f"i{relation}.i{n}"
        for n, element in enumerate(index.columns):
            if element:
                entry = f"i{relation}.k{n}"
                nullable = descriptor.by_id[element].nullable
                self._fields[relation, column_name(element)] = (
                    f"nullif({entry}, x'')" if nullable else entry
                )
        for n, element in enumerate(descriptor.primary_key):
            self._fields[relation, column_name(element)] = f"i{relation}.p{n}"

    def _hide(self, source: TableSource, access: Access) -> None:
        """Keep SQLite from making an index of its own over columns that the chosen one finds."""
        primary = source.descriptor.primary_key
        for element in access.index.columns:
            if element and element not in primary:
                name = column_name(element)
                self._fields[source.relation, name] = f"+r{source.relation}.{name}"

    def _versions(self, source: TableSource) -> str:
        """The version of each row that is to be seen: what is committed now; as of an LSN what has
        been there since, and the images that were replaced later; for rows that this transaction
        has changed its own. Of a row at most one of these holds. A provisional table has own rows
        alone."""
        descriptor, table = source.descriptor, source.descriptor.table_id
        columns = [column_name(c.element_id) for c in descriptor.row_columns]
        locks = [lock_name(lock) for lock in descriptor.locks]
        shown = ", ".join([*columns, *locks])
        now: list[str] = []
        if source.access is not None:
            now.append(self._in_entries(source, "m"))
        not_own: list[str] = []
        own = f"temp.{shadow_name(table)}"
        if table in self._beside.own:
            match = " AND ".join(
                f"{OWN_ROWS}.{column_name(e)} = m.{column_name(e)}" for e in descriptor.primary_key
            )
            not_own = [f"NOT EXISTS (SELECT 1 FROM {own} AS {OWN_ROWS} WHERE {match})"]
        parts: list[str] = []
        if table in self._beside.past:
            lsn, later = self.made.as_of()
            now.append(f"m.lsn <= {lsn}")
            terms = " AND ".join([f"m.id >= {later}", f"m.lsn <= {lsn}", *not_own])
            parts.append(f"SELECT {shown} FROM {history_name(table)} AS m WHERE {terms}")
        terms = " AND ".join([*now, *not_own])
        if not descriptor.provisional:
            parts.insert(0, f"SELECT {shown} FROM {table_name(table)} AS m WHERE {terms}")
        if not_own:
            mine = ", ".join([*columns, *(f"NULL AS {lock}" for lock in locks)])
            parts.append(f"SELECT {mine} FROM {own} WHERE gone = 0")
        return " UNION ALL ".join(parts)

    # ---------------------------------------------------------- expressions

    def expression(self, part: Bound) -> str:
        return self._emitters[type(part)](self, part)

    def _value(self, part: Value) -> str:
        return "NULL" if part.value is None else self.made.constant(part.value)

    def _slot(self, part: Slot) -> str:
        return f"?{part.number}"

    def _field(self, part: Field) -> str:
        found = self._fields.get((part.relation, part.name))
        return found or f"r{part.relation}.{part.name}"

    def _moment(self, part: Moment) -> str:
        return self.made.now()

    def _apply(self, part: Apply) -> str:
        return self._call(part.function, *map(self.expression, part.arguments))

    def _call(self, function: Function, *arguments: str) -> str:
        name = called_as(function)
        self.made.functions[name] = function
        self.made.calls_change |= function.volatility != "immutable"
        self.made.calls_stable |= function.volatility == "stable" and not function.zoned
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
        """A numeric's sort key, for which the value is computed once."""
        if isinstance(part, Value) and part.value is not None:
            return self.made.constant(part.value[:-1])
        text, draws = self._with_draws(lambda: self.expression(part))
        return self._call(NUMERIC_KEY, text) if draws else _key_of(text)

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
        name = called_as(part.function) + ("_over" if part.over is not None else "")
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
        Moment: _moment,
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


def called_as(function: Function | aggregates.Aggregate) -> str:
    """The name in SQLite of a function of the catalogue: another one for each, since two casts to
    varchar(3) may differ (one cuts, one refuses)."""
    name = _NAMES.get(function)
    if name is None:
        words = [function.name, *(str(kind) for kind in (*function.arguments, function.result))]
        said = "_".join("".join(c for c in word if c.isascii() and c.isalnum()) for word in words)
        name = _NAMES.setdefault(function, f"lh_{said:.80}_{next(_NUMBERS)}")
    return name


def inner_sources(source: BoundSource) -> list[BoundSource]:
    """The leaves that FROM joins without leaving any out: their rows are all in WHERE's sight."""
    if not isinstance(source, JoinSource):
        return [source]
    found: list[BoundSource] = []
    if source.kind in ("inner", "cross", "left"):
        found += inner_sources(source.left)
    if source.kind in ("inner", "cross") and not isinstance(source.right, JoinSource):
        found.append(source.right)
    return found


def _has_forms(value: Bound) -> bool:
    """May two that are equal look different, or are they ordered by something else?"""
    kind = value.kind
    if kind.name in KEYED:
        same = kind.scale is not None and isinstance(value, Field)
        return not same and not (isinstance(value, Native) and value.word == "key")
    return element_of(kind) is not None


def _directed(text: str, key: Key) -> str:
    direction = "DESC" if key.descending else "ASC"
    return f"{text} {direction} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


def _has_keys(kinds: list[Type]) -> bool:
    return any(kind.name in KEYED for kind in kinds)


def _key_of(numeric: str) -> str:
    return f"substr({numeric}, 1, length({numeric}) - 1)"


def _once(text: str) -> str:
    """A query whose values are random, or drawn: SQLite would put its expressions wherever their
    columns are mentioned, and compute them there again."""
    return f"WITH f AS MATERIALIZED ({text}) SELECT * FROM f"


def _without_equals(text: str, kinds: list[Type]) -> str:
    """Of rows that are equal one: where equal values may look different, as 1.5 and 1.50 do."""
    names = ", ".join(f"o{n}" for n in range(len(kinds)))
    keys = ", ".join(
        _key_of(f"o{n}") if kind.name in KEYED else f"o{n}" for n, kind in enumerate(kinds)
    )
    return f"SELECT {names} FROM ({text}) GROUP BY {keys}"


def _aggregates(body: BoundSelect) -> bool:
    parts = [*body.outputs, *([body.having] if body.having is not None else [])]
    return any(isinstance(n, Aggregate) and n.over is None for p in parts for n in walk(p))
