"""nextval and its like. Who runs a statement gives it a context that has sequence values to
give."""

from __future__ import annotations

from typing import Any, Final, Protocol

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import CommitContext
from leasehold.catalog.privileges import Privilege
from leasehold.model.errors import FeatureNotSupported, UnknownTable, WrongObject
from leasehold.sql.functions.function import BIGINT, BOOLEAN, TEXT, Function
from leasehold.sql.functions.system.session import sequence_values_of, system_of
from leasehold.values.catalog_types import REGCLASS

DRAWS: Final = Privilege.USAGE | Privilege.UPDATE
_LOOKS: Final = Privilege.USAGE | Privilege.SELECT


class SequenceValues(Protocol):
    """The values that one session draws from sequences for the statement that runs; sequences by
    their ids."""

    def next(self, sequence_id: int) -> int:
        """Raises SequenceExhausted."""
        ...

    def check_may_draw(self, sequence_id: int) -> None:
        """Raises InsufficientPrivilege."""
        ...

    def current(self, sequence: Descriptor) -> int:
        """Raises NoNumberYet."""
        ...

    def last(self) -> int:
        """Raises NoNumberYet."""
        ...

    def set(self, sequence: Descriptor, value: int, *, called: bool) -> None:
        """Raises OutOfRange."""
        ...


def _sequence(context: CommitContext, oid: int, privileges: Privilege) -> Descriptor:
    """Return a sequence on which the role has one of the privileges. Raises UnknownTable,
    WrongObject, InsufficientPrivilege."""
    system = system_of(context)
    catalog = system.catalog
    found = catalog.relation(oid)
    if found is None and not catalog.has_relation(oid):
        raise UnknownTable(f"relation with OID {oid} does not exist")
    if found is None or found.sequence is None:  # an index, or one of the catalog's
        name = catalog.relation_name(oid)
        raise WrongObject(f"{name!r} is not a sequence", table=name)
    system.check_sequence(found, privileges)
    return found


def _sequence_values(context: CommitContext) -> SequenceValues:
    found: SequenceValues | None = sequence_values_of(context)
    if found is None:
        raise FeatureNotSupported(
            "a sequence can't be asked here: nextval and its like stand in statements of a"
            " transaction that may write"
        )
    return found


def _nextval(context: CommitContext, oid: int) -> int:
    return _sequence_values(context).next(_sequence(context, oid, DRAWS).table_id)


def _drawn(context: CommitContext, sequence_id: int) -> int:
    return _sequence_values(context).next(sequence_id)


def _drawn_by_role(context: CommitContext, sequence_id: int) -> int:
    values = _sequence_values(context)
    values.check_may_draw(sequence_id)
    return values.next(sequence_id)


def _currval(context: CommitContext, oid: int) -> int:
    return _sequence_values(context).current(_sequence(context, oid, _LOOKS))


def _setval(context: CommitContext, oid: int, value: int, called: int = 1) -> int:
    values = _sequence_values(context)
    found = _sequence(context, oid, Privilege.UPDATE)
    values.set(system_of(context).catalog.called(found), value, called=bool(called))
    return value


def _function(name: str, *arguments: Any, compute: Any) -> Function:
    return Function(name, arguments, BIGINT, compute, volatility="volatile")


DRAWN: Final = _function("leasehold.drawn", BIGINT, compute=_drawn)
"""A column's default: the next number of a sequence by its id. No text can say it."""
DRAWN_BY_ROLE: Final = _function("leasehold.drawn_by_role", BIGINT, compute=_drawn_by_role)
"""The same, where the role that runs the statement has to have a privilege for that."""


COUNTING: Final = {
    **dict.fromkeys(("nextval", "currval", "setval"), True),
    **dict.fromkeys(("lastval", DRAWN.name, DRAWN_BY_ROLE.name), False),
}
"""Names of what needs `SequenceValues`; True: and the catalog, to find a sequence by its oid."""


def _serial_sequence(context: CommitContext, table: str, column: str) -> str | None:
    found: str | None = system_of(context).catalog.serial_sequence(table, column)
    return found


FUNCTIONS: Final[tuple[Function, ...]] = (
    _function("nextval", REGCLASS, compute=_nextval),
    _function("currval", REGCLASS, compute=_currval),
    _function("lastval", compute=lambda context: _sequence_values(context).last()),
    _function("setval", REGCLASS, BIGINT, compute=_setval),
    _function("setval", REGCLASS, BIGINT, BOOLEAN, compute=_setval),
    Function("pg_get_serial_sequence", (TEXT, TEXT), TEXT, _serial_sequence, volatility="stable"),
)
