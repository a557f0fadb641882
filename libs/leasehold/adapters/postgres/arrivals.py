"""Clients that are connected and not let in yet: they take no session's place, and who has the most
of them gives way."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import Final

ARRIVING_MIN: Final = 20
"""Where few sessions are allowed, still as many may be about to say who they are."""
_NETWORK_BITS: Final = 64
"""Of an IPv6 address, what one host can't choose."""


def origin_of(address: IPv4Address | IPv6Address) -> int:
    """The same for all addresses that one host has at its disposal."""
    if isinstance(address, IPv4Address):
        return int(address)
    if address.ipv4_mapped is not None:
        return int(address.ipv4_mapped)
    return int(address) >> _NETWORK_BITS << _NETWORK_BITS


class Arrivals:
    """The clients that were not let in yet, by the numbers of their connections, `clients_max` at
    most."""

    def __init__(self, clients_max: int) -> None:
        self._clients_max = clients_max
        self._origins: dict[int, int] = {}
        self._by_origin: dict[int, dict[int, None]] = {}  # in the order in which they came

    def __len__(self) -> int:
        return len(self._origins)

    def enter(self, process: int, origin: int) -> int | None:
        """Add a client, and return which one has to go for it, if any: the oldest of the origin
        that has the most. So whoever keeps connections open displaces his own ones, and nobody who
        comes from elsewhere."""
        self._origins[process] = origin
        self._by_origin.setdefault(origin, {})[process] = None
        if len(self._origins) <= self._clients_max:
            return None
        most = max(self._by_origin.values(), key=len)
        oldest = next(iter(most))
        self.leave(oldest)
        return oldest

    def leave(self, process: int) -> None:
        """Take out a client that was let in or is gone; it may have left already."""
        origin = self._origins.pop(process, None)
        if origin is None:
            return
        those = self._by_origin[origin]
        del those[process]
        if not those:
            del self._by_origin[origin]
