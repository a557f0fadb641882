"""Functions that tell what a role may do: has_table_privilege and its like, pg_has_role."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from leasehold.catalog.elements import CommitContext
from leasehold.sql.functions.function import BOOLEAN, SMALLINT, TEXT, Function
from leasehold.sql.functions.system.session import system_of
from leasehold.values.catalog_types import NAME, OID
from leasehold.values.types import Type

if TYPE_CHECKING:  # it lists these functions
    from leasehold.sql.system_catalog.rights import Rights

Tell = Callable[..., Any]


def _told(name: str, arguments: tuple[Type, ...], tell: Tell) -> Function:
    def compute(context: CommitContext, *values: Any) -> Any:
        return tell(system_of(context).catalog.rights, *values)

    return Function(name, arguments, BOOLEAN, compute, volatility="stable")


def _by_all(tell: Tell) -> Tell:
    """Return it for who names no role."""
    return lambda rights, *values: tell(rights, None, *values)


def _may(what: str, tell: Tell, *more: Type) -> Iterator[Function]:
    """Yield has_…_privilege over names and numbers, with a role before them or without."""
    name = f"has_{what}_privilege"
    for of in (TEXT, OID):
        yield _told(name, (of, *more, TEXT), _by_all(tell))
        for role in (NAME, OID):
            yield _told(name, (role, of, *more, TEXT), tell)


def _everybodys(kind: str) -> Tell:
    def tell(rights: Rights, role: Any, named: Any, text: str) -> int:
        return rights.everybodys(kind, role, named, text)

    return tell


def _column(rights: Rights, role: Any, *values: Any) -> int | None:
    return rights.column(role, *values)


FUNCTIONS: Final[tuple[Function, ...]] = (
    *_may("table", lambda rights, *values: rights.table(*values)),
    *_may("any_column", lambda rights, *values: rights.any_column(*values)),
    *_may("column", _column, TEXT),
    *_may("column", _column, SMALLINT),
    *_may("sequence", lambda rights, *values: rights.sequence(*values)),
    *_may("schema", lambda rights, *values: rights.schema(*values)),
    *_may("database", lambda rights, *values: rights.database(*values)),
    *(
        function
        for kind in ("type", "function", "language", "tablespace")
        for function in _may(kind, _everybodys(kind))
    ),
    *(
        _told("pg_has_role", (*who, role, TEXT), tell)
        for role in (NAME, OID)
        for who, tell in (
            ((), lambda rights, *values: rights.has_role(None, *values)),
            ((NAME,), lambda rights, *values: rights.has_role(*values)),
            ((OID,), lambda rights, *values: rights.has_role(*values)),
        )
    ),
)
