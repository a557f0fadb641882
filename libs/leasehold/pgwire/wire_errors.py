"""What only a connection can refuse. Leaves of the tree in `model/errors.py`.

Refused
├── ProtocolViolation          08P01   ├── CachedResultChanged     0A000 RevalidateCachedQuery
├── InvalidBinary              22P03   ├── InvalidCopyText         22P04
├── InvalidBytes               22021   ├── InFailedTransaction     25P02
├── UnknownPreparedStatement   26000   ├── DuplicatePreparedStatement 42P05
├── UnknownPortal              34000   ├── DuplicatePortal         42P03
├── PortalUsedUp               55000   ├── NameTooLong             42622
├── TooManyConnections         53300   ├── LimitExceeded           53400
├── AdminShutdown              57P01   ├── Canceled                57014
├── IdleInTransactionTooLong   25P03   ├── IdleTooLong             57P05
├── WrongPassword              28P01   ├── UnknownDatabase         3D000
├── UnknownParameter           42P02   ├── AuthenticationRefused   28000
                                       ├── InvalidFormat           22023
                                       └── DiskFull                53100
"""

from __future__ import annotations

from typing import ClassVar

from leasehold.model.errors import FeatureNotSupported, Refused


class ProtocolViolation(Refused):
    sqlstate = "08P01"


class CachedResultChanged(FeatureNotSupported):
    """A prepared statement met a schema change that changes its columns. Drivers know it by the
    routine, prepare again and go on."""

    routine: ClassVar[str] = "RevalidateCachedQuery"


class InvalidBinary(Refused):
    sqlstate = "22P03"


class InvalidBytes(Refused):
    """Text that is not UTF-8."""

    sqlstate = "22021"


class InvalidCopyText(Refused):
    sqlstate = "22P04"


class InFailedTransaction(Refused):
    sqlstate = "25P02"

    def __init__(self) -> None:
        super().__init__(
            "current transaction is aborted, commands ignored until end of transaction block"
        )


class UnknownPreparedStatement(Refused):
    sqlstate = "26000"


class DuplicatePreparedStatement(Refused):
    sqlstate = "42P05"


class UnknownPortal(Refused):
    sqlstate = "34000"


class DuplicatePortal(Refused):
    sqlstate = "42P03"


class PortalUsedUp(Refused):
    sqlstate = "55000"


class NameTooLong(Refused):
    sqlstate = "42622"


class LimitExceeded(Refused):
    sqlstate = "53400"


class TooManyConnections(Refused):
    sqlstate = "53300"


class DiskFull(Refused):
    """Rows that are put aside for a cursor have no place."""

    sqlstate = "53100"


class Canceled(Refused):
    sqlstate = "57014"


class AdminShutdown(Refused):
    sqlstate = "57P01"


class IdleTooLong(Refused):
    sqlstate = "57P05"


class IdleInTransactionTooLong(Refused):
    sqlstate = "25P03"


class UnknownDatabase(Refused):
    sqlstate = "3D000"


class WrongPassword(Refused):
    sqlstate = "28P01"


class AuthenticationRefused(Refused):
    sqlstate = "28000"


class UnknownParameter(Refused):
    sqlstate = "42P02"
