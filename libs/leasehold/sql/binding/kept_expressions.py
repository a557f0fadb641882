"""Expressions that descriptors keep, bound over the fields of a relation in a query."""

from __future__ import annotations

from leasehold.catalog.descriptor import Descriptor
from leasehold.model.errors import Refused
from leasehold.sql.binding.bound_tree import Bound
from leasehold.sql.binding.expressions import Expressions
from leasehold.sql.binding.from_clause import table_fields
from leasehold.sql.binding.queries import Binder
from leasehold.sql.binding.scope import Names, Scope
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.reading import read_statement


def bound_expression(
    binder: Binder, text: str, descriptor: Descriptor, relation: int
) -> Bound | None:
    """An expression that a descriptor keeps, over the fields of `relation`."""
    columns = list(table_fields(descriptor, relation))
    scope = Scope(None, Names([(descriptor.name, list(columns))], list(columns)))
    try:
        statement, _ = read_statement(f"SELECT {text}")
        assert isinstance(statement, tree.Query)
        assert isinstance(statement.body, tree.Select)
        return Expressions(binder, scope).settled(statement.body.targets[0].node)
    except Refused:
        return None
