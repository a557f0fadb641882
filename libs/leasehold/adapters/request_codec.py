"""The edge where strangers' bytes come in: change requests in JSON or MessagePack.

Every way in which bytes can fail to be a request ends in MalformedRequest (or RequestTooLarge)
with a sentence that names the field and what was expected; no other exception leaves this file.
Whether tables, columns and types exist is not asked here: that depends on the log.
"""

from __future__ import annotations

import json
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from difflib import get_close_matches
from itertools import groupby, islice
from typing import Any, Final, NoReturn, TypeAlias
from uuid import UUID

import msgpack

from leasehold.adapters.packing import Packing
from leasehold.adapters.read_set_codec import decode_reads
from leasehold.model.errors import InvalidText, MalformedRequest, RequestTooLarge
from leasehold.model.ids import format_request_id, parse_request_id, request_time_ms
from leasehold.model.records import (
    ChangeRequest,
    Expression,
    JobControl,
    OnConflict,
    Operation,
    OperationKind,
)
from leasehold.model.topics import MESSAGE_BYTES_MAX
from leasehold.schema.descriptor import LOCKS_MAX
from leasehold.schema.job_control import LIMITS as SETTINGS

JSON: Final = "application/json"
MESSAGE_PACK: Final = "application/msgpack"
MESSAGE_PACK_NAMES: Final = frozenset(
    {MESSAGE_PACK, "application/x-msgpack", "application/vnd.msgpack"}
)

MESSAGE_PACK_ZLIB: Final = "application/msgpack+zlib"
"""MessagePack behind zlib: what a request of many rows travels as."""

REQUEST_BYTES_MAX: Final = 16 * 1024 * 1024
"""Of a request, unpacked. What travels has to fit a record of Kafka, too (`MESSAGE_BYTES_MAX`)."""
SQL_BYTES_MAX: Final = 900_000
ZIPPED_ABOVE_BYTES: Final = 128 * 1024
ZIPPED_BYTES_MAX: Final = MESSAGE_BYTES_MAX - 64 * 1024
"""Leaves room for headers, and for what a refusal keeps of a request beside it."""
OPERATIONS_MAX: Final = 250_000
ROWS_TOGETHER_MAX: Final = 10_000
"""That are told under one head; a request may have several."""
MAP_LENGTH_MAX: Final = 2_000  # more than a table may have columns
ATTEMPTS_MAX: Final = 1_000_000
PARTITION_MAX: Final = 9_999
VERSION_MAX: Final = (1 << 31) - 1
GENID_MAX: Final = (1 << 63) - 1
INTEGER_LEAST: Final = -(1 << 63)
INTEGER_MOST: Final = (1 << 63) - 1
NAME_CHARACTERS_MAX: Final = 256
DIGITS_SURE: Final = 15
"""A number of so many characters is what the double of it shows again."""

_SHARED: Final = ("id", "on_conflict", "attempt", "give_up", "reply_to", "used", "reads")
_OPERATION: Final = ("table", "op", "key", "values", "expect", "schema_version")
_MANY: Final = ("table", "op", "columns", "rows", "keys", "schema_version")
_CONTROL_SETTINGS: Final[tuple[str, ...]] = tuple(SETTINGS)
_ACTIONS: Final = ("pause", "resume", "cancel", "set")
_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "table": frozenset((*_SHARED, *_OPERATION, "sql")),
    "transaction": frozenset((*_SHARED, "transaction", "sql")),
    "sql": frozenset((*_SHARED, "sql")),
    "job": frozenset((*_SHARED, "job", "action", *_CONTROL_SETTINGS)),
}
_OPERATION_FIELDS: Final = frozenset(_OPERATION)
_MANY_FIELDS: Final = frozenset(_MANY)
_KINDS: Final = {kind.value: kind for kind in OperationKind}
_ON_CONFLICT: Final = {value.value: value for value in OnConflict}
_NO_USED: Final[Mapping[str, int]] = {}
_Shape: TypeAlias = tuple[str, int | None, tuple[str, ...], bool]
_UNREADABLE: Final = (ValueError, TypeError, LookupError, OverflowError, RecursionError)


def decode_request(content_type: str, data: bytes) -> ChangeRequest:
    """`content_type` is the record's header, "" = none (then JSON).

    Raises MalformedRequest or RequestTooLarge; both carry `field` in their detail where one field
    is at fault, and `request_id` and `reply_to` where the bytes still show who asked.
    """
    fields: dict[str, Any] = {}
    try:
        fields = _fields(content_type, data)
        return _request(fields)
    except (MalformedRequest, RequestTooLarge) as error:
        error.detail = {**error.detail, **_asker(fields)}
        raise


def encode_request(request: ChangeRequest) -> tuple[str, bytes]:
    """(content type, bytes) that `decode_request` reads back. Dates, timestamps, UUIDs and
    Decimals are written as text; raises MalformedRequest for values without a wire form,
    RequestTooLarge."""
    fields: dict[str, Any] = {"id": request.id}
    if request.sql is not None:
        fields["sql"] = request.sql
    if request.control is not None:
        fields |= {"job": request.control.job, "action": request.control.action}
        fields |= request.control.settings
    elif len(request.operations) == 1:
        fields |= _operation_fields(request.operations[0])
    elif request.operations or request.sql is None:
        fields["transaction"] = list(_all_fields(request.operations))
    if request.on_conflict is not OnConflict.RETRY:
        fields["on_conflict"] = request.on_conflict.value
    if request.attempt != 1:
        fields["attempt"] = request.attempt
    if request.give_up:
        fields["give_up"] = True
    if request.reply_to != -1:
        fields["reply_to"] = request.reply_to
    if request.used:
        fields["used"] = dict(request.used)
    if request.reads is not None:
        fields["reads"] = request.reads
    try:
        data = _PACKING.pack(fields)
    except _UNREADABLE as error:
        raise MalformedRequest(f"the request has no wire form: {error}") from error
    if len(data) <= ZIPPED_ABOVE_BYTES:
        return MESSAGE_PACK, data
    zipped = zlib.compress(data, 1)
    if len(data) > REQUEST_BYTES_MAX or len(zipped) > ZIPPED_BYTES_MAX:
        raise RequestTooLarge(
            f"the request has {len(data)} bytes, {len(zipped)} when packed; at most"
            f" {REQUEST_BYTES_MAX} and {ZIPPED_BYTES_MAX} are taken: send fewer operations in one"
            " transaction"
        )
    return MESSAGE_PACK_ZLIB, zipped


def _asker(fields: dict[str, Any]) -> dict[str, Any]:
    """The id of a request that is malformed otherwise, and where its sender listens (-1: that can't
    be found); {} without an id."""
    try:
        request_id = _request_id(fields.get("id"))
    except (MalformedRequest, RequestTooLarge):
        return {}
    try:
        reply_to = _whole(fields.get("reply_to"), "reply_to", -1, PARTITION_MAX)
    except (MalformedRequest, RequestTooLarge):
        reply_to = -1
    return {"request_id": request_id, "reply_to": reply_to}


# ---------------------------------------------------------------- bytes → fields


def _fields(content_type: str, data: bytes) -> dict[str, Any]:
    if len(data) > REQUEST_BYTES_MAX:
        raise RequestTooLarge(
            f"the request has {len(data)} bytes; at most {REQUEST_BYTES_MAX} are taken. "
            "Send fewer operations in one transaction."
        )
    if content_type == MESSAGE_PACK:
        fields = _from_message_pack(data)
    elif content_type == MESSAGE_PACK_ZLIB:
        fields = _from_message_pack(_unzipped(data))
    else:
        name = content_type.partition(";")[0].strip().lower()
        if name in ("", JSON):
            fields = _from_json(data)
        elif name in MESSAGE_PACK_NAMES:
            fields = _from_message_pack(data)
        else:
            raise MalformedRequest(
                f"content-type {content_type[:80]!r} is not known; expected {JSON} or "
                f"{MESSAGE_PACK}",
                field="content-type",
            )
    if type(fields) is not dict:
        raise MalformedRequest(f"a request is an object with fields, not {_kind_of(fields)}")
    return fields


def _unzipped(data: bytes) -> bytes:
    reader = zlib.decompressobj()
    try:
        found = reader.decompress(data, REQUEST_BYTES_MAX)
    except zlib.error as error:
        raise MalformedRequest(f"the {len(data)} bytes are not zlib's: {error}") from error
    if reader.unconsumed_tail:
        raise RequestTooLarge(
            f"the request has more than {REQUEST_BYTES_MAX} bytes when it is unpacked. Send fewer"
            " operations in one transaction."
        )
    if not reader.eof:
        raise MalformedRequest(f"the {len(data)} bytes are not all of what zlib has packed")
    return found


def _from_message_pack(data: bytes) -> Any:
    try:
        return msgpack.unpackb(
            data,
            object_pairs_hook=_without_repeats,
            # An array's head may promise a length that its reader reserves memory for.
            max_array_len=min(OPERATIONS_MAX, len(data)),
            max_map_len=MAP_LENGTH_MAX,
        )
    except MalformedRequest:
        raise
    except _UNREADABLE as error:
        words = str(error)[:200] or type(error).__name__
        raise MalformedRequest(f"the {len(data)} bytes are no MessagePack: {words}") from error


def _from_json(data: bytes) -> Any:
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_without_repeats,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
    except MalformedRequest:
        raise
    except UnicodeDecodeError as error:
        raise MalformedRequest(f"the JSON is not UTF-8 text (byte {error.start})") from error
    except RecursionError as error:
        raise MalformedRequest("the JSON is nested too deeply") from error
    except _UNREADABLE as error:
        raise MalformedRequest(f"the {len(data)} bytes are no JSON: {str(error)[:200]}") from error


def _without_repeats(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        twice = next(
            name for name, times in Counter(name for name, _ in pairs).items() if times > 1
        )
        raise MalformedRequest(f"{twice!r:.80} is given twice in one object", field=_shown(twice))
    return fields


def _no_constant(text: str) -> NoReturn:
    raise MalformedRequest(
        f"{text} is not a JSON value; expected a number, text, true, false or null"
        f' (a double precision column takes the text "{text}")'
    )


def _finite(text: str) -> float | Decimal:
    """JSON has no infinity: what comes out as one was a number too large for a double. A number
    that no double is (0.12345678901234567891) keeps its digits, for a numeric column."""
    value = float(text)
    if math.isinf(value):
        raise MalformedRequest(f"the number {text[:40]} is too large")
    if len(text) <= DIGITS_SURE:
        return value
    exact = Decimal(text)
    return value if Decimal(repr(value)) == exact else exact


# ---------------------------------------------------------------- fields → request


def _request(fields: dict[str, Any]) -> ChangeRequest:
    # One row is by far the commonest form.
    form = "table" if "table" in fields else next((f for f in _FIELDS if f in fields), None)
    if form is None:
        _refuse_unknown(fields, frozenset().union(*_FIELDS.values()), "")
        raise MalformedRequest(
            "the request says nothing to do: expected one of 'table' with 'op', 'transaction', "
            "'sql', or 'job' with 'action'",
            field="table",
        )
    if not fields.keys() <= _FIELDS[form]:
        _refuse_unknown(fields, _FIELDS[form], "")
    operations: tuple[Operation, ...] = ()
    control: JobControl | None = None
    if form == "table":
        operations = (_operation(fields, ""),)
    elif form == "transaction":
        operations = _transaction(fields["transaction"])
    elif form == "job":
        control = _control(fields)
    sql = _text(fields["sql"], "sql", SQL_BYTES_MAX) if "sql" in fields else None
    get = fields.get
    on_conflict = OnConflict.RETRY
    if "on_conflict" in fields:
        on_conflict = _choice(get("on_conflict"), "on_conflict", _ON_CONFLICT)
    return ChangeRequest(
        _request_id(get("id")),
        operations,
        sql,
        control,
        on_conflict,
        _whole(get("attempt"), "attempt", 1, ATTEMPTS_MAX) if "attempt" in fields else 1,
        _flag(get("give_up"), "give_up") if "give_up" in fields else False,
        _whole(get("reply_to"), "reply_to", -1, PARTITION_MAX) if "reply_to" in fields else -1,
        _used(get("used")) if "used" in fields else _NO_USED,
        decode_reads(fields["reads"]) if "reads" in fields else None,
    )


def _request_id(value: Any) -> bytes:
    if value is None:
        raise MalformedRequest(
            "'id' is missing: expected a UUID of version 7, made anew for every request",
            field="id",
        )
    try:
        if type(value) is bytes:
            request_time_ms(value)
            return value
        if type(value) is str:
            return parse_request_id(value)
    except InvalidText as error:
        raise MalformedRequest(f"'id': {error.message}", field="id") from error
    raise MalformedRequest(
        f"'id': expected a UUID of version 7 (text, or 16 bytes), not {_kind_of(value)}", field="id"
    )


def _transaction(value: Any) -> tuple[Operation, ...]:
    if type(value) is not list:
        raise _expected("transaction", "an array of operations", value)
    _check_count(len(value))
    operations: list[Operation] = []
    for number, fields in enumerate(value):
        where = f"transaction[{number}]"
        if type(fields) is not dict:
            raise _expected(where, "an object with 'table' and 'op'", fields)
        if "rows" in fields:
            operations += _many(fields, f"{where}.")
            _check_count(len(operations))
            continue
        if not fields.keys() <= _OPERATION_FIELDS:
            _refuse_unknown(fields, _OPERATION_FIELDS, f"{where}.")
        operations.append(_operation(fields, f"{where}."))
    _check_count(len(operations))
    return tuple(operations)


def _check_count(count: int) -> None:
    if 1 <= count <= OPERATIONS_MAX:
        return
    words = f"'transaction' holds {count} operations; expected 1 to {OPERATIONS_MAX}"
    kind = RequestTooLarge if count else MalformedRequest
    raise kind(words, field="transaction")


def _many(fields: dict[str, Any], where: str) -> Iterator[Operation]:
    """Inserts into one table that give the same columns: `rows` of values in the order of
    `columns`; `keys`, if the key is not among them, in key order."""
    if not fields.keys() <= _MANY_FIELDS:
        _refuse_unknown(fields, _MANY_FIELDS, where)
    table = _name(fields.get("table"), where, "table")
    if fields.get("op") != OperationKind.INSERT.value:
        raise _expected(f"{where}op", "'insert', the one that takes rows", fields.get("op"))
    columns, rows, keys = fields.get("columns"), fields.get("rows"), fields.get("keys")
    if type(columns) is not list or len(set(map(str, columns))) != len(columns):
        raise _expected(f"{where}columns", "an array of column names, each once", columns)
    for name in columns:
        _name(name, where, "columns")
    if type(rows) is not list:
        raise _expected(f"{where}rows", "an array of rows", rows)
    if keys is not None and (type(keys) is not list or len(keys) != len(rows)):
        raise _expected(f"{where}keys", f"an array of {len(rows)} keys", keys)
    version = fields.get("schema_version")
    if version is not None:
        version = _whole(version, f"{where}schema_version", 1, VERSION_MAX)
    for number, row in enumerate(rows):
        if type(row) is not list or len(row) != len(columns):
            raise _expected(f"{where}rows[{number}]", f"an array of {len(columns)} values", row)
        for name, value in zip(columns, row, strict=True):
            _storable(value, where, "rows", name)
        key = {} if keys is None else _key(keys[number], where, OperationKind.INSERT)
        values = dict(zip(columns, row, strict=True))
        yield Operation(OperationKind.INSERT, table, key, values, None, version)


def _operation(fields: dict[str, Any], where: str) -> Operation:
    get = fields.get
    table = _name(get("table"), where, "table")
    word = get("op")
    kind = _KINDS.get(word) if type(word) is str else None
    if kind is None:
        kind = _choice(word, f"{where}op", _KINDS)
    key = _key(get("key"), where, kind)
    values = get("values")
    if kind is OperationKind.DELETE:
        if values:
            raise MalformedRequest(f"'{where}values': a delete takes none", field=f"{where}values")
        values = {}
    else:
        if type(values) is not dict:
            raise _expected(f"{where}values", "an object of column name → value", values)
        values = _values(values, where)
    expect = get("expect")
    if expect is not None:
        expect = _expect(expect, where)
    version = get("schema_version")
    if version is not None:
        version = _whole(version, f"{where}schema_version", 1, VERSION_MAX)
    return Operation(kind, table, key, values, expect, version)


def _expect(value: Any, where: str) -> int | dict[str, int]:
    """One genid, or one per lock by its name."""
    if type(value) is not dict:
        return _whole(value, f"{where}expect", 0, GENID_MAX)
    if not 1 <= len(value) <= LOCKS_MAX + 1:
        raise _expected(f"{where}expect", f"1 to {LOCKS_MAX + 1} locks", value)
    return {
        _name(name, where, "expect"): _whole(seen, f"{where}expect.{_shown(name)}", 0, GENID_MAX)
        for name, seen in value.items()
    }


def _key(value: Any, where: str, kind: OperationKind) -> Any:
    if type(value) is dict and value:
        for name, part in value.items():
            _name(name, where, "key")
            _storable(part, where, "key", name)
        return value
    if type(value) is list and value:
        for part in value:
            _storable(part, where, "key", None)
        return tuple(value)
    if value is None and kind is OperationKind.INSERT:
        return {}  # an insert's values hold its key
    raise _expected(
        f"{where}key", "an object of key column → value, or an array of key values", value
    )


def _values(values: dict[str, Any], where: str) -> Mapping[str, Any]:
    computed: dict[str, Expression] | None = None
    for name, value in values.items():
        _name(name, where, "values")
        if type(value) is dict:
            if len(value) != 1 or type(value.get("expr")) is not str:
                raise MalformedRequest(
                    f"'{where}values.{_shown(name)}': expected a plain value, or an object with "
                    'the single field "expr" holding text',
                    field=f"{where}values.{_shown(name)}",
                )
            text = _text(value["expr"], f"{where}values.{_shown(name)}.expr", SQL_BYTES_MAX)
            computed = computed or {}
            computed[name] = Expression(text)
        else:
            _storable(value, where, "values", name)
    return values if computed is None else {**values, **computed}


def _control(fields: dict[str, Any]) -> JobControl:
    action = fields.get("action")
    if type(action) is not str or action not in _ACTIONS:
        raise _expected("action", f"one of {', '.join(_ACTIONS)}", action)
    settings: dict[str, int] = {
        name: _whole(fields[name], name, 0, VERSION_MAX)
        for name in _CONTROL_SETTINGS
        if name in fields
    }
    if settings and action != "set":
        raise MalformedRequest(
            f"{', '.join(map(repr, settings))}: only the action 'set' takes settings",
            field="action",
        )
    if action == "set" and not settings:
        raise MalformedRequest(
            f"the action 'set' needs one of {', '.join(_CONTROL_SETTINGS)}", field="action"
        )
    return JobControl(_whole(fields["job"], "job", 1, VERSION_MAX), action, settings)


def _used(value: Any) -> Mapping[str, int]:
    if type(value) is not dict:
        raise _expected("used", "an object of table name → version", value)
    return {
        _name(table, "", "used"): _whole(version, f"used.{_shown(table)}", 1, VERSION_MAX)
        for table, version in value.items()
    }


# ---------------------------------------------------------------- single values


def _storable(value: Any, where: str, field: str, name: Any) -> None:
    """`value` can be a storage value or become one; which type it must be, the log knows."""
    kind = type(value)
    if kind is str:
        if value.isascii() or _encodable(value):
            return
        wanted = "text without lone surrogates"
    elif kind is int:
        if INTEGER_LEAST <= value <= INTEGER_MOST:
            return
        wanted = "a whole number of at most 64 bits"
    elif kind is float:
        if not math.isnan(value):
            return
        wanted = "a number"
    elif kind is bytes or kind is bool or value is None or kind is Decimal:
        return
    else:
        wanted = "text, a number, true, false, bytes or null"
    place = f"{where}{field}" if name is None else f"{where}{field}.{_shown(name)}"
    raise _expected(place, wanted, value)


def _name(value: Any, where: str, field: str) -> str:
    if type(value) is not str or not 0 < len(value) <= NAME_CHARACTERS_MAX:
        raise _expected(
            f"{where}{field}", f"a name (text of 1 to {NAME_CHARACTERS_MAX} characters)", value
        )
    if not value.isascii() and not _encodable(value):
        raise _expected(f"{where}{field}", "a name without lone surrogates", value)
    return value


def _text(value: Any, field: str, characters_max: int) -> str:
    if type(value) is not str or not 0 < len(value) <= characters_max:
        raise _expected(field, "text", value)
    if not _encodable(value):
        raise _expected(field, "text without lone surrogates", value)
    return value


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _whole(value: Any, field: str, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise _expected(field, f"a whole number from {least} to {most}", value)
    return value


def _flag(value: Any, field: str) -> bool:
    if type(value) is not bool:
        raise _expected(field, "true or false", value)
    return value


def _choice(value: Any, field: str, choices: Mapping[str, Any]) -> Any:
    if type(value) is not str or value not in choices:
        raise _expected(field, f"one of {', '.join(choices)}", value)
    return choices[value]


def _expected(field: str, wanted: str, value: Any) -> MalformedRequest:
    found = "nothing" if value is None else _kind_of(value)
    return MalformedRequest(f"'{field}': expected {wanted}, found {found}", field=field)


_KIND_WORDS: Final[Mapping[type[Any], Callable[[Any], str]]] = {
    dict: lambda value: "an object" if value else "an empty object",
    list: lambda value: f"an array of {len(value)}",
    str: lambda value: f"the text {value[:40]!r}",
    bytes: lambda value: f"{len(value)} bytes",
    bool: lambda value: "true" if value else "false",
    int: lambda value: f"the number {value}" if value.bit_length() < 128 else "a huge number",
    float: lambda value: f"the number {value}",
    type(None): lambda _: "null",
}


def _kind_of(value: Any) -> str:
    words = _KIND_WORDS.get(type(value))
    return f"a {type(value).__name__}" if words is None else words(value)


def _shown(name: Any) -> str:
    """A stranger's name as it may stand in a message: short, printable, encodable."""
    return ascii(name)[1:-1][:80] if type(name) is str else repr(name)[:80]


def _refuse_unknown(fields: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    for name in fields:
        if name in known:
            continue
        near = get_close_matches(name[:64], sorted(known), n=1) if type(name) is str else []
        hint = f"; did you mean '{near[0]}'?" if near else f"; known are {', '.join(sorted(known))}"
        place = f"{where}{_shown(name)}"
        raise MalformedRequest(f"'{place}' is not a field of this request{hint}", field=place)


# ---------------------------------------------------------------- request → fields


def _all_fields(operations: Iterable[Operation]) -> Iterator[dict[str, Any]]:
    """Inserts that give the same columns of one table are told as rows."""
    for shape, same in groupby(operations, _shape):
        if shape is None:
            yield from map(_operation_fields, same)
            continue
        while group := list(islice(same, ROWS_TOGETHER_MAX)):
            yield _rows_fields(shape, group) if len(group) > 1 else _operation_fields(group[0])


def _rows_fields(shape: _Shape, group: list[Operation]) -> dict[str, Any]:
    table, version, columns, keyed = shape
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
    return fields


def _shape(operation: Operation) -> _Shape | None:
    """What inserts have to share to be told as rows; None for anything else."""
    kind, table, key, values, expect, version = operation
    if kind is not OperationKind.INSERT or expect is not None or (key and isinstance(key, Mapping)):
        return None
    if any(type(value) is Expression for value in values.values()):
        return None
    return table, version, tuple(values), bool(key)


def _operation_fields(operation: Operation) -> dict[str, Any]:
    fields: dict[str, Any] = {"table": operation.table, "op": operation.kind.value}
    if operation.key:
        by_name = isinstance(operation.key, Mapping)
        fields["key"] = dict(operation.key) if by_name else list(operation.key)
    if operation.kind is not OperationKind.DELETE:
        fields["values"] = {
            name: {"expr": value.text} if isinstance(value, Expression) else value
            for name, value in operation.values.items()
        }
    if operation.expect is not None:
        seen = operation.expect
        fields["expect"] = dict(seen) if isinstance(seen, Mapping) else seen
    if operation.schema_version is not None:
        fields["schema_version"] = operation.schema_version
    return fields


def _as_text(value: Any) -> Any:
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} has no wire form")


_PACKING: Final = Packing(_as_text)


__all__ = [
    "JSON",
    "MESSAGE_PACK",
    "decode_request",
    "encode_request",
    "format_request_id",
]
