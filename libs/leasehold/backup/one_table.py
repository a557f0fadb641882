"""Brings one table of a backup back beside the living one: as a new table of the running database,
made by a schema statement and filled by change requests, as any other.

It has the columns that the table had at the target, their types, NOT NULL and the primary key, and
the values that its generated columns and sequences had given. Indexes, other constraints, defaults
and rights are not made: what the rows are wanted for says whether they are.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from leasehold.backup.store_file import open_file
from leasehold.backup.told import NOBODY, Told
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.model.errors import LeaseholdError, OutcomeUnknown
from leasehold.model.keys import INTEGER_MOST
from leasehold.model.records.requests import OnConflict, Outcome
from leasehold.values.storage import to_json

ROWS_AT_ONCE: Final = 2_000
REQUEST_CHARACTERS: Final = 500_000
"""Of a request's rows, as JSON; a row beyond it is a request of its own."""
REQUESTS_UNDER_WAY: Final = 4
ANSWER_TIMEOUT_S: Final = 60.0
ASKED_MAX: Final = 10
"""How often a request is asked for whose outcome is not known: ten minutes in all."""
_ONCE: Final = {"on_conflict": OnConflict.FAIL.value}


class Sent(Protocol):
    """A request on its way, as `client.pending.Pending` is."""

    def result(self, timeout_s: float = ...) -> Outcome: ...
    def ask_again(self) -> object: ...


Submit = Callable[[Mapping[str, Any]], Sent]


class Copied(NamedTuple):
    """A table that was brought back: its new name, its rows, and the LSN they are as of."""

    name: str
    rows: int
    lsn: int


def copy_table(
    store: Path, table: str, name: str, submit: Submit, *, told: Told = NOBODY
) -> Copied:
    """Make the table `name` of a database of what `table` is in a store's file. `submit` sends a
    change request.

    Raises UnknownTable where the store has none; what the schema statement is refused with, such as
    DuplicateObject; what a request is refused with: then part of the rows are there. OutcomeUnknown
    where that is not known.
    """
    with open_file(store) as snapshot:
        descriptor = snapshot.newest(table)
        settle(submit({"sql": create_statement(descriptor, name), **_ONCE}))
        told.step(f"copying rows to {name}")
        under_way: deque[Sent] = deque()
        count = 0
        for rows in _batches(_rows(descriptor, snapshot.scan)):
            if len(under_way) >= REQUESTS_UNDER_WAY:
                settle(under_way.popleft())
            columns = [column.name for column in _shown(descriptor)]
            insert = {"table": name, "op": "insert", "columns": columns, "rows": rows}
            under_way.append(submit({"transaction": [insert], **_ONCE}))
            count += len(rows)
        while under_way:
            settle(under_way.popleft())
        return Copied(name, count, snapshot.lsn)


def create_statement(table: Descriptor, name: str) -> str:
    """Return the statement that makes such a table under another name."""
    columns = [
        f"{quote_name(column.name)} {column.type}{'' if column.nullable else ' NOT NULL'}"
        for column in _shown(table)
    ]
    key = [column.name for column in table.key_columns if not column.hidden]
    if key:
        columns.append(f"PRIMARY KEY ({', '.join(map(quote_name, key))})")
    return f"CREATE TABLE {quote_name(name)} ({', '.join(columns)})"


def quote_name(name: str) -> str:
    """Return a name in quotes, as it is."""
    return '"' + name.replace('"', '""') + '"'


def _shown(table: Descriptor) -> Sequence[Column]:
    return [column for column in table.by_name.values() if not column.hidden]


def _rows(table: Descriptor, scan: Callable[..., Iterator[Any]]) -> Iterator[list[Any]]:
    columns = _shown(table)
    for _, row in scan(table, None, None, rows_max=INTEGER_MOST):
        yield [to_json(column.type, row.values.get(column.element_id)) for column in columns]


def _batches(rows: Iterator[list[Any]]) -> Iterator[list[list[Any]]]:
    held: list[list[Any]] = []
    size = 0
    for row in rows:
        size += len(json.dumps(row))
        held.append(row)
        if len(held) >= ROWS_AT_ONCE or size >= REQUEST_CHARACTERS:
            yield held
            held, size = [], 0
    if held:
        yield held


def settle(sent: Sent) -> Outcome:
    """Return the outcome of a request that was committed; it is asked for again under its id while
    it is not known. Raises what it was refused with, OutcomeUnknown."""
    for asked in range(ASKED_MAX):
        try:
            outcome = sent.result(ANSWER_TIMEOUT_S)
        except OutcomeUnknown:
            if asked == ASKED_MAX - 1:
                raise
            try:
                sent.ask_again()
            except LeaseholdError:
                continue
            continue
        if outcome.lsn:
            return outcome
        raise outcome.make_error()
    raise AssertionError("the last one raises")
