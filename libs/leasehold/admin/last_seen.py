"""Find who wrote to a topic before its newest records, without reading all of it.

Nodes acknowledge several times a second while they live, so a few thousand records hold every one
of them, and the last word of one that has died lies further back the longer it is dead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

T = TypeVar("T")

Window = Callable[[int], Mapping[str, T]]
"""From an offset: the last word of each who speaks in the window that begins there."""


def last_heard(
    window: Window[T], size: int, first: int, tail: int, known: Collection[str]
) -> dict[str, T]:
    """The last word of each who speaks in [first, tail), but not from `tail` on (those are
    `known`). Windows of `size` records are looked at, each twice as far from the tail as the one
    before, and between two of them only where somebody falls silent. One who spoke for less time
    than lies between two windows may be missed."""
    found: dict[str, T] = {}
    spoke: dict[str, tuple[int, int]] = {}  # in the window at the first, no longer at the second
    distance, at = size, tail
    while at > first:
        newer, at = at, max(first, tail - distance)
        distance *= 2
        for name, word in window(at).items():
            if name not in known and name not in spoke:
                spoke[name] = (at, newer)
                found[name] = word
    for name, (low, high) in spoke.items():
        while high - low > size:
            middle = (low + high) // 2
            word_there = window(middle).get(name)
            if word_there is None:
                high = middle
            else:
                low, found[name] = middle, word_there
    return found
