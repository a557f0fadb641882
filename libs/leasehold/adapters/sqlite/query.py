"""Runs prepared statements on a snapshot's connection, and gives it the functions that they
call."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from typing import Any, Final
from weakref import WeakKeyDictionary

import apsw

from leasehold.adapters.sqlite import series, system
from leasehold.adapters.sqlite.snapshot import STEPS_BETWEEN_LOOKS
from leasehold.catalog.elements import Moment
from leasehold.model.errors import (
    InvalidFrame,
    InvalidLimit,
    InvalidOffset,
    OutOfRange,
    QueryCanceled,
    RequestTooLarge,
    TooComplex,
    TooManyRows,
)
from leasehold.model.ids import genid
from leasehold.sql.binding.select_for_verify import Visit
from leasehold.sql.functions.aggregates.aggregates import Aggregate
from leasehold.sql.functions.function import Function
from leasehold.sql.functions.system.session import reseed, system_of
from leasehold.sql.planning.emitted import Emitted
from leasehold.sql.planning.plan import Prepared
from leasehold.sql.planning.reads import describe_reads
from leasehold.values.jsonb import ordered_form
from leasehold.values.numeric import sort_key

BATCH_ROWS: Final = 256
_VALUE_BYTES: Final = 16  # of a row's value beside its text or bytes

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
    """Of one statement. `stop`: asked now and then, True ends it (a client's cancel)."""

    time_s: float | None = None
    rows_max: int | None = None
    bytes_max: int | None = None
    stop: Callable[[], bool] | None = None


NO_LIMITS: Final = Limits()


class _Functions:
    """What one connection has registered. `moment`: of the statement that runs on it; what is drawn
    at random follows from its seed and from how many have been drawn before in that statement, so
    that who runs it again draws the same."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.moment = Moment(0, b"")
        self._calls = count(1)

    def begin(self, moment: Moment) -> None:
        """One of the queries of a statement, all of which have that very moment."""
        if moment is not self.moment:
            self.moment = moment
            self._calls = count(1)

    def install(self, connection: apsw.Connection, emitted: Emitted) -> None:
        if "lh_limit" not in self.names:
            _install_own(connection)
            self.names.add("lh_limit")
        if not (emitted.functions or emitted.aggregates or emitted.systems):
            return
        for name, function in emitted.functions.items():
            if name not in self.names:
                # While a statement runs its session's zone is one.
                immutable = function.zoned or function.volatility == "immutable"
                connection.create_scalar_function(
                    name, self._callable(function), deterministic=immutable
                )
                self.names.add(name)
        for name, (aggregate, windowed) in emitted.aggregates.items():
            if name not in self.names:
                if windowed:
                    connection.create_window_function(name, partial(_Window, aggregate))
                else:
                    connection.create_aggregate_function(name, partial(_Group, aggregate))
                self.names.add(name)
        for name, relation in emitted.systems.items():
            if name not in self.names:
                system.install(connection, name, relation, lambda: system_of(self.moment))
                self.names.add(name)

    def _callable(self, function: Function) -> Callable[..., Any]:
        compute = function.in_queries
        if function.volatility == "volatile":

            def called(*values: Any) -> Any:
                seed = self.moment.seed + next(self._calls).to_bytes(8, "big")
                return compute(reseed(self.moment, seed), *values)

        elif function.volatility == "stable":

            def called(*values: Any) -> Any:
                return compute(self.moment, *values)

        else:
            called = compute
        if not function.strict:
            return called
        if len(function.arguments) == 1 and not function.variadic:
            return lambda value: None if value is None else called(value)
        return lambda *values: None if None in values else called(*values)


_INSTALLED: Final[WeakKeyDictionary[apsw.Connection, _Functions]] = WeakKeyDictionary()


def run(
    connection: apsw.Connection,
    prepared: Prepared,
    parameters: Sequence[Any] = (),
    *,
    moment: Moment,
    limits: Limits = NO_LIMITS,
    as_of: int = 0,
    visit: Visit | None = None,
    later: bool = False,
) -> Rows:
    """The statement's rows on a connection whose snapshot is open. `parameters`: storage values of
    the prepared types; `as_of`: the LSN that tables are read as of that have changed since;
    `visit`: is told of rows that SELECTV shows; `later`: nothing is computed before the first row
    is fetched.

    Raises here, or while rows are fetched: what functions raise, QueryCanceled, RequestTooLarge.
    """
    if prepared.explain:
        return Rows(connection, "", (), ready=explained(connection, prepared, parameters))
    assert prepared.write is None, "its rows are found and written by Writing"
    rows = emitted_rows(
        connection,
        prepared.emitted,
        parameters,
        moment=moment,
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
                connection, emitted, parameters, moment=moment, limits=limits, as_of=as_of
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
    moment: Moment,
    limits: Limits = NO_LIMITS,
    as_of: int = 0,
    later: bool = False,
) -> Rows:
    """As `run`, of one of a statement's queries."""
    functions = _functions_of(connection)
    functions.install(connection, emitted)
    functions.begin(moment)
    bindings = (*parameters, *emitted.constants)
    if emitted.now_at is not None:
        at = len(parameters) + emitted.now_at
        bindings = (*bindings[:at], moment.now_us, *bindings[at + 1 :])
    if emitted.as_of_at is not None:
        at = len(parameters) + emitted.as_of_at
        bindings = (*bindings[:at], as_of, genid(as_of + 1, 0), *bindings[at + 2 :])
    return Rows(connection, emitted.text, bindings[: emitted.highest], limits, later=later)


def install(connection: apsw.Connection, emitted: Emitted) -> None:
    """What it calls, for one who runs it by himself."""
    _functions_of(connection).install(connection, emitted)


def _functions_of(connection: apsw.Connection) -> _Functions:
    found = _INSTALLED.get(connection)
    if found is None:
        found = _INSTALLED[connection] = _Functions()
    return found


class Rows:
    """Rows in batches: a slow reader holds no more than one. Close it, or read to the end."""

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
    ) -> None:
        """`ready`: rows that are there already, behind which comes `ends_with`; nothing is run
        then. `later`: not before the first fetch."""
        self._connection = connection
        self._ready = ready
        self._ends_with = ends_with
        self.shown: Callable[[list[tuple[Any, ...]]], list[tuple[Any, ...]]] | None = None
        self._limits = limits
        self._rows = self._bytes = 0
        self._watch: object | None = None
        self._cursor: apsw.Cursor | None = None
        if ready is not None:
            return
        self._cursor = connection.cursor()
        if limits.time_s is not None or limits.stop is not None:
            self._watch = object()
            connection.set_progress_handler(self._looker(), STEPS_BETWEEN_LOOKS, id=self._watch)
        self._waiting: tuple[str, Sequence[Any]] | None = (text, bindings)
        if later:
            return
        try:
            self._execute()
        except BaseException as error:
            self.close()
            if isinstance(error, apsw.Error):
                raise said(error) from error
            raise

    def _execute(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            assert self._cursor is not None
            self._cursor.execute(*waiting)

    def _looker(self) -> Callable[[], bool]:
        stop = self._limits.stop
        time_s = self._limits.time_s
        end = None if time_s is None else time.monotonic() + time_s

        def look() -> bool:
            return (end is not None and time.monotonic() > end) or (stop is not None and stop())

        return look

    def fetch(self, rows_max: int = BATCH_ROWS) -> list[tuple[Any, ...]]:
        """The next rows, [] at the end."""
        rows, error = self.partly(rows_max)
        if error is not None:
            raise error
        return rows

    def partly(self, rows_max: int = BATCH_ROWS) -> tuple[list[tuple[Any, ...]], Exception | None]:
        """The next rows, and what comes in the place of the one behind them."""
        if self._ready is not None:
            found, self._ready = self._ready[:rows_max], self._ready[rows_max:]
            return found, self._ends_with if len(found) < rows_max else None
        if self._cursor is None:
            return [], None
        rows: list[tuple[Any, ...]] = []
        failure: Exception | None = None
        try:
            self._execute()
            rows.extend(islice(self._cursor, rows_max))  # those before an error are in it then
            self._count(rows)
        except Exception as error:  # noqa: BLE001 - it is handed over
            failure = said(error) if isinstance(error, apsw.Error) else error
            self.close()
        except BaseException:
            self.close()
            raise
        if len(rows) < rows_max:
            self.close()
        return rows if self.shown is None else self.shown(rows), failure

    def _count(self, rows: list[tuple[Any, ...]]) -> None:
        limits = self._limits
        self._rows += len(rows)
        if limits.rows_max is not None and self._rows > limits.rows_max:
            raise RequestTooLarge(f"the result has more than {limits.rows_max} rows: add a LIMIT")
        if limits.bytes_max is not None:
            for row in rows:
                self._bytes += _VALUE_BYTES * len(row)
                for value in row:
                    if type(value) is str or type(value) is bytes:
                        self._bytes += len(value)
            if self._bytes > limits.bytes_max:
                raise RequestTooLarge(
                    f"the result has more than {limits.bytes_max} bytes: add a LIMIT"
                )

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while batch := self.fetch():
            yield from batch

    def all(self) -> list[tuple[Any, ...]]:
        return list(self)

    def whole(self) -> Rows:
        """The same, computed now. Raises QueryCanceled, RequestTooLarge."""
        rows: list[tuple[Any, ...]] = []
        error: Exception | None = None
        more = True
        while more:
            part, error = self.partly()
            rows += part
            more = error is None and len(part) == BATCH_ROWS
        if isinstance(error, QueryCanceled | RequestTooLarge):
            raise error
        return Rows(self._connection, "", (), ready=rows, ends_with=error)

    def close(self) -> None:
        """May be called twice."""
        cursor, self._cursor = self._cursor, None
        if self._watch is not None:
            self._connection.set_progress_handler(None, id=self._watch)
            self._watch = None
        if cursor is not None:
            cursor.close(force=True)


def said(error: apsw.Error) -> Exception:
    """SQLite's error as this project's; itself where it is a defect."""
    if isinstance(error, apsw.InterruptError):
        return QueryCanceled("the statement was ended: it took too long, or was cancelled")
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


# -------------------------------------------------------------- functions of our own


def _install_own(connection: apsw.Connection) -> None:
    functions: dict[str, Callable[..., Any]] = {
        "lh_limit": _limit,
        "lh_offset": _offset,
        "lh_positive": _positive,
        "lh_greatest": partial(_extreme, max, _as_sqlite),
        "lh_least": partial(_extreme, min, _as_sqlite),
        "lh_greatest_by_key": partial(_extreme, max, sort_key),
        "lh_least_by_key": partial(_extreme, min, sort_key),
        "lh_greatest_by_order": partial(_extreme, max, ordered_form),
        "lh_least_by_order": partial(_extreme, min, ordered_form),
    }
    for name, function in functions.items():
        connection.create_scalar_function(name, function, deterministic=True)
    connection.create_scalar_function("lh_too_many_rows", _too_many_rows, numargs=0)
    series.install(connection)


def _extreme(choose: Callable[..., Any], key: Callable[[Any], Any] | None, *values: Any) -> Any:
    """Of what is not NULL; of equal ones the first, as in PostgreSQL."""
    return choose((v for v in values if v is not None), key=key, default=None)


def _as_sqlite(value: Any) -> tuple[bool, Any]:
    """Text behind numbers: a double may be the text NaN."""
    return type(value) is str, value


def _limit(value: int | None) -> int:
    if value is not None and value < 0:
        raise InvalidLimit("LIMIT must not be negative")
    return -1 if value is None else value


def _offset(value: int | None) -> int:
    if value is not None and value < 0:
        raise InvalidOffset("OFFSET must not be negative")
    return value or 0


def _positive(value: int | None) -> int | None:
    if value is not None and value <= 0:
        raise OutOfRange("the argument of ntile or nth_value must be greater than zero")
    return value


def _too_many_rows(*_: Any) -> None:
    raise TooManyRows("more than one row returned by a subquery used as an expression")


class _Group:
    """One run of an aggregate over the rows of a group."""

    def __init__(self, aggregate: Aggregate) -> None:
        self._aggregate = aggregate
        self._state = aggregate.start()

    def step(self, *values: Any) -> None:
        if not (self._aggregate.strict and None in values):
            self._state = self._aggregate.step(self._state, *values)

    def final(self) -> Any:
        return self._aggregate.finish(self._state)


class _Window:
    """One run over a window. A window that has lost a row is gone through anew, as PostgreSQL does
    for doubles: taking away what was added would leave another sum."""

    def __init__(self, aggregate: Aggregate) -> None:
        self._aggregate = aggregate
        self._rows: deque[tuple[Any, ...]] = deque()
        self._group = _Group(aggregate)
        self._stale = False

    def step(self, *values: Any) -> None:
        self._rows.append(values)
        if not self._stale:
            self._group.step(*values)

    def inverse(self, *values: Any) -> None:
        self._rows.popleft()
        self._stale = True

    def value(self) -> Any:
        if self._stale:
            self._group = _Group(self._aggregate)
            for values in self._rows:
                self._group.step(*values)
            self._stale = False
        return self._group.final()

    final = value


# -------------------------------------------------------------- EXPLAIN


def explained(
    connection: apsw.Connection, prepared: Prepared, parameters: Sequence[Any] = ()
) -> list[tuple[Any, ...]]:
    """SQLite's plan, with the names of tables and indexes in the place of its own; or what would be
    read."""
    if prepared.tells_reads:
        tables = prepared.tables.values()
        values = (*parameters, *[None] * (len(prepared.parameters) - len(parameters)))
        return [(line,) for line in describe_reads(prepared.reads, tables, values)]
    names = {}
    for chosen in prepared.chosen:
        names[f"r{chosen.relation}"] = (chosen.table, "")
        names[f"i{chosen.relation}"] = (chosen.table, chosen.by)
    depth: dict[int, int] = {0: -1}
    lines: list[tuple[Any, ...]] = []
    for number, parent, text in query_plan(connection, prepared.emitted):
        depth[number] = depth.get(parent, -1) + 1
        lines.append(("  " * depth[number] + _shown(text, names),))
    return lines


def query_plan(connection: apsw.Connection, emitted: Emitted) -> list[tuple[int, int, str]]:
    """SQLite's own steps: number, number of the one above, words."""
    install(connection, emitted)
    found = connection.execute(f"EXPLAIN QUERY PLAN {emitted.text}", [None] * emitted.highest)
    return [(number, parent, str(text)) for number, parent, _, text in found]


def _shown(text: str, names: dict[str, tuple[str, str]]) -> str:
    words = text.split(" ", 2)
    if len(words) < 2 or words[0] not in ("SCAN", "SEARCH") or words[1] not in names:
        return text
    table, index = names[words[1]]
    rest = words[2] if len(words) > 2 else ""
    condition = rest[rest.index("(") :] if "(" in rest else ""
    if index:
        verb = "Index Search" if words[0] == "SEARCH" else "Index Scan"
        return f"{verb} using {index} on {table} {condition}".rstrip()
    if words[0] == "SEARCH":
        return f"Primary Key Search on {table} {condition}".rstrip()
    return f"Seq Scan on {table}"
