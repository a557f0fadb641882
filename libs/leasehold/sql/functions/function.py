"""What the catalogue holds: a function, an operator or a cast over storage values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Final, Literal, TypeAlias
from zoneinfo import ZoneInfo

from leasehold.values.doubles import over_floats
from leasehold.values.time_zone import UTC, InZone, by_zone
from leasehold.values.types import Type

Volatility: TypeAlias = Literal["immutable", "stable", "volatile"]

SMALLINT: Final = Type("smallint")
INTEGER: Final = Type("integer")
BIGINT: Final = Type("bigint")
NUMERIC: Final = Type("numeric")
REAL: Final = Type("real")
DOUBLE: Final = Type("double precision")
TEXT: Final = Type("text")
CHAR: Final = Type("char")  # without a length: of any, as PostgreSQL's bpchar
BOOLEAN: Final = Type("boolean")
BYTEA: Final = Type("bytea")
DATE: Final = Type("date")
TIME: Final = Type("time")
TIMETZ: Final = Type("timetz")
TIMESTAMP: Final = Type("timestamp")
TIMESTAMPTZ: Final = Type("timestamptz")
INTERVAL: Final = Type("interval")
UUID: Final = Type("uuid")
INET: Final = Type("inet")
CIDR: Final = Type("cidr")
JSON: Final = Type("json")
JSONB: Final = Type("jsonb")
INTEGERS: Final = (SMALLINT, INTEGER, BIGINT)


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function, an operator or a cast. `compute` takes storage values of exactly the types
    `arguments` and gives one of `result` (`make_over_doubles` makes one of what computes with
    floats).

    `strict`: it is called without a NULL only, and NULL comes of one; else it gets None for it. A
    function that is not immutable gets a `CommitContext` (catalog/elements.py) before its
    arguments: that of the statement, and for a volatile one with another seed in each call.
    `zoned`: it is stable since it asks that moment for the session's time zone, and nothing else
    (`fix_to_utc` makes an immutable one of it, for texts that are kept). `computes_more`: `compute`
    with a larger limit, for values on their way through a query; what is kept, and so computed by
    every node again, has that of `compute` for ever. `variadic`: the last of `arguments` may come
    any number of times, at least once. `steers`: it does something to the session or its node, so
    it is for queries alone.
    """

    name: str
    arguments: tuple[Type, ...]
    result: Type
    compute: Callable[..., Any]
    strict: bool = True
    volatility: Volatility = "immutable"
    variadic: bool = False
    zoned: bool = False
    computes_more: Callable[..., Any] | None = None
    steers: bool = False

    @property
    def in_queries(self) -> Callable[..., Any]:
        return self.computes_more or self.compute

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


def make_zoned(
    name: str, arguments: tuple[Type, ...], result: Type, compute: Callable[..., Any]
) -> Function:
    """Return a function whose `compute` takes the session's time zone before the values."""
    return Function(name, arguments, result, by_zone(compute), volatility="stable", zoned=True)


def make_over_doubles(
    name: str, arguments: tuple[Type, ...], result: Type, compute: Callable[..., Any]
) -> Function:
    """Return a function whose `compute` takes and gives floats, NaN among them, in the place of
    doubles' storage values."""
    return Function(name, arguments, result, over_floats(compute))


def fix_to_utc(function: Function) -> Function:
    """Return a function as it is where there is no session."""
    return fix_to_zone(function, UTC)


@lru_cache(maxsize=4_096)
def fix_to_zone(function: Function, zone: ZoneInfo) -> Function:
    """Return a function as it is in a session of that time zone."""
    if not function.zoned:
        return function
    compute = partial(function.compute, InZone(zone))
    return replace(function, compute=compute, volatility="immutable", zoned=False)


def unchanged(value: Any) -> Any:
    """The `compute` of a cast that leaves the storage value as it is: it need not be called."""
    return value


def is_integer(kind: Type) -> bool:
    return kind.name in ("smallint", "integer", "bigint")


def is_text(kind: Type) -> bool:
    return kind.name in ("text", "varchar", "char")
