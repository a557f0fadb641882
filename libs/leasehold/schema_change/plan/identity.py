"""The actions on identity columns: one becomes one, is generated otherwise, is one no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from leasehold.catalog.elements import Column
from leasehold.model.errors import FeatureNotSupported, WrongIdentity
from leasehold.schema_change.plan.definitions import with_drawn_default
from leasehold.schema_change.plan.draft import TableDraft
from leasehold.schema_change.steps import element_paths
from leasehold.sql.ddl.columns import check_identity
from leasehold.sql.syntax.statements import (
    AddIdentity,
    AlterIdentity,
    ColumnDefinition,
    DropIdentity,
    SetIdentity,
)


def _identity(draft: TableDraft, name: str, position: int) -> Column:
    """Return an identity column. Raises WrongIdentity for any other."""
    column = draft.column(name, position)
    if not column.identity:
        raise WrongIdentity(
            f"column {column.name!r} of relation {draft.table.name!r} is not an identity column",
            column=column.name,
            position=position,
        )
    return column


def add_identity(draft: TableDraft, action: AddIdentity) -> None:
    """Make a column an identity column. Its rows have values, and keep them: NOT NULL says
    so."""
    column = draft.column(action.column, action.position)
    what = f"column {column.name!r} of relation {draft.table.name!r}"
    said: dict[str, Any] = {"column": column.name, "position": action.position}
    check_identity(column.type, action.position)
    if column.nullable and column.element_id not in draft.table.primary_key:
        raise WrongIdentity(
            f"{what} must be declared NOT NULL before identity can be added", **said
        )
    if column.identity:
        raise WrongIdentity(f"{what} is already an identity column", **said)
    if column.has_default or column.generated:
        raise WrongIdentity(f"{what} already has a default value", **said)
    _refuse_new(draft, column, action.position)
    definition = ColumnDefinition(column.name, column.type, numbering=action.numbering)
    made = with_drawn_default(column, draft.resolve_drawn(definition))
    draft.change_default(element_paths.set_drawn(column, made), made)


def _refuse_new(draft: TableDraft, column: Column, position: int) -> None:
    if draft.table.element(column.element_id) is None:
        raise FeatureNotSupported(
            f"column {column.name!r} is added by the same statement: say it there",
            column=column.name,
            position=position,
        )


def set_identity(draft: TableDraft, action: SetIdentity) -> None:
    column = _identity(draft, action.column, action.position)
    _refuse_new(draft, column, action.position)
    assert column.numbering is not None, column
    if column.identity == action.identity:
        draft.notices.append(f"column {column.name!r} is generated like that already")
        return
    numbering = column.numbering._replace(identity=action.identity)
    made = replace(column, numbering=numbering)
    draft.change_column(element_paths.set_numbering(column, made), made)


def alter_identity(draft: TableDraft, action: AlterIdentity) -> None:
    """Alter the options of its sequence; with SET GENERATED, if that is said as well."""
    if action.identity:
        set_identity(draft, SetIdentity(action.column, action.identity, action.position))
    column = _identity(draft, action.column, action.position)
    _refuse_new(draft, column, action.position)
    draft.altered.append((column, action.options))
    draft.words.append(f"sequence of column {column.name}")


def drop_identity(draft: TableDraft, action: DropIdentity) -> None:
    try:
        column = _identity(draft, action.column, action.position)
    except WrongIdentity as error:
        if not action.if_exists:
            raise
        draft.notices.append(f"{error.message}, nothing was done")
        return
    _refuse_new(draft, column, action.position)
    draft.take(element_paths.drop_numbering(column), f"column {column.name}")
    draft.unnumbered[column.element_id] = column.draws_from
    draft.columns[column.name] = element_paths.without_sequence(column)
