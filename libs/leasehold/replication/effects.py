"""What goes into a node's step and what comes out of it: the whole boundary of the core.

A service reads an event, calls `Node.step`, performs the effects; nothing else. The simulation
does the same with an in-memory bus under a virtual clock.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

from leasehold.model.errors import LeaseholdError
from leasehold.model.records.acks import Ack, Acknowledgement
from leasehold.model.records.log import LogRecord
from leasehold.model.records.requests import Lane, ResultBatch
from leasehold.replication.master.queue_topics import Found

# ---------------------------------------------------------------- events


class LogRead(NamedTuple):
    """A record of the log, in offset order; `digest` is that of its bytes."""

    offset: int
    record: LogRecord
    digest: bytes


class LogReceived(NamedTuple):
    """The record at the offset that is next, as a master told it that has read it: or so somebody
    says (`log.py`)."""

    offset: int
    record: LogRecord
    digest: bytes


class LogEnd(NamedTuple):
    """Answer to AskLogEnd: the next offset the broker will give, asked after the effect."""

    offset: int


class LogIdentified(NamedTuple):
    """Answer to AskLogIdentity: the id that Kafka gives the log's topic, NO_ID: none."""

    topic: str
    topic_id: str


NOWHERE: Final = -1
"""The offset of a request that stands in no topic: it was told."""


class LaneRead(NamedTuple):
    """`requester`: whom to tell the answer of a request that was told, which has no offset."""

    lane: Lane
    offset: int
    content_type: str
    body: bytes
    requester: bytes = b""


class RequestsReceived(NamedTuple):
    """Requests (content type, body) told by the fast way (`requests.py`): late, doubled,
    overtaken, or made up by anybody who can reach this term's channel."""

    requester: bytes
    run: int
    number: int
    requests: tuple[tuple[str, bytes], ...]


class LaneFound(NamedTuple):
    """Answer to AskLane."""

    lane: Lane
    found: Found


class LaneIdentified(NamedTuple):
    """Answer to AskLaneIdentity: the id that Kafka gives the lane's topic now, NO_ID: none."""

    lane: Lane
    topic: str
    topic_id: str


class LaneLost(NamedTuple):
    """The next offset of a lane that is read is not there, or not any more."""

    lane: Lane
    topic: str


class AckRead(NamedTuple):
    record: Acknowledgement


class AckReceived(NamedTuple):
    """An acknowledgement told by the fast way: late, doubled, overtaken, or made up by anybody."""

    record: Acknowledgement


class Told(NamedTuple):
    """What became of the Tell of that number: whether anybody listened. None need come."""

    number: int
    heard: bool


class AppendFailed(NamedTuple):
    """An append whose fate is unknown or bad: any produce error or time-out (L4)."""

    reason: str


class Sent(NamedTuple):
    """A Send with this token was acknowledged by the broker."""

    token: int


class LedgerReplied(NamedTuple):
    """`reply` is a lease/replies.py tuple, or LedgerUnavailable."""

    token: Any
    reply: Any


class Tick(NamedTuple):
    """Everything that was waiting has been handed over; also given when a wake time has come."""


Event: TypeAlias = (
    LogRead
    | LogReceived
    | LogEnd
    | LogIdentified
    | LaneFound
    | LaneIdentified
    | LaneLost
    | LaneRead
    | RequestsReceived
    | AckRead
    | AckReceived
    | Told
    | AppendFailed
    | Sent
    | LedgerReplied
    | Tick
)


# ---------------------------------------------------------------- effects


class ReadLog(NamedTuple):
    """Deliver the log from this offset on, as Kafka has it."""

    offset: int


class AskLogEnd(NamedTuple):
    """Answered by LogIdentified and then LogEnd, asked in this order; or by neither."""


class AskLogIdentity(NamedTuple):
    """Which topic it is that has the log's name now. Nothing waits for the answer."""


class AskLane(NamedTuple):
    """Which topic the lane is now, and its offsets; in this order, and before it is read. Answered
    by LaneFound, or not."""

    lane: Lane


class AskLaneIdentity(NamedTuple):
    """Which topic it is that has the lane's name now. Nothing waits for the answer."""

    lane: Lane


class ReadLane(NamedTuple):
    """Deliver a lane from this offset on (L3)."""

    lane: Lane
    offset: int


class PauseLane(NamedTuple):
    """Back-pressure: hold the lane until ResumeLane; what was read already still arrives."""

    lane: Lane


class ResumeLane(NamedTuple):
    lane: Lane


class Listen(NamedTuple):
    """Master of this epoch: deliver what it is told by the fast ways (AckReceived,
    RequestsReceived), until StopLanes."""

    epoch: int
    incarnation: bytes


class StopLanes(NamedTuple):
    """No longer master: deliver no more of any lane, and listen no more."""


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


class Tell(NamedTuple):
    """Tell the master of that epoch by the fast way, at once or not at all; report Told. Numbers
    rise."""

    number: int
    epoch: int
    incarnation: bytes
    record: Ack


class PublishAnswers(NamedTuple):
    """Tell a requester by the fast way what has become of what it told, at once or not at all."""

    requester: bytes
    record: ResultBatch


class CallLedger(NamedTuple):
    token: Any
    command: Any


class DeleteBelow(NamedTuple):
    """Records of the lane below this offset are decided and in the log; to be done at once, while
    the topic is the one that was looked at."""

    lane: Lane
    offset: int


class DeleteLogBelow(NamedTuple):
    """Every reader of the log has what lies below this offset, or begins from a snapshot."""

    offset: int


class Wake(NamedTuple):
    """Call step(Tick) at this CLOCK_BOOTTIME or soon after."""

    at_ns: int


class Warn(NamedTuple):
    """For people: something was lost or is wrong, and what to do. Nothing else follows from it."""

    words: str


class Stop(NamedTuple):
    """The node can't go on; `error` says why and what to do."""

    error: LeaseholdError


class Became(NamedTuple):
    """For people and for the log of the service: the role from now on, and why."""

    role: str
    epoch: int
    why: str


class ClockNotice(NamedTuple):
    """For people and for the log of the service: something is the matter with the master's clock,
    or no longer."""

    begins: bool
    words: str


Effect: TypeAlias = (
    ReadLog
    | AskLogEnd
    | AskLogIdentity
    | AskLane
    | AskLaneIdentity
    | ReadLane
    | PauseLane
    | ResumeLane
    | Listen
    | StopLanes
    | Append
    | Send
    | Tell
    | PublishAnswers
    | CallLedger
    | DeleteBelow
    | DeleteLogBelow
    | Wake
    | Stop
    | Warn
    | Became
    | ClockNotice
)
