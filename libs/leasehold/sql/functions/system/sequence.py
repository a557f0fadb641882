"""nextval and its like. Who runs a statement gives it a moment that has numbers to give."""

from __future__ import annotations

from typing import Any, Final, Protocol

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Moment
from leasehold.model.errors import FeatureNotSupported, UnknownTable, WrongObject
from leasehold.sql.functions.function import BIGINT, BOOLEAN, TEXT, Function
from leasehold.sql.functions.system.session import numbers_of, system_of
from leasehold.values.catalog_types import REGCLASS


class Numbers(Protocol):
    """The values that one session draws from sequences for the statement that runs; sequences by
    their ids."""

    def next(self, sequence_id: int) -> int:
        """Raises SequenceExhausted."""
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


def _sequence(moment: Moment, oid: int) -> Descriptor:
    catalog = system_of(moment).catalog
    found = catalog.relation(oid)
    if found is None and not catalog.has_relation(oid):
        raise UnknownTable(f"relation with OID {oid} does not exist")
    if found is None or found.sequence is None:  # an index, or one of the catalog's
        name = catalog.relation_name(oid)
        raise WrongObject(f"{name!r} is not a sequence", table=name)
    return found


def _numbers(moment: Moment) -> Numbers:
    found: Numbers | None = numbers_of(moment)
    if found is None:
        raise FeatureNotSupported("numbers of sequences are for statements that may write")
    return found


def _nextval(moment: Moment, oid: int) -> int:
    return _numbers(moment).next(_sequence(moment, oid).table_id)


def _drawn(moment: Moment, sequence_id: int) -> int:
    return _numbers(moment).next(sequence_id)


def _currval(moment: Moment, oid: int) -> int:
    return _numbers(moment).current(_sequence(moment, oid))


def _setval(moment: Moment, oid: int, value: int, called: int = 1) -> int:
    _numbers(moment).set(_sequence(moment, oid), value, called=bool(called))
    return value


def _function(name: str, *arguments: Any, compute: Any) -> Function:
    return Function(name, arguments, BIGINT, compute, volatility="volatile")


DRAWN: Final = _function("leasehold.drawn", BIGINT, compute=_drawn)
"""A column's default: the next number of a sequence by its id. No text can say it."""


COUNTING: Final = {
    **dict.fromkeys(("nextval", "currval", "setval"), True),
    **dict.fromkeys(("lastval", DRAWN.name), False),
}
"""Names of what needs `Numbers`; True: and the catalog, to find a sequence by its oid."""


def _serial_sequence(moment: Moment, table: str, column: str) -> str | None:
    found: str | None = system_of(moment).catalog.serial_sequence(table, column)
    return found


FUNCTIONS: Final[tuple[Function, ...]] = (
    _function("nextval", REGCLASS, compute=_nextval),
    _function("currval", REGCLASS, compute=_currval),
    _function("lastval", compute=lambda moment: _numbers(moment).last()),
    _function("setval", REGCLASS, BIGINT, compute=_setval),
    _function("setval", REGCLASS, BIGINT, BOOLEAN, compute=_setval),
    Function("pg_get_serial_sequence", (TEXT, TEXT), TEXT, _serial_sequence, volatility="stable"),
)
