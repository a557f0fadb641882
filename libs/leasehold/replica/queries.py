"""Queries of an embedded replica: text and Python values in, rows of Python values out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from leasehold.adapters.os.clock import random_bytes, unix_us
from leasehold.adapters.sqlite.query import BATCH_ROWS, Limits, Rows, run
from leasehold.adapters.sqlite.snapshot import SqliteSnapshot
from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import DuplicateColumn, FeatureNotSupported, MalformedRequest
from leasehold.sql.planning.plan import Plans, Prepared
from leasehold.sql.system_catalog.system_relations import with_system
from leasehold.values.storage import from_storage, to_storage
from leasehold.values.types import STORED_AS_THEY_ARE

ROWS_MAX: Final = 100_000
_NO_CONTEXT: Final = CommitContext(0, b"")
BYTES_MAX: Final = 256 << 20


def query(
    plans: Plans, snapshot: SqliteSnapshot, text: str, parameters: Sequence[Any], limits: Limits
) -> tuple[Prepared, Rows]:
    """Run a query on a snapshot, and return its plan, one of `plans`, and its rows."""
    find = snapshot.access.find_named
    prepared = plans.get(text, snapshot.newest, find_named=find)
    if prepared.runs_whole:
        raise FeatureNotSupported(
            f"{prepared.tag} writes: run it in a transaction, by `execute` of what `transact`"
            " hands to its function"
        )
    values = stored(prepared, parameters)
    context = _NO_CONTEXT
    if prepared.emitted.depends_on_context:
        context = CommitContext(unix_us(), random_bytes(16))
    if prepared.asks_system:
        context = with_system(context, snapshot.tables, jobs=snapshot.running_jobs)
    return prepared, run(snapshot.connection, prepared, values, context=context, limits=limits)


def stored(prepared: Prepared, parameters: Sequence[Any]) -> list[Any]:
    """Return parameters as storage values. Raises MalformedRequest for a wrong number."""
    given = len(parameters)
    if given != len(prepared.parameters):
        raise MalformedRequest(
            f"the statement has {len(prepared.parameters)} parameters; {given} were given"
        )
    pairs = zip(prepared.parameters, parameters, strict=True)
    return [to_storage(kind)(value) for kind, value in pairs]


_CHANGES: dict[int, tuple[Prepared, list[tuple[int, Callable[[Any], Any]]]]] = {}
_CHANGES_MAX: Final = 4_000
_KEPT_CHARACTERS_MAX: Final = 16 * 1024


def _changes(prepared: Prepared) -> list[tuple[int, Callable[[Any], Any]]]:
    """Return (place, storage value → Python value) of the columns where they differ. By identity,
    which is one look-up; the statement is kept, so no id comes twice."""
    found = _CHANGES.get(id(prepared))
    if found is None:
        if len(_CHANGES) >= _CHANGES_MAX:
            _CHANGES.clear()
        kinds = [column.kind for column in prepared.columns or ()]
        changes: list[tuple[int, Callable[[Any], Any]]] = [
            (position, partial(from_storage, kind))
            for position, kind in enumerate(kinds)
            if kind.name not in STORED_AS_THEY_ARE
        ]
        if len(prepared.emitted.text) > _KEPT_CHARACTERS_MAX:
            return changes
        found = _CHANGES[id(prepared)] = (prepared, changes)
    return found[1]


def python_rows(prepared: Prepared, rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield stored rows as tuples of Python values."""
    changed = _changes(prepared)
    for row in rows:
        if not changed:
            yield row
            continue
        values = list(row)
        for position, change in changed:
            values[position] = change(values[position])
        yield tuple(values)


def as_tuples(prepared: Prepared, rows: Rows) -> Iterator[tuple[Any, ...]]:
    """Yield rows as tuples of Python values."""
    try:
        while batch := rows.fetch(BATCH_ROWS):
            yield from python_rows(prepared, batch)
    finally:
        rows.close()


def as_dicts(prepared: Prepared, rows: Rows) -> Iterator[dict[str, Any]]:
    """Yield rows by column name. Raises DuplicateColumn where two columns have one name."""
    names = [column.name for column in prepared.columns or ()]
    if len(set(names)) < len(names):
        rows.close()
        raise DuplicateColumn(
            "two columns of the result have one name: give them names with AS, or ask for tuples"
        )
    for row in as_tuples(prepared, rows):
        yield dict(zip(names, row, strict=True))
