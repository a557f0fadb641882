"""The text of a view as it is shown: its query, in the words in which it was said."""

from __future__ import annotations

from collections.abc import Mapping

from leasehold.catalog.definitions import quoted
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.namespaces import bare
from leasehold.catalog.schema_names import PUBLIC
from leasehold.catalog.view import View, ViewTable
from leasehold.sql.syntax.relation_places import put_queries


def view_text(view: View, tables: dict[int, Descriptor], views: Mapping[int, View]) -> str:
    """Return the query of a view. Where a table, a column or another view is called otherwise
    since, a query stands in its place that gives it the names that the view knows. Raises what
    `parse` raises."""
    # Under another primary key a table has another id, and the same columns.
    by_id = {table.former: table for table in tables.values()} | tables
    renamed = {
        of.called: _known_as(_columns(of, by_id[of.table_id]), by_id[of.table_id])
        for of in view.tables
        if of.table_id in by_id and _is_renamed(of, by_id[of.table_id])
    }
    for called, view_id in view.views.items():
        if view_id in views and views[view_id].name != called:
            renamed[called] = _known_as("*", views[view_id].relation)
    return put_queries(view.text, renamed.get) if renamed else view.text


def _known_as(columns: str, relation: Descriptor) -> str:
    """Return a query that gives the columns of a relation other names."""
    named = quoted(bare(relation.schema, relation.name))
    schema = quoted(relation.schema or PUBLIC)
    return f"SELECT {columns} FROM {schema}.{named}"  # noqa: S608 - shown, and never run


def _is_renamed(table: ViewTable, now: Descriptor) -> bool:
    by_id = {column.element_id: name for name, column in now.by_name.items()}
    return now.name != table.called or any(
        by_id.get(element, name) != name for element, name in table.columns.items()
    )


def _columns(table: ViewTable, now: Descriptor) -> str:
    by_id = {column.element_id: name for name, column in now.by_name.items()}
    return ", ".join(
        quoted(by_id[element]) + (f" AS {quoted(name)}" if by_id[element] != name else "")
        for element, name in table.columns.items()
        if element in by_id
    )
