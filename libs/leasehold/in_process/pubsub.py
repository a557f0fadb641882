"""The fast ways of acknowledgements, of the log, of requests and their answers in one process: what
Redis's PUBLISH and SUBSCRIBE are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from leasehold.model.records import ResultBatch
from leasehold.replication.effects import RequestsHeard
from leasehold.replication.fast_path.log import Term


@dataclass(slots=True)
class MemoryEars:
    """Who listens hears what is told now; nothing is kept for anybody. `away`: nobody answers."""

    away: bool = False
    _listening: dict[Term, Callable[[bytes], None]] = field(default_factory=dict)
    on_answers: Callable[[ResultBatch], None] = lambda _: None
    """Whatever becomes of them."""
    _masters: dict[Term, Callable[[RequestsHeard], None]] = field(default_factory=dict)
    _askers: dict[bytes, Callable[[ResultBatch], None]] = field(default_factory=dict)
    _followers: dict[str, tuple[Term, Callable[[int, bytes], None]]] = field(default_factory=dict)

    def listen(self, term: Term, hear: Callable[[bytes], None]) -> None:
        self._listening[term] = hear

    def leave(self, term: Term) -> None:
        self._listening.pop(term, None)
        self._masters.pop(term, None)

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

    def listen_to_askers(self, term: Term, hear: Callable[[RequestsHeard], None]) -> None:
        self._masters[term] = hear

    def ask(self, term: Term, requests: RequestsHeard) -> bool:
        """Whether a master listened."""
        hear = self._masters.get(term)
        if hear is None:
            return False
        hear(requests)
        return True

    def listen_for_answers(self, asker: bytes, hear: Callable[[ResultBatch], None]) -> None:
        self._askers[asker] = hear

    def answer(self, asker: bytes, batch: ResultBatch) -> None:
        self.on_answers(batch)
        hear = self._askers.get(asker)
        if hear is not None:
            hear(batch)
