"""What a node's effects are carried out with: Kafka and Redis in a service (`kafka_driver.py`),
a bus in memory in the simulation and in `leasehold dev` (`in_process/driver.py`)."""

from __future__ import annotations

from typing import Any, Protocol

from leasehold.model.audit import AuditEvent
from leasehold.model.errors import LeaseholdError
from leasehold.model.records.requests import ResultBatch
from leasehold.replication.effects import Became, ClockNotice, Send, Warn
from leasehold.replication.fast_path.log import Term


class NodeDriver(Protocol):
    """The hands of a node: does what it is told, and decides nothing.

    No method steps the node, which is in a step: what comes of one is taken by the runner later.
    What can't be done is reported by the event that the effect names, or is left to whoever asks
    again. Topics are given by name.
    """

    # topics

    def read(self, topic: str, offset: int) -> None:
        """Deliver the topic from `offset` on, wherever it was read before."""

    def stop(self, topic: str) -> None:
        """Deliver no more of the topic."""

    def pause(self, topic: str) -> None:
        """Hold the topic back until `resume`; what was read already may still come."""

    def resume(self, topic: str) -> None: ...

    def find(self, topic: str) -> None:
        """Ask which topic has the name, and then for its offsets; answered as NodeTopics.found
        says, or not at all."""

    def identify(self, topic: str) -> None:
        """Ask which topic has the name; answered as NodeTopics.identified says, or not at all."""

    def delete_below(self, topic: str, offset: int) -> None: ...

    def append(self, data: bytes) -> None:
        """Append to the log, once. AppendFailed reports anything but success; where the record
        stands, `NodeRunner.take_own` is told."""

    def send(self, send: Send) -> None:
        """Put a record on a topic; one with a token is reported by Sent."""

    # what is published and received by the fast path

    def publish_ack(self, number: int, term: Term, ack: bytes) -> None:
        """Publish an acknowledgement to the master of that term; report AckPublished."""

    def look_for_master(self, term: Term) -> None:
        """Ask whether anybody listens on the channel of that term; report MasterLooked if that is
        told."""

    def publish_answers(self, requester: bytes, answers: ResultBatch) -> None: ...

    def publish_log(self, term: Term, offset: int, record: bytes) -> None:
        """Publish what stands in the log at that offset, as the master of that term; b"": it is to
        be read from Kafka."""

    def follow_log(self, term: Term) -> bool:
        """Receive what the master of that term publishes of the log, and no other; NOBODY:
        nothing. Return whether there is a connection by which it may come."""

    def begin_term(self, term: Term) -> None:
        """Receive what the master of that term, this node, is told."""

    def end_requests(self) -> None:
        """Receive no requests of that which are published from now on."""

    @property
    def receives_requests(self) -> bool:
        """Whether requests may still come that were published before `end_requests`."""

    def end_term(self) -> None:
        """Receive nothing more of that, and give no answers that still wait."""

    # the rest

    def call_ledger(self, token: Any, command: Any) -> None:
        """Call the ledger without waiting; report LedgerReplied."""

    def wake(self, at_ns: int) -> None:
        """Give a Tick at that time of the node's monotonic clock, or soon after."""

    def report(self, notice: Became | ClockNotice | Warn) -> None:
        """Say it to people."""

    def audit(self, event: AuditEvent) -> None:
        """Give it to the audit log."""

    def end(self, error: LeaseholdError) -> None:
        """The node can't go on: say so, and end what runs it."""
