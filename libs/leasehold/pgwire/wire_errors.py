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
    """A message that the protocol does not allow, or not there."""

    sqlstate = "08P01"


class CachedResultChanged(FeatureNotSupported):
    """A prepared statement met a schema change that changes its columns. Drivers know it by the
    routine, prepare again and go on."""

    routine: ClassVar[str] = "RevalidateCachedQuery"


class InvalidBinary(Refused):
    """A parameter in binary form that is no value of its type."""

    sqlstate = "22P03"


class InvalidBytes(Refused):
    """Text that is not UTF-8."""

    sqlstate = "22021"


class InvalidCopyText(Refused):
    """Rows for COPY that are not in its format."""

    sqlstate = "22P04"


class InFailedTransaction(Refused):
    """A statement of the block has failed before: ROLLBACK, or ROLLBACK TO a savepoint."""

    sqlstate = "25P02"

    def __init__(self) -> None:
        super().__init__(
            "current transaction is aborted, commands ignored until end of transaction block"
        )


class UnknownPreparedStatement(Refused):
    """A prepared statement that the connection does not have."""

    sqlstate = "26000"


class DuplicatePreparedStatement(Refused):
    """A prepared statement of that name is there already."""

    sqlstate = "42P05"


class UnknownPortal(Refused):
    """A cursor or portal that does not exist, or ended with its transaction."""

    sqlstate = "34000"


class DuplicatePortal(Refused):
    """A cursor or portal of that name is open already."""

    sqlstate = "42P03"


class PortalUsedUp(Refused):
    """A portal was run to its end, or is not the one that FETCH has begun."""

    sqlstate = "55000"


class NameTooLong(Refused):
    """A name of more bytes than one may have."""

    sqlstate = "42622"


class LimitExceeded(Refused):
    """The connection holds as many prepared statements, portals or bytes of them as it may."""

    sqlstate = "53400"


class TooManyConnections(Refused):
    """The listener has as many connections as it takes (LEASEHOLD_SQL_CONNECTIONS_MAX), or the
    role (CONNECTION LIMIT)."""

    sqlstate = "53300"


class DiskFull(Refused):
    """Rows that are put aside for a cursor have no place."""

    sqlstate = "53100"


class Canceled(Refused):
    """Somebody has asked for the statement's end, or nobody waits for it any more."""

    sqlstate = "57014"


class AdminShutdown(Refused):
    """The node stops, or somebody has ended the session."""

    sqlstate = "57P01"


class IdleTooLong(Refused):
    """The session did nothing for `idle_session_timeout`."""

    sqlstate = "57P05"


class IdleInTransactionTooLong(Refused):
    """The session did nothing in a block for `idle_in_transaction_session_timeout`."""

    sqlstate = "25P03"


class UnknownDatabase(Refused):
    """The node serves another database."""

    sqlstate = "3D000"


class WrongPassword(Refused):
    """The password, or the proof of it, is wrong, or there is no such user."""

    sqlstate = "28P01"


class AuthenticationRefused(Refused):
    """The user may not log in, or not from there, or has to wait after failed log-ins."""

    sqlstate = "28000"


class UnknownParameter(Refused):
    """A statement that takes no parameters was given one."""

    sqlstate = "42P02"
