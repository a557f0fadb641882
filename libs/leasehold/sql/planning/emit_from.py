"""The emitter of FROM: tables with the indexes that find their rows, the transaction's own rows and
the past beside them, queries, functions and joins."""

# ruff: noqa: S608 - text is made of numbers and fixed words, values are bound

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from leasehold.catalog.physical_names import (
    column_name,
    entries_name,
    history_name,
    kept_name,
    lock_name,
    shadow_name,
    table_name,
)
from leasehold.sql.binding.bound_tree import (
    Access,
    Bound,
    BoundQuery,
    BoundSource,
    CteSource,
    ElementsSource,
    JoinSource,
    SeriesSource,
    SubSource,
    SystemSource,
    TableSource,
    Value,
)
from leasehold.sql.functions.aggregates.gathered_rows import gathered
from leasehold.sql.planning.emitted import Beside, Emitted, function_name, materialize
from leasehold.sql.planning.key_text import null_text
from leasehold.sql.system_catalog.relations import Relation
from leasehold.values.types import null_in_entries

OWN_ROWS: Final = "o"
"""Under this name own rows are looked through for one that hides a committed one."""


class FromEmitter:
    """The emitter of FROM, for one statement. `fields` and `entries` say how columns are written
    that an index's entry has, by relation and name; the latter in orders."""

    def __init__(
        self,
        made: Emitted,
        beside: Beside,
        expression: Callable[[Bound], str],
        query: Callable[[BoundQuery], str],
    ) -> None:
        self._made, self._beside = made, beside
        self._expression, self._query = expression, query
        self.fields: dict[tuple[int, str], str] = {}
        self.entries: dict[tuple[int, str], str] = {}

    def source(self, source: BoundSource, terms: list[str]) -> str:
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
        conditions = [] if source.condition is None else [self._expression(source.condition)]
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
                text, draws = self._made.with_draws(lambda: self._query(source.query))
                text = f"({materialize(text) if draws or source.barrier else text})"
                if source.lateral:
                    text = self._lateral(source.query, text)
                return f"{text} AS r{source.relation}"
            case CteSource():
                kept = source.cte in self._beside.kept
                name = kept_name(source.cte, source.width) if kept else f"w{source.cte}"
                return f"{name} AS r{source.relation}"
            case SeriesSource():
                arguments = ", ".join(map(self._expression, source.arguments))
                return f"lh_series({arguments}) AS r{source.relation}"
            case ElementsSource():
                name = "lh_members" if source.members else "lh_elements"
                arguments = ", ".join(map(self._expression, source.arguments))
                return f"{name}({arguments}) AS r{source.relation}"
        raise AssertionError(source)

    def _lateral(self, query: BoundQuery, text: str) -> str:
        """A query whose rows are gathered to a value and taken apart again: of what stands in FROM
        SQLite shows functions alone the columns of the tables before them."""
        kinds = tuple(column.kind for column in query.columns)
        aggregate = gathered(kinds)
        name = function_name(aggregate)
        self._made.aggregates[name] = aggregate, False
        columns = ", ".join(f"o{n}" for n in range(max(1, len(kinds))))
        return f"lh_rows((SELECT {name}({columns}) FROM {text}))"

    def _system(self, relation: Relation) -> str:
        name = f"lh_{relation.schema}_{relation.name}"
        self._made.systems[name] = relation
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
            null = null_text(value.kind)
            shown = null if value == Value(value.kind, None) else self._expression(value)
            shown = f"ifnull({shown}, {null})" if access.equal_nulls else shown
            found.append(f"i{relation}.k{n} = {shown}")
        part = f"i{relation}.k{len(access.equal)}"
        if access.items:
            found.append(f"{part} IN ({', '.join(map(self._expression, access.items))})")
        if access.members is not None:
            found.append(f"{part} IN ({self._query(access.members)})")
        if access.low is not None:
            sign = ">=" if access.low[1] else ">"
            found.append(f"{part} {sign} {self._expression(access.low[0])}")
        if access.high is not None:
            sign = "<=" if access.high[1] else "<"
            found.append(f"{part} {sign} {self._expression(access.high[0])}")
        elif access.low is not None and null_in_entries(access.low[0].kind) == b"":
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
                self.entries.setdefault((relation, column_name(element)), f"i{relation}.k{n}")
        if not access.covering:
            self._hide(source, access)
            return
        for n, element in enumerate(index.included):
            self.fields[relation, column_name(element)] = f"i{relation}.i{n}"
        for n, element in enumerate(index.columns):
            if element:
                entry = f"i{relation}.k{n}"
                column = descriptor.by_id[element]
                self.fields[relation, column_name(element)] = (
                    f"nullif({entry}, {null_text(column.type)})" if column.nullable else entry
                )
        for n, element in enumerate(descriptor.primary_key):
            self.fields[relation, column_name(element)] = f"i{relation}.p{n}"

    def _hide(self, source: TableSource, access: Access) -> None:
        """Keep SQLite from making an index of its own over columns that the chosen one finds."""
        primary = source.descriptor.primary_key
        for element in access.index.columns:
            if element and element not in primary:
                name = column_name(element)
                self.fields[source.relation, name] = f"+r{source.relation}.{name}"

    def _versions(self, source: TableSource) -> str:
        """The version of each row that is to be seen: what is committed now; as of an LSN what has
        been there since, and the images that were replaced later; for rows that this transaction
        has changed its own. Of a row at most one of these holds. A provisional table has own rows
        alone; of one that this transaction changes no store has the new columns."""
        descriptor, table = source.descriptor, source.descriptor.table_id
        columns = [column_name(c.element_id) for c in descriptor.row_columns]
        locks = [lock_name(lock) for lock in descriptor.locks]
        shown = ", ".join([*columns, *locks])
        ahead = {column_name(e): value for e, value in descriptor.ahead.items()}
        stored = ", ".join(
            f"{self._made.constant(ahead[name])} AS {name}" if name in ahead else name
            for name in (*columns, *locks)
        )
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
            lsn, later = self._made.as_of()
            now.append(f"m.lsn <= {lsn}")
            terms = " AND ".join([f"m.id >= {later}", f"m.lsn <= {lsn}", *not_own])
            parts.append(f"SELECT {shown} FROM {history_name(table)} AS m WHERE {terms}")
        terms = " AND ".join([*now, *not_own])
        if not descriptor.provisional:
            parts.insert(0, f"SELECT {stored} FROM {table_name(table)} AS m WHERE {terms}")
        if not_own:
            mine = ", ".join([*columns, *(f"NULL AS {lock}" for lock in locks)])
            parts.append(f"SELECT {mine} FROM {own} WHERE gone = 0")
        return " UNION ALL ".join(parts)


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
