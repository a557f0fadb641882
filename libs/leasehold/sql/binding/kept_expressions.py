"""Expressions that descriptors keep, bound over the fields of a relation in a query."""

from __future__ import annotations

from leasehold.catalog.descriptor import Descriptor
from leasehold.model.errors import Refused
from leasehold.sql.binding.bound_tree import Bound
from leasehold.sql.binding.expressions import Expressions
from leasehold.sql.binding.from_clause import table_fields
from leasehold.sql.binding.queries import Binder
from leasehold.sql.binding.scope import NamedTable, Names, Scope
from leasehold.sql.syntax.kept import expression_of


def bound_expression(
    binder: Binder, text: str, descriptor: Descriptor, relation: int
) -> Bound | None:
    """An expression that a descriptor keeps, over the fields of `relation`."""
    columns = list(table_fields(descriptor, relation))
    scope = Scope(None, Names([NamedTable(descriptor.name, list(columns))], list(columns)))
    try:
        return Expressions(binder, scope).settle(expression_of(text))
    except Refused:
        return None
