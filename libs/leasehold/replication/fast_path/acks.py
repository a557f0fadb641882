"""Chooses how a node acknowledges: published for the master, or put on the topic `acks`.

That this incarnation has applied everything below an offset stays true once it is. So such an
acknowledgement may be lost, doubled, late and overtaken without harm (C1 takes the highest that was
received), nobody needs it once the master has it, and a log that keeps it is not worth what a
broker takes for a record of its own. Everything else that nodes say goes by the topic: asks for
leases and their return, and with them the position again, every `renewal_ms`.

The fast path (`PublishAck`) is believed while it is seen to work, and never relied upon:

- until a master was seen to subscribe, in each epoch anew, acknowledgements go both ways;
- when nobody received one, or nobody said so in `answer_ms`, they go both ways again, and the fast
  path is tried less and less often: an outage costs one wait, not one per acknowledgement, and a
  Redis that is merely slow is not waited for by each;
- the last one of a row goes by the topic too, `patience_ms` later: a master whose connection died
  unnoticed has it that much later, and no more.
"""

from __future__ import annotations

from dataclasses import dataclass

from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.fast_path.state_machine import NOT_PUBLISHED, FastPath, Pause


@dataclass(frozen=True, slots=True)
class FastAckSettings:
    """Times of the fast path of acknowledgements. `answer_ms`: how long Redis may take to say that
    somebody subscribes; far more than it takes, and not much more than the topic does.
    `patience_ms`: how long an acknowledgement may rely on its word. After a failure the fast path
    is left alone for `pause_ms`, doubled each time, up to `pause_ms_max`."""

    on: bool = True
    answer_ms: int = 20
    patience_ms: int = 50
    pause_ms: int = 100
    pause_ms_max: int = 5_000


class FastAcks:
    """A node's side. Times are this host's CLOCK_BOOTTIME in ns."""

    def __init__(self, settings: FastAckSettings) -> None:
        self._on = settings.on
        self._patience_ns = settings.patience_ms * NS_PER_MS
        self._term = (0, b"")
        self._path = FastPath(
            pause_ms=settings.pause_ms,
            pause_ms_max=settings.pause_ms_max,
            answer_ms=settings.answer_ms,
        )
        self._alone_ns = (
            -1
        )  # when the last was published that did not go by the topic too; -1: none
        self._owed = False  # one was published that nobody has received

    @property
    def path(self) -> FastPath:
        """Return its state machine, for whoever looks at it."""
        return self._path

    def choose(self, epoch: int, incarnation: bytes, now_ns: int) -> tuple[int, bool]:
        """Return, for an acknowledgement now to the master of that epoch, the number to publish it
        under (NOT_PUBLISHED: don't), and whether it goes on the topic."""
        if not self._on or not epoch:
            return NOT_PUBLISHED, True
        path = self._path
        if self._term != (epoch, incarnation):
            self._term = (epoch, incarnation)
            path.restart(now_ns)
        if path.taken:
            self._alone_ns = now_ns
            return path.publish(now_ns), False
        if not path.is_ready(now_ns):
            return NOT_PUBLISHED, True
        path.probe(now_ns)
        return path.publish(now_ns), True

    def on_topic(self) -> None:
        """The position was put there: nothing rests on the fast path alone."""
        self._alone_ns = -1
        self._owed = False

    def confirm(self, number: int, now_ns: int, *, received: bool) -> None:
        """Take Redis's word for that one and those before: whether a master has received it."""
        path = self._path
        if not path.confirm(number):
            return
        if not received:
            self._fail(now_ns)
            return
        if not path.taken:
            path.enter(now_ns)
        path.forgive()

    def overdue(self, now_ns: int) -> bool:
        """Whether the position has to go on the topic now: it has relied on this long enough."""
        if self._path.is_overdue(now_ns):
            self._fail(now_ns)
        if self._owed:
            return True
        return self._alone_ns >= 0 and now_ns - self._alone_ns >= self._patience_ns

    def due_ns(self) -> int | None:
        """Return when `overdue` has to be asked next."""
        overdue_ns = self._path.overdue_at_ns()
        if self._alone_ns < 0:
            return overdue_ns
        patience_ns = self._alone_ns + self._patience_ns
        return patience_ns if overdue_ns is None else min(overdue_ns, patience_ns)

    def _fail(self, now_ns: int) -> None:
        self._path.leave(now_ns, Pause.FAULT)
        self._owed = self._alone_ns >= 0
