"""Decides by which names a server of ours may be asked.

A page of another site can have a name of its own resolve to this machine; what its visitor's
browser then asks of us carries that name (DNS rebinding). So a request counts only under a name
that is ours. An address is no name: nobody can make it mean another machine.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

LOCAL: Final = "localhost"


def is_own_host(host: str | None, names: Collection[str]) -> bool:
    """Whether a request with this Host header may be answered. `names` are ours, in small
    letters."""
    if not host:
        return False
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return False
    return name is not None and _is_own(name, names)


def is_own_origin(origin: str | None, host: str, names: Collection[str]) -> bool:
    """Whether a page of this Origin may ask `host`: one of the same place, or of a name that is
    ours. With None no page asks, or one of the same place."""
    if origin is None:
        return True
    try:
        parts = urlsplit(origin)
        name = parts.hostname
    except ValueError:
        return False
    return parts.netloc == host or (name is not None and name.lower() in names)


def _is_own(name: str, names: Collection[str]) -> bool:
    name = name.lower().removesuffix(".")
    if name == LOCAL or name in names:
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
