"""The enum types that a text may name, while its statements are read one after the other: those of
a catalog, and what the statements before have made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from leasehold.values.enums import Enumeration, unresolved

FindEnum: TypeAlias = Callable[[str], Enumeration | None]
"""Return the enum type of a name, None for none."""


def no_enums(name: str) -> Enumeration | None:
    """Return None: there is no enum type."""
    return None


class EnumNames:
    """Names of enum types. `new_id` gives the id of a type that is made."""

    def __init__(self, find: FindEnum, new_id: Callable[[str], int]) -> None:
        self._find = find
        self._new_id = new_id
        self._said: dict[str, Enumeration | None] = {}

    def find(self, name: str) -> Enumeration | None:
        """Return the type that a name means now, None for none."""
        return self._said[name] if name in self._said else self._find(name)

    def new_id(self, name: str) -> int:
        """Return the id of a type that is made under that name."""
        return self._new_id(name)

    def put(self, enum: Enumeration) -> None:
        """Know a type that is made, or another version of one."""
        self._said[enum.name] = enum

    def drop(self, name: str) -> None:
        self._said[name] = None


ANY_NAME: Final = EnumNames(unresolved, lambda name: 0)
"""Of who does not know the catalog, and only looks what kind of statement a text is: any name may
be one of an enum type, whose labels are not looked at. Nothing is remembered in it."""
