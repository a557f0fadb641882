"""An UPDATE of one row whose new values are computed of that very row: the same as expressions for
whoever has the newest row (`transaction/commit_time_updates.py` says when it may be computed
there).

Only what provably means the same there: + - * over integers and numeric, || over text, columns,
constants and parameters, each operator found again for the types that it was found for here, and
where a NULL hides no error (`closures.strict`; SQLite computes all operands first).
Values are never in the text: constants and parameters are its arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.physical_names import column_name
from leasehold.model.errors import Refused
from leasehold.model.records.requests import ARGUMENTS_MAX, Expression
from leasehold.sql.binding.bound_tree import (
    Apply,
    Bound,
    BoundSelect,
    Field,
    Native,
    Slot,
    TableSource,
    Value,
)
from leasehold.sql.binding.bound_write import BoundWrite
from leasehold.sql.binding.walk import conjuncts
from leasehold.sql.expressions.expression import asks_session_zone, compile_expression
from leasehold.sql.functions.function import INTEGERS, NUMERIC, TEXT, is_integer
from leasehold.sql.functions.registry import cast_for, function_for, operator_for
from leasehold.sql.planning.reads import Reads
from leasehold.values.storage import to_json
from leasehold.values.types import Type

_NUMBERS: Final = (*INTEGERS, NUMERIC)
_SIGNS: Final = {"+": _NUMBERS, "-": _NUMBERS, "*": _NUMBERS, "||": (TEXT,)}
_VALUES: Final = (*INTEGERS, NUMERIC, TEXT)


class _Text(NamedTuple):
    """A part as an expression says it, and its type there. `leaf`: a column or a value."""

    text: str
    kind: Type
    leaf: bool = False


@dataclass(frozen=True, slots=True)
class _Assigned:
    column: str
    text: str
    arguments: tuple[Value | Slot, ...]
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Computed:
    """An UPDATE of the one row whose primary key the text says, as expressions over that row."""

    assigned: tuple[_Assigned, ...]

    def values(self, parameters: Sequence[Any]) -> dict[str, Expression]:
        """Return the expressions by column; `parameters` are the statement's, storage values."""

        def outside(part: Value | Slot) -> Any:
            value = parameters[part.number - 1] if isinstance(part, Slot) else part.value
            return to_json(part.kind, value)

        return {
            one.column: Expression(one.text, tuple(map(outside, one.arguments)), one.types)
            for one in self.assigned
        }


def find_computed(bound: BoundWrite, reads: Reads) -> Computed | None:
    """Return the UPDATE as expressions, None where it can't be said so. `reads` is what its plan
    reads."""
    body = bound.find.body
    if bound.kind != "UPDATE" or bound.returning is not None or not isinstance(body, BoundSelect):
        return None
    descriptor = bound.descriptor
    keys = descriptor.primary_key
    alone = isinstance(body.source, TableSource) and len(conjuncts(body.where)) == len(keys)
    if not alone or not reads.is_row(descriptor.table_id, len(keys)):
        return None
    found: list[_Assigned] = []
    for column, part in zip(bound.given, bound.parts, strict=True):
        one = None if column.element_id in keys else _assigned(descriptor, column, part)
        if one is None:
            return None
        found.append(one)
    return Computed(tuple(found)) if found else None


def _assigned(descriptor: Descriptor, column: Column, part: Bound) -> _Assigned | None:
    """What is computed of no column of the row is a constant, which nobody computes anew."""
    writer = _Writer(descriptor)
    said = writer.said(part)
    if said is None or not writer.columns or len(writer.arguments) > ARGUMENTS_MAX:
        return None
    types = tuple(str(argument.kind) for argument in writer.arguments)
    try:
        if asks_session_zone(said.text, descriptor, column, types):
            return None
        compile_expression(said.text, descriptor, column, kept=False, types=types)
    except Refused:
        return None
    return _Assigned(column.name, said.text, tuple(writer.arguments), types)


class _Writer:
    """The writer of one value's expression. `columns` counts the columns that it has met."""

    def __init__(self, descriptor: Descriptor) -> None:
        self._columns = {column_name(c.element_id): c for c in descriptor.by_name.values()}
        self.arguments: list[Value | Slot] = []
        self.columns = 0

    def said(self, part: Bound) -> _Text | None:
        """Return a part in words, None where perhaps something else would come of it there."""
        match part:
            case Field() if part.name in self._columns:
                self.columns += 1
                column = self._columns[part.name]
                quoted = column.name.replace('"', '""')
                return _Text(f'"{quoted}"', column.type, leaf=True)
            case Value() | Slot() if part.kind in _VALUES:
                self.arguments.append(part)
                return _Text(f"${len(self.arguments)}", part.kind, leaf=True)
            case Apply() if part.function.name in _SIGNS:
                return self._operated(part)
        return None

    def _operated(self, part: Apply) -> _Text | None:
        function = part.function
        if not all(kind in _SIGNS[function.name] for kind in function.arguments):
            return None
        sides = [self.said(_before_cast(side)) for side in part.arguments]
        known = [side for side in sides if side is not None]
        # There nothing behind a NULL is computed: what could fail stands on the left.
        if len(known) != len(sides) or not (len(known) == 1 or known[1].leaf):
            return None
        kinds = [side.kind for side in known]
        if len(known) == 1:
            again = function_for(function.name, kinds)
            text = f"({function.name} {known[0].text})"
        else:
            again = operator_for(function.name, *kinds)
            text = f"({known[0].text} {function.name} {known[1].text})"
        return _Text(text, function.result) if again is function else None


def _before_cast(part: Bound) -> Bound:
    """Return an operand without the cast that an operator asks for by itself, and will there."""
    if isinstance(part, Native) and part.word == "same":
        (inner,) = part.arguments
        widens = is_integer(inner.kind) and is_integer(part.kind)
        return inner if widens or inner.kind.name == "varchar" else part
    if isinstance(part, Apply) and part.kind == NUMERIC and len(part.arguments) == 1:
        (inner,) = part.arguments
        asked = cast_for(inner.kind, NUMERIC, "implicit")
        if is_integer(inner.kind) and asked is not None and part.function is asked:
            return inner
    return part
