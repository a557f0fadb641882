"""Roles, memberships, privileges, views and enum types in a store: the last write of each."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

import apsw
import msgpack

from leasehold.adapters.sqlite.layout import ACCESS_LAYOUT, OF_ACCESS, count_change, raise_layout
from leasehold.catalog.access import NOTHING_RECORDED
from leasehold.catalog.roles import ROLES_FROM
from leasehold.model.records.log import (
    AccessWrite,
    CommentWrite,
    EnumWrite,
    MembershipWrite,
    NamespaceWrite,
    RoleOrAccessWrite,
    RoleWrite,
    ViewWrite,
)

NEXT_ROLE, ROLE, MEMBERSHIP, OBJECT, VIEW, COMMENT, ENUM = 0, 1, 2, 3, 4, 5, 6
NAMESPACE: Final = 7
"""The kinds of rows. A role, a view, an enum type or a schema stands at (its id, 0), a membership
at (role, member), an object or column at its ids."""
CHECKSUM_BYTES: Final = 16
_NOTHING: Final = NOTHING_RECORDED.to_wire()
_THERE: Final = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'access'"
_GET: Final = "SELECT kind, first, second, body FROM access ORDER BY kind, first, second"
_PUT: Final = "INSERT OR REPLACE INTO access VALUES (?, ?, ?, ?)"
_DELETE: Final = "DELETE FROM access WHERE kind = ? AND first = ? AND second = ?"
_DELETE_OBJECT: Final = "DELETE FROM access WHERE kind = ? AND first = ?"
_DELETE_MEMBERSHIPS: Final = "DELETE FROM access WHERE kind = ? AND (first = ? OR second = ?)"


def read_access(connection: apsw.Connection) -> tuple[list[RoleOrAccessWrite], int]:
    """Return the last write of each, and the id of the next role, 0 = the first there can be; of a
    store of an earlier release that is only read: none."""
    found: list[RoleOrAccessWrite] = []
    next_role_id = 0
    if not connection.execute(_THERE).get:
        return found, next_role_id
    rows: list[Any] = connection.execute(_GET).fetchall()
    for kind, first, second, packed in rows:
        body = msgpack.unpackb(packed)
        match kind:
            case 0:
                next_role_id = body
            case 1:
                found.append(RoleWrite(first, body))
            case 2:
                found.append(MembershipWrite(first, second, body))
            case 4:
                found.append(ViewWrite(first, body))
            case 5:
                found.append(CommentWrite(first, second, body))
            case 6:
                found.append(EnumWrite(first, body))
            case 7:
                found.append(NamespaceWrite(first, body))
            case _:
                found.append(AccessWrite(first, second, body))
    return found, next_role_id


def sum_access(connection: apsw.Connection) -> tuple[int, bytes]:
    """Return how many roles, memberships, lists of privileges and views a store has, and a
    checksum: equal where all say the same."""
    stored, next_role_id = read_access(connection)
    total = blake2b(f"{next_role_id}\n".encode(), digest_size=CHECKSUM_BYTES)
    for write in stored:
        total.update(f"{type(write).__name__}{_ordered(tuple(write))!r}\n".encode())
    return len(stored), total.digest()


def _ordered(value: Any) -> Any:
    """Return a value in which maps are lists of pairs, in the order of their keys."""
    if isinstance(value, Mapping):
        return [(key, _ordered(value[key])) for key in sorted(value)]
    return [_ordered(each) for each in value] if isinstance(value, list | tuple) else value


class StoredAccess:
    """Writes of the writer's connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._execute = connection.cursor().execute

    def put(self, write: RoleOrAccessWrite, next_role_id: int) -> None:
        """Keep what the write says, or forget what it says is gone."""
        self._mark()
        match write:
            case RoleWrite(role_id, None):
                self._execute(_DELETE, (ROLE, role_id, 0))
                self._execute(_DELETE_MEMBERSHIPS, (MEMBERSHIP, role_id, role_id))
            case RoleWrite(role_id, body):
                self._put(ROLE, role_id, 0, body)
            case MembershipWrite(role_id, member_id, body):
                # One that is there by default is said to be gone, or it would be there again.
                if body is None and max(role_id, member_id) >= ROLES_FROM:
                    self._execute(_DELETE, (MEMBERSHIP, role_id, member_id))
                else:
                    self._put(MEMBERSHIP, role_id, member_id, body)
            case ViewWrite(view_id, None):
                self._execute(_DELETE, (VIEW, view_id, 0))
                self._forget(view_id)
            case ViewWrite(view_id, body):
                self._put(VIEW, view_id, 0, body)
            case EnumWrite(type_id, None):
                self._execute(_DELETE, (ENUM, type_id, 0))
                self._forget(type_id)
            case EnumWrite(type_id, body):
                self._put(ENUM, type_id, 0, body)
            case NamespaceWrite(namespace_id, None):
                self._execute(_DELETE, (NAMESPACE, namespace_id, 0))
                self._forget(namespace_id)
            case NamespaceWrite(namespace_id, body):
                self._put(NAMESPACE, namespace_id, 0, body)
            case CommentWrite(object_id, element_id, None):
                self._execute(_DELETE, (COMMENT, object_id, element_id))
            case CommentWrite(object_id, element_id, text):
                self._put(COMMENT, object_id, element_id, text)
            case AccessWrite(object_id, element_id, body) if body == _NOTHING:
                self._execute(_DELETE, (OBJECT, object_id, element_id))
            case AccessWrite(object_id, element_id, body):
                self._put(OBJECT, object_id, element_id, body)
        self._put(NEXT_ROLE, 0, 0, next_role_id)
        count_change(self._connection, OF_ACCESS)

    def _put(
        self, kind: int, first: int, second: int, body: Mapping[str, Any] | int | str | None
    ) -> None:
        self._execute(_PUT, (kind, first, second, msgpack.packb(body)))

    def forget_object(self, object_id: int) -> None:
        """Forget the owner, the lists and the comments of a table that is gone."""
        if self._forget(object_id):
            count_change(self._connection, OF_ACCESS)

    def _forget(self, object_id: int) -> int:
        """Forget what is said of an object; return how many rows that was."""
        gone = 0
        for kind in (OBJECT, COMMENT):
            self._execute(_DELETE_OBJECT, (kind, object_id))
            gone += self._connection.changes()
        return gone

    def _mark(self) -> None:
        """Say in the file that it has roles: a program that knows none would let everybody do
        all. (Within the transaction, as everything else.)"""
        raise_layout(self._connection, ACCESS_LAYOUT)
