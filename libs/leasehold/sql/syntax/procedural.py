"""The statements of DO's code that are known, a part of PL/pgSQL: blocks that catch errors, IF,
NULL, RAISE, and statements of SQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from leasehold.sql.syntax.session_statements import SessionStatement


@dataclass(frozen=True, slots=True)
class Handler:
    """A handler, WHEN … THEN. `conditions`: SQLSTATEs, of which one that ends with 000 stands for
    its class, and `OTHERS`."""

    conditions: tuple[str, ...]
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """BEGIN … END. With handlers what it has done is undone when it fails."""

    body: tuple[Step, ...]
    handlers: tuple[Handler, ...] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """A condition, as the query that gives its value, and what is done where that is true."""

    test: SessionStatement
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class If:
    branches: tuple[Branch, ...]
    otherwise: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """A statement of SQL; `performs`: a query whose rows nobody wants."""

    statement: SessionStatement
    performs: bool = False


@dataclass(frozen=True, slots=True)
class Raise:
    """RAISE with a text; "" and EXCEPTION: the error that is handled, once more."""

    level: str
    words: str = ""


Step: TypeAlias = CodeBlock | If | Run | Raise


def statements_in(body: tuple[Step, ...]) -> Iterator[SessionStatement]:
    """Yield the statements that may run, but for the conditions of IF."""
    for step in body:
        match step:
            case Run(statement):
                yield statement
            case If(branches, otherwise):
                for branch in branches:
                    yield from statements_in(branch.body)
                yield from statements_in(otherwise)
            case CodeBlock(inner, handlers):
                yield from statements_in(inner)
                for handler in handlers:
                    yield from statements_in(handler.body)
