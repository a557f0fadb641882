"""Which way a request reaches the master, and its answer the asker: told through Redis both ways,
or put on the topics `requests` and `results`.

A request has an id, and however often and by whatever way it comes it is decided once (L5). So it
may be told, and be lost, doubled, late, or told to a master that is none any more: whoever hears
no answer asks again through Kafka, under the same id (T5). What is told stands in no topic until it
is decided, and then in the log; its answer waits for what every answer waits for (C1), and is told
to its asker alone.

Kafka is the truth, and the fast way (`RequestWays`, an asker's side) is left for it at once: when
nobody listened or nobody said so in `answer_ms`, when an answer takes `patience_ms`, when the
connection has gone, when more is under way than `under_way_max`, where many in one batch cost Kafka
next to nothing. What was told and has no answer is then asked again there, oldest first, before
anything else is: requests of one asker are decided in the order in which they were sent.

- ⚠ `numbers_in_order`: what is told is numbered, and the master takes each only behind the one
  before it (`HeardRequests`): one that is lost is not overtaken by the next. A run begins anew.
- ⚠ `one_way_at_a_time`: nothing is told while Kafka carries a request that has no answer.
- ⚠ `asks_on`: who has told a request asks for its answer again and again. The log does not say that
  somebody waits for it, so no later master gives it by itself (L7).
- ⚠ This master: its channel is that of its term, which an asker knows from answers on its own
  cluster's `results`. The master of another cluster that shares this Redis has another one.

Before it is taken some request goes both ways, and the answer has to come by the fast one, too, no
more than `late_ms` after Kafka's. Nothing else of this asker may be on Kafka then. Who asks more
often than Kafka answers would never get there, and least where Kafka is slow: so what is asked
meanwhile is held back (`hold_ms` at most) until Kafka has answered what it carries, and then until
the trial is over, and goes together. Nothing is held while Kafka carries more than `hold_behind`,
nor of a burst.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from leasehold.model.records import Outcome
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.fast_path.backoff import FaultPause
from leasehold.replication.fast_path.log import NOBODY, Term

NOT_TOLD: Final = -1
ASKERS_MAX: Final = 10_000
GIVEN_MAX: Final = 10_000
ASK_ON_NS_MAX: Final = 10_000_000_000
FORGOTTEN_NS: Final = 10_000_000_000
"""How long a request without an answer keeps others from being told: it may never get one."""


@dataclass(frozen=True, slots=True)
class FastRequestSettings:
    """The fast way is worth it for `row_min` requests (or groups of them) in a row, each at most
    `apart_ms` after the one before. Redis has `answer_ms` to say who listens. After a fault the way
    is left alone for `pause_ms`, doubled up to `pause_ms_max` for each that comes before it was
    taken for `pause_ms_max`. Nothing is held back before a row has lasted `hold_after_ms`: who asks
    many at once and then nothing would wait for two rounds of Kafka's instead of one. `hold_ms`
    counts from the first that is held back."""

    on: bool = True
    row_min: int = 4
    apart_ms: int = 50
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


@dataclass(frozen=True, slots=True)
class FastRequestRules:
    """⚠ rules for models and the simulation to switch off."""

    numbers_in_order: bool = True
    one_way_at_a_time: bool = True
    asks_on: bool = True


RULES: Final = FastRequestRules()


class Asking(NamedTuple):
    """How some requests go now, and before them all that were held back. `number`: tell them under
    it, in `run`; NOT_TOLD: don't. `held`: they don't go yet, see `RequestWays.release`."""

    run: int
    number: int
    by_kafka: bool
    held: bool = False


class RequestWays:
    """An asker's side. Times are this host's CLOCK_BOOTTIME in ns."""

    def __init__(self, settings: FastRequestSettings, rules: FastRequestRules = RULES) -> None:
        self._settings = settings
        self._rules = rules
        self.term: Term = NOBODY
        """Whom to tell; NOBODY: none is known that listens."""
        self.fast = False
        """Whether requests are told, and not put on the topic."""
        self.again: list[bytes] = []
        """What was told and has now to be asked through Kafka, before anything else; whoever does
        it empties this."""
        self._told: dict[bytes, int] = {}  # by telling alone, and when; no answer yet
        self._by_kafka: dict[bytes, int] = {}  # through Kafka (too), and when; no answer yet
        self._held: list[bytes] = []  # neither way yet
        self._held_size = 0
        self._held_ns = 0  # when the first of them was asked
        self._trial: set[bytes] = set()  # both ways, to see whether the fast one works
        self._trial_ns = 0
        self._late_ns = 0  # when the trial was answered by Kafka
        # Asked both ways, not answered: when to ask again, and how long to wait then.
        self._twice: OrderedDict[bytes, tuple[int, int]] = OrderedDict()
        self._ask_on_ns = 0  # the first of those
        self._given: OrderedDict[tuple[bytes, int], None] = OrderedDict()  # a repeat is to come
        self._refused: OrderedDict[bytes, int] = OrderedDict()  # the last attempt, not for good
        self._unsure: deque[tuple[int, int]] = deque()  # (number, when), nothing known yet
        self._run = 0
        self._number = 0
        self._row = 0
        self._row_ns = 0  # when its first was asked
        self._last_ns = 0
        self._since_ns = 0
        self._pause = FaultPause(settings.pause_ms, settings.pause_ms_max)

    # ------------------------------------------------------------ asking

    @property
    def wants(self) -> bool:
        """Whether a connection would be of use."""
        return self.term != NOBODY and (self.listens or self._row >= self._settings.row_min - 1)

    @property
    def listens(self) -> bool:
        """Whether answers may be told, or something is held back."""
        return self.fast or bool(self._told) or bool(self._trial) or bool(self._held)

    @property
    def asks(self) -> bool:
        """Whether something may have to be asked again."""
        return self.listens or bool(self._twice)

    def needs(self, request_id: bytes) -> bool:
        """Whether that request may have to be asked again."""
        return request_id in self._told or request_id in self._twice

    @property
    def awaits_kafka(self) -> bool:
        """Whether an answer is to come through Kafka."""
        return bool(self._by_kafka)

    def ask(self, ids: Sequence[bytes], size: int, now_ns: int, *, connected: bool) -> Asking:
        """For requests that go together now, of `size` bytes; `connected`: they could be told.
        `again` goes before them."""
        close = now_ns - self._last_ns <= self._settings.apart_ms * NS_PER_MS
        self._row = self._row + 1 if close else 1
        if self._row == 1:
            self._row_ns = now_ns
        self._last_ns = now_ns
        fits = connected and self._fits(len(ids), size)
        if (self.fast or self._held) and not fits:
            self._leave(now_ns, fault=not connected or bool(self._held))
        if not self._may_tell() and fits and self._holds(now_ns):
            self._held_ns = self._held_ns if self._held else now_ns
            self._held += ids
            self._held_size += size
            return Asking(self._run, NOT_TOLD, by_kafka=False, held=True)
        return self._go(ids, now_ns, fits=fits)

    def release(self, now_ns: int, *, connected: bool) -> Asking | None:
        """How all that is held back goes now, after `again`; None: nothing does yet. To be asked
        for whenever anything has happened."""
        if not self._held or (connected and not self._may_tell() and self._holds(now_ns)):
            return None
        return self._go((), now_ns, fits=connected)

    def may_tell(self, requests: int, size: int, *, connected: bool) -> bool:
        """Whether `ask` would have them told, and not put on the topic."""
        return connected and self._fits(requests, size) and self._may_tell()

    def _may_tell(self) -> bool:
        return self.fast and not self._kafka_carries

    @property
    def _kafka_carries(self) -> bool:
        """Something that what is told would overtake."""
        return bool(self._by_kafka) and self._rules.one_way_at_a_time

    def _fits(self, requests: int, size: int) -> bool:
        """Behind what is held back, too."""
        settings = self._settings
        under_way = len(self._told) + len(self._held) + requests
        return under_way <= settings.under_way_max and self._held_size + size <= settings.bytes_max

    def _holds(self, now_ns: int) -> bool:
        """Whether what can't be told now soon can be, so far as is known."""
        if self._trial or not self._kafka_carries:
            return bool(self._trial)
        few = len(self._by_kafka) <= self._settings.hold_behind
        steady = self._last_ns - self._row_ns >= self._settings.hold_after_ms * NS_PER_MS
        return self.fast or (self._ready(now_ns) and few and steady)

    def _go(self, ids: Sequence[bytes], now_ns: int, *, fits: bool) -> Asking:
        """All that are held back, and these. `fits`: they could be told together."""
        ids = [*self._held, *ids]
        self._held, self._held_size = [], 0
        if self._may_tell():
            self._told.update(dict.fromkeys(ids, now_ns))
            return Asking(self._run, self._tell(now_ns), by_kafka=False)
        begins = fits and self._ready(now_ns) and not self._kafka_carries
        self._by_kafka.update(dict.fromkeys(ids, now_ns))
        if not begins:
            return Asking(self._run, NOT_TOLD, by_kafka=True)
        self._run += 1
        self._number = NOT_TOLD
        self._trial, self._trial_ns, self._late_ns = set(ids), now_ns, 0
        self._asked_twice(ids, now_ns)
        return Asking(self._run, self._tell(now_ns), by_kafka=True)

    def _ready(self, now_ns: int) -> bool:
        return (
            self._settings.on
            and not self.fast
            and not self._trial
            and self.term != NOBODY
            and self._row >= self._settings.row_min
            and now_ns >= self._pause.until_ns
        )

    def _tell(self, now_ns: int) -> int:
        self._number += 1
        self._unsure.append((self._number, now_ns))
        return self._number

    def _asked_twice(self, ids: Sequence[bytes], now_ns: int) -> None:
        pause_ns = 2 * self._settings.patience_ms * NS_PER_MS
        for request_id in ids:
            self._twice[request_id] = now_ns + pause_ns, pause_ns
        while len(self._twice) > GIVEN_MAX:
            self._twice.popitem(last=False)
        self._ask_on_ns = min(due_ns for due_ns, _ in self._twice.values())

    def _ask_on(self, now_ns: int) -> None:
        """⚠ What was decided because it was told nobody but its asker remembers to be answered: a
        new master does not (L7), and a repeat that was asked for dies with the old one."""
        for request_id, (due_ns, pause_ns) in self._twice.items():
            if now_ns >= due_ns:
                pause_ns = min(2 * pause_ns, ASK_ON_NS_MAX)
                self._twice[request_id] = now_ns + pause_ns, pause_ns
                self._by_kafka[request_id] = now_ns
                self.again.append(request_id)
        self._ask_on_ns = min((due_ns for due_ns, _ in self._twice.values()), default=0)

    # ------------------------------------------------------------ what happens

    def follow(self, term: Term, now_ns: int) -> None:
        """The master that has answered on `results`, and listens; NOBODY: it does not."""
        if not self._settings.on or term == self.term:
            return
        self.term = term
        self._leave(now_ns, fault=False)

    def heard(self, run: int, number: int, now_ns: int, *, heard: bool) -> None:
        """Redis's word for what was told under that number and before: whether a master listened.
        That of a run that is over changes nothing."""
        if run != self._run:
            return
        known = False
        while self._unsure and self._unsure[0][0] <= number:
            known = self._unsure.popleft()[0] == number
        if known and not heard:
            self._leave(now_ns, fault=True)

    def answered(self, request_id: bytes, outcome: Outcome, now_ns: int, *, told: bool) -> bool:
        """An answer has come, told or through Kafka; whether it is the first of the two that an
        asking both ways gets."""
        attempt = outcome.attempt
        if not self._is_news(request_id, outcome):  # the next attempt may be under way already
            return not self._is_repeat(request_id, attempt)
        self._told.pop(request_id, None)
        self._by_kafka.pop(request_id, None)
        if request_id in self._trial:
            if told:
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
        """Not one of an attempt whose answer was given before."""
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
        """Whether Kafka has answered what is tried so long ago that the fast way is no gain."""
        late_ns = self._settings.late_ms * NS_PER_MS
        return bool(self._late_ns) and now_ns - self._late_ns > late_ns

    def _tried(self, now_ns: int) -> None:
        self._trial = set()
        if self._is_late(now_ns):
            self._leave(now_ns, fault=True)
        else:
            self.fast = True
            self._since_ns = now_ns

    def failed(self, request_id: bytes) -> None:
        """It is not known whether Kafka has it; nobody waits for its answer any longer."""
        self._by_kafka.pop(request_id, None)

    def lost(self, now_ns: int) -> None:
        """There is no connection."""
        if self.listens:
            self._leave(now_ns, fault=True)

    def tick(self, now_ns: int) -> None:
        """To be called every few ms while it `listens`, every tenth of a second else."""
        settings = self._settings
        if self._unsure and now_ns - self._unsure[0][1] >= settings.answer_ms * NS_PER_MS:
            self._leave(now_ns, fault=True)
        oldest_ns = next(iter(self._told.values()), now_ns)
        if now_ns - oldest_ns >= settings.patience_ms * NS_PER_MS:
            self._leave(now_ns, fault=True)
        tired = now_ns - self._trial_ns >= settings.patience_ms * NS_PER_MS
        if self._trial and (tired or self._is_late(now_ns)):
            self._leave(now_ns, fault=True)
        if self._held and now_ns - self._held_ns >= settings.hold_ms * NS_PER_MS:
            self._leave(now_ns, fault=True)
        if self.fast and not self._told and now_ns - self._last_ns > settings.apart_ms * NS_PER_MS:
            self._leave(now_ns, fault=False)
        if self._twice and now_ns >= self._ask_on_ns and self._rules.asks_on:
            self._ask_on(now_ns)
        while self._by_kafka:
            request_id, asked_ns = next(iter(self._by_kafka.items()))
            if now_ns - asked_ns < FORGOTTEN_NS:
                break
            del self._by_kafka[request_id]

    def _leave(self, now_ns: int, *, fault: bool) -> None:
        self.fast, self._row = False, 0
        self._trial = set()
        self._unsure.clear()
        if self._told:
            told = list(self._told)
            self._told.clear()
            self.again += told
            self._by_kafka.update(dict.fromkeys(told, now_ns))
            self._asked_twice(told, now_ns)
        if fault:
            self._pause.fault(now_ns, self._since_ns)


class HeardRequests:
    """The master's side, of one term: which of those that are told are next in their run."""

    def __init__(self, rules: FastRequestRules = RULES) -> None:
        self._rules = rules
        self._next: OrderedDict[bytes, tuple[int, int]] = OrderedDict()  # (run, number) by asker

    def accepts(self, asker: bytes, run: int, number: int) -> bool:
        known_run, wanted = self._next.get(asker, (-1, 0))
        if run > known_run:
            wanted = 0
        elif run < known_run:
            return False
        if number != wanted and self._rules.numbers_in_order:
            return False
        self._next[asker] = run, number + 1
        self._next.move_to_end(asker)
        if len(self._next) > ASKERS_MAX:
            self._next.popitem(last=False)
        return True
