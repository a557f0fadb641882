"""The edge where strangers' bytes come in: change requests in JSON or MessagePack.

Every way in which bytes can fail to be a request ends in MalformedRequest (or RequestTooLarge)
with a sentence that names the field and what was expected; no other exception leaves this file.
Whether tables, columns and types exist is not asked here: that depends on the log.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Any, Final

from leasehold.adapters.codec.read_set import decode_barrier, decode_reads
from leasehold.adapters.codec.request_bytes import (
    OPERATIONS_MAX,
    SLICE_OPERATIONS,
    read_fields,
    read_fields_in_slices,
)
from leasehold.adapters.codec.request_checks import (
    check_choice,
    check_flag,
    check_name,
    check_storable,
    check_text,
    check_whole_number,
    describe_value,
    refuse_unknown,
    show_name,
    storable,
    unexpected_value,
)
from leasehold.catalog.descriptor import LOCKS_MAX
from leasehold.lease.commands import SESSION_ID_MAX
from leasehold.model import byte_limits
from leasehold.model.errors import InvalidText, MalformedRequest, RequestTooLarge
from leasehold.model.features import FEATURE_NUMBER_MAX
from leasehold.model.ids import parse_request_id, request_time_ms
from leasehold.model.records.notifications import (
    CHANNEL_BYTES_MAX,
    NOTIFICATIONS_BYTES_MAX,
    NOTIFICATIONS_MAX,
    PAYLOAD_BYTES_MAX,
    Notification,
    Notifications,
)
from leasehold.model.records.requests import (
    ARGUMENTS_MAX,
    ChangeRequest,
    Expression,
    JobControl,
    LockFence,
    OnConflict,
    Operation,
    OperationKind,
)
from leasehold.schema_change.job.control import LIMITS as SETTINGS

SQL_BYTES_MAX: Final = byte_limits.EXPRESSION_SENT
ATTEMPTS_MAX: Final = 1_000_000
PARTITION_MAX: Final = 9_999
VERSION_MAX: Final = (1 << 31) - 1
GENID_MAX: Final = (1 << 63) - 1
ZONES_MAX: Final = 128
"""As many as a text of SQL has statements."""
DEMANDS_MAX: Final = 1_000
"""Columns that a transaction sets NOT NULL: it has at most 128 schema changes."""
ZONE_CHARACTERS_MAX: Final = 255
"""Of a time zone's name or rule: a longer one is not known."""
ROLE_BYTES_MAX: Final = 63
RUN_ID_BYTES_MAX: Final = 64
ARBITERS_MAX: Final = 1_000
"""Of an insert: more unique indexes than any table has."""

_SHARED: Final = (
    *("id", "on_conflict", "attempt", "give_up", "reply_to", "used", "reads", "as_role", "fence"),
)
_OPERATION: Final = (
    *("table", "op", "key", "values", "expect", "schema_version", "arbiters", "before"),
)
_MANY: Final = ("table", "op", "columns", "rows", "keys", "schema_version", "arbiters")
_SQL: Final = ("sql", "time_zones")
_NOTIFY: Final = ("notify", "notifier")
_ROWS_OF_JOB: Final = ("releases",)
_CONTROL_SETTINGS: Final[tuple[str, ...]] = tuple(SETTINGS)
_CLOCK_ACTIONS: Final = {"reset": True}
_ACTIONS: Final = ("pause", "resume", "cancel", "dismiss", "set")
_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "table": frozenset((*_SHARED, *_OPERATION, *_SQL, *_ROWS_OF_JOB, *_NOTIFY)),
    "transaction": frozenset((*_SHARED, "transaction", *_SQL, *_ROWS_OF_JOB, *_NOTIFY)),
    "sql": frozenset((*_SHARED, *_SQL, "held", "demands", *_ROWS_OF_JOB, *_NOTIFY)),
    "job": frozenset((*_SHARED, "job", "action", *_CONTROL_SETTINGS)),
    "clock": frozenset((*_SHARED, "clock")),
    "finalize": frozenset((*_SHARED, "finalize")),
    "barrier": frozenset((*_SHARED, "barrier")),
    "releases": frozenset((*_SHARED, *_ROWS_OF_JOB, *_NOTIFY)),
    "notify": frozenset((*_SHARED, *_NOTIFY)),
}
_OPERATION_FIELDS: Final = frozenset(_OPERATION)
_EXPRESSION_FIELDS: Final = ({"expr"}, {"expr", "args", "types"})
_MANY_FIELDS: Final = frozenset(_MANY)
_KINDS: Final = {kind.value: kind for kind in OperationKind}
_ON_CONFLICT: Final = {value.value: value for value in OnConflict}
_RETRY: Final = OnConflict.RETRY
_NO_USED: Final[Mapping[str, int]] = {}
_NO_ARBITERS: Final[tuple[str, ...]] = ()


def decode_request(content_type: str, data: bytes) -> ChangeRequest:
    """Return the request that a record holds. `content_type` is the record's header, "" = none
    (then JSON).

    Raises MalformedRequest or RequestTooLarge; both carry `field` in their detail where one field
    is at fault, and `request_id` and `reply_to` where the bytes still show who asked.
    """
    fields: dict[Any, Any] = {}
    try:
        fields = read_fields(content_type, data)
        return _request(fields)
    except (MalformedRequest, RequestTooLarge) as error:
        error.detail = {**error.detail, **_requester(fields)}
        raise


def decode_request_in_slices(
    content_type: str, data: bytes
) -> Generator[None, None, ChangeRequest]:
    """Return what `decode_request` does; yield behind some operations each. Raises as it does."""
    fields: dict[Any, Any] = {}
    try:
        fields = yield from read_fields_in_slices(content_type, data)
        yield
        operations: tuple[Operation, ...] | None = None
        # A field that it does not know is said first, as of a request that is read as a whole.
        if "transaction" in fields and fields.keys() <= _FIELDS["transaction"]:
            operations = yield from _transaction_in_slices(fields["transaction"])
        return _request(fields, operations)
    except (MalformedRequest, RequestTooLarge) as error:
        error.detail = {**error.detail, **_requester(fields)}
        raise


def _requester(fields: dict[Any, Any]) -> dict[str, Any]:
    """Return the id of a request that is malformed otherwise, and where its sender listens (-1:
    that can't be found); {} without an id."""
    try:
        request_id = _request_id(fields.get("id"))
    except (MalformedRequest, RequestTooLarge):
        return {}
    try:
        reply_to = check_whole_number(fields.get("reply_to"), "reply_to", -1, PARTITION_MAX)
    except (MalformedRequest, RequestTooLarge):
        reply_to = -1
    return {"request_id": request_id, "reply_to": reply_to}


def _request(fields: dict[Any, Any], read: tuple[Operation, ...] | None = None) -> ChangeRequest:
    """Return the request. `read`: the operations of its transaction, if they are known."""
    # One row is by far the commonest form.
    form = "table" if "table" in fields else next((f for f in _FIELDS if f in fields), None)
    if form is None:
        refuse_unknown(fields, frozenset().union(*_FIELDS.values()), "")
        raise MalformedRequest(
            "the request says nothing to do: expected one of 'table' with 'op', 'transaction', "
            "'sql', 'notify', or 'job' with 'action'",
            field="table",
        )
    if not fields.keys() <= _FIELDS[form]:
        refuse_unknown(fields, _FIELDS[form], "")
    operations: tuple[Operation, ...] = ()
    control: JobControl | None = None
    if form == "table":
        operations = (_operation(fields, ""),)
    elif form == "transaction":
        operations = _transaction(fields["transaction"]) if read is None else read
    elif form == "job":
        control = _control(fields)
    sql = check_text(fields["sql"], "sql", SQL_BYTES_MAX) if "sql" in fields else None
    get = fields.get
    on_conflict = _RETRY
    if "on_conflict" in fields:
        on_conflict = check_choice(get("on_conflict"), "on_conflict", _ON_CONFLICT)
    return ChangeRequest(
        _request_id(get("id")),
        operations,
        sql,
        control,
        on_conflict,
        check_whole_number(get("attempt"), "attempt", 1, ATTEMPTS_MAX)
        if "attempt" in fields
        else 1,
        check_flag(get("give_up"), "give_up") if "give_up" in fields else False,
        check_whole_number(get("reply_to"), "reply_to", -1, PARTITION_MAX)
        if "reply_to" in fields
        else -1,
        _used(get("used")) if "used" in fields else _NO_USED,
        decode_reads(fields["reads"]) if "reads" in fields else None,
        _time_zones(get("time_zones")) if "time_zones" in fields else (),
        check_choice(fields["clock"], "clock", _CLOCK_ACTIONS) if form == "clock" else False,
        "",  # whose it is no request says of itself
        check_text(get("as_role"), "as_role", ROLE_BYTES_MAX) if "as_role" in fields else "",
        "",
        decode_barrier(fields["barrier"]) if form == "barrier" else None,
        check_flag(get("held"), "held") if "held" in fields else False,
        _request_id(get("releases")) if "releases" in fields else b"",
        _fence(fields["fence"]) if "fence" in fields else None,
        _demands(fields["demands"]) if "demands" in fields else (),
        "",  # no part of it: its content type says it
        check_whole_number(fields["finalize"], "finalize", 1, FEATURE_NUMBER_MAX)
        if form == "finalize"
        else 0,
        _notifications(fields) if "notify" in fields or "notifier" in fields else None,
    )


def _notifications(fields: dict[Any, Any]) -> Notifications:
    """Read what is told to those who listen. Raises MalformedRequest, RequestTooLarge."""
    given = fields.get("notify")
    if type(given) is not list or not given:
        raise unexpected_value("notify", "an array of [channel, payload]", given)
    if len(given) > NOTIFICATIONS_MAX:
        raise RequestTooLarge(
            f"'notify' holds {len(given)} notifications; {NOTIFICATIONS_MAX} are taken",
            field="notify",
        )
    sent = tuple(dict.fromkeys(map(_notification, given)))
    if sum(each.size for each in sent) > NOTIFICATIONS_BYTES_MAX:
        raise RequestTooLarge(
            f"'notify' holds more than {NOTIFICATIONS_BYTES_MAX} bytes", field="notify"
        )
    if "notifier" not in fields:
        return Notifications(sent)
    said = fields["notifier"]
    if type(said) is not list or len(said) != 2:
        raise unexpected_value("notifier", "[node, process]", said)
    process = check_whole_number(said[1], "notifier", -VERSION_MAX, VERSION_MAX)
    return Notifications(sent, check_name(said[0], "", "notifier"), process)


def _notification(pair: Any) -> Notification:
    wanted = (
        f"[channel, payload], texts of 1 to {CHANNEL_BYTES_MAX} and of at most {PAYLOAD_BYTES_MAX}"
        " bytes"
    )
    if type(pair) is not list or len(pair) != 2 or {type(text) for text in pair} != {str}:
        raise unexpected_value("notify", wanted, pair)
    sizes = []
    for text in pair:
        check_storable(text, "", "notify", None)
        sizes.append(len(text.encode()))
    if not 1 <= sizes[0] <= CHANNEL_BYTES_MAX or sizes[1] > PAYLOAD_BYTES_MAX:
        raise unexpected_value("notify", wanted, pair)
    if any("\0" in text for text in pair):
        raise unexpected_value("notify", "texts without the character U+0000", pair)
    return Notification(*pair)


def _fence(value: Any) -> LockFence:
    """Read the advisory locks under which a request was sent. Raises MalformedRequest."""
    if type(value) is not list or len(value) != 3:
        raise unexpected_value("fence", "[run id, session, epoch]", value)
    return LockFence(
        check_text(value[0], "fence", RUN_ID_BYTES_MAX),
        check_whole_number(value[1], "fence", 1, SESSION_ID_MAX),
        check_whole_number(value[2], "fence", 0, SESSION_ID_MAX),
    )


def _demands(value: Any) -> tuple[tuple[int, int], ...]:
    said = f"an array of at most {DEMANDS_MAX} pairs of numbers"
    if type(value) is not list or len(value) > DEMANDS_MAX:
        raise unexpected_value("demands", said, value)
    for pair in value:
        if type(pair) is not list or len(pair) != 2 or any(type(n) is not int for n in pair):
            raise unexpected_value("demands", said, value)
    return tuple((table_id, element_id) for table_id, element_id in value)


def _time_zones(value: Any) -> tuple[str, ...]:
    if type(value) is not list or len(value) > ZONES_MAX:
        raise unexpected_value("time_zones", f"an array of at most {ZONES_MAX} names", value)
    return tuple([check_text(zone, "time_zones", ZONE_CHARACTERS_MAX) for zone in value])


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
        f"'id': expected a UUID of version 7 (text, or 16 bytes), not {describe_value(value)}",
        field="id",
    )


def _transaction(value: Any) -> tuple[Operation, ...]:
    slices = _transaction_in_slices(value)
    while True:
        try:
            next(slices)
        except StopIteration as end:
            operations: tuple[Operation, ...] = end.value
            return operations


def _transaction_in_slices(value: Any) -> Generator[None, None, tuple[Operation, ...]]:
    if type(value) is not list:
        raise unexpected_value("transaction", "an array of operations", value)
    _check_count(len(value))
    operations: list[Operation] = []
    for number, fields in enumerate(value):
        if number % SLICE_OPERATIONS == SLICE_OPERATIONS - 1:
            yield
        where = f"transaction[{number}]"
        if type(fields) is not dict:
            raise unexpected_value(where, "an object with 'table' and 'op'", fields)
        if "rows" in fields:
            for operation in _many(fields, f"{where}."):
                operations.append(operation)
                if len(operations) % SLICE_OPERATIONS == 0:
                    yield
            _check_count(len(operations))
            continue
        if not fields.keys() <= _OPERATION_FIELDS:
            refuse_unknown(fields, _OPERATION_FIELDS, f"{where}.")
        operations.append(_operation(fields, f"{where}."))
    _check_count(len(operations))
    return tuple(operations)


def _check_count(count: int) -> None:
    if 1 <= count <= OPERATIONS_MAX:
        return
    words = f"'transaction' holds {count} operations; expected 1 to {OPERATIONS_MAX}"
    kind = RequestTooLarge if count else MalformedRequest
    raise kind(words, field="transaction")


def _many(fields: dict[Any, Any], where: str) -> Iterator[Operation]:
    """Yield inserts into one table that give the same columns: `rows` of values in the order of
    `columns`; `keys`, if the key is not among them, in key order."""
    if not fields.keys() <= _MANY_FIELDS:
        refuse_unknown(fields, _MANY_FIELDS, where)
    table = check_name(fields.get("table"), where, "table")
    if fields.get("op") != OperationKind.INSERT.value:
        raise unexpected_value(f"{where}op", "'insert', the one that takes rows", fields.get("op"))
    columns, rows, keys = fields.get("columns"), fields.get("rows"), fields.get("keys")
    if type(columns) is not list or len(set(map(str, columns))) != len(columns):
        raise unexpected_value(f"{where}columns", "an array of column names, each once", columns)
    for name in columns:
        check_name(name, where, "columns")
    if type(rows) is not list:
        raise unexpected_value(f"{where}rows", "an array of rows", rows)
    if keys is not None and (type(keys) is not list or len(keys) != len(rows)):
        raise unexpected_value(f"{where}keys", f"an array of {len(rows)} keys", keys)
    version = fields.get("schema_version")
    if version is not None:
        version = check_whole_number(version, f"{where}schema_version", 1, VERSION_MAX)
    arbiters = _arbiters(fields["arbiters"], where) if "arbiters" in fields else _NO_ARBITERS
    for number, row in enumerate(rows):
        if type(row) is not list or len(row) != len(columns):
            raise unexpected_value(
                f"{where}rows[{number}]", f"an array of {len(columns)} values", row
            )
        values = {
            name: storable(value, where, "rows", name)
            for name, value in zip(columns, row, strict=True)
        }
        key = {} if keys is None else _key(keys[number], where, OperationKind.INSERT)
        yield Operation(OperationKind.INSERT, table, key, values, None, version, arbiters)


def _operation(fields: dict[Any, Any], where: str) -> Operation:
    get = fields.get
    table = check_name(get("table"), where, "table")
    word = get("op")
    kind = _KINDS.get(word) if type(word) is str else None
    if kind is None:
        kind = check_choice(word, f"{where}op", _KINDS)
    key = _key(get("key"), where, kind)
    values = get("values")
    if kind is OperationKind.DELETE:
        if values:
            raise MalformedRequest(f"'{where}values': a delete takes none", field=f"{where}values")
        values = {}
    else:
        if type(values) is not dict:
            raise unexpected_value(f"{where}values", "an object of column name → value", values)
        values = _values(values, where)
    expect = get("expect")
    if expect is not None:
        expect = _expect(expect, where)
    version = get("schema_version")
    if version is not None:
        version = check_whole_number(version, f"{where}schema_version", 1, VERSION_MAX)
    if "before" in fields:
        return Operation(
            kind, table, key, values, expect, version, _NO_ARBITERS, _before(fields, where, kind)
        )
    if "arbiters" not in fields:
        return Operation(kind, table, key, values, expect, version)
    if kind is not OperationKind.INSERT:
        raise MalformedRequest(
            f"'{where}arbiters': an insert, and nothing else, may have looked for a row in its way",
            field=f"{where}arbiters",
        )
    arbiters = _arbiters(fields["arbiters"], where)
    return Operation(kind, table, key, values, expect, version, arbiters)


def _arbiters(value: Any, where: str) -> tuple[str, ...]:
    """Return names of unique indexes, "" for the primary key."""
    if type(value) is not list or len(value) > ARBITERS_MAX:
        raise unexpected_value(
            f"{where}arbiters", f"an array of at most {ARBITERS_MAX} names", value
        )
    return tuple([name if name == "" else check_name(name, where, "arbiters") for name in value])


def _before(fields: dict[Any, Any], where: str, kind: OperationKind) -> Mapping[str, Any]:
    """Return the values that a row must have."""
    if kind not in (OperationKind.UPDATE, OperationKind.DELETE) or "arbiters" in fields:
        raise MalformedRequest(
            f"'{where}before': an update or a delete, and nothing else, may say how its row was",
            field=f"{where}before",
        )
    value = fields["before"]
    if type(value) is not dict:
        raise unexpected_value(f"{where}before", "an object of column name → value", value)
    for name, one in value.items():
        check_name(name, where, "before")
        if type(one) is dict and "expr" in one:
            raise MalformedRequest(
                f"'{where}before': a value that a row has had is no expression",
                field=f"{where}before",
            )
    return _values(value, where)


def _expect(value: Any, where: str) -> int | dict[str, int]:
    """Return the genid that a row is expected to have, or a genid per lock by its name."""
    if type(value) is not dict:
        return check_whole_number(value, f"{where}expect", 0, GENID_MAX)
    if not 1 <= len(value) <= LOCKS_MAX + 1:
        raise unexpected_value(f"{where}expect", f"1 to {LOCKS_MAX + 1} locks", value)
    return {
        check_name(name, where, "expect"): check_whole_number(
            seen, f"{where}expect.{show_name(name)}", 0, GENID_MAX
        )
        for name, seen in value.items()
    }


def _key(value: Any, where: str, kind: OperationKind) -> Any:
    if type(value) is dict and value:
        for name, part in value.items():
            check_name(name, where, "key")
            check_storable(part, where, "key", name)
        return value
    if type(value) is list and value:
        for part in value:
            check_storable(part, where, "key", None)
        return tuple(value)
    if value is None and kind is OperationKind.INSERT:
        return {}  # an insert's values hold its key
    raise unexpected_value(
        f"{where}key", "an object of key column → value, or an array of key values", value
    )


def _values(values: dict[Any, Any], where: str) -> Mapping[str, Any]:
    others: dict[str, Any] = {}
    for name, value in values.items():
        check_name(name, where, "values")
        if type(value) is dict and "expr" in value:
            others[name] = _expression(value, f"{where}values.{show_name(name)}")
            continue
        found = storable(value, where, "values", name)
        if found is not value:
            others[name] = found
    return {**values, **others} if others else values


def _expression(fields: dict[Any, Any], where: str) -> Expression:
    if fields.keys() not in _EXPRESSION_FIELDS or type(fields["expr"]) is not str:
        raise MalformedRequest(
            f"'{where}': expected a plain value, or an object with \"expr\" holding text, alone or"
            ' beside "args" and "types", the values of $1, $2 … and their types',
            field=where,
        )
    text = check_text(fields["expr"], f"{where}.expr", SQL_BYTES_MAX)
    args, types = fields.get("args", []), fields.get("types", [])
    if type(args) is not list or len(args) > ARGUMENTS_MAX:
        raise unexpected_value(f"{where}.args", f"an array of at most {ARGUMENTS_MAX} values", args)
    if type(types) is not list or len(types) != len(args):
        raise unexpected_value(f"{where}.types", f"an array of {len(args)} types' names", types)
    for value in args:
        check_storable(value, f"{where}.", "args", None)
    names = tuple(check_name(kind, f"{where}.", "types") for kind in types)
    return Expression(text, tuple(args), names)


def _control(fields: dict[Any, Any]) -> JobControl:
    action = fields.get("action")
    if type(action) is not str or action not in _ACTIONS:
        raise unexpected_value("action", f"one of {', '.join(_ACTIONS)}", action)
    settings: dict[str, int] = {
        name: check_whole_number(fields[name], name, 0, VERSION_MAX)
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
    return JobControl(check_whole_number(fields["job"], "job", 1, VERSION_MAX), action, settings)


def _used(value: Any) -> Mapping[str, int]:
    if type(value) is not dict:
        raise unexpected_value("used", "an object of table name → version", value)
    return {
        check_name(table, "", "used"): check_whole_number(
            version, f"used.{show_name(table)}", 1, VERSION_MAX
        )
        for table, version in value.items()
    }


# ---------------------------------------------------------------- single values
