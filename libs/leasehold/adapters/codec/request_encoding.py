"""A change request → bytes for the requests topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import Any, Final, TypeAlias

from leasehold.adapters.codec.request_bytes import pack_fields
from leasehold.model.records.requests import (
    ChangeRequest,
    Expression,
    OnConflict,
    Operation,
    OperationKind,
)
from leasehold.schema_change.job.control import LIMITS as SETTINGS

ROWS_TOGETHER_MAX: Final = 10_000
"""That are told under one head; a request may have several."""
_Shape: TypeAlias = tuple[str, int | None, tuple[str, ...], bool, tuple[str, ...]]


def encode_request(request: ChangeRequest, reply_to: int | None = None) -> tuple[str, bytes]:
    """Return (content type, bytes) that `decode_request` reads back; with `reply_to` in the place
    of the request's own.

    Raises what `pack_fields` raises.
    """
    fields: dict[str, Any] = {"id": request.id}
    if request.sql is not None:
        fields["sql"] = request.sql
        if request.time_zones:
            fields["time_zones"] = list(request.time_zones)
    if request.control is not None:
        fields |= {"job": request.control.job, "action": request.control.action}
        # ⚠ Of another name it could be a field of the request itself, as its id.
        assert request.control.settings.keys() <= SETTINGS.keys(), request.control
        fields |= request.control.settings
    elif request.reset_clock:
        fields["clock"] = "reset"
    elif request.feature_level:
        fields["finalize"] = request.feature_level
    elif request.barrier is not None:
        fields["barrier"] = list(request.barrier)
    elif len(request.operations) == 1:
        fields |= _operation_fields(request.operations[0])
    elif request.operations or not _says_more(request):
        fields["transaction"] = list(_all_fields(request.operations))
    if request.on_conflict is not OnConflict.RETRY:
        fields["on_conflict"] = request.on_conflict.value
    if request.attempt != 1:
        fields["attempt"] = request.attempt
    if request.give_up:
        fields["give_up"] = True
    reply_to = request.reply_to if reply_to is None else reply_to
    if reply_to != -1:
        fields["reply_to"] = reply_to
    if request.used:
        fields["used"] = dict(request.used)
    if request.as_role:
        fields["as_role"] = request.as_role
    if request.reads is not None:
        fields["reads"] = request.reads
    if request.held:
        fields["held"] = True
    if request.releases:
        fields["releases"] = request.releases
    if request.fence is not None:
        fields["fence"] = list(request.fence)
    if request.demands:
        fields["demands"] = [list(column) for column in request.demands]
    told = request.notifications
    if told is not None:
        fields["notify"] = [list(each) for each in told.sent]
        if told.node:
            fields["notifier"] = [told.node, told.process]
    return pack_fields(fields)


def _says_more(request: ChangeRequest) -> bool:
    """Return whether a request without operations says something to do all the same."""
    told = request.notifications is not None
    return request.sql is not None or bool(request.releases) or told


def _all_fields(operations: Iterable[Operation]) -> Iterator[dict[str, Any]]:
    """Yield the fields of operations; inserts that give the same columns of one table are told as
    rows."""
    for shape, same in groupby(operations, _shape):
        if shape is None:
            yield from map(_operation_fields, same)
            continue
        while group := list(islice(same, ROWS_TOGETHER_MAX)):
            yield _rows_fields(shape, group) if len(group) > 1 else _operation_fields(group[0])


def _rows_fields(shape: _Shape, group: list[Operation]) -> dict[str, Any]:
    table, version, columns, keyed, arbiters = shape
    fields: dict[str, Any] = {
        "table": table,
        "op": OperationKind.INSERT.value,
        "columns": list(columns),
        "rows": [list(one.values.values()) for one in group],
    }
    if keyed:
        fields["keys"] = [list(one.key) for one in group]
    if version is not None:
        fields["schema_version"] = version
    if arbiters:
        fields["arbiters"] = list(arbiters)
    return fields


def _shape(operation: Operation) -> _Shape | None:
    """Return what inserts have to share to be told as rows, None for anything else."""
    kind, table, key, values, expect, version, arbiters, _ = operation
    if kind is not OperationKind.INSERT or expect is not None or (key and isinstance(key, Mapping)):
        return None
    if any(type(value) is Expression for value in values.values()):
        return None
    return table, version, tuple(values), bool(key), arbiters


def _operation_fields(operation: Operation) -> dict[str, Any]:
    fields: dict[str, Any] = {"table": operation.table, "op": operation.kind.value}
    if operation.key:
        by_name = isinstance(operation.key, Mapping)
        fields["key"] = dict(operation.key) if by_name else list(operation.key)
    if operation.kind is not OperationKind.DELETE:
        fields["values"] = {
            name: value.fields() if isinstance(value, Expression) else value
            for name, value in operation.values.items()
        }
    if operation.expect is not None:
        seen = operation.expect
        fields["expect"] = dict(seen) if isinstance(seen, Mapping) else seen
    if operation.schema_version is not None:
        fields["schema_version"] = operation.schema_version
    if operation.arbiters:
        fields["arbiters"] = list(operation.arbiters)
    if operation.before is not None:
        fields["before"] = dict(operation.before)
    return fields
