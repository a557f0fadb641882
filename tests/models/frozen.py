"""Objects of the library as parts of a model's states."""

from __future__ import annotations

import copy
from collections import deque
from enum import Enum
from typing import Any

from leasehold.replication.fast_path.state_machine import FastPath, PathUse


class Frozen:
    """An object as part of a state: equal where its contents are."""

    __slots__ = ("_contents", "_hash", "of")

    def __init__(self, of: Any) -> None:
        self.of = of
        self._contents = _contents(of)
        self._hash = hash(self._contents)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frozen) and self._contents == other._contents

    def opened(self) -> Any:
        """A copy that shares nothing that changes; several times as fast as `copy.deepcopy`."""
        return _opened(self.of)


def _opened(value: Any) -> Any:
    made = copy.copy(value)
    for name, part in vars(made).items():
        if isinstance(part, dict | list | set | deque):
            setattr(made, name, copy.copy(part))
        elif isinstance(part, FastPath):
            setattr(made, name, _opened(part))
    return made


def _contents(of: Any) -> tuple[Any, ...]:
    """What is counted for people only rises, and would make each state a new one."""
    return tuple(_plain(part) for part in vars(of).values() if not isinstance(part, PathUse))


def _plain(value: Any) -> Any:
    if isinstance(value, FastPath):
        return _contents(value)
    if isinstance(value, dict):
        return tuple(value.items())
    if isinstance(value, set):
        return frozenset(value)
    if isinstance(value, bytes | Enum) or not hasattr(value, "__iter__"):
        return value
    return tuple(value)
