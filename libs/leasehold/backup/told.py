"""What long work tells of how far it is."""

from __future__ import annotations

from typing import Final, Protocol


class Told(Protocol):
    """Takes note of how far long work is."""

    def step(self, words: str) -> None:
        """Take note of what is done now, for a time that is not known."""
        ...

    def begin(self, words: str, total: int) -> None:
        """Take note of what is done now, of which there is so much."""
        ...

    def add(self, done: int) -> None:
        """Take note that so much more of it is done."""
        ...


class _Nobody:
    def step(self, words: str) -> None: ...

    def begin(self, words: str, total: int) -> None: ...

    def add(self, done: int) -> None: ...


NOBODY: Final[Told] = _Nobody()
