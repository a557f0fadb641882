"""What Redis's PUBLISH and SUBSCRIBE are to acknowledgements, the log, requests and their answers:
here in one process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from leasehold.model.records.requests import ResultBatch
from leasehold.replication.effects import RequestsReceived
from leasehold.replication.fast_path.log import Term


@dataclass(slots=True)
class MemoryPubSub:
    """The channels: who has subscribed receives what is published now, and nothing is kept. `away`:
    the server does not answer."""

    away: bool = False
    _ack_receivers: dict[Term, Callable[[bytes], None]] = field(default_factory=dict)
    on_answers: Callable[[ResultBatch], None] = lambda _: None
    """Whatever becomes of them."""
    _masters: dict[Term, Callable[[RequestsReceived], None]] = field(default_factory=dict)
    _requesters: dict[bytes, Callable[[ResultBatch], None]] = field(default_factory=dict)
    _followers: dict[str, tuple[Term, Callable[[int, bytes], None]]] = field(default_factory=dict)

    def subscribe_to_acks(self, term: Term, receive: Callable[[bytes], None]) -> None:
        self._ack_receivers[term] = receive

    def end_term(self, term: Term) -> None:
        self._ack_receivers.pop(term, None)
        self._masters.pop(term, None)

    def end_requests(self, term: Term) -> None:
        self._masters.pop(term, None)

    def publish_ack(self, term: Term, data: bytes) -> bool:
        """Return whether somebody receives it."""
        receive = self._ack_receivers.get(term)
        if receive is None:
            return False
        receive(data)
        return True

    def hears_acks(self, term: Term) -> bool:
        """Return whether somebody receives what is published there."""
        return term in self._ack_receivers

    def follow_log(self, name: str, term: Term, receive: Callable[[int, bytes], None]) -> None:
        """Give that node what the master of that term publishes of the log, and of no other."""
        self._followers[name] = term, receive

    def unfollow_log(self, name: str) -> None:
        self._followers.pop(name, None)

    def publish_log(self, term: Term, offset: int, data: bytes) -> None:
        for followed, receive in list(self._followers.values()):
            if followed == term:
                receive(offset, data)

    def subscribe_to_requests(
        self, term: Term, receive: Callable[[RequestsReceived], None]
    ) -> None:
        self._masters[term] = receive

    def publish_requests(self, term: Term, requests: RequestsReceived) -> bool:
        """Return whether a master receives them."""
        receive = self._masters.get(term)
        if receive is None:
            return False
        receive(requests)
        return True

    def subscribe_to_answers(
        self, requester: bytes, receive: Callable[[ResultBatch], None]
    ) -> None:
        self._requesters[requester] = receive

    def publish_answers(self, requester: bytes, batch: ResultBatch) -> None:
        self.on_answers(batch)
        receive = self._requesters.get(requester)
        if receive is not None:
            receive(batch)
