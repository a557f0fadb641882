"""What a transaction that changes tables writes to one of their rows again, as one operation.

Its rows are decided under the tables as it leaves them: a row that a statement inserts, and a later
one completes, is to be what it is in the end where a column is NOT NULL by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from leasehold.model.records.requests import Expression, Operation, OperationKind


def join_writes(
    operations: Iterable[Operation], keys: Mapping[str, frozenset[str]]
) -> list[Operation]:
    """Return the operations with updates of a row joined to what has written it before. `keys`: the
    names of the key columns of each table of which that is done; a row that gets another key stays
    as it is told."""
    made: list[Operation] = []
    places: dict[tuple[str, object], int] = {}
    for each in operations:
        if each.table not in keys or not isinstance(each.key, tuple):
            made.append(each)
            continue
        row = (each.table, each.key)
        place = places.get(row)
        if each.kind is OperationKind.UPDATE and place is not None and _joins(each, keys):
            before = made[place]
            made[place] = before._replace(values={**before.values, **each.values})
            continue
        if each.kind is OperationKind.INSERT or (
            each.kind is OperationKind.UPDATE and _joins(each, keys)
        ):
            places[row] = len(made)
        else:
            places.pop(row, None)
        made.append(each)
    return made


def _joins(operation: Operation, keys: Mapping[str, frozenset[str]]) -> bool:
    values = operation.values
    computes = any(isinstance(value, Expression) for value in values.values())
    return not computes and keys[operation.table].isdisjoint(values)
