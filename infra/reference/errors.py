"""The SQLSTATEs that Leasehold gives, from its tree of errors."""

from __future__ import annotations

from collections.abc import Iterator

from psycopg.errors import lookup

from infra.reference.markdown import sentence, table
from leasehold.model.errors import LeaseholdError, Refused


def errors() -> str:
    """Return a table of all errors by code: what each means and what a caller may do."""
    kinds = sorted(
        set(_below(LeaseholdError)) - {Refused},
        key=lambda k: (k.sqlstate, k.__name__, k.__module__),
    )
    rows = [(k.sqlstate, _condition(k.sqlstate), k.__name__, _when(k), _answer(k)) for k in kinds]
    return table(("SQLSTATE", "in PostgreSQL", "error", "when", "what may be concluded"), rows)


def _below(kind: type[LeaseholdError]) -> Iterator[type[LeaseholdError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


def _condition(code: str) -> str:
    """Return PostgreSQL's name of a code, "" of one that it does not have."""
    try:
        return lookup(code).__name__
    except KeyError:
        return ""


def _when(kind: type[LeaseholdError]) -> str:
    """Return the docstring; a class without one is told by its name."""
    return sentence(kind.__doc__ or "")


def _answer(kind: type[LeaseholdError]) -> str:
    if not kind.definite:
        return "nothing: it may have been applied; ask again with the same request id"
    if kind.replayable:
        return "nothing was applied; the same work on newer data may succeed"
    return (
        "nothing was applied" if issubclass(kind, Refused) else "nothing was applied by this call"
    )
