"""How each travelling record is restored from unpacked MessagePack: derived from its annotations.

`restorer(hint)` gives a function that turns plain data (tuples, dicts, numbers, text) into what
the annotation promises and raises ValueError, in words, for anything else. Deriving it keeps the
records the one description of the wire: a field appended there is on the wire at once.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from leasehold.model.keys import IntKeys, Keys
from leasehold.model.records.acks import (
    AccessReport,
    Ack,
    CheckReport,
    HoldingReport,
    LeaseAck,
    MergeReport,
    NodeReport,
    PartReport,
    ProcessReport,
)
from leasehold.model.records.events import RowImage, RowLeftOut, RowsTruncated, VersionEvent
from leasehold.model.records.jobs import (
    BackfillBorder,
    ChangefeedReport,
    Chunk,
    ChunksEnd,
    Findings,
    JobEvent,
    JobProgress,
    SparkReport,
)
from leasehold.model.records.log import (
    AccessWrite,
    Barrier,
    ChunkDecided,
    Claim,
    CommentWrite,
    Decisions,
    DescriptorWrite,
    EnumWrite,
    FindingsDecided,
    JobForgotten,
    JobWrite,
    LedgerRun,
    LogPosition,
    MembershipWrite,
    MinVersion,
    NamespaceWrite,
    RoleWrite,
    TableForgotten,
    TableTruncated,
    ViewWrite,
)
from leasehold.model.records.requests import Conflict, DeadLetter, Result, ResultBatch

Restorer = Callable[[Any], Any]

CLASS_BY_TAG: Final[Mapping[int, type[Any]]] = {
    1: Claim,
    2: Decisions,
    3: Barrier,
    10: Ack,
    11: LeaseAck,
    12: CheckReport,
    13: HoldingReport,
    14: AccessReport,
    15: MergeReport,
    16: NodeReport,
    17: ProcessReport,
    19: PartReport,
    20: Result,
    21: Conflict,
    22: ResultBatch,
    30: RowImage,
    31: VersionEvent,
    32: JobEvent,
    33: JobProgress,
    34: DeadLetter,
    35: RowsTruncated,
    36: SparkReport,
    37: ChangefeedReport,
    38: RowLeftOut,
    40: Chunk,
    41: ChunksEnd,
    42: Findings,
    43: BackfillBorder,
    50: LogPosition,
    60: DescriptorWrite,
    61: JobWrite,
    62: MinVersion,
    63: LedgerRun,
    64: ChunkDecided,
    65: TableTruncated,
    66: FindingsDecided,
    67: TableForgotten,
    68: JobForgotten,
    69: RoleWrite,
    70: MembershipWrite,
    71: AccessWrite,
    72: ViewWrite,
    73: CommentWrite,
    74: EnumWrite,
    75: NamespaceWrite,
}
"""The one registry of tags. A tag is never given to another class, not even after a removal."""

TAG_BY_CLASS: Final[Mapping[type[Any], int]] = {c: tag for tag, c in CLASS_BY_TAG.items()}
assert len(TAG_BY_CLASS) == len(CLASS_BY_TAG), "one tag per class, one class per tag"


_RESTORERS: Final[dict[type[Any], Restorer]] = {}


def keep_value(value: Any) -> Any:
    return value


def record_restorer(cls: type[Any]) -> Restorer:
    """Return the function that makes a `cls` from a tuple of fields. Fields appended since the
    record was written take their default; a record with more fields than this software knows is
    refused: their meaning is unknown."""
    if cls not in _RESTORERS:
        _RESTORERS[cls] = _made_restorer(cls)
    return _RESTORERS[cls]


def _made_restorer(cls: type[Any]) -> Restorer:
    hints = get_type_hints(cls)
    names: tuple[str, ...] = cls._fields
    restorers = tuple(restorer(hints[name]) for name in names)
    defaults: Mapping[str, Any] = cls._field_defaults

    def restore(fields: Any) -> Any:
        if type(fields) is not tuple:
            raise ValueError(f"{cls.__name__} is not an array of fields")
        if len(fields) != len(names):
            fields = complete_fields(cls, fields)
        try:
            return cls(*[r(value) for r, value in zip(restorers, fields, strict=True)])
        except ValueError:
            # Only now is it worth finding out which field it was.
            for name, field_restorer, value in zip(names, restorers, fields, strict=True):
                try:
                    field_restorer(value)
                except ValueError as error:
                    raise ValueError(f"{cls.__name__}.{name}: {error}") from None
            raise

    assert all(name in hints for name in defaults)
    return restore


def complete_fields(cls: type[Any], fields: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return `fields` of an older writer, with the defaults of the fields it did not know."""
    names: tuple[str, ...] = cls._fields
    missing = names[len(fields) :]
    if len(fields) > len(names) or any(name not in cls._field_defaults for name in missing):
        raise ValueError(f"{cls.__name__} has {len(fields)} fields, {len(names)} are known")
    return (*fields, *(cls._field_defaults[name] for name in missing))


def restorer(hint: Any) -> Restorer:
    """Return the function for one annotation; every annotation used in `model/records/` is
    covered."""
    if hint is Any:
        return keep_value
    if hint == Keys:
        return restore_keys
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _union(args)
    if origin is tuple:
        return _tuple(args)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(*args)
    assert isinstance(hint, type), hint
    if issubclass(hint, Enum):
        return _enumeration(hint)
    if issubclass(hint, tuple):
        return record_restorer(hint)
    return _plain(hint)


def _plain(wanted: type[Any]) -> Restorer:
    # A JSON-born or integral float arrives as int; a bool must not pass for a number.
    allowed = (float, int) if wanted is float else (wanted,)
    assert wanted in (int, float, str, bytes, bool), wanted

    def restore(value: Any) -> Any:
        if type(value) not in allowed:
            raise ValueError(f"expected {wanted.__name__}, found {type(value).__name__}")
        return value

    return restore


def _enumeration(wanted: type[Enum]) -> Restorer:
    members = {member.value: member for member in wanted}

    def restore(value: Any) -> Any:
        if type(value) not in (int, str) or value not in members:
            raise ValueError(f"{value!r:.40} is no {wanted.__name__}")
        return members[value]

    return restore


def _tuple(args: tuple[Any, ...]) -> Restorer:
    repeated = len(args) == 2 and args[1] is Ellipsis
    if repeated and args[0] is Any:
        one = None
    else:
        one = restorer(args[0]) if repeated else None
    several = None if repeated else tuple(restorer(a) for a in args)

    def restore(value: Any) -> Any:
        if type(value) is not tuple:
            raise ValueError(f"expected an array, found {type(value).__name__}")
        if several is not None:
            if len(value) != len(several):
                raise ValueError(f"expected an array of {len(several)}, found {len(value)}")
            return tuple(r(v) for r, v in zip(several, value, strict=True))
        return value if one is None else tuple([one(v) for v in value])

    return restore


def restore_keys(value: Any) -> Any:
    """Return thousands of keys, whose shape is looked at in one go: a tenth of `_tuple`'s time."""
    if type(value) is bytes:
        return IntKeys.from_wire(value)
    if type(value) is not tuple or not {tuple}.issuperset(map(type, value)):
        raise ValueError("expected an array of keys, or the bytes of their numbers")
    return value


def _mapping(key_hint: Any, value_hint: Any) -> Restorer:
    key, value_of = restorer(key_hint), restorer(value_hint)

    def restore(value: Any) -> Any:
        if type(value) is not dict:
            raise ValueError(f"expected a map, found {type(value).__name__}")
        return {key(k): value_of(v) for k, v in value.items()}

    return restore


def _union(args: tuple[Any, ...]) -> Restorer:
    others = [a for a in args if a is not type(None)]
    if len(others) == 1:
        one = restorer(others[0])
        return lambda value: None if value is None else one(value)
    # A union of records travels tagged: (tag, field, field, …).
    return _tagged(tuple(others))


def _tagged(classes: tuple[type[Any], ...]) -> Restorer:
    by_tag = {TAG_BY_CLASS[cls]: record_restorer(cls) for cls in classes}

    def restore(value: Any) -> Any:
        if type(value) is not tuple or not value or type(value[0]) is not int:
            raise ValueError("expected a tagged record")
        if value[0] not in by_tag:
            raise ValueError(f"tag {value[0]} is not known here")
        return by_tag[value[0]](value[1:])

    return restore
