"""A view's query in the form in which PostgreSQL shows it: each column behind its table, by the
names that tables and columns have now, one to a line.

A query with a part whose form is not known here has none, and is shown as it was said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from leasehold.catalog.definitions import quoted
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.namespaces import bare
from leasehold.catalog.view import View
from leasehold.model.errors import Refused
from leasehold.sql.functions.registry import aggregate_for
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.reading import read_query
from leasehold.sql.system_catalog.expression_text import (
    NoForm,
    Part,
    Shower,
    atom,
    brought,
    called,
    text_of,
    without_spaces,
)
from leasehold.values.enums import Enumeration
from leasehold.values.types import Type, plain_type

_AGGREGATES: Final = frozenset(
    {"count", "sum", "avg", "min", "max", "bool_and", "bool_or", "array_agg", "string_agg"}
)
_WITHIN: Final = "\n        "
"""Before a line of CASE in a query."""
_WITHOUT_NAME: Final = "?column?"
_JOINS: Final = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN"}


class Known(NamedTuple):
    """A relation of FROM: what the text calls it, and what it calls its columns, each with how it
    is shown."""

    called: str
    columns: Mapping[str, Part]


def show_view(
    view: View,
    tables: Mapping[int, Descriptor],
    views: Mapping[int, View],
    schemas: Sequence[str],
    *,
    short: bool,
) -> str | None:
    """Return the query of a view, None where its form is not known. `schemas`: those that are
    searched, whose relations stand without them. `short`: with the parentheses that are needed,
    else with all of them."""
    finding = _Relations(view, tables, views)
    names = [column.name for column in view.columns]
    try:
        shown = _Queries(finding, schemas, short=short).show(read_query(view.text), names)
    except (NoForm, Refused):
        return None
    return without_spaces(shown)


class _Relations:
    """What the names of a view's text mean now."""

    def __init__(
        self, view: View, tables: Mapping[int, Descriptor], views: Mapping[int, View]
    ) -> None:
        self._view, self._views = view, views
        # Under another primary key a table has another id, and the same columns.
        self._tables = {t.former: t for t in tables.values() if t.former} | dict(tables)

    def find(self, name: str) -> tuple[Descriptor, Mapping[str, tuple[str, Type]]]:
        """Raises NoForm for one that is gone."""
        for of in self._view.tables:
            table = self._tables.get(of.table_id)
            if of.called == name and table is not None:
                now = {c.element_id: c for c in table.by_name.values()}
                return table, {
                    called: (now[element].name, plain_type(now[element].type))
                    for element, called in of.columns.items()
                    if element in now
                }
        number = self._view.views.get(name)
        other = None if number is None else self._views.get(number)
        if other is None:
            raise NoForm
        by_place = {column.element_id: column for column in other.columns}
        known = self._view.known.get(other.table_id)
        names = known or {place: column.name for place, column in by_place.items()}
        return other.relation, {
            called: (by_place[place].name, plain_type(by_place[place].type))
            for place, called in names.items()
        }

    def enums(self) -> Iterable[Enumeration | None]:
        for of in self._view.tables:
            table = self._tables.get(of.table_id)
            yield from (c.type.enum for c in table.columns) if table is not None else ()


class _Queries:
    """Shows the queries of one view."""

    def __init__(self, relations: _Relations, schemas: Sequence[str], *, short: bool) -> None:
        self._relations, self._schemas, self._short = relations, schemas, short

    def show(self, query: tree.Query, names: Sequence[str]) -> str:
        """Return a query whose columns are called so. Raises NoForm."""
        if query.ctes is not None or query.visits is not None:
            raise NoForm
        if isinstance(query.body, tree.SetOperation):
            if query.order or query.limit is not None or query.offset is not None:
                raise NoForm
            return self._united(query.body, names)
        if not isinstance(query.body, tree.Select):
            raise NoForm
        return _Select(self, query, query.body).show(names)

    def _united(self, body: tree.SetOperation, names: Sequence[str]) -> str:
        if any(isinstance(side.body, tree.SetOperation) for side in (body.left, body.right)):
            raise NoForm
        for side in (body.left, body.right):
            if side.order or side.limit is not None or side.offset is not None:
                raise NoForm
        word = body.word.upper() + (" ALL" if body.every else "")
        right = self.show(body.right, names)
        return f"{self.show(body.left, names)}\n{word}\n{right}"

    def relation(self, source: tree.TableName) -> tuple[str, Known]:
        """Return a relation of FROM as it is shown, and what it brings. Raises NoForm."""
        table, columns = self._relations.find(source.name)
        name = bare(table.schema, table.name)
        alias = source.alias if source.renamed else ""
        if source.columns:
            raise NoForm
        seen = table.schema or "public"
        behind = quoted(name) if seen in self._schemas else f"{quoted(seen)}.{quoted(name)}"
        called = alias or bare(table.schema, source.name)
        before = quoted(alias or name)
        by_name = {
            said: atom(f"{before}.{quoted(now)}", kind)._replace(column=now)
            for said, (now, kind) in columns.items()
        }
        shown = f"{behind} {quoted(alias)}" if alias else behind
        return shown, Known(called, by_name)

    @property
    def short(self) -> bool:
        return self._short

    def enums(self) -> Iterable[Enumeration | None]:
        """Return the enum types of the tables."""
        return self._relations.enums()


class _Select:
    """Shows one SELECT."""

    def __init__(self, queries: _Queries, query: tree.Query, select: tree.Select) -> None:
        self._queries, self._query, self._select = queries, query, select
        self._known: list[Known] = []
        self._shower = _WithAggregates(self._find, queries.enums())

    def show(self, names: Sequence[str]) -> str:
        select, query = self._select, self._query
        if select.windows or select.sets_once or (select.distinct not in (None, ())):
            raise NoForm
        source = "" if select.source is None else f"\n   FROM {self._source(select.source)}"
        text = f" SELECT {'DISTINCT ' if select.distinct == () else ''}{self._targets(names)}"
        text += source
        if select.where is not None:
            text += f"\n  WHERE {self._text(self._shower.show(select.where))}"
        if select.group:
            text += f"\n  GROUP BY {', '.join(map(self._grouped, select.group))}"
        if select.having is not None:
            text += f"\n HAVING {self._text(self._shower.show(select.having))}"
        if query.order:
            text += f"\n  ORDER BY {', '.join(map(self._key, query.order))}"
        if query.offset is not None:
            text += f"\n OFFSET {self._text(self._shower.show(query.offset))}"
        if query.limit is not None:
            text += f"\n LIMIT {self._text(self._shower.show(query.limit))}"
        return text

    def _text(self, part: Part) -> str:
        return text_of(part, short=self._queries.short).replace("\n", _WITHIN)

    # ------------------------------------------------------------ columns

    def _targets(self, names: Sequence[str]) -> str:
        found: list[Part] = []
        for target in self._select.targets:
            if isinstance(target.node, tree.Star):
                found += self._star(target.node)
                continue
            part = self._shower.show(target.node)
            found.append(brought(part, Type("text")) if part.kind is None else part)
        if len(found) != len(names) or not found:
            raise NoForm
        lines = []
        for part, name in zip(found, names, strict=True):
            plain = name in (part.column or _WITHOUT_NAME, _WITHOUT_NAME)
            lines.append(self._text(part) + ("" if plain else f" AS {quoted(name)}"))
        return ",\n    ".join(lines)

    def _star(self, node: tree.Star) -> Iterable[Part]:
        if isinstance(self._select.source, tree.Join) and not node.table:
            _refuse_merged(self._select.source)
        for known in self._known:
            if not node.table or node.table[-1] == known.called:
                yield from known.columns.values()

    def _find(self, parts: tuple[str, ...]) -> Part:
        *table, name = parts
        found = [
            known.columns[name]
            for known in self._known
            if name in known.columns and (not table or table[-1] == known.called)
        ]
        if len(found) != 1:
            raise NoForm
        return found[0]

    # ------------------------------------------------------------ FROM

    def _source(self, source: tree.Source) -> str:
        if isinstance(source, tree.TableName):
            shown, known = self._queries.relation(source)
            self._known.append(known)
            return shown
        if not isinstance(source, tree.Join) or source.natural or source.alias:
            raise NoForm
        left, right = self._source(source.left), self._source(source.right)
        if source.listed:
            return f"{left},\n    {right}"
        short = self._queries.short
        if short and isinstance(source.right, tree.Join):
            right = f"({right})"
        text = f"{left}\n     {_JOINS.get(source.kind, 'CROSS JOIN')} {right}"
        if source.using:
            text += f" USING ({', '.join(map(quoted, source.using))})"
        elif source.condition is not None:
            met = self._text(self._shower.show(source.condition))
            text += f" ON {met}" if short else f" ON ({met})"
        return text if short else f"({text})"

    # ------------------------------------------------------------ order and groups

    def _grouped(self, node: tree.Node | tree.GroupingSets) -> str:
        if isinstance(node, tree.GroupingSets):
            raise NoForm
        column = isinstance(node, tree.Name) and any(
            node.parts[-1] in known.columns for known in self._known
        )
        return self._sorted(node, of_result=not column)

    def _key(self, key: tree.SortKey) -> str:
        text = self._sorted(key.node)
        if key.descending:
            return f"{text} DESC{' NULLS LAST' if not key.first else ''}"
        return f"{text}{' NULLS FIRST' if key.first else ''}"

    def _sorted(self, node: tree.Node, *, of_result: bool = True) -> str:
        """Return an expression of ORDER BY or GROUP BY: that of the column of the result that its
        number means, or its name where it is one `of_result`."""
        if isinstance(node, tree.Constant):
            if node.kind != "number" or not node.text.isdecimal():
                raise NoForm
            node = self._output(int(node.text) - 1)
        elif of_result and isinstance(node, tree.Name) and len(node.parts) == 1:
            node = self._labelled(node)
        part = self._shower.show(node)
        if part.column:
            return part.full
        if isinstance(node, tree.Call) or self._queries.short:
            return f"({self._text(part)})"
        return self._text(part)

    def _output(self, place: int) -> tree.Node:
        targets = self._select.targets
        if not 0 <= place < len(targets) or isinstance(targets[place].node, tree.Star):
            raise NoForm
        return targets[place].node

    def _labelled(self, node: tree.Name) -> tree.Node:
        labels = [target.node for target in self._select.targets if target.label == node.parts[0]]
        return labels[0] if len(labels) == 1 else node


class _WithAggregates(Shower):
    """Shows expressions of a query."""

    def _call(self, node: tree.Call) -> Part:
        if node.name not in _AGGREGATES:
            return super()._call(node)
        if node.over is not None or node.order or node.filter is not None:
            raise NoForm
        if node.star:
            return atom("count(*)", Type("bigint"))
        parts = [self.show(argument) for argument in node.arguments]
        if any(part.kind is None and part.text is None for part in parts):
            raise NoForm
        found = aggregate_for(node.name, tuple(part.kind for part in parts))
        taken = [
            part if part.kind in (kind, plain_type(kind)) else brought(part, Type("text"))
            for part, kind in zip(parts, found.arguments, strict=True)
            if part.kind in (kind, plain_type(kind)) or {kind.name} <= {"text", "varchar"}
        ]
        if len(taken) != len(parts):
            raise NoForm
        made = called(node.name, taken, found.result)
        if not node.distinct:
            return made
        head = f"{node.name}("
        full, short = (
            text.replace(head, f"{head}DISTINCT ", 1) for text in (made.full, made.short)
        )
        return made._replace(full=full, short=short)


def _refuse_merged(join: tree.Join) -> None:
    """Raises NoForm where * shows columns of a join once that both sides have."""
    if join.using or join.natural:
        raise NoForm
    for side in (join.left, join.right):
        if isinstance(side, tree.Join):
            _refuse_merged(side)
