"""The binder of one SELECT: its result, GROUP BY, ORDER BY and DISTINCT."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from leasehold.model.budget import charge
from leasehold.model.errors import (
    FeatureNotSupported,
    GroupingError,
    InvalidColumnReference,
    SyntaxInvalid,
    WindowingError,
)
from leasehold.sql.binding.arrays import find_sets
from leasehold.sql.binding.bound_tree import (
    OPEN,
    Aggregate,
    Bound,
    BoundCte,
    BoundQuery,
    BoundSelect,
    BoundSource,
    Column,
    Field,
    Grouping,
    Key,
    Output,
    Slot,
    TableSource,
)
from leasehold.sql.binding.expressions import Expressions
from leasehold.sql.binding.grouping_sets import (
    Regrouped,
    expand_sets,
    without_repeats,
    without_sets,
)
from leasehold.sql.binding.labels import label_of
from leasehold.sql.binding.order import ambiguous_order, as_sort_key, check_grouped, number_of
from leasehold.sql.binding.planning_work import FIELD_WORK
from leasehold.sql.binding.scope import Names, Scope
from leasehold.sql.binding.walk import has_aggregate, has_window, leaves, relations_in, walk
from leasehold.sql.syntax import tree

if TYPE_CHECKING:
    from leasehold.sql.binding.queries import Binder

COLUMNS_MAX: Final = 1_664


class SelectBinder:
    """The binder of one SELECT with the ORDER BY that belongs to it."""

    def __init__(
        self, binder: Binder, select: tree.Select, query: tree.Query, outer: Scope
    ) -> None:
        self._binder = binder
        self._select = select
        self._query = query
        self.scope = Scope(outer.parent, ctes=outer.ctes)
        # Names of WITH are found through the scope; what is outside of the query is its parent.
        self._expressions = Expressions(binder, self.scope)

    def bind(self) -> BoundQuery:
        select, expressions = self._select, self._expressions
        source: BoundSource | None = None
        if select.source is not None:
            source, self.scope.names = self._binder.sources.bind(select.source, self.scope, Names())
        for name, window in select.windows:
            expressions.windows[name] = window
        expressions.clause = "WHERE"
        where = None if select.where is None else expressions.bind_condition(select.where, "WHERE")
        self.scope.mentions.clear()
        expressions.clause = ""
        outputs, names = self._outputs()
        sets = expressions.sets
        sets.allowed = ()
        source = sets.beside(source)
        expressions.clause = "GROUP BY"
        mentions = len(self.scope.mentions)
        ways = self._ways(outputs, names)
        group = without_repeats(part for way in ways for part in way)
        del self.scope.mentions[mentions:]
        expressions.clause = "HAVING"
        having = (
            None if select.having is None else expressions.bind_condition(select.having, "HAVING")
        )
        expressions.clause = "ORDER BY"
        order = self._order(outputs, names)
        distinct = self._distinct(outputs, names, order)
        seen = [*outputs, *(key.value for key in order), *([] if having is None else [having])]
        aggregated = select.grouped or having is not None or any(map(has_aggregate, seen))
        sets.check(aggregated=aggregated, windows=any(map(has_window, seen)))
        self._check_groupings(group if aggregated else (), source)
        if aggregated:
            self._check_grouped(seen, group, ways, source)
        ctes: tuple[BoundCte, ...] = ()
        several = len(ways) > 1 or (select.group and not group)
        if several or self.scope.groupings:
            again = Regrouped(self._binder, source, where, ways, select.at) if several else None
            above = without_sets if again is None else again.above
            outputs = list(map(above, outputs))
            having = None if having is None else above(having)
            order = tuple(replace(key, value=above(key.value)) for key in order)
            distinct = None if distinct is None else tuple(map(above, distinct))
            if again is not None:
                cte, source = again.found()
                ctes, where, having, group, aggregated = (cte,), having, None, (), False
        outputs = [self._typed(o) for o in outputs]
        columns = tuple(
            Column(
                name,
                output.kind,
                output.origin if isinstance(output, Field) else None,
                _nullable(output),
            )
            for name, output in zip(names, outputs, strict=True)
        )
        body = BoundSelect(tuple(outputs), source, where, group, aggregated, having, distinct)
        return BoundQuery(columns, body, order, ctes=ctes, correlated=self.scope.correlated)

    def _typed(self, output: Bound) -> Bound:
        if isinstance(output, Slot):
            return Slot(output.number, self._binder.typing.kind_of(output))
        return output

    def _outputs(self) -> tuple[list[Bound], list[str]]:
        outputs: list[Bound] = []
        names: list[str] = []
        for target in self._select.targets:
            node = target.node
            if isinstance(node, tree.Star):
                for name, bound in self._star(node):
                    outputs.append(bound)
                    names.append(name)
                continue
            self._expressions.sets.allowed = find_sets(node)
            outputs.append(self._expressions.bind(node))
            names.append(target.label or label_of(node))
        if len(outputs) > COLUMNS_MAX:
            raise SyntaxInvalid(
                f"target lists can have at most {COLUMNS_MAX} entries", position=self._select.at
            )
        return outputs, names

    def _star(self, node: tree.Star) -> list[tuple[str, Bound]]:
        if self._select.source is None:
            raise SyntaxInvalid("SELECT * with no tables specified is not valid", position=node.at)
        found = self.scope.star(node)
        charge(len(found) * FIELD_WORK)
        for _, bound in found:
            self._binder.needs.read(bound)
            for part in walk(bound):
                if isinstance(part, Field):
                    self.scope.mentions.append((part, node.at))
        return list(found)

    # ---------------------------------------------------------- GROUP BY

    def _ways(self, outputs: list[Bound], names: list[str]) -> list[tuple[Bound, ...]]:
        """Return by what the rows are grouped: one way, but for grouping sets."""

        def bind(node: tree.Node) -> tuple[Bound, ...]:
            items = node.items if isinstance(node, tree.RowOf) else (node,)
            return tuple(self._group(item, node.at, outputs, names) for item in items)

        select = self._select
        return expand_sets(select.group, bind, once=select.sets_once, at=select.at)

    def _group(self, node: tree.Node, at: int, outputs: list[Bound], names: list[str]) -> Bound:
        part = self._group_part(node, outputs, names)
        if has_aggregate(part):
            raise GroupingError("aggregate functions are not allowed in GROUP BY", position=at)
        if has_window(part):
            raise WindowingError("window functions are not allowed in GROUP BY", position=at)
        part = self._binder.typing.settle(part, at)
        check_grouped(part.kind, "GROUP BY", at)
        return part

    def _group_part(self, node: tree.Node, outputs: list[Bound], names: list[str]) -> Bound:
        """A bare name is a column of FROM first, then one of the result."""
        number = number_of(node, len(outputs), "GROUP BY")
        if number is not None:
            return outputs[number]
        if isinstance(node, tree.Name) and len(node.parts) == 1:
            inside = any(name == node.parts[0] for name, _ in self.scope.names.columns)
            if not inside and node.parts[0] in names:
                return self._output_named(node, outputs, names)
        return self._expressions.bind(node)

    def _output_named(self, node: tree.Name, outputs: list[Bound], names: list[str]) -> Bound:
        found = [o for o, name in zip(outputs, names, strict=True) if name == node.parts[0]]
        if any(other != found[0] for other in found):
            raise ambiguous_order(node)
        return found[0]

    def _check_groupings(self, group: tuple[Bound, ...], source: BoundSource | None) -> None:
        own = {leaf.relation for leaf in leaves(source)}
        for made, places in self.scope.groupings:
            for argument, at in zip(made.arguments, places, strict=True):
                if not relations_in(argument) <= own:
                    raise FeatureNotSupported(
                        "GROUPING of an outer query's columns is not supported", position=at
                    )
                if argument not in group:
                    raise GroupingError(
                        "arguments to GROUPING must be grouping expressions of the associated"
                        " query level",
                        position=at,
                    )

    def _check_grouped(
        self,
        parts: list[Bound],
        group: tuple[Bound, ...],
        ways: list[tuple[Bound, ...]],
        source: BoundSource | None,
    ) -> None:
        """Every column is grouped, inside an aggregate, or follows from a primary key that is
        grouped in every way."""
        free = _determined(tuple(part for part in ways[0] if all(part in w for w in ways)), source)
        own = self.scope.names.relations
        wrong: list[Field] = []

        def enter(node: object) -> bool:
            of_group = isinstance(node, Aggregate) and node.over is None
            if of_group or isinstance(node, Grouping):
                return False
            return node not in group if isinstance(node, Bound) else True

        for part in parts:
            for node in walk(part, enter):
                mine = isinstance(node, Field) and node.relation in own - free
                if mine and node not in group:
                    wrong.append(node)
        if not wrong:
            return
        places = [at for field, at in self.scope.mentions if field in wrong]
        raise GroupingError(
            "a column must appear in the GROUP BY clause or be used in an aggregate function",
            position=min(places, default=self._select.at),
        )

    # ---------------------------------------------------------- ORDER BY and DISTINCT

    def _order(self, outputs: list[Bound], names: list[str]) -> tuple[Key, ...]:
        made = []
        for key in self._query.order:
            value = self._order_part(key.node, outputs, names)
            value = self._as_output(value, outputs)
            made.append(Key(value, key.descending, key.first))
        return tuple(made)

    def _order_part(self, node: tree.Node, outputs: list[Bound], names: list[str]) -> Bound:
        """A bare name is a column of the result first, then one of FROM."""
        number = number_of(node, len(outputs))
        if number is not None:
            part = outputs[number]
        elif isinstance(node, tree.Name) and len(node.parts) == 1 and node.parts[0] in names:
            part = self._output_named(node, outputs, names)
        else:
            part = self._expressions.bind(node)
        if part not in outputs:
            part = self._binder.typing.settle(part, node.at)
        if part.kind != OPEN:
            as_sort_key(part, node.at)
        if self._select.distinct == () and part not in outputs:
            raise InvalidColumnReference(
                "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                position=node.at,
            )
        return part

    def _as_output(self, part: Bound, outputs: list[Bound]) -> Bound:
        return Output(outputs.index(part), part.kind) if part in outputs else part

    def _distinct(
        self, outputs: list[Bound], names: list[str], order: tuple[Key, ...]
    ) -> tuple[Bound, ...] | None:
        nodes = self._select.distinct
        if nodes is None:
            return None
        if not nodes:
            for output in outputs:
                if output.kind != OPEN:
                    check_grouped(output.kind, "DISTINCT", self._select.at)
            return ()
        parts = [self._order_part(node, outputs, names) for node in nodes]
        made = tuple(self._as_output(part, outputs) for part in parts)
        first = [key.value for key in order[: len(set(made))]]
        if order and not (
            set(first) <= set(made) and len(set(first)) == min(len(order), len(set(made)))
        ):
            raise InvalidColumnReference(
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
                position=nodes[0].at,
            )
        return made


# -------------------------------------------------------------- parts


def _nullable(bound: Bound) -> bool:
    if isinstance(bound, Field):
        return bound.nullable
    return not (isinstance(bound, Aggregate) and bound.name == "count")


def _determined(group: tuple[Bound, ...], source: BoundSource | None) -> set[int]:
    """Tables whose whole primary key is grouped."""
    found = set()
    for node in walk(source) if source is not None else ():
        if isinstance(node, TableSource):
            key = {f"c{e}" for e in node.descriptor.primary_key}
            grouped = {
                g.name for g in group if isinstance(g, Field) and g.relation == node.relation
            }
            if key and key <= grouped:
                found.add(node.relation)
    return found
