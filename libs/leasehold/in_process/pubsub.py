"""The fast ways of acknowledgements, of the log, of requests and their answers in one process: what
Redis's PUBLISH and SUBSCRIBE are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from leasehold.model.records.requests import ResultBatch
from leasehold.replication.effects import RequestsReceived
from leasehold.replication.fast_path.log import Term


@dataclass(slots=True)
class MemoryPubSub:
    """Who listens hears what is told now; nothing is kept for anybody. `away`: nobody answers."""

    away: bool = False
    _listening: dict[Term, Callable[[bytes], None]] = field(default_factory=dict)
    on_answers: Callable[[ResultBatch], None] = lambda _: None
    """Whatever becomes of them."""
    _masters: dict[Term, Callable[[RequestsReceived], None]] = field(default_factory=dict)
    _askers: dict[bytes, Callable[[ResultBatch], None]] = field(default_factory=dict)
    _followers: dict[str, tuple[Term, Callable[[int, bytes], None]]] = field(default_factory=dict)

    def listen(self, term: Term, receive: Callable[[bytes], None]) -> None:
        self._listening[term] = receive

    def leave(self, term: Term) -> None:
        self._listening.pop(term, None)
        self._masters.pop(term, None)

    def tell(self, term: Term, data: bytes) -> bool:
        """Whether somebody listened."""
        receive = self._listening.get(term)
        if receive is None:
            return False
        receive(data)
        return True

    def follow(self, name: str, term: Term, receive: Callable[[int, bytes], None]) -> None:
        """From now on that node hears what the master of that term tells of the log, no other."""
        self._followers[name] = term, receive

    def unfollow(self, name: str) -> None:
        self._followers.pop(name, None)

    def tell_log(self, term: Term, offset: int, data: bytes) -> None:
        for followed, receive in list(self._followers.values()):
            if followed == term:
                receive(offset, data)

    def listen_to_requesters(self, term: Term, receive: Callable[[RequestsReceived], None]) -> None:
        self._masters[term] = receive

    def ask(self, term: Term, requests: RequestsReceived) -> bool:
        """Whether a master listened."""
        receive = self._masters.get(term)
        if receive is None:
            return False
        receive(requests)
        return True

    def listen_for_answers(self, requester: bytes, receive: Callable[[ResultBatch], None]) -> None:
        self._askers[requester] = receive

    def answer(self, requester: bytes, batch: ResultBatch) -> None:
        self.on_answers(batch)
        receive = self._askers.get(requester)
        if receive is not None:
            receive(batch)
