"""Events, which go into a node's step, and effects, which come out: the whole boundary of the core.

A service reads an event, calls `Node.step`, performs the effects; nothing else. The simulation
does the same with an in-memory bus under a virtual clock.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

from leasehold.model.audit import AuditEvent
from leasehold.model.errors import LeaseholdError
from leasehold.model.records.acks import Ack, Acknowledgement
from leasehold.model.records.log import LogRecord, Unreadable
from leasehold.model.records.requests import Queue, ResultBatch
from leasehold.replication.master.queue_topics import Found

# ---------------------------------------------------------------- events


class LogRead(NamedTuple):
    """A record of the log, in offset order; `digest` is that of its bytes."""

    offset: int
    record: LogRecord | Unreadable
    digest: bytes


class LogReceived(NamedTuple):
    """The record at the offset that is next, as a master published it that has read it: or so
    somebody says (`fast_path/log.py`)."""

    offset: int
    record: LogRecord
    digest: bytes


class DiskSeen(NamedTuple):
    """What the disk of the store has now, in bytes: `free` for this process, `whole` in all, the
    store's file and its write-ahead log."""

    free: int
    whole: int
    store: int
    wal: int


class LogEnd(NamedTuple):
    """Answer to AskLogEnd: the next offset the broker will give, asked after the effect."""

    offset: int


class LogIdentified(NamedTuple):
    """Answer to AskLogIdentity: the id that Kafka gives the log's topic, NO_ID: none."""

    topic: str
    topic_id: str


NOWHERE: Final = -1
"""The offset of a request that stands in no topic: it was told."""


class QueueRead(NamedTuple):
    """A message of a queue. `requester`: to whom the answer of a request is published that was
    published itself and has no offset."""

    queue: Queue
    offset: int
    content_type: str
    body: bytes
    requester: bytes = b""


class RequestsReceived(NamedTuple):
    """Requests (content type, body) that were published (`fast_path/requests.py`): late, doubled,
    overtaken, or made up by anybody who can reach this term's channel."""

    requester: bytes
    run: int
    number: int
    requests: tuple[tuple[str, bytes], ...]


class QueueFound(NamedTuple):
    """Answer to AskQueue."""

    queue: Queue
    found: Found


class QueueIdentified(NamedTuple):
    """Answer to AskQueueIdentity: the id that Kafka gives the queue's topic now, NO_ID: none."""

    queue: Queue
    topic: str
    topic_id: str


class QueueLost(NamedTuple):
    """The next offset of a queue that is read is not there, or not any more."""

    queue: Queue
    topic: str


class AckRead(NamedTuple):
    record: Acknowledgement


class AckReceived(NamedTuple):
    """An acknowledgement that was published: late, doubled, overtaken, or made up by anybody."""

    record: Acknowledgement


class AckPublished(NamedTuple):
    """Answer to the PublishAck of that number: whether anybody receives it. None need come."""

    number: int
    heard: bool


class MasterLooked(NamedTuple):
    """Answer to a LookForMaster: whether anybody listens on the channel of that term, whose master
    is the only one that ever does. None need come."""

    epoch: int
    incarnation: bytes
    listens: bool


class AppendFailed(NamedTuple):
    """An append whose fate is unknown or bad: any produce error or time-out (L4)."""

    reason: str


class Sent(NamedTuple):
    """A Send with this token was acknowledged by the broker."""

    token: int


class LedgerReplied(NamedTuple):
    """Answer to CallLedger: `reply` is a lease/replies.py tuple, or LedgerUnavailable."""

    token: Any
    reply: Any


class ReadersFound(NamedTuple):
    """What the topic of acknowledgements says of the time before a candidate began to read it: the
    last of each name, and for how long at least it reaches back (L11). Given once, or never."""

    readers: tuple[Ack, ...]
    span_ns: int


class Tick(NamedTuple):
    """Everything that was waiting has been handed over; also given when a wake time has come."""


class TickPerformed(NamedTuple):
    """The effects of a tick are carried out that somebody waits for; what was put off for their
    sake has its turn. Given where `Node.puts_off` says so."""


Event: TypeAlias = (
    LogRead
    | LogReceived
    | DiskSeen
    | LogEnd
    | LogIdentified
    | QueueFound
    | QueueIdentified
    | QueueLost
    | QueueRead
    | RequestsReceived
    | AckRead
    | AckReceived
    | AckPublished
    | MasterLooked
    | AppendFailed
    | Sent
    | LedgerReplied
    | ReadersFound
    | Tick
    | TickPerformed
)


# ---------------------------------------------------------------- effects


class ReadLog(NamedTuple):
    """Deliver the log from this offset on, as Kafka has it."""

    offset: int


class AskLogEnd(NamedTuple):
    """Answered by LogIdentified and then LogEnd, asked in this order; or by neither."""


class AskLogIdentity(NamedTuple):
    """Ask which topic has the log's name now. Nothing waits for the answer."""


class AskQueue(NamedTuple):
    """Ask which topic the queue is now, and its offsets; in this order, and before it is read.
    Answered by QueueFound, or not."""

    queue: Queue


class AskQueueIdentity(NamedTuple):
    """Ask which topic has the queue's name now. Nothing waits for the answer."""

    queue: Queue


class ReadQueue(NamedTuple):
    """Deliver a queue from this offset on (L3)."""

    queue: Queue
    offset: int


class PauseQueue(NamedTuple):
    """Back-pressure: hold the queue until ResumeQueue; what was read already still arrives."""

    queue: Queue


class ResumeQueue(NamedTuple):
    queue: Queue


class BeginTerm(NamedTuple):
    """Deliver what is published to the master of this epoch (AckReceived, RequestsReceived), until
    StopQueues."""

    epoch: int
    incarnation: bytes


class EndRequests(NamedTuple):
    """Receive no requests that are published from now on: who publishes one learns that nobody
    does. What was published before is still delivered; acknowledgements are received as ever."""


class StopQueues(NamedTuple):
    """Deliver no more of any queue, nor of what is published: this node is master no longer."""


class Append(NamedTuple):
    """Append to the log, once; report AppendFailed for anything but success."""

    data: bytes


class Topic:
    RESULTS: Final = "results"
    CONFLICTS: Final = "conflicts"
    ACKS: Final = "acks"
    NOTICES: Final = "notices"


class Send(NamedTuple):
    """Put `record` on a topic (a `Topic` word); partition -1 = by key; token 0 = no report."""

    topic: str
    partition: int
    key: bytes
    record: Any
    token: int


class PublishAck(NamedTuple):
    """Publish an acknowledgement to the master of that epoch, at once or not at all; report
    AckPublished. Numbers rise."""

    number: int
    epoch: int
    incarnation: bytes
    record: Ack


class LookForMaster(NamedTuple):
    """Ask whether the master of that term still listens to what is published for it; report
    MasterLooked, or nothing where that can't be told."""

    epoch: int
    incarnation: bytes


class PublishLogEnd(NamedTuple):
    """Tell those who receive the log from the master of that term that it publishes nothing from
    `offset` on: what stands there and behind is to be read from Kafka."""

    epoch: int
    incarnation: bytes
    offset: int


class PublishAnswers(NamedTuple):
    """Publish to a requester what has become of what it published, at once or not at all."""

    requester: bytes
    record: ResultBatch


class CallLedger(NamedTuple):
    token: Any
    command: Any


class DeleteBelow(NamedTuple):
    """Records of the queue below this offset are decided and in the log; to be done at once, while
    the topic is the one that was looked at."""

    queue: Queue
    offset: int


class DeleteLogBelow(NamedTuple):
    """Every reader of the log has what lies below this offset, or begins from a snapshot."""

    offset: int


class Wake(NamedTuple):
    """Call step(Tick) at this CLOCK_BOOTTIME or soon after."""

    at_ns: int


class Warn(NamedTuple):
    """A sentence for people: something was lost or is wrong, and what to do. Nothing else
    follows."""

    words: str


class Audit(NamedTuple):
    """An event for the audit log."""

    event: AuditEvent


class Stop(NamedTuple):
    """The node can't go on; `error` says why and what to do."""

    error: LeaseholdError


class Became(NamedTuple):
    """A notice for people: the role from now on, and why."""

    role: str
    epoch: int
    why: str


class ClockNotice(NamedTuple):
    """A notice for people: something is the matter with the master's clock, or no longer."""

    begins: bool
    words: str


Effect: TypeAlias = (
    ReadLog
    | AskLogEnd
    | AskLogIdentity
    | AskQueue
    | AskQueueIdentity
    | ReadQueue
    | PauseQueue
    | ResumeQueue
    | BeginTerm
    | EndRequests
    | StopQueues
    | Append
    | Send
    | PublishAck
    | LookForMaster
    | PublishLogEnd
    | PublishAnswers
    | CallLedger
    | DeleteBelow
    | DeleteLogBelow
    | Wake
    | Stop
    | Audit
    | Warn
    | Became
    | ClockNotice
)
