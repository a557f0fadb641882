"""The choice of the index that finds the rows of a table, by a rule that can be said in three
lines.

1. The primary key, where all of it is equal to something; else the index with the longest prefix of
   columns that are equal to something, the primary key first; a list (IN) or a range behind it
   counts half.
2. Without any: the index whose order is asked for, where there is a LIMIT.
3. Else the table.

A value of another table serves once that table has been gone through: tables are taken in the order
of how well they are found, then as the text names them. SQLite orders the joins by itself all the
same.

What an index adds to a query is implied by it (its entries are what rows say), so that a wrong
choice could be slow and never wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from leasehold.catalog.elements import EXPRESSION, Index
from leasehold.catalog.physical_names import column_name
from leasehold.catalog.states import READABLE
from leasehold.model.budget import charge
from leasehold.sql.binding.bound_tree import (
    Access,
    Aggregate,
    Apply,
    Bound,
    BoundQuery,
    BoundSelect,
    BoundSource,
    Compared,
    ElementsSource,
    Exists,
    Field,
    JoinSource,
    Key,
    Member,
    Native,
    Output,
    Scalar,
    SystemSource,
    TableSource,
    Value,
)
from leasehold.sql.binding.kept_expressions import bound_expression
from leasehold.sql.binding.planning_work import INDEX_TEXT_WORK
from leasehold.sql.binding.queries import Binder
from leasehold.sql.binding.typing import KEYED
from leasehold.sql.binding.walk import conjuncts, mapped, relations_in, walk
from leasehold.sql.functions.function import BOOLEAN
from leasehold.sql.planning.emit_from import inner_sources
from leasehold.values.declared import names_where
from leasehold.values.types import null_in_entries

_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
WITHOUT_ENTRIES: Final = names_where(lambda each: not each.operators)
_NOT_CONSTANT: Final = (Aggregate, Scalar, Exists, Member, Compared)


class Chosen(NamedTuple):
    """The choice for one table: `relation` in the emitted text is table `table`, found by the index
    `by` ("": its rows themselves)."""

    relation: int
    table: str
    by: str
    covering: bool


@dataclass(frozen=True, slots=True)
class Sought:
    """What a condition says of `part` (of one table): `sign` is = < <= > >= in or members, where
    `values` are the array and `query` gives its elements."""

    part: Bound
    sign: str
    values: tuple[Bound, ...]
    query: BoundQuery | None = None

    @property
    def relations(self) -> frozenset[int]:
        return frozenset().union(*map(relations_in, self.values))


class SoughtParts:
    """What conditions say of each table's parts, found once for all tables: a FROM of many has as
    many conditions."""

    def __init__(self, conditions: Iterable[Bound]) -> None:
        self._by_relation: dict[int, list[tuple[Sought, frozenset[int]]]] = {}
        for condition in conditions:
            for sought in _of_condition(condition):
                mine, others = relations_in(sought.part), sought.relations
                if len(mine) == 1 and not mine & others:
                    (relation,) = mine
                    self._by_relation.setdefault(relation, []).append((sought, others))

    def of(self, relation: int, later: frozenset[int] = frozenset()) -> list[Sought]:
        """Return what is said of a table by constants and by tables that are not among `later`, in
        the order of the conditions."""
        said = self._by_relation.get(relation, ())
        return [sought for sought, others in said if not others & later]


class Indexes:
    """The choice of indexes for one statement; `chosen` fills as queries are gone through."""

    def __init__(self, binder: Binder, apart: frozenset[int]) -> None:
        """Take the ids of tables each mention of which is a query of its own (`Beside`),
        `apart`."""
        self._binder = binder
        self._apart = apart
        self.chosen: list[Chosen] = []

    def used_in(self, query: BoundQuery) -> BoundQuery:
        """The query with an access for each table that an index serves, queries inside included."""

        def change(node: object) -> object:
            if isinstance(node, BoundQuery) and isinstance(node.body, BoundSelect):
                return self._select(node, node.body)
            return node

        found = mapped(query, change)
        assert isinstance(found, BoundQuery)
        for node in walk(found):
            if isinstance(node, TableSource):
                access = node.access
                name = access.index.name if access is not None else ""
                covering = access is not None and access.covering
                self.chosen.append(Chosen(node.relation, node.descriptor.name, name, covering))
            elif isinstance(node, SystemSource):
                self.chosen.append(Chosen(node.relation, node.system.name, "", False))
        return found

    def _select(self, query: BoundQuery, body: BoundSelect) -> BoundQuery:
        if body.source is None:
            return query
        inner = [s for s in inner_sources(body.source) if isinstance(s, TableSource)]
        apart = [s for s in inner if s.descriptor.table_id in self._apart]
        inner = [s for s in inner if s not in apart]
        conditions = [*conjuncts(body.where), *inner_conditions(body.source)]
        accesses = self._accesses(inner, conditions)
        for source in apart:
            # A query of its own sees constants alone.
            constant = [c for c in conditions if relations_of(c) == {source.relation}]
            found = self._best(source, constant, SoughtParts(constant).of(source.relation))
            if found is not None:
                accesses[source.relation] = found[1]
        ordered = self._by_order(query, body, inner, accesses, conditions)
        accesses.update(ordered)
        for source in inner:
            access = accesses.get(source.relation)
            if access is not None and _covers(source, access, query):
                accesses[source.relation] = replace(access, covering=True)
        for join in joins(body.source):
            right = join.right
            if join.kind != "left" or not isinstance(right, TableSource):
                continue
            told = list(conjuncts(join.condition))
            found = self._best(right, told, SoughtParts(told).of(right.relation))
            if found is not None and right.descriptor.table_id not in self._apart:
                accesses[right.relation] = found[1]
        if not accesses:
            return query

        def change(node: object) -> object:
            if isinstance(node, TableSource) and node.relation in accesses:
                return replace(node, access=accesses[node.relation])
            return node

        return replace(query, body=replace(body, source=mapped(body.source, change)))

    # ---------------------------------------------------------- choosing

    def _accesses(self, sources: list[TableSource], conditions: list[Bound]) -> dict[int, Access]:
        made: dict[int, Access] = {}
        waiting = list(sources)
        mine = frozenset(s.relation for s in sources)
        gone: frozenset[int] = frozenset()
        parts = SoughtParts(conditions)
        while waiting:
            best: tuple[float, TableSource, Access | None] | None = None
            for source in waiting:
                later = mine - gone - {source.relation}
                found = self._best(source, conditions, parts.of(source.relation, later))
                rank, access = found or (0.0, None)
                if best is None or rank > best[0]:
                    best = (rank, source, access)
            assert best is not None
            _, source, access = best
            if access is not None:
                made[source.relation] = access
            waiting.remove(source)
            gone |= {source.relation}
        return made

    def _best(
        self, source: TableSource, conditions: list[Bound], sought: list[Sought]
    ) -> tuple[float, Access] | None:
        """Return how good the best index is, and its access; None where the table itself is as
        good. `sought` is what those conditions say of the table's parts whose other side is known
        by then."""
        key = source.key
        best = find_prefix(list(key), sought)[0]
        if len(key) and best >= len(key):
            return None
        found: tuple[float, Access] | None = None
        for index, parts in self._usable(source, conditions):
            rank, equal, last = find_prefix(parts, sought)
            if index.unique and len(equal) == len(parts):
                rank += 100
            if rank > best:
                best = rank
                found = (rank, _access(index, equal, last))
        return found

    def _usable(
        self, source: TableSource, conditions: list[Bound]
    ) -> Iterator[tuple[Index, list[Bound]]]:
        """Public indexes that have an entry of every row that is sought, with the parts of their
        keys."""
        descriptor = source.descriptor
        for index in descriptor.indexes:
            if index.state not in READABLE:
                continue
            if index.predicate:
                needed = self._bound_text(index.predicate, source)
                if needed is None or not all(
                    _implied(part, conditions) for part in conjuncts(needed)
                ):
                    continue
            texts = iter(index.expressions)
            parts: list[Bound] = []
            for element in index.columns:
                if element == EXPRESSION:
                    made = self._bound_text(next(texts), source)
                    if made is None:
                        break
                    parts.append(made)
                else:
                    parts += source.fields([element])
            if parts and not any(p.kind.name in WITHOUT_ENTRIES for p in parts):
                yield index, parts

    def _bound_text(self, text: str, source: TableSource) -> Bound | None:
        """The meaning of an index's expression for this mention of the table; None where the query
        compiler doesn't read it: the index then isn't used for it."""
        charge(INDEX_TEXT_WORK)
        return bound_expression(self._binder, text, source.descriptor, source.relation)

    def _by_order(
        self,
        query: BoundQuery,
        body: BoundSelect,
        sources: list[TableSource],
        accesses: dict[int, Access],
        conditions: list[Bound],
    ) -> dict[int, Access]:
        """The index that is walked in the order of ORDER BY, where a LIMIT ends the walk early."""
        if query.limit is None or not query.order or accesses or len(sources) != 1:
            return {}
        if body.aggregated or body.distinct is not None or isinstance(body.source, JoinSource):
            return {}
        source = sources[0]
        wanted = [_ordered_part(key, body) for key in query.order]
        key = [column_name(e) for e in source.descriptor.primary_key]
        if [p.name for p in wanted if isinstance(p, Field)][: len(key)] == key[: len(wanted)]:
            return {}
        if not all(
            _default_order(key, part) for key, part in zip(query.order, wanted, strict=True)
        ):
            return {}
        if len({key.descending for key in query.order}) != 1:
            return {}
        if (
            find_prefix(
                [Field(source.relation, k, BOOLEAN) for k in key],
                SoughtParts(conditions).of(source.relation),
            )[0]
            > 0
        ):
            return {}
        for index, parts in self._usable(source, conditions):
            primary = [Field(source.relation, k, BOOLEAN) for k in key]
            names = [_name(p) for p in (*parts, *primary)]
            if names[: len(wanted)] == [_name(p) for p in wanted] and None not in names:
                return {source.relation: Access(index, order=True)}
        return {}


# -------------------------------------------------------------- parts


def inner_conditions(source: BoundSource) -> list[Bound]:
    """Return the conditions of joins that leave nothing out, which are as good as WHERE's."""
    if not isinstance(source, JoinSource):
        return []
    found: list[Bound] = []
    if source.kind in ("inner", "cross", "left"):
        found += inner_conditions(source.left)
    if source.kind in ("inner", "cross"):
        found += conjuncts(source.condition)
    return found


def joins(source: BoundSource) -> Iterator[JoinSource]:
    """Joins whose left side is in WHERE's sight."""
    if isinstance(source, JoinSource):
        yield source
        if source.kind in ("inner", "cross", "left"):
            yield from joins(source.left)


def strip_plain(part: Bound) -> Bound:
    """What stands in the index: without the words that change no value."""
    while isinstance(part, Native) and part.word in ("same", "key"):
        part = part.arguments[0]
    return part


def _of_condition(condition: Bound) -> Iterator[Sought]:
    if isinstance(condition, Field) and condition.kind == BOOLEAN:
        yield Sought(condition, "=", (Value(BOOLEAN, 1),))
    if isinstance(condition, Member) and not condition.negated:
        yield from _of_array(condition)
    if not isinstance(condition, Native):
        return
    word, parts = condition.word, condition.arguments
    if word in _FLIPPED:
        left, right = parts
        if _known(right):
            yield Sought(strip_plain(left), word, (right,))
        if _known(left):
            yield Sought(strip_plain(right), _FLIPPED[word], (left,))
    elif word == "in" and all(map(_known, parts[1:])):
        yield Sought(strip_plain(parts[0]), "in", parts[1:])
    elif word == "not" and isinstance(parts[0], Field):
        yield Sought(parts[0], "=", (Value(BOOLEAN, 0),))
    elif word == "is null":
        yield Sought(strip_plain(parts[0]), "=", (Value(parts[0].kind, None),))


def refuses_nulls(condition: Bound, relations: frozenset[int]) -> bool:
    """Return whether a condition is never true where one of these relations shows NULLs in all its
    columns."""
    return any(
        isinstance(said.part, Field)
        and said.part.relation in relations
        and not (said.sign == "=" and said.values[0] == Value(said.values[0].kind, None))
        for said in _of_condition(condition)
    )


def _of_array(condition: Member) -> Iterator[Sought]:
    """part = ANY (array)."""
    body = condition.query.body
    source = body.source if isinstance(body, BoundSelect) else None
    if isinstance(source, ElementsSource) and all(map(_known, source.arguments)):
        part = strip_plain(condition.operands[0])
        yield Sought(part, "members", source.arguments, condition.query)


def relations_of(condition: Bound) -> frozenset[int]:
    """Return the relations of a condition, without the one that the elements of an array are."""
    arrays = list(_of_array(condition)) if isinstance(condition, Member) else []
    if not arrays:
        return relations_in(condition)
    return relations_in(arrays[0].part) | arrays[0].relations


def _known(value: Bound) -> bool:
    """Return whether a value is computed from constants, parameters and other tables' columns
    alone."""
    for node in walk(value):
        if isinstance(node, _NOT_CONSTANT):
            return False
        if isinstance(node, Apply) and node.function.volatility == "volatile":
            return False
    return True


def _same_part(one: Bound, other: Bound) -> bool:
    if isinstance(one, Field) and isinstance(other, Field):
        return (one.relation, one.name) == (other.relation, other.name)
    return one == other


def find_prefix(
    parts: list[Bound], sought: list[Sought]
) -> tuple[float, tuple[Bound, ...], tuple[Sought, ...]]:
    """Return the rank, the values of the equal prefix, and what bounds the part behind it."""
    equal: list[Bound] = []
    for part in parts:
        mine = [s for s in sought if _same_part(s.part, part)]
        value = next((s.values[0] for s in mine if s.sign == "="), None)
        if value is not None:
            equal.append(value)
            continue
        listed = [s for s in mine if s.sign in ("in", "members")][:1]
        lows = [s for s in mine if s.sign in (">", ">=")][:1]
        highs = [s for s in mine if s.sign in ("<", "<=")][:1]
        last = tuple(listed or [*lows, *highs])
        half = 0.5 if listed else 0.4 if len(last) == 2 else 0.3 if last else 0.0
        return len(equal) + half, tuple(equal), last
    return float(len(equal)), tuple(equal), ()


def _access(index: Index, equal: tuple[Bound, ...], last: tuple[Sought, ...]) -> Access:
    made = Access(index, equal)
    for found in last:
        if found.sign == "in":
            made = replace(made, items=found.values)
        elif found.sign == "members":
            made = replace(made, members=found.query)
        elif found.sign in (">", ">="):
            made = replace(made, low=(found.values[0], found.sign == ">="))
        else:
            made = replace(made, high=(found.values[0], found.sign == "<="))
    return made


def _implied(needed: Bound, conditions: list[Bound]) -> bool:
    """Return whether a part of a partial index's predicate is true whenever the query's conditions
    are."""
    if needed in conditions:
        return True
    if isinstance(needed, Native) and needed.word == "is not null":
        part = needed.arguments[0]
        return any(
            _same_part(s.part, part) and s.values[0] != Value(s.values[0].kind, None)
            for condition in conditions
            for s in _of_condition(condition)
        )
    return any(
        _narrower(s, n) for c in conditions for s in _of_condition(c) for n in _of_condition(needed)
    )


def _narrower(given: Sought, needed: Sought) -> bool:
    """Return whether one follows from the other, as part > 7 does from part > 9: of constants of
    one type that Python orders as SQL does."""
    if not _same_part(given.part, needed.part) or given.part.kind.name in KEYED:
        return False
    values = (given.values[0], needed.values[0])
    if len(given.values) > 1 or len(needed.values) > 1:
        return False
    if not all(isinstance(v, Value) and v.value is not None for v in values):
        return False
    a, b = (v.value for v in values if isinstance(v, Value))
    if type(a) is not type(b):
        return False
    match needed.sign:
        case ">":
            return bool(a > b if given.sign in ("=", ">=") else given.sign == ">" and a >= b)
        case ">=":
            return bool(given.sign in ("=", ">=", ">") and a >= b)
        case "<":
            return bool(a < b if given.sign in ("=", "<=") else given.sign == "<" and a <= b)
        case "<=":
            return bool(given.sign in ("=", "<=", "<") and a <= b)
    return False


def _covers(source: TableSource, access: Access, query: BoundQuery) -> bool:
    """Return whether the entry has every column of the row that the query names."""
    index, descriptor = access.index, source.descriptor
    elements = {*index.columns, *index.included, *descriptor.primary_key} - {EXPRESSION}
    keyed = {e for e in index.columns if e and descriptor.by_id[e].type.name in KEYED}
    names = {column_name(e) for e in elements - keyed}
    return all(
        node.name in names
        for node in walk(query)
        if isinstance(node, Field) and node.relation == source.relation
    )


def _ordered_part(key: Key, body: BoundSelect) -> Bound:
    value = key.value
    return strip_plain(body.outputs[value.number] if isinstance(value, Output) else value)


def _default_order(key: Key, part: Bound) -> bool:
    """NULLs where entries have them; a column that has none may ask for either."""
    if key.nulls_first == key.descending and null_in_entries(part.kind) == b"":
        return True
    return isinstance(part, Field) and not part.nullable


def _name(part: Bound) -> str | None:
    return part.name if isinstance(part, Field) else None
