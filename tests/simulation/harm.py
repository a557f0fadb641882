"""What a simulation reports when a promise is broken."""

from __future__ import annotations


class Harm(AssertionError):
    """The text begins with the number of the invariant."""


def demand(holds: bool, invariant: str, words: str) -> None:
    if not holds:
        raise Harm(f"{invariant}: {words}")
