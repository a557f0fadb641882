"""The condition by which a partial replica has some rows of a table: read as SQL, kept as a range
of its primary key and a value of a column.

It must say exactly that: then whether a row is in it follows from the row's image alone, on the
replica and in the log, and whether a statement needs others from the statement's text.
"""

from __future__ import annotations

from typing import Any, Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.part import ColumnValue, KeyRange, RowsWanted, next_value
from leasehold.model.errors import ConfigurationError, Refused, UnknownTable
from leasehold.sql.binding.bound_tree import Field, Value
from leasehold.sql.binding.expressions import Expressions
from leasehold.sql.binding.from_clause import table_fields
from leasehold.sql.binding.queries import Binder
from leasehold.sql.binding.scope import NamedTable, Names, Scope
from leasehold.sql.binding.walk import conjuncts
from leasehold.sql.planning.indexes import Sought, SoughtParts
from leasehold.sql.syntax.kept import EXPRESSION_BYTES_MAX, read_expression
from leasehold.values.time_zone import UTC

COMPARED: Final = frozenset({"smallint", "integer", "bigint", "text", "varchar", "uuid", "date"})
"""Types whose values stand in keys and rows as they are compared."""
_FROM: Final = frozenset({"=", ">", ">="})
_UP_TO: Final = frozenset({"=", "<", "<="})
_RELATION: Final = 1


def read_condition(descriptor: Descriptor, text: str) -> RowsWanted:
    """Return which rows a condition says. Raises ConfigurationError for one that says anything
    else, with the table's name and what can be said."""
    column = descriptor.key_columns[0]
    may_say = (
        f"say it as comparisons of {column.name!r}, the first column of its primary key, with"
        f" constants ({column.name} = …, or {column.name} >= … AND {column.name} < …), as another"
        " column = a constant, or both joined by AND"
    )
    try:
        made = _bound(descriptor, text)
    except Refused as error:
        raise ConfigurationError(
            f"the condition for table {descriptor.name!r}, {text!r:.200}, can't be read:"
            f" {error.message}; {may_say}"
        ) from error
    parts = conjuncts(made)
    told = SoughtParts(parts).of(_RELATION)
    fields = dict(table_fields(descriptor, _RELATION))
    columns = {field: descriptor.by_name[name] for name, field in fields.items()}
    found, equal = KeyRange(), None
    for each in told:
        of = columns.get(each.part) if isinstance(each.part, Field) else None
        if of is None or len(told) != len(parts):
            break
        if of.element_id == column.element_id:
            _check_ranged(descriptor, of)
            if not _is_plain(each):
                break
            found = _narrowed(found, each)
        elif each.sign == "=" and equal is None:
            _check_valued(descriptor, of)
            if not _is_plain(each):
                break
            constant = each.values[0]
            assert isinstance(constant, Value), "it is plain"
            equal = ColumnValue(of.element_id, constant.value)
        else:
            break
    else:
        if told and len(told) == len(parts):
            _check_some(descriptor, text, found)
            return RowsWanted(found, equal)
    raise ConfigurationError(
        f"the condition for table {descriptor.name!r}, {text!r:.200}, is no range of its"
        f" primary key, and no value of a column; {may_say}"
    )


def _check_some(descriptor: Descriptor, text: str, found: KeyRange) -> None:
    if found.low is not None and found.high is not None and not found.low < found.high:
        raise ConfigurationError(
            f"the condition for table {descriptor.name!r}, {text!r:.200}, is true of no row"
        )


def _check_ranged(descriptor: Descriptor, column: Column) -> None:
    if column.type.name not in COMPARED:
        raise ConfigurationError(
            f"table {descriptor.name!r} can't be held by ranges: the first column of its primary"
            f" key, {column.name!r}, is {column.type.name}, of which there are no ranges here"
        )


def _check_valued(descriptor: Descriptor, column: Column) -> None:
    if column.type.name not in COMPARED:
        raise ConfigurationError(
            f"table {descriptor.name!r} can't be held by values of {column.name!r}, which is"
            f" {column.type.name}: by {', '.join(sorted(COMPARED))} it can"
        )
    if not descriptor.one_lock:
        raise ConfigurationError(
            f"table {descriptor.name!r} can't be held by values of {column.name!r}: its rows have"
            " several locks (ALTER TABLE … ADD LOCK), and a row that comes in tells not all of them"
        )


def _bound(descriptor: Descriptor, text: str) -> Any:
    def lookup(name: str) -> Descriptor:
        raise UnknownTable(f"a condition of one table names no other one: {name!r}", table=name)

    columns = list(table_fields(descriptor, _RELATION))
    scope = Scope(None, Names([NamedTable(descriptor.name, list(columns))], list(columns)))
    binder = Binder(lookup, {}, UTC)
    return Expressions(binder, scope).settle(read_expression(text, EXPRESSION_BYTES_MAX))


def _is_plain(sought: Sought) -> bool:
    value = sought.values[0]
    return (
        sought.sign in _FROM | _UP_TO
        and isinstance(value, Value)
        and type(value.value) in (int, str)
    )


def _narrowed(found: KeyRange, sought: Sought) -> KeyRange:
    """Return the part of a range in which a comparison is true, too."""
    constant = sought.values[0]
    assert isinstance(constant, Value)
    value = constant.value
    behind = next_value(value)
    low, high = found
    if sought.sign in _FROM:
        least = behind if sought.sign == ">" else value
        low = least if low is None else max(low, least)
    if sought.sign in _UP_TO:
        most = value if sought.sign == "<" else behind
        high = most if high is None or (most is not None and most < high) else high
    return KeyRange(low, high)
