"""New rows of one table that give the same columns, made many at a time.

Of rows that are loaded in bulk nearly all are of this kind: nothing of them is computed, and no row
is in their way. Only what `decide` would make in the same form is made here; whatever is otherwise,
or wrong, is left to `decide`, which says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any, Final, NamedTuple, TypeAlias

from leasehold.catalog.descriptor import Descriptor
from leasehold.model.keys import Key
from leasehold.model.records.log import ChangeKind, RowChange
from leasehold.model.records.requests import Operation, OperationKind
from leasehold.transaction.binding import Binding, Given
from leasehold.values.types import Type, element_of

AbsenceReader: TypeAlias = Callable[[Descriptor, Sequence[Key]], bool]
"""Whether surely none of these rows is there; False may be said of any."""
ALIKE_MAX: Final = 100
"""Rows made at a time: between two of them heartbeats and grants may go out."""
ALIKE_MIN: Final = 4
"""Fewer are decided one by one."""
COUNTED_TYPES: Final = frozenset({"json", "jsonb"})
"""Types whose values cost so much to read that it is counted, row by row; arrays do, too."""
_INSERT, _COMES = OperationKind.INSERT, ChangeKind.INSERT
_new: Final = tuple.__new__  # see the codec: skips what a NamedTuple does with its arguments
PLANS_MAX: Final = 16
"""Kept of a version: one for each list of columns that is given."""
_NO_GENIDS: Final[dict[int, int]] = {}


class NewRows(NamedTuple):
    """Inserts, and the keys of their rows, each once."""

    keys: list[Key]
    changes: list[RowChange]


class InsertPlan:
    """How rows of one version are made that give the same columns."""

    def __init__(self, descriptor: Descriptor, given: Sequence[Given], required: Set[int]) -> None:
        """Note how. `given`: the columns in their order, those of a key that is given apart first.
        Those `required` must have a value."""
        ids = [each.element_id for each in given]
        key = [ids.index(element_id) for element_id in descriptor.primary_key]
        self._order = (*key, *(place for place in range(len(ids)) if place not in key))
        self._ids = tuple([ids[place] for place in self._order])
        self._converters = tuple([given[place].convert for place in self._order])
        self._required = tuple([element_id in required for element_id in self._ids])
        self._width = len(key)
        self._table, self._version = descriptor.table_id, descriptor.version
        self._locks = descriptor.locks

    def make(self, operations: Sequence[Operation]) -> NewRows | None:
        """Return the changes of inserts, None where one of them is for `decide` to look at."""
        rows = [(*key, *values.values()) for _, _, key, values, _, _, _, _ in operations]
        given: list[tuple[Any, ...]] = list(zip(*rows, strict=True))
        columns: list[list[Any]] = []
        holes = False
        try:
            for place, convert, required in zip(
                self._order, self._converters, self._required, strict=True
            ):
                column = [convert(value) for value in given[place]]
                if None in column:
                    if required:
                        return None
                    holes = True
                columns.append(column)
            keys: list[Key] = list(zip(*columns[: self._width], strict=True))
            if len(set(keys)) != len(keys):
                return None
        except Exception:  # noqa: BLE001 - whatever it is, `decide` meets it again
            return None
        table, version, locks, ids = self._table, self._version, self._locks, self._ids
        changes: list[RowChange] = []
        for key, values in zip(keys, zip(*columns, strict=True), strict=True):
            image: dict[int, Any] = dict(zip(ids, values, strict=True))
            if holes and None in values:
                image = {
                    element_id: value for element_id, value in image.items() if value is not None
                }
            fields: tuple[Any, ...] = (
                _COMES,
                table,
                version,
                key,
                image,
                _NO_GENIDS,
                locks,
                _NO_GENIDS,
            )
            changes.append(_new(RowChange, fields))
        return NewRows(keys, changes)


def count_alike(operations: Sequence[Operation], start: int) -> int:
    """Return how many operations from `start` on, ALIKE_MAX at most, are inserts that give the same
    columns of the same version as the first one; 0 where that is another kind of operation."""
    kind, table, key, values, _, version, _, _ = operations[start]
    keyed = len(key) if type(key) is tuple else 0
    if kind is not _INSERT or (key and not keyed):
        return 0
    columns = tuple(values)
    count = 0
    for each in operations[start : start + ALIKE_MAX]:
        kind, name, key, values, expect, seen, arbiters, before = each
        if kind is not _INSERT or name != table or seen != version or arbiters:
            break
        if expect is not None or before is not None or tuple(values) != columns:
            break
        if (len(key) if type(key) is tuple else 0) != keyed or (key and not keyed):
            break
        count += 1
    return count


def plan_inserts(bound: Binding, operation: Operation) -> InsertPlan | None:
    """Return how inserts like this one are made, None where `decide` has to look at each. Kept
    with the binding."""
    columns, keyed = tuple(operation.values), len(operation.key)
    plans = bound.insert_plans
    name = (keyed, columns)
    if name not in plans:
        if len(plans) >= PLANS_MAX:
            plans.clear()
        plans[name] = _plan(bound, columns, keyed)
    found: InsertPlan | None = plans[name]
    return found


def _plan(bound: Binding, columns: tuple[str, ...], keyed: int) -> InsertPlan | None:
    descriptor = bound.descriptor
    names = tuple([column.name for column in descriptor.key_columns])
    if not bound.computes_nothing or keyed not in (0, len(names)):
        return None
    if not keyed and not set(names) <= set(columns):
        return None
    given: list[Given] = []
    for name in (*names, *columns) if keyed else columns:
        found = bound.given(name)
        if found is None or found.column.generated or is_counted(found.column.type):
            return None
        given.append(found)
    ids = {each.element_id for each in given}
    # What is not given has no default, and may be empty.
    needed = bound.required_ids.union(column.element_id for column in descriptor.defaulted)
    if len(ids) != len(given) or not ids >= needed:
        return None
    return InsertPlan(descriptor, given, bound.required_ids)


def is_counted(kind: Type) -> bool:
    """Whether reading a value of the type is counted, like what a row computes."""
    return kind.name in COUNTED_TYPES or element_of(kind) is not None
