"""The functions that statements call, given to a connection once each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, Final
from weakref import WeakKeyDictionary

import apsw

from leasehold.adapters.sqlite import series, system
from leasehold.catalog.elements import CommitContext
from leasehold.model.budget import give_back, hold, size_of
from leasehold.model.errors import InvalidLimit, InvalidOffset, OutOfMemory, OutOfRange, TooManyRows
from leasehold.sql.functions.aggregates.aggregates import Aggregate
from leasehold.sql.functions.function import Function
from leasehold.sql.functions.system.session import reseed, system_of
from leasehold.sql.planning.emitted import Emitted
from leasehold.values.jsonb import ordered_form
from leasehold.values.numeric import sort_key


class _Functions:
    """What one connection has registered. `context` is that of the statement that runs on it: what
    is drawn at random follows from its seed and from how many have been drawn before in that
    statement, so that who runs it again draws the same."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.context = CommitContext(0, b"")
        self.failure: Exception | None = None
        self._calls = count(1)

    def begin(self, context: CommitContext) -> None:
        """Begin one of the queries of a statement, all of which have that very moment."""
        if context is not self.context:
            self.context = context
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
                    connection.create_window_function(name, partial(_Window, aggregate, self))
                else:
                    connection.create_aggregate_function(name, partial(_Group, aggregate, self))
                self.names.add(name)
        for name, relation in emitted.systems.items():
            if name not in self.names:
                system.install(connection, name, relation, lambda: system_of(self.context))
                self.names.add(name)

    def _callable(self, function: Function) -> Callable[..., Any]:
        compute = function.in_queries
        if function.volatility == "volatile":

            def called(*values: Any) -> Any:
                seed = self.context.seed + next(self._calls).to_bytes(8, "big")
                return compute(reseed(self.context, seed), *values)

        elif function.volatility == "stable":

            def called(*values: Any) -> Any:
                return compute(self.context, *values)

        else:
            called = compute
        if not function.strict:
            return called
        if len(function.arguments) == 1 and not function.variadic:
            return lambda value: None if value is None else called(value)
        return lambda *values: None if None in values else called(*values)


_INSTALLED: Final[WeakKeyDictionary[apsw.Connection, _Functions]] = WeakKeyDictionary()


def begin(connection: apsw.Connection, emitted: Emitted, context: CommitContext) -> None:
    """Give the connection what a query calls, and the moment of the statement it is part of."""
    functions = _functions_of(connection)
    functions.install(connection, emitted)
    functions.begin(context)


def install(connection: apsw.Connection, emitted: Emitted) -> None:
    """Give the connection what a query calls, for one that is run without a moment."""
    _functions_of(connection).install(connection, emitted)


def _functions_of(connection: apsw.Connection) -> _Functions:
    found = _INSTALLED.get(connection)
    if found is None:
        found = _INSTALLED[connection] = _Functions()
    return found


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
    """Return the greatest or least of what is not NULL; of equal ones the first, as in
    PostgreSQL."""
    return choose((v for v in values if v is not None), key=key, default=None)


def _as_sqlite(value: Any) -> tuple[bool, Any]:
    """Return a key that sorts text behind numbers: a double may be the text NaN."""
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


def take_failure(connection: apsw.Connection) -> Exception | None:
    """Return what an aggregate has failed with since the last call, None: nothing."""
    functions = _functions_of(connection)
    failure, functions.failure = functions.failure, None
    return failure


def keep_failure(connection: apsw.Connection, failure: Exception) -> None:
    """Let the statement that runs end with `failure`, unless it has failed before."""
    functions = _functions_of(connection)
    functions.failure = functions.failure or failure


def has_failed(connection: apsw.Connection) -> bool:
    """Return whether an aggregate has failed, so that its statement is to end."""
    return _functions_of(connection).failure is not None


class _Group:
    """The run of an aggregate over the rows of one group. What it keeps of them is held by the
    statement's budget until its result is there.

    ⚠ No `step` raises: apsw would call on with the exception set, and a table of ours beside it
    would end in a SystemError. The first failure is kept, and ends the statement (`take_failure`).
    """

    def __init__(self, aggregate: Aggregate, functions: _Functions) -> None:
        self._aggregate = aggregate
        self._functions = functions
        self._state = aggregate.start()
        self._held = 0

    def step(self, *values: Any) -> None:
        if self._functions.failure is not None or (self._aggregate.strict and None in values):
            return
        try:
            if self._aggregate.keeps_rows:
                size = size_of(values)
                hold(size)
                self._held += size
            self._state = self._aggregate.step(self._state, *values)
        except Exception as error:  # noqa: BLE001 - the statement ends with it
            self._functions.failure = error

    def result(self) -> Any:
        if self._functions.failure is not None:
            return None  # nobody is shown it
        return self._aggregate.finish(self._state)

    def final(self) -> Any:
        made = self.result()
        self.drop()
        return made

    def drop(self) -> None:
        """Give back what is held."""
        held, self._held = self._held, 0
        give_back(held)


class _Window:
    """The run of an aggregate over one window. A window that has lost a row is gone through anew,
    as PostgreSQL does for doubles: taking away what was added would leave another sum."""

    def __init__(self, aggregate: Aggregate, functions: _Functions) -> None:
        self._aggregate = aggregate
        self._functions = functions
        self._rows: deque[tuple[Any, ...]] = deque()
        self._group = _Group(aggregate, functions)
        self._stale = False

    def step(self, *values: Any) -> None:
        if self._functions.failure is not None:
            return
        try:
            hold(size_of(values))
        except OutOfMemory as error:
            self._functions.failure = error
            return
        self._rows.append(values)
        if not self._stale:
            self._group.step(*values)

    def inverse(self, *values: Any) -> None:
        if self._rows:  # none are left out but after a failure
            give_back(size_of(self._rows.popleft()))
        self._stale = True

    def value(self) -> Any:
        if self._stale:
            self._group.drop()
            self._group = _Group(self._aggregate, self._functions)
            for values in self._rows:
                self._group.step(*values)
            self._stale = False
        return self._group.result()

    def final(self) -> Any:
        made = self.value()
        self._group.drop()
        give_back(sum(map(size_of, self._rows)))
        self._rows.clear()
        return made
