"""How the values of a column whose type changes become values of the new type, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from leasehold.catalog.definitions import number_text
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.model.errors import Refused, WrongType
from leasehold.sql.expressions.default import default_of_text
from leasehold.sql.expressions.expression import (
    columns_of_expression,
    compile_expression,
    written_name,
    zone_kept,
)
from leasehold.sql.functions.registry import cast_for
from leasehold.values.types import INTEGER_BITS, Type, element_of


def conversions(old: Type, new: Type, column: str, using: str | None) -> tuple[str, str]:
    """Expressions over the row: the column as `new`, and, once it is of that type, as `old`.

    The way back serves readers who finish under the old version. Raises WrongType (42804) where no
    cast is made without being asked for, as in PostgreSQL, or where there is no way back.
    """
    name = written_name(column)
    both = old.enum is not None and new.enum is not None
    through_text = both and element_of(old) is element_of(new) is None
    if cast_for(new, old, "explicit") is None and not through_text:
        raise WrongType(
            f"there is no cast from {new} to {old}, which readers of the column's old type need"
            " until the change ends"
        )
    # By their labels: the one has perhaps others than the other.
    said = f"CAST({name} AS text)" if through_text else name
    back = f"CAST({said} AS {_kept(old)})"
    if using is not None:
        return using, back
    if cast_for(old, new, "assignment") is not None:
        return name, back
    raise WrongType(
        f"column {column!r} cannot be cast automatically to type {new}",
        hint=f"You might need to specify USING CAST({name} AS {new}).",
    )


def _kept(kind: Type) -> str:
    """Return a type as a text that is kept names it."""
    if kind.enum is None:
        return str(kind)
    return f'"{kind.enum.kept_name}"{"[]" if element_of(kind) else ""}'


class Kept(NamedTuple):
    """An expression, the columns that it is computed from, and the time zone in which it is, "" =
    UTC."""

    expression: str
    sources: tuple[int, ...]
    zone: str = ""


def kept_in(text: str, descriptor: Descriptor, target: Column, zone: str) -> Kept:
    """What a session of that time zone says, with the zone where it makes a difference: so all rows
    are converted in it, whoever does it. Raises what `compile_expression` raises."""
    compile_expression(text, descriptor, target, zone=zone)
    own = descriptor.column(target.name).element_id
    named = {descriptor.column(name).element_id for name in columns_of_expression(text)}
    return Kept(text, (own, *sorted(named - {own})), zone_kept(text, descriptor, zone, target))


def check_default_fits(old: Column, new: Column) -> None:
    """A default that is computed for each row must be cast to the new type without being asked for,
    too. Raises WrongType (42804)."""
    if not old.default_expression or (old.draws_from and new.type.name in INTEGER_BITS):
        return
    try:
        default_of_text(old.default_expression, new.type)
    except WrongType as error:
        raise _not_cast(old, new) from error
    except Refused as error:
        raise _unfit(old, new, error) from error


def convert_default(old: Column, new: Column, table: Descriptor, zone: str) -> Any:
    """The default of a column in its new type, whatever USING makes of the rows. Raises WrongType
    (42804) where no cast is made without being asked for, as in PostgreSQL; what the cast raises
    where it has no such value: PostgreSQL refuses the rows that would get it, here it is stored."""
    if cast_for(old.type, new.type, "assignment") is None:
        raise _not_cast(old, new)
    try:
        if text := number_text(old):  # as it was written, whatever the type before has made of it
            return default_of_text(text, new.type, zone).value
        compute = compile_expression(written_name(old.name), replace(table), new, zone=zone)
        return compute({old.element_id: old.default})
    except Refused as error:
        raise _unfit(old, new, error) from error


def _not_cast(old: Column, new: Column) -> WrongType:
    return WrongType(
        f'default for column "{old.name}" cannot be cast automatically to type {new.type}',
        hint="DROP DEFAULT first; a new one can be set by the same statement.",
        column=old.name,
    )


def _unfit(old: Column, new: Column, error: Refused) -> Refused:
    return type(error)(
        f"the default of column {old.name!r} is no {new.type}: DROP DEFAULT first"
        f" ({error.message})",
        column=old.name,
    )
