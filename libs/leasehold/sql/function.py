"""What the catalogue holds: a function, an operator or a cast over storage values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from leasehold.schema.types import Type

Volatility: TypeAlias = Literal["immutable", "stable", "volatile"]

SMALLINT: Final = Type("smallint")
INTEGER: Final = Type("integer")
BIGINT: Final = Type("bigint")
NUMERIC: Final = Type("numeric")
DOUBLE: Final = Type("double precision")
TEXT: Final = Type("text")
VARCHAR: Final = Type("varchar")
CHAR: Final = Type("char")  # without a length: of any, as PostgreSQL's bpchar
BOOLEAN: Final = Type("boolean")
BYTEA: Final = Type("bytea")
DATE: Final = Type("date")
TIMESTAMP: Final = Type("timestamp")
TIMESTAMPTZ: Final = Type("timestamptz")
INTERVAL: Final = Type("interval")
UUID: Final = Type("uuid")
JSONB: Final = Type("jsonb")
INTEGERS: Final = (SMALLINT, INTEGER, BIGINT)


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """`compute` takes storage values of exactly the types `arguments` and gives one of `result`.

    `strict`: it is called without a NULL only, and NULL comes of one; else it gets None for it.
    A function that is not immutable gets a `Moment` (schema/elements.py) before its arguments: of
    the statement, and for a volatile one with another seed in each call.
    `variadic`: the last of `arguments` may come any number of times, at least once.
    """

    name: str
    arguments: tuple[Type, ...]
    result: Type
    compute: Callable[..., Any]
    strict: bool = True
    volatility: Volatility = "immutable"
    variadic: bool = False

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


def unchanged(value: Any) -> Any:
    """The `compute` of a cast that leaves the storage value as it is: it need not be called."""
    return value


def is_integer(kind: Type) -> bool:
    return kind.name in ("smallint", "integer", "bigint")


def is_text(kind: Type) -> bool:
    return kind.name in ("text", "varchar", "char")
