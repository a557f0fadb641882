"""The fast way of acknowledgements in one process: what Redis's PUBLISH and SUBSCRIBE are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

Term = tuple[int, bytes]
"""A master's epoch and incarnation."""


@dataclass(slots=True)
class MemoryEars:
    """Who listens hears what is told now; nothing is kept for anybody. `away`: nobody answers."""

    away: bool = False
    _listening: dict[Term, Callable[[bytes], None]] = field(default_factory=dict)

    def listen(self, term: Term, hear: Callable[[bytes], None]) -> None:
        self._listening[term] = hear

    def leave(self, term: Term) -> None:
        self._listening.pop(term, None)

    def tell(self, term: Term, data: bytes) -> bool:
        """Whether somebody listened."""
        hear = self._listening.get(term)
        if hear is None:
            return False
        hear(data)
        return True
