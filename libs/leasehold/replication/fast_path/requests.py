"""Chooses how a request reaches the master, and its answer the requester: published through Redis
both ways, or put on the topics `requests` and `results`.

A request has an id, and however often and by whatever way it comes it is decided once (L5). So it
may be published, and be lost, doubled, late, or go to a master that is none any more: whoever
receives no answer asks again through Kafka, under the same id (T5). What is published stands in no
topic until it is decided, and then in the log; its answer waits for what every answer waits for
(C1), and is published to its requester alone.

Kafka is the truth, and the fast path (`RequestPath`, a requester's side) is left for it at once:
when nobody received a request or nobody said so in `answer_ms`, when an answer takes `patience_ms`,
when the connection has gone, when more is under way than `under_way_max`, where many in one batch
cost Kafka next to nothing. What was published and has no answer is then asked again there, oldest
first, before anything else is: requests of one requester are decided in the order in which they
were sent.

- ⚠ `numbers_in_order`: what is published is numbered, and the master takes each only behind the one
  before it (`ReceivedRequests`): one that is lost is not overtaken by the next. A run starts over.
- ⚠ `one_way_at_a_time`: nothing is published while Kafka carries a request that has no answer.
- ⚠ `asks_on`: who has published a request asks for its answer again and again. The log does not say
  that somebody waits for it, so no later master gives it by itself (L7).
- ⚠ This master: its channel is that of its term, which a requester knows from answers on its own
  cluster's `results`. The master of another cluster that shares this Redis has another one.

Before it is taken some request goes both ways, and the answer has to come by the fast one, too, no
more than `late_ms` after Kafka's. Nothing else of this requester may be on Kafka then. Who asks
more often than Kafka answers would never get there, and least where Kafka is slow: so what is asked
meanwhile is held back (`hold_ms` at most) until Kafka has answered what it carries, and then until
the trial is over, and goes together. Nothing is held while Kafka carries more than `hold_behind`,
nor of a burst.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from leasehold.model.records.requests import Outcome
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.fast_path.log import NOBODY, Term
from leasehold.replication.fast_path.state_machine import NOT_PUBLISHED, FastPath, Pause

REQUESTERS_MAX: Final = 10_000
GIVEN_MAX: Final = 10_000
ASK_ON_NS_MAX: Final = 10_000_000_000
AWAITED_LONGER_MS: Final = 100
"""A requester notices late that it has asked for nothing, and what it has sent takes its time."""
FORGOTTEN_NS: Final = 10_000_000_000
"""How long a request without an answer keeps others from being published: it may never get one."""


@dataclass(frozen=True, slots=True)
class FastRequestSettings:
    """The fast path is worth it for `row_min` requests (or groups of them) in a row, each at most
    `apart_ms` after the one before, and left when none has come for as long: who asks a few times a
    second is to be answered as soon as who asks without a pause. Redis has `answer_ms` to say who
    subscribes. After a fault it is left alone for `pause_ms`, doubled up to `pause_ms_max` for each
    that comes before it was taken for `pause_ms_max`. Nothing is held back before a row has lasted
    `hold_after_ms`: who asks many at once and then nothing would wait for two rounds of Kafka's
    instead of one. `hold_ms` counts from the first that is held back."""

    on: bool = True
    row_min: int = 4
    apart_ms: int = 1_000
    late_ms: int = 5
    answer_ms: int = 100
    patience_ms: int = 500
    under_way_max: int = 256
    hold_after_ms: int = 200
    hold_ms: int = 100
    hold_behind: int = 64
    bytes_max: int = 48 * 1024
    pause_ms: int = 100
    pause_ms_max: int = 5_000

    @property
    def awaited_ms(self) -> int:
        """How long after a request that was published its master awaits the next one there rather
        than from Kafka: ⚠ longer than a requester goes on publishing."""
        return self.apart_ms + AWAITED_LONGER_MS


class Asking(NamedTuple):
    """How some requests go now, and before them all that were held back. `number`: publish them
    under it, in `run`; NOT_PUBLISHED: don't. `held`: they don't go yet, see `RequestPath.release`.
    """

    run: int
    number: int
    by_kafka: bool
    held: bool = False


class RequestPath:
    """A requester's side. Times are this host's CLOCK_BOOTTIME in ns."""

    def __init__(self, settings: FastRequestSettings) -> None:
        self._settings = settings
        self.term: Term = NOBODY
        """Whom to publish to; NOBODY: none is known that subscribes."""
        self.again: list[bytes] = []
        """What was published and has now to be asked through Kafka, before anything else; whoever
        does it empties this."""
        self._published: dict[bytes, int] = {}  # and not put on the topic, and when; no answer yet
        self._by_kafka: dict[bytes, int] = {}  # through Kafka (too), and when; no answer yet
        self._held: list[bytes] = []  # neither way yet
        self._held_size = 0
        self._held_ns = 0  # when the first of them was asked
        self._trial: set[bytes] = set()  # both ways, while the path is probed
        self._late_ns = 0  # when the trial was answered by Kafka
        # Asked both ways, not answered: when to ask again, and how long to wait then.
        self._twice: OrderedDict[bytes, tuple[int, int]] = OrderedDict()
        self._ask_on_ns = 0  # the first of those
        self._given: OrderedDict[tuple[bytes, int], None] = OrderedDict()  # a repeat is to come
        self._refused: OrderedDict[bytes, int] = OrderedDict()  # the last attempt, not for good
        self._row_ns = 0  # when the first of the row was asked
        self._path = FastPath(
            pause_ms=settings.pause_ms,
            pause_ms_max=settings.pause_ms_max,
            row_min=settings.row_min,
            apart_ms=settings.apart_ms,
            answer_ms=settings.answer_ms,
        )

    @property
    def path(self) -> FastPath:
        """Return its state machine, for whoever looks at it."""
        return self._path

    @property
    def fast(self) -> bool:
        """Whether requests are published, and not put on the topic."""
        return self._path.taken

    # ------------------------------------------------------------ asking

    @property
    def wants(self) -> bool:
        """Whether a connection would be of use."""
        return self.term != NOBODY and (
            self.listens or self._path.row >= self._settings.row_min - 1
        )

    @property
    def listens(self) -> bool:
        """Whether answers may be published, or something is held back."""
        path = self._path
        return path.taken or path.probing or bool(self._published) or bool(self._held)

    @property
    def asks(self) -> bool:
        """Whether something may have to be asked again."""
        return self.listens or bool(self._twice)

    def needs(self, request_id: bytes) -> bool:
        """Whether that request may have to be asked again."""
        return request_id in self._published or request_id in self._twice

    @property
    def awaits_kafka(self) -> bool:
        """Whether an answer is to come through Kafka."""
        return bool(self._by_kafka)

    def ask(self, ids: Sequence[bytes], size: int, now_ns: int, *, connected: bool) -> Asking:
        """Return how requests go that go together now, of `size` bytes; `connected`: they could be
        published. `again` goes before them."""
        path = self._path
        path.count(now_ns)
        if path.row == 1:
            self._row_ns = now_ns
        fits = connected and self._fits(len(ids), size)
        if (path.taken or self._held) and not fits:
            at_fault = not connected or bool(self._held)
            self._leave(now_ns, Pause.FAULT if at_fault else Pause.NONE)
        if not self._may_publish() and fits and self._holds(now_ns):
            self._held_ns = self._held_ns if self._held else now_ns
            self._held += ids
            self._held_size += size
            return Asking(path.run, NOT_PUBLISHED, by_kafka=False, held=True)
        return self._go(ids, now_ns, fits=fits)

    def release(self, now_ns: int, *, connected: bool) -> Asking | None:
        """How all that is held back goes now, after `again`; None: nothing does yet. To be asked
        for whenever anything has happened."""
        if not self._held or (connected and not self._may_publish() and self._holds(now_ns)):
            return None
        return self._go((), now_ns, fits=connected)

    def may_publish(self, requests: int, size: int, *, connected: bool) -> bool:
        """Whether `ask` would have them published, and not put on the topic."""
        return connected and self._fits(requests, size) and self._may_publish()

    def _may_publish(self) -> bool:
        return self._path.taken and not self._kafka_carries

    @property
    def _kafka_carries(self) -> bool:
        """Something that what is published would overtake."""
        return bool(self._by_kafka)

    def _fits(self, requests: int, size: int) -> bool:
        """Whether there is room for them, behind what is held back, too."""
        settings = self._settings
        under_way = len(self._published) + len(self._held) + requests
        return under_way <= settings.under_way_max and self._held_size + size <= settings.bytes_max

    def _holds(self, now_ns: int) -> bool:
        """Whether what can't be published now soon can be, so far as is known."""
        if self._path.probing or not self._kafka_carries:
            return self._path.probing
        few = len(self._by_kafka) <= self._settings.hold_behind
        steady = self._path.last_ns - self._row_ns >= self._settings.hold_after_ms * NS_PER_MS
        return self._path.taken or (self._is_ready(now_ns) and few and steady)

    def _go(self, ids: Sequence[bytes], now_ns: int, *, fits: bool) -> Asking:
        """All that are held back, and these. `fits`: they could be published together."""
        path = self._path
        ids = [*self._held, *ids]
        self._held, self._held_size = [], 0
        if self._may_publish():
            self._published.update(dict.fromkeys(ids, now_ns))
            return Asking(path.run, path.publish(now_ns), by_kafka=False)
        begins = fits and self._is_ready(now_ns) and not self._kafka_carries
        self._by_kafka.update(dict.fromkeys(ids, now_ns))
        if not begins:
            return Asking(path.run, NOT_PUBLISHED, by_kafka=True)
        path.begin_run()
        path.probe(now_ns)
        self._trial, self._late_ns = set(ids), 0
        self._asked_twice(ids, now_ns)
        return Asking(path.run, path.publish(now_ns), by_kafka=True)

    def _is_ready(self, now_ns: int) -> bool:
        return self._settings.on and self.term != NOBODY and self._path.is_ready(now_ns)

    def _asked_twice(self, ids: Sequence[bytes], now_ns: int) -> None:
        pause_ns = 2 * self._settings.patience_ms * NS_PER_MS
        for request_id in ids:
            self._twice[request_id] = now_ns + pause_ns, pause_ns
        while len(self._twice) > GIVEN_MAX:
            self._twice.popitem(last=False)
        self._ask_on_ns = min(due_ns for due_ns, _ in self._twice.values())

    def _ask_on(self, now_ns: int) -> None:
        """Ask again for what is due. ⚠ What was decided because it was published nobody but its
        requester remembers to be answered: a new master does not (L7), and a repeat that was asked
        for dies with the old one."""
        for request_id, (due_ns, pause_ns) in self._twice.items():
            if now_ns >= due_ns:
                pause_ns = min(2 * pause_ns, ASK_ON_NS_MAX)
                self._twice[request_id] = now_ns + pause_ns, pause_ns
                self._by_kafka[request_id] = now_ns
                self.again.append(request_id)
        self._ask_on_ns = min((due_ns for due_ns, _ in self._twice.values()), default=0)

    # ------------------------------------------------------------ what happens

    def follow(self, term: Term, now_ns: int) -> None:
        """The master that has answered on `results`, and subscribes; NOBODY: it does not."""
        if not self._settings.on or term == self.term:
            return
        self.term = term
        self._leave(now_ns, Pause.NONE)

    def confirm(self, run: int, number: int, now_ns: int, *, received: bool) -> None:
        """Take Redis's word for what was published under that number and before: whether a master
        has received it. That of a run that is over changes nothing."""
        if run == self._path.run and self._path.confirm(number) and not received:
            self._leave(now_ns, Pause.FAULT)

    def answered(
        self, request_id: bytes, outcome: Outcome, now_ns: int, *, published: bool
    ) -> bool:
        """An answer has come, published or through Kafka; whether it is the first of the two that
        an asking both ways gets."""
        attempt = outcome.attempt
        if not self._is_news(request_id, outcome):  # the next attempt may be under way already
            return not self._is_repeat(request_id, attempt)
        self._published.pop(request_id, None)
        self._by_kafka.pop(request_id, None)
        if request_id in self._trial:
            if published:
                self._tried(now_ns)
            elif not self._late_ns:
                self._late_ns = now_ns
        if self._is_repeat(request_id, attempt):
            return False
        if request_id in self._twice:
            del self._twice[request_id]
            self._given[request_id, attempt] = None
            if len(self._given) > GIVEN_MAX:
                self._given.popitem(last=False)
        return True

    def _is_repeat(self, request_id: bytes, attempt: int) -> bool:
        """The second of the answers that an asking both ways gets."""
        if (request_id, attempt) not in self._given:
            return False
        del self._given[request_id, attempt]
        return True

    def _is_news(self, request_id: bytes, outcome: Outcome) -> bool:
        """Whether it is not the outcome of an attempt whose answer was given before."""
        if outcome.lsn or outcome.final:
            self._refused.pop(request_id, None)
            return True
        if outcome.attempt <= self._refused.get(request_id, 0):
            return False
        self._refused[request_id] = outcome.attempt
        self._refused.move_to_end(request_id)
        if len(self._refused) > GIVEN_MAX:
            self._refused.popitem(last=False)
        return True

    def _is_late(self, now_ns: int) -> bool:
        """Whether Kafka has answered what is tried so long ago that the fast path is no gain."""
        late_ns = self._settings.late_ms * NS_PER_MS
        return bool(self._late_ns) and now_ns - self._late_ns > late_ns

    def _tried(self, now_ns: int) -> None:
        self._trial = set()
        if self._is_late(now_ns):
            self._leave(now_ns, Pause.FAULT)
        else:
            self._path.enter(now_ns)

    def failed(self, request_id: bytes) -> None:
        """Give up a request of which it is not known whether Kafka has it; nobody waits for its
        answer any longer."""
        self._by_kafka.pop(request_id, None)

    def lost(self, now_ns: int) -> None:
        """Leave the path: there is no connection."""
        if self.listens:
            self._leave(now_ns, Pause.FAULT)

    def tick(self, now_ns: int) -> None:
        """Look at what takes too long. To be called every few ms while it `listens`, every tenth of
        a second else."""
        settings, path = self._settings, self._path
        if path.is_overdue(now_ns):
            self._leave(now_ns, Pause.FAULT)
        oldest_ns = next(iter(self._published.values()), now_ns)
        if now_ns - oldest_ns >= settings.patience_ms * NS_PER_MS:
            self._leave(now_ns, Pause.FAULT)
        tired = now_ns - path.since_ns >= settings.patience_ms * NS_PER_MS
        if path.probing and (tired or self._is_late(now_ns)):
            self._leave(now_ns, Pause.FAULT)
        if self._held and now_ns - self._held_ns >= settings.hold_ms * NS_PER_MS:
            self._leave(now_ns, Pause.FAULT)
        if path.taken and not self._published and path.is_silent(now_ns):
            self._leave(now_ns, Pause.NONE)
        if self._twice and now_ns >= self._ask_on_ns:
            self._ask_on(now_ns)
        while self._by_kafka:
            request_id, asked_ns = next(iter(self._by_kafka.items()))
            if now_ns - asked_ns < FORGOTTEN_NS:
                break
            del self._by_kafka[request_id]

    def _leave(self, now_ns: int, pause: Pause) -> None:
        self._path.leave(now_ns, pause)
        self._trial = set()
        if self._published:
            published = list(self._published)
            self._published.clear()
            self.again += published
            self._by_kafka.update(dict.fromkeys(published, now_ns))
            self._asked_twice(published, now_ns)


class ReceivedRequests:
    """The master's side, of one term: which of those that come are next in their run."""

    def __init__(self) -> None:
        self._next: OrderedDict[bytes, tuple[int, int]] = (
            OrderedDict()
        )  # (run, number) by requester

    def accepts(self, requester: bytes, run: int, number: int) -> bool:
        known_run, wanted = self._next.get(requester, (-1, 0))
        if run > known_run:
            wanted = 0
        elif run < known_run:
            return False
        if number != wanted:
            return False
        self._next[requester] = run, number + 1
        self._next.move_to_end(requester)
        if len(self._next) > REQUESTERS_MAX:
            self._next.popitem(last=False)
        return True
