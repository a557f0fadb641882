"""Runs prepared statements on a snapshot's connection."""

from __future__ import annotations

import marshal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

import apsw

from leasehold.adapters.os.temp_room import Growth
from leasehold.adapters.sqlite.explain import explain_statement
from leasehold.adapters.sqlite.part_check import check_read
from leasehold.adapters.sqlite.snapshot import STEPS_BETWEEN_LOOKS
from leasehold.adapters.sqlite.statement_functions import (
    begin,
    has_failed,
    keep_failure,
    take_failure,
)
from leasehold.adapters.sqlite.statement_memory import memory_of
from leasehold.catalog.elements import CommitContext
from leasehold.model.budget import Budget, size_of, spending
from leasehold.model.errors import (
    InvalidFrame,
    OutOfMemory,
    OutOfRange,
    QueryCanceled,
    RequestTooLarge,
    TooComplex,
)
from leasehold.model.ids import genid
from leasehold.pgwire.wire_errors import DiskFull
from leasehold.sql.binding.select_for_verify import Visit
from leasehold.sql.planning.emitted import Emitted
from leasehold.sql.planning.plan import Prepared

BATCH_ROWS: Final = 256
FETCH_BYTES_MAX: Final = 1 << 20
"""Of texts and bytes in the rows of one fetch, about: it ends with the row that reaches them."""
FIRST_ROWS: Final = 4
"""Of a fetch, by whose size it is decided how many more are taken at once."""
STEP_ROWS_MAX: Final = 16
"""Taken at once: so many are too large at most before it is known."""
_VALUE_BYTES: Final = 16  # of a row's value beside its text or bytes
ROW_BYTES: Final = 64
"""Of a row that is kept, beside its values."""

VALUES_MAX: Final = 32_766
"""Of one statement: what SQLite is built with, which can't be raised."""
_TOO_COMPLEX: Final = (
    "too many terms",
    "tree is too large",
    "parser stack overflow",
    "too many columns",
    "at most 64 tables",
    "too many FROM clause terms",
    "too many arguments",
    "too many references to",
    "nested too deep",
)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one statement. `stop` is asked now and then, and True ends it (a client's
    cancel)."""

    time_s: float | None = None
    rows_max: int | None = None
    bytes_max: int | None = None
    stop: Callable[[], bool] | None = None


NO_LIMITS: Final = Limits()
_ENDING: Final = (QueryCanceled, RequestTooLarge, OutOfMemory)


def run(
    connection: apsw.Connection,
    prepared: Prepared,
    parameters: Sequence[Any] = (),
    *,
    context: CommitContext,
    limits: Limits = NO_LIMITS,
    as_of: int = 0,
    visit: Visit | None = None,
    later: bool = False,
) -> Rows:
    """Return the statement's rows on a connection whose snapshot is open. `parameters` are storage
    values of the prepared types, `as_of` is the LSN that tables are read as of that have changed
    since. `visit` is told of rows that SELECTV shows. With `later` nothing is computed before the
    first row is fetched.

    Raises here, or while rows are fetched: what functions raise, QueryCanceled, RequestTooLarge.
    """
    check_read(connection, prepared, parameters)
    if prepared.explain:
        return Rows(connection, "", (), ready=explain_statement(connection, prepared, parameters))
    assert prepared.write is None, "its rows are found and written by Writing"
    rows = emitted_rows(
        connection,
        prepared.emitted,
        parameters,
        context=context,
        limits=limits,
        as_of=as_of,
        later=later,
    )
    if prepared.visits is None:
        return rows
    apart = prepared.visits.apart
    if apart is None:
        rows.shown = prepared.visits.shown(visit)
        return rows
    try:
        for emitted, each in zip(prepared.visited, apart, strict=True) if visit else ():
            seen = each.visits.shown(visit)
            found = emitted_rows(
                connection, emitted, parameters, context=context, limits=limits, as_of=as_of
            )
            while batch := found.fetch():
                seen(batch)
    except BaseException:
        rows.close()
        raise
    return rows


def emitted_rows(
    connection: apsw.Connection,
    emitted: Emitted,
    parameters: Sequence[Any],
    *,
    context: CommitContext,
    limits: Limits = NO_LIMITS,
    as_of: int = 0,
    later: bool = False,
    budget: Budget | None = None,
) -> Rows:
    """Return the rows of one of a statement's queries; arguments and errors are those of `run`.
    `budget` is that of the statement, if it has one for all of them."""
    begin(connection, emitted, context)
    bindings = (*parameters, *emitted.constants)
    if emitted.now_at is not None:
        at = len(parameters) + emitted.now_at
        bindings = (*bindings[:at], context.now_us, *bindings[at + 1 :])
    if emitted.as_of_at is not None:
        at = len(parameters) + emitted.as_of_at
        bindings = (*bindings[:at], as_of, genid(as_of + 1, 0), *bindings[at + 2 :])
    return Rows(
        connection,
        emitted.text,
        bindings[: emitted.highest],
        limits,
        later=later,
        computes=bool(emitted.functions or emitted.aggregates),
        budget=budget,
    )


class Part(NamedTuple):
    """The next rows of a query, and the error that comes in the place of the one behind them.
    `more`: there may be rows behind these, which are as many as were asked for, or as large as a
    fetch may be."""

    rows: list[tuple[Any, ...]]
    error: Exception | None
    more: bool


def bytes_of(rows: Iterable[Sequence[Any]]) -> int:
    """Return how many characters and bytes the values of rows have."""
    size = 0
    for row in rows:
        for value in row:
            if type(value) is str or type(value) is bytes:
                size += len(value)
    return size


def take_rows(cursor: Iterator[Any], rows: list[Any], rows_max: int) -> bool:
    """Add the next rows of `cursor`, at most `rows_max` and about FETCH_BYTES_MAX; where an error
    comes, those before it are in `rows`. Return whether there may be more.

    How large a row is shows when it is there. So a few are taken at first, then no more at once
    than have room if they are as those before.
    """
    wanted, size = FIRST_ROWS, 0
    while len(rows) < rows_max:
        begin = len(rows)
        wanted = min(wanted, rows_max - begin)
        rows.extend(islice(cursor, wanted))
        if len(rows) < begin + wanted:
            return False
        size_of_part = len(marshal.dumps(rows[begin:]))  # a quarter of the time of looking at each
        size += size_of_part
        if size >= FETCH_BYTES_MAX:
            return True
        room = (FETCH_BYTES_MAX - size) * wanted // (size_of_part + 1)
        wanted = max(1, min(STEP_ROWS_MAX, room))
    return True


class Rows:
    """Rows in batches, so that a slow reader holds no more than one. Close it, or read to the
    end."""

    def __init__(
        self,
        connection: apsw.Connection,
        text: str,
        bindings: Sequence[Any],
        limits: Limits = NO_LIMITS,
        ready: list[tuple[Any, ...]] | None = None,
        *,
        later: bool = False,
        ends_with: Exception | None = None,
        computes: bool = False,
        budget: Budget | None = None,
    ) -> None:
        """Begin to run the text; with `later` not before the first fetch. With `ready` nothing is
        run: these rows are there already, held by `budget`, which is closed with them, and behind
        them comes `ends_with`. `computes`: it calls functions of ours, which are stopped inside and
        hold memory, of `budget` where it is one of the queries of a statement that has one."""
        self._connection = connection
        self._ready = ready
        self._ends_with = ends_with
        self.shown: Callable[[list[tuple[Any, ...]]], list[tuple[Any, ...]]] | None = None
        self._limits = limits
        self._rows = self._bytes = 0
        self._watch: object | None = None
        self._cursor: apsw.Cursor | None = None
        self._budget = budget
        self._own_budget: Budget | None = None
        if ready is not None:
            self._own_budget = budget
            return
        self._cursor = connection.cursor()
        self._watch, look = object(), looker(connection, limits)
        connection.set_progress_handler(look, STEPS_BETWEEN_LOOKS, id=self._watch)
        if computes and budget is None:
            self._budget = self._own_budget = _open_budget(connection, look)
        self._waiting: tuple[str, Sequence[Any]] | None = (text, bindings)
        if later:
            return
        try:
            self._execute()
        except Exception as error:
            reason = self._reason(error)
            self.close()
            if reason is error:
                raise
            raise reason from error
        except BaseException:
            self.close()
            raise

    def _execute(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return
        assert self._cursor is not None
        if self._budget is None:
            self._cursor.execute(*waiting)
            return
        with spending(self._budget):
            self._cursor.execute(*waiting)
        self._raise_failure()

    def _raise_failure(self) -> None:
        """Raise what an aggregate of this statement has failed with."""
        failure = take_failure(self._connection)
        if failure is not None:
            raise failure

    def _translate(self, error: apsw.Error) -> Exception:
        failure = take_failure(self._connection)
        if failure is not None and isinstance(error, apsw.InterruptError):
            return failure
        return translate_error(error)

    def _reason(self, error: Exception) -> Exception:
        """Return what the statement ends with, which `error` has come of."""
        if isinstance(error, apsw.Error):
            return self._translate(error)
        if isinstance(error, QueryCanceled):  # inside of a call, which ended for it
            return take_failure(self._connection) or error
        return error

    def fetch(self, rows_max: int = BATCH_ROWS) -> list[tuple[Any, ...]]:
        """Return the next rows, [] at the end. Raises what comes in the place of the first of
        them."""
        rows, error, _ = self.fetch_part(rows_max)
        if error is not None:
            raise error
        return rows

    def fetch_part(self, rows_max: int = BATCH_ROWS) -> Part:
        """Return the next rows, fewer than `rows_max` also where they are large."""
        if self._ready is not None:
            found, self._ready = self._ready[:rows_max], self._ready[rows_max:]
            more = len(found) == rows_max
            if not more:
                self.close()
            return Part(found, None if more else self._ends_with, more)
        if self._cursor is None:
            return Part([], None, more=False)
        rows: list[tuple[Any, ...]] = []
        failure: Exception | None = None
        more = False
        try:
            self._execute()
            more = self._take(rows, rows_max)
            self._count(rows)
        except Exception as error:  # noqa: BLE001 - it is handed over
            failure, more = self._reason(error), False
        except BaseException:
            self.close()
            raise
        if not more:
            self.close()
        return Part(rows if self.shown is None else self.shown(rows), failure, more)

    def _take(self, rows: list[tuple[Any, ...]], rows_max: int) -> bool:
        """Add the next rows to `rows`; where an error comes, those before it are in it. Return
        whether there may be more."""
        assert self._cursor is not None
        if self._budget is None:
            return take_rows(self._cursor, rows, rows_max)
        with spending(self._budget):
            more = take_rows(self._cursor, rows, rows_max)
        try:
            self._raise_failure()
        except Exception:
            rows.clear()  # results of an aggregate that has failed
            raise
        return more

    def _count(self, rows: list[tuple[Any, ...]]) -> None:
        limits = self._limits
        self._rows += len(rows)
        if limits.rows_max is not None and self._rows > limits.rows_max:
            raise RequestTooLarge(f"the result has more than {limits.rows_max} rows: add a LIMIT")
        if limits.bytes_max is not None:
            self._bytes += _VALUE_BYTES * sum(map(len, rows)) + bytes_of(rows)
            if self._bytes > limits.bytes_max:
                raise RequestTooLarge(
                    f"the result has more than {limits.bytes_max} bytes: add a LIMIT"
                )

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while batch := self.fetch():
            yield from batch

    def all(self) -> list[tuple[Any, ...]]:
        return list(self)

    def compute_all(self, *, whole: bool = False) -> Rows:
        """Return the same rows, computed now, and held by a budget until they are closed or read to
        the end. Raises QueryCanceled, RequestTooLarge, OutOfMemory; with `whole` all that comes in
        the place of a row, else that comes behind those before it."""
        rows: list[tuple[Any, ...]] = []
        error: Exception | None = None
        budget = memory_of(self._connection).open_budget()
        try:
            more = True
            while more:
                part, error, more = self.fetch_part()
                for row in part:
                    budget.hold(ROW_BYTES + size_of(row))
                rows += part
            if error is not None and (whole or isinstance(error, _ENDING)):
                raise error
        except BaseException:
            self.close()
            budget.close()
            raise
        return Rows(self._connection, "", (), ready=rows, ends_with=error, budget=budget)

    def close(self) -> None:
        """End the statement; may be called twice."""
        cursor, self._cursor = self._cursor, None
        if self._watch is not None:
            self._connection.set_progress_handler(None, id=self._watch)
            self._watch = None
        if cursor is not None:
            if self._budget is None:
                cursor.close(force=True)
            else:
                with spending(self._budget):  # aggregates give back what they hold
                    cursor.close(force=True)
            take_failure(self._connection)  # it ends no other statement of the connection
        budget, self._own_budget = self._own_budget, None
        if budget is not None:
            budget.close()


def looker(connection: apsw.Connection, limits: Limits) -> Callable[[], bool]:
    """Return what says whether a statement, which begins now, is to end."""
    stop, time_s = limits.stop, limits.time_s
    end = None if time_s is None else time.monotonic() + time_s
    growth: Growth | None = None

    def look() -> bool:
        nonlocal growth
        if end is not None and time.monotonic() > end:
            return True
        if stop is not None and stop():
            return True
        temp = memory_of(connection).temp
        if temp.is_full():
            growth = growth or Growth()
            if growth.goes_on():
                keep_failure(connection, temp.full())
        return has_failed(connection)

    return look


def open_budget(connection: apsw.Connection, limits: Limits) -> Budget:
    """Return the budget of a statement of several queries, which begins now. Close it."""
    return _open_budget(connection, looker(connection, limits))


def _open_budget(connection: apsw.Connection, look: Callable[[], bool]) -> Budget:
    return memory_of(connection).open_budget(partial(_end_if, look))


def _end_if(look: Callable[[], bool]) -> None:
    """Raise QueryCanceled if the statement is to end."""
    if look():
        raise QueryCanceled("the statement was ended: it took too long, or was cancelled")


def translate_error(error: apsw.Error) -> Exception:
    """Return SQLite's error as this project's, itself where it is a defect."""
    if isinstance(error, apsw.InterruptError):
        return QueryCanceled("the statement was ended: it took too long, or was cancelled")
    if isinstance(error, apsw.NoMemError):
        return OutOfMemory("SQLite has no memory for this statement")
    if isinstance(error, apsw.FullError):
        return DiskFull("no room on the disk for what this statement sorts or gathers")
    if isinstance(error, apsw.TooBigError):
        return RequestTooLarge("a value, or the statement itself, is too large")
    text = str(error)
    if isinstance(error, apsw.SQLError):
        if "integer overflow" in text:
            return OutOfRange("bigint out of range")
        if text.startswith("frame "):
            return InvalidFrame("a frame's offset must not be null or negative")
        if "variable number must be" in text or "too many SQL variables" in text:
            return TooComplex(
                f"a statement has at most {VALUES_MAX} parameters and constants outside of IN"
            )
        if any(words in text for words in _TOO_COMPLEX):
            return TooComplex(f"the statement is too complex: {text}")
    return error
