"""Whether the role in whose name a request is signed is one that may ask now, and what may be kept
of one that is not."""

from __future__ import annotations

from typing import Final

from leasehold.catalog.roles import Roles
from leasehold.model.errors import NotAuthentic
from leasehold.model.records.requests import ChangeRequest

_ZLIB: Final = b"\x78"


def check_principal(request: ChangeRequest, roles: Roles) -> None:
    """Return if the role of the request is there, and the key that has signed it is its key of
    now. Raises NotAuthentic."""
    name, number = request.principal, request.key_number
    if not name:
        return
    role = roles.find(name)
    if role is None:
        raise NotAuthentic(
            f"the request is of role {name!r:.80}, which does not exist", principal=name
        )
    if number and number != role.key_number:
        raise NotAuthentic(
            f"the request is signed by a key of role {name!r:.80} that is not valid any more:"
            " `leasehold role key` tells the new one",
            principal=name,
        )


def may_say_password(body: bytes) -> bool:
    """Return whether a message that nobody has read may have a password in it; one behind zlib
    may."""
    return body[:1] == _ZLIB or b"password" in body.lower()
