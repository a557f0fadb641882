"""The fast ways of acknowledgements and of the log in one process: what Redis's PUBLISH and
SUBSCRIBE are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from leasehold.replication.fast_log import Term


@dataclass(slots=True)
class MemoryEars:
    """Who listens hears what is told now; nothing is kept for anybody. `away`: nobody answers."""

    away: bool = False
    _listening: dict[Term, Callable[[bytes], None]] = field(default_factory=dict)
    _followers: dict[str, tuple[Term, Callable[[int, bytes], None]]] = field(default_factory=dict)

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

    def follow(self, name: str, term: Term, hear: Callable[[int, bytes], None]) -> None:
        """From now on that node hears what the master of that term tells of the log, no other."""
        self._followers[name] = term, hear

    def unfollow(self, name: str) -> None:
        self._followers.pop(name, None)

    def tell_log(self, term: Term, offset: int, data: bytes) -> None:
        for followed, hear in list(self._followers.values()):
            if followed == term:
                hear(offset, data)
