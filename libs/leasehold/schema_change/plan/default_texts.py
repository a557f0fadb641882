"""Defaults without the texts that they were written as, for processes that don't read these."""

from __future__ import annotations

from dataclasses import replace

from leasehold.sql.syntax.statements import (
    Action,
    AddColumn,
    AlterTable,
    AlterType,
    Change,
    ColumnDefinition,
    CreateTable,
    SetDefault,
)


def without_default_texts(change: Change) -> Change:
    """Return a statement whose defaults are shown by their values alone."""
    match change:
        case CreateTable(columns=columns):
            return replace(change, columns=tuple(map(_without_text, columns)))
        case AlterTable(actions=actions):
            return replace(change, actions=tuple(map(_action_without, actions)))
    return change


def _action_without(action: Action) -> Action:
    match action:
        case AddColumn(column):
            return replace(action, column=_without_text(column))
        case SetDefault() | AlterType():
            return replace(action, keeps_text=False)
    return action


def _without_text(column: ColumnDefinition) -> ColumnDefinition:
    return replace(column, default_text="") if column.default_text else column
