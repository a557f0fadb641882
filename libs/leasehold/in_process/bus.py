"""The bus in this process: topics as lists, deliveries as events of a scheduler.

For `leasehold dev` (real time) and the simulation (virtual time, delays, losses): the same nodes
run on it unchanged. Within a partition order holds, as on Kafka; between topics it need not.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from leasehold.model.ports import Now
from leasehold.model.time_units import NS_PER_US

EPOCH_WALL_US: Final = 1_750_000_000_000_000


class Scheduler:
    """Events in time order; ties in order of scheduling, so that a seed replays exactly.

    Virtual: `run_until` jumps from event to event. `leasehold dev` steps it along the real clock.
    """

    def __init__(self, start_ns: int = 1_000_000_000, wall_us_at_zero: int = EPOCH_WALL_US) -> None:
        self.now_ns = start_ns
        self._wall_us_at_zero = wall_us_at_zero
        self._events: list[tuple[int, int, Callable[[], object]]] = []
        self._count = 0

    def now(self) -> Now:
        return Now(self.now_ns, self._wall_us_at_zero + self.now_ns // NS_PER_US)

    def set_clock_on(self, span_us: int) -> None:
        """Let the wall clock be so much later from now on."""
        self._wall_us_at_zero += span_us

    def at(self, at_ns: int, action: Callable[[], object]) -> None:
        self._count += 1
        heapq.heappush(self._events, (max(at_ns, self.now_ns), self._count, action))

    def later(self, delay_ns: int, action: Callable[[], object]) -> None:
        self.at(self.now_ns + delay_ns, action)

    @property
    def events(self) -> int:
        """How many have been scheduled so far."""
        return self._count

    def next_ns(self) -> int | None:
        return self._events[0][0] if self._events else None

    def run_next(self) -> bool:
        if not self._events:
            return False
        at_ns, _, action = heapq.heappop(self._events)
        self.now_ns = max(self.now_ns, at_ns)
        action()
        return True

    def run_until(self, at_ns: int, stop: Callable[[], bool] | None = None) -> bool:
        """Run events up to `at_ns`; return whether `stop` came true before."""
        while self._events and self._events[0][0] <= at_ns:
            self.run_next()
            if stop is not None and stop():
                return True
        self.now_ns = max(self.now_ns, at_ns)
        return stop() if stop is not None else False


class Message(NamedTuple):
    offset: int
    key: bytes
    value: bytes | None
    headers: Mapping[str, str]


class Subscription:
    """Deliveries of one partition from an offset on, in order; `cancel` ends them at once. `gone`
    is called instead, once and as the last, where the next offset has been deleted."""

    def __init__(
        self,
        offset: int,
        deliver: Callable[[Message], None],
        delay_ns: Callable[[], int] = lambda: 0,
        gone: Callable[[], None] | None = None,
    ) -> None:
        self.delay_ns = delay_ns
        self.gone = gone
        self.next = offset
        self.deliver = deliver
        self.due_ns = 0
        self.queued = offset  # next offset to be scheduled
        self.active = True
        self.paused = False

    def cancel(self) -> None:
        self.active = False


class MemoryBus:
    """Partitions by (topic, partition). `delay_ns` gives the time of each delivery."""

    def __init__(self, scheduler: Scheduler, delay_ns: Callable[[], int] = lambda: 0) -> None:
        self._scheduler = scheduler
        self._delay_ns = delay_ns
        self._messages: dict[tuple[str, int], list[Message]] = defaultdict(list)
        self._first: dict[tuple[str, int], int] = defaultdict(int)
        self._subscriptions: dict[tuple[str, int], list[Subscription]] = defaultdict(list)
        self._recreated: dict[str, int] = defaultdict(int)
        self._away_until_ns = 0
        self._waiting: deque[Callable[[], object]] = deque()  # while the broker is away
        self.on_append: Callable[[str, int, Message], None] = lambda *_: None
        self.on_delete: Callable[[str, int, int], None] = lambda *_: None
        """Is told before records are deleted: of which topic, below which offset, and when that was
        asked for."""

    # ------------------------------------------------------------ the broker is away

    def be_away(self, until_ns: int) -> None:
        """Answer nobody until then: nothing is delivered, and what is sent waits with its
        sender."""
        self._away_until_ns = max(self._away_until_ns, until_ns)
        self._scheduler.at(self._away_until_ns, self._come_back)

    def heal(self) -> None:
        """End that now."""
        self._away_until_ns = 0
        self._come_back()

    @property
    def is_away(self) -> bool:
        return self._scheduler.now_ns < self._away_until_ns

    def once_there(self, action: Callable[[], object]) -> None:
        """Do the action now, or when the broker is back: in the order in which it was asked for."""
        if self.is_away or self._waiting:
            self._waiting.append(action)
        else:
            action()

    def _come_back(self) -> None:
        while self._waiting and not self.is_away:
            self._waiting.popleft()()

    # ------------------------------------------------------------ messages

    def append(
        self,
        topic: str,
        partition: int,
        key: bytes,
        value: bytes | None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        """Append a message now; return its offset."""
        where = (topic, partition)
        offset = self.end(topic, partition)
        message = Message(offset, key, value, headers or {})
        self._messages[where].append(message)
        self.on_append(topic, partition, message)
        kept = [s for s in self._subscriptions[where] if s.active]
        self._subscriptions[where] = kept
        for subscription in kept:
            self._schedule(where, subscription)
        return offset

    def end(self, topic: str, partition: int = 0) -> int:
        where = (topic, partition)
        return self._first[where] + len(self._messages[where])

    def first(self, topic: str, partition: int = 0) -> int:
        """The first offset that has not been deleted."""
        return self._first[topic, partition]

    def topic_id(self, topic: str) -> str:
        """Return the id of the topic: another one for each that was made under the name."""
        return f"{topic}/{self._recreated[topic]}"

    def recreate(self, topic: str) -> None:
        """Delete the topic and make it again under the same name, empty. Who reads it notices
        nothing, as Kafka's clients may not, and is given what will stand at his next offset."""
        self._recreated[topic] += 1
        for where in [where for where in self._messages if where[0] == topic]:
            self._messages[where].clear()
            self._first[where] = 0

    def delete_topic(self, topic: str) -> None:
        """Delete the topic: whoever reads it is given nothing more."""
        for where in [where for where in self._messages if where[0] == topic]:
            del self._messages[where]
            self._first.pop(where, None)
            for subscription in self._subscriptions.pop(where, ()):
                subscription.cancel()

    def read(self, topic: str, partition: int = 0, offset: int = 0) -> list[Message]:
        """Return everything from an offset on, at once (for people and for invariants)."""
        first = self._first[topic, partition]
        return self._messages[topic, partition][max(0, offset - first) :]

    def partitions(self, topic: str) -> list[int]:
        return sorted(p for t, p in self._messages if t == topic)

    def topics(self) -> list[str]:
        return sorted({topic for topic, _ in self._messages})

    def delete_below(
        self, topic: str, partition: int, offset: int, asked_ns: int | None = None
    ) -> None:
        """Delete what stands below an offset. `asked_ns`: when somebody asked for it, None: now."""
        where = (topic, partition)
        self.on_delete(topic, offset, self._scheduler.now_ns if asked_ns is None else asked_ns)
        cut = min(max(0, offset - self._first[where]), len(self._messages[where]))
        del self._messages[where][:cut]
        self._first[where] += cut

    def subscribe(
        self,
        topic: str,
        partition: int,
        offset: int,
        deliver: Callable[[Message], None],
        delay_ns: Callable[[], int] = lambda: 0,
        gone: Callable[[], None] | None = None,
    ) -> Subscription:
        """Deliver the partition from `offset` on. `delay_ns`: this reader's own delay, on top of
        the bus's. `gone` is called once where the next offset has been deleted, and nothing more is
        delivered, as by a broker to readers that keep their own offsets; without it what is deleted
        is passed over."""
        first = self._first[topic, partition]
        begin = offset if gone is not None else max(offset, first)
        subscription = Subscription(begin, deliver, delay_ns, gone)
        self._subscriptions[topic, partition].append(subscription)
        self._schedule((topic, partition), subscription)
        return subscription

    def resume(self, topic: str, partition: int, subscription: Subscription) -> None:
        subscription.paused = False
        self._schedule((topic, partition), subscription)

    def _schedule(self, where: tuple[str, int], subscription: Subscription) -> None:
        """Plan the deliveries that can be planned; order within the partition is kept."""
        end = self.end(*where)
        while subscription.queued < end and not subscription.paused:
            due_ns = max(
                subscription.due_ns,
                self._scheduler.now_ns + self._delay_ns() + subscription.delay_ns(),
            )
            subscription.due_ns = due_ns
            offset = subscription.queued
            subscription.queued += 1
            self._scheduler.at(due_ns, lambda o=offset: self._deliver(where, subscription, o))  # type: ignore[misc]

    def _deliver(self, where: tuple[str, int], subscription: Subscription, offset: int) -> None:
        if self.is_away or self._waiting:
            self._waiting.append(lambda: self._hand_over(where, subscription, offset))
        else:
            self._hand_over(where, subscription, offset)

    def _hand_over(self, where: tuple[str, int], subscription: Subscription, offset: int) -> None:
        if not subscription.active:
            return
        index = offset - self._first[where]
        messages = self._messages[where]
        if index < 0 and subscription.gone is not None:
            subscription.cancel()
            subscription.gone()
            return
        subscription.next = offset + 1
        if 0 <= index < len(messages):  # else deleted meanwhile
            subscription.deliver(messages[index])
