"""PEP 249's exceptions, and which SQLSTATE is which.

Warning
Error
├── InterfaceError
└── DatabaseError
    ├── DataError 22       ├── IntegrityError 23     ├── NotSupportedError 0A
    ├── ProgrammingError 26, 34, 3D, 42, LH          ├── InternalError 24, 25, XX
    └── OperationalError   all else: 08, 40, 53 to 58 …
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from leasehold.model.errors import LeaseholdError


class Warning(Exception):  # noqa: A001 - PEP 249's name
    """Never raised: what is to be told stands in `Connection.notices`."""


class Error(Exception):
    """An error with its `sqlstate`, and what it names (`detail`: table, column, constraint,
    position …)."""

    sqlstate: str = ""
    detail: Mapping[str, object] = {}


class InterfaceError(Error):
    pass


class DatabaseError(Error):
    pass


class DataError(DatabaseError):
    pass


class OperationalError(DatabaseError):
    pass


class IntegrityError(DatabaseError):
    pass


class InternalError(DatabaseError):
    pass


class ProgrammingError(DatabaseError):
    pass


class NotSupportedError(DatabaseError):
    pass


_BY_CLASS: Final[Mapping[str, type[DatabaseError]]] = {
    "0A": NotSupportedError,
    "22": DataError,
    "23": IntegrityError,
    "24": InternalError,
    "25": InternalError,
    "26": ProgrammingError,
    "34": ProgrammingError,
    "3D": ProgrammingError,
    "42": ProgrammingError,
    "XX": InternalError,
}


def error_of(error: LeaseholdError) -> DatabaseError:
    made = _BY_CLASS.get(error.sqlstate[:2], OperationalError)(error.message)
    made.sqlstate = error.sqlstate
    made.detail = error.detail
    return made
