"""Agent: the part of a service that holds descriptor leases and learns of versions (D1-D8).

One background thread steps the pure holder (`lease/agent/holder.py`): it alone talks to the
ledger, one
command at a time. A second thread reads version events. Users take and give back leases from any
thread without lock or network::

    with Agent(ClientSettings.read()) as agent, agent.lease("flights") as descriptor:
        ...  # use `descriptor`: its version is not passed by two while you are in here

Events only make it fast. That none was missed is checked at every renewal against the ledger's
newest versions, and what is behind is reread from the topic's beginning.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple, Protocol

from leasehold import __version__
from leasehold.adapters.os.clock import boottime_ns, random_bytes, unix_us
from leasehold.adapters.os.process_name import process_name, process_place
from leasehold.catalog.descriptor import Descriptor, names_in_wire, read_descriptor
from leasehold.lease.agent.events import (
    NOBODY,
    Acknowledge,
    Answered,
    Drain,
    Effect,
    Event,
    GaveUp,
    Idle,
    LedgerAway,
    Send,
    TableGone,
    TimePassed,
    VersionKnown,
    Wake,
    Want,
)
from leasehold.lease.agent.held_leases import HeldLease, Use
from leasehold.lease.agent.holder import Holder
from leasehold.lease.agent.old_version_report import OldLeases
from leasehold.lease.agent.session import HolderLimits
from leasehold.lease.commands import SESSION_ID_MAX, Command, Newest
from leasehold.lease.replies import LedgerRefused, NewestVersions, RefusalReason, Reply
from leasehold.model.closing import Closing
from leasehold.model.errors import (
    LeaseholdError,
    LedgerUnavailable,
    MalformedRequest,
    NotCoherent,
    UnknownTable,
)
from leasehold.model.features import NEWEST
from leasehold.model.ports import Now
from leasehold.model.records.acks import AgentMessage, LeaseAck, ProcessReport
from leasehold.model.records.events import VersionEvent
from leasehold.settings.client import ClientSettings

LEASE_TIMEOUT_S: Final = 10.0
VERSIONS_KEPT_MAX: Final = 4
"""Descriptors kept per table: the two that may be leased (D1), and two before for those who still
decode what they read under them."""
EVENT_POLL_S: Final = 0.2
LOG: Final = logging.getLogger("leasehold.agent")
STOP_TIMEOUT_S: Final = 5.0
REPORT_FIRST_NS: Final = 2_000_000_000
"""Who is there for a moment only says nothing of itself."""
REPORT_EVERY_NS: Final = 15_000_000_000
"""There may be a thousand agents, and masters read what all of them say."""


class Ledger(Protocol):
    def call(self, command: Command) -> Reply:
        """Raises LedgerUnavailable: whether it was carried out is then not known."""
        ...

    def close(self) -> None: ...


class VersionStream(Protocol):
    """Version events in and acknowledgements out; `adapters/kafka/version_stream.py` in
    practice."""

    def events(self, timeout_s: float) -> list[VersionEvent]:
        """What has been published since the last call; first of all every table's newest."""
        ...

    def acknowledge(self, agent: str, record: AgentMessage) -> None:
        """A LeaseAck only wakes the waiter (D4), reports are for people: a lost one costs time and
        nothing else."""
        ...

    def rewind(self) -> None:
        """Start `events` over, with every table's newest."""
        ...

    def close(self) -> None: ...


class _Waiter:
    """Somebody who waits for a lease; woken once."""

    __slots__ = ("lease", "reason", "sentence", "woken")

    def __init__(self) -> None:
        self.woken = threading.Event()
        self.lease: HeldLease | None = None
        self.reason: RefusalReason | None = None
        self.sentence = ""


class _Known:
    """A version heard of. Its descriptor is made when somebody first asks for it: most agents of a
    table that changes hold their lease for the next user, and a wide table's takes longer than
    all else that a step costs them."""

    __slots__ = ("_body", "_descriptor")

    def __init__(self, body: dict[str, Any]) -> None:
        self._body = body
        self._descriptor: Descriptor | None = None

    @property
    def descriptor(self) -> Descriptor:
        """Raises MalformedRequest for an event whose body is none."""
        if self._descriptor is None:  # two threads at once make two equal ones
            self._descriptor = read_descriptor(self._body)
        return self._descriptor

    @property
    def names(self) -> tuple[str, ...]:
        return names_in_wire(self._body)


class LeaseUse(NamedTuple):
    """A use of a lease, taken by `Agent.acquire`; give it back by `Agent.release`."""

    descriptor: Descriptor
    held: HeldLease
    named: Use | None = None


class Agent(Closing):
    """Raises BusUnavailable or LedgerUnavailable only where a call needs them: an agent starts
    and stays up while they are away, and goes on when they are back."""

    def __init__(
        self,
        settings: ClientSettings | None = None,
        *,
        ledger: Ledger | None = None,
        source: VersionStream | None = None,
        clock_ns: Callable[[], int] = boottime_ns,
    ) -> None:
        self.settings = settings or ClientSettings.read()
        self.name = self.settings.cluster.node
        self.role = "agent"
        """What its process does, for people."""
        self._ledger = ledger or _redis_ledger(self.settings)
        self._source = source or _kafka_source(self.settings)
        self._clock_ns = clock_ns
        self._holder = Holder(
            self.name, _session_ids(), has_store=False, limits=_limits(self.settings)
        )
        self._leases = self._holder.leases
        self._old = OldLeases(self._holder)
        self._versions: dict[int, dict[int, _Known]] = {}
        self._table_ids: dict[str, int] = {}
        # What was given last under a name. Uses without a label are all alike, so one is made for
        # many users; whether new ones may still have it is looked at each time.
        self._given: dict[str, LeaseUse] = {}
        self._newest_us: dict[int, int] = {}
        self._listeners: tuple[Callable[[VersionEvent], None], ...] = ()
        self._inbox: deque[Event] = deque()
        # Of each table that an event in the inbox asks a lease on for: those who wait for it.
        self._asking: dict[int, dict[int, None]] = {}
        self._gave_up: set[tuple[int, int]] = set()  # the holder still knows of them
        self._work = threading.Condition()
        self._learned = threading.Condition()
        self._tokens = itertools.count(1)
        self._waiters: dict[int, _Waiter] = {}
        self._stopping = False
        self._compared_ns = clock_ns()
        self._reports = False
        self._report_due_ns = clock_ns() + REPORT_FIRST_NS
        self.last_trouble = ""
        self._threads = [
            threading.Thread(target=self._hold, name="leasehold-leases", daemon=True),
            threading.Thread(target=self._follow, name="leasehold-versions", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    # --- users ---------------------------------------------------------------------------------

    @contextmanager
    def lease(
        self, table: str, timeout_s: float = LEASE_TIMEOUT_S, *, label: str = ""
    ) -> Iterator[Descriptor]:
        """The table's newest leased descriptor for as long as the block runs.

        `label` says what the work is, to whoever waits for it (`leasehold jobs`); no row values in
        it, please. Raises UnknownTable, or NotCoherent (57P03) when no lease comes in `timeout_s`.
        """
        use = self.acquire(table, timeout_s, label=label)
        try:
            yield use.descriptor
        finally:
            self.release(use)

    def acquire(
        self, table: str, timeout_s: float = LEASE_TIMEOUT_S, *, label: str = ""
    ) -> LeaseUse:
        """Take a lease as `lease` does, without the block. While one is held that needs no lock and
        no network."""
        use = self._given.get(table)
        if use is not None and not label and self._leases.acquire_again(use.held, self._clock_ns()):
            return use
        return self._acquire(table, timeout_s, label)

    def _acquire(self, table: str, timeout_s: float, label: str) -> LeaseUse:
        given = self._given  # before the name is looked up: `_learn` puts another one in its place
        table_id = self._table_ids.get(table)
        held = None
        if table_id is not None:
            held = self._leases.acquire(table_id, self._clock_ns())
        if table_id is None or held is None:
            table_id = self._table_id(table, timeout_s)
            try:
                held = self._await_lease(table, table_id, timeout_s)
            except NotCoherent:
                another = self._table_ids.get(table, table_id)
                if another == table_id:
                    raise
                # It changes its primary key: another table has taken the name meanwhile.
                table_id, held = another, self._await_lease(table, another, timeout_s)
        try:
            descriptor = self._versions[table_id][held.version].descriptor
        except MalformedRequest as error:
            if self._leases.release(held):
                self._post(Idle())
            raise NotCoherent(
                f"no lease on table {table!r}: {error.message}", table=table
            ) from None
        named = None
        if label:
            named = Use(label, "", self._clock_ns())
            self._leases.name_use(held, named)
        use = LeaseUse(descriptor, held, named)
        if named is None:
            given[table] = use
        return use

    def release(self, use: LeaseUse) -> None:
        _, held, named = use
        if self._leases.release(held) if named is None else self._leases.release_named(held, named):
            self._post(Idle())

    def is_valid(self, use: LeaseUse) -> bool:
        """Return whether one may still decode under it (D3); False once it has run out or was
        lost."""
        return self._leases.is_valid(use.held, self._clock_ns())

    def newest(self, table: str) -> Descriptor | None:
        """The newest version heard of, leased or not; None for a table not heard of."""
        table_id = self._table_ids.get(table)
        return None if table_id is None else self._newest(table_id)

    def descriptor(self, table_id: int, version: int) -> Descriptor | None:
        """A version heard of and still kept."""
        known = self._versions.get(table_id, {}).get(version)
        return None if known is None else known.descriptor

    def on_version(self, listener: Callable[[VersionEvent], None]) -> None:
        """Call `listener` in the reading thread for each event, and now for what is known already.
        It must return soon."""
        with self._learned:
            for versions in self._versions.values():
                for known in versions.values():
                    with suppress(MalformedRequest):
                        listener(_event_of(known.descriptor))
            self._listeners = (*self._listeners, listener)

    def off_version(self, listener: Callable[[VersionEvent], None]) -> None:
        """Call `listener` no more; one that is not called is no error."""
        with self._learned:
            self._listeners = tuple(each for each in self._listeners if each != listener)

    @property
    def expires_ns(self) -> int:
        """The time until which leases are usable, by CLOCK_BOOTTIME (D3); 0 without a session."""
        return self._holder.session.expires_ns

    def close(self) -> None:
        """Give back what is not in use and stop both threads; a second call does nothing."""
        if self._stopping:
            return
        self._post(Drain())
        with self._work:
            deadline_s = STOP_TIMEOUT_S
            self._work.wait_for(lambda: not self._inbox and not self._holder.held(), deadline_s)
            self._stopping = True
            self._work.notify_all()
        for thread in self._threads:
            thread.join()
        self._wake_rest()
        self._source.close()
        self._ledger.close()

    # --- waiting -------------------------------------------------------------------------------

    def _table_id(self, table: str, timeout_s: float) -> int:
        found = self._table_ids.get(table)
        if found is not None:
            return found
        with self._learned:
            self._learned.wait_for(lambda: table in self._table_ids or self._stopping, timeout_s)
        if table not in self._table_ids:
            known = ", ".join(sorted(self._table_ids)) or "none yet"
            raise UnknownTable(
                f"table {table!r} was not published in {timeout_s:g} s; known are: {known}",
                table=table,
            )
        return self._table_ids[table]

    def _await_lease(self, table: str, table_id: int, timeout_s: float) -> HeldLease:
        token = next(self._tokens)
        waiter = self._waiters[token] = _Waiter()
        self._post_want(table_id, token)
        in_time = waiter.woken.wait(timeout_s)
        if not in_time:
            if self._waiters.pop(token, None) is None:
                # Whoever takes the token out settles it: the lease is handed over right now.
                in_time = waiter.woken.wait()
            else:
                self._give_up(table_id, token)
        if waiter.lease is not None:
            return waiter.lease
        why = waiter.sentence or (waiter.reason.value if waiter.reason else self.last_trouble)
        words = f"no lease on table {table!r}: {why or 'the ledger has not answered'}"
        raise NotCoherent(words if in_time else f"{words} (waited {timeout_s:g} s)", table=table)

    def _post(self, event: Event) -> None:
        with self._work:
            self._inbox.append(event)
            self._work.notify_all()

    def _post_want(self, table_id: int, token: int) -> None:
        """Ask the holder for a lease. ⚠ One event a table stands in the inbox, whoever else wants
        one meanwhile: users that look again and again, while the ledger is slow, would fill it
        faster than it is emptied."""
        with self._work:
            asking = self._asking.get(table_id)
            if asking is not None:
                asking[token] = None
                return
            self._asking[table_id] = {token: None}
            self._inbox.append(Want(table_id, NOBODY))
            self._work.notify_all()

    def _give_up(self, table_id: int, token: int) -> None:
        """Note that somebody has stopped waiting, so that nobody looks for him."""
        with self._work:
            asking = self._asking.get(table_id, {})
            if token in asking:
                del asking[token]
            else:
                self._gave_up.add((table_id, token))

    def _forget_waiters(self) -> None:
        with self._work:
            gone, self._gave_up = frozenset(self._gave_up), set()
        if gone:
            self._perform(self._holder.step(GaveUp(gone), self._clock_ns()))

    def _take_wants(self, table_id: int) -> list[Event]:
        """Return what the event in the inbox that asks for a lease stands for."""
        with self._work:
            tokens = self._asking.pop(table_id, {})
        return [Want(table_id, token) for token in tokens] or [Want(table_id, NOBODY)]

    def _wake_rest(self) -> None:
        while self._waiters:
            _, waiter = self._waiters.popitem()
            waiter.sentence = "this agent has stopped"
            waiter.woken.set()

    # --- the thread that holds the leases ------------------------------------------------------

    def _hold(self) -> None:
        while True:
            event = self._next_event()
            if event is None:
                if self._reports:
                    self._report(ended=True)
                return
            for each in self._take_wants(event.table) if isinstance(event, Want) else [event]:
                self._perform(self._holder.step(each, self._clock_ns()))
            self._forget_waiters()
            if isinstance(event, Answered):
                self._compare()
            for report in self._old.reports(Now(self._clock_ns(), unix_us())):
                self._source.acknowledge(self.name, report)
            if self._clock_ns() >= self._report_due_ns:
                self._report_due_ns = self._clock_ns() + REPORT_EVERY_NS
                self._report(ended=False)
            with self._work:
                self._work.notify_all()  # close() looks at what is held

    def _next_event(self) -> Event | None:
        with self._work:
            while not self._inbox:
                if self._stopping:
                    return None
                dues = (self._holder.due_ns(), self._old.due_ns(), self._report_due_ns)
                due_ns = min(due for due in dues if due is not None)
                wait_s = (due_ns - self._clock_ns()) / 1e9
                if wait_s <= 0:
                    return TimePassed()
                self._work.wait(wait_s)
            return self._inbox.popleft()

    def _report(self, *, ended: bool) -> None:
        """Say of which release this process is and what it reads (`leasehold upgrade status`)."""
        self._reports = True
        process = process_name(self.role, f"{self.name} at {process_place()}")
        self._source.acknowledge(
            self.name,
            ProcessReport(process, self.role, __version__, int(NEWEST), unix_us(), ended),
        )

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(command):
                    self._ask(command)
                case Acknowledge(table, version):
                    self._source.acknowledge(self.name, LeaseAck(self.name, table, version))
                case Wake():
                    self._wake(effect)

    def _ask(self, command: Command) -> None:
        try:
            reply = self._ledger.call(command)
        except LedgerUnavailable as error:
            self.last_trouble = error.message
            self._post_first(LedgerAway())
            return
        trouble = self._holder.session.trouble
        self.last_trouble = "" if trouble is None else f"the ledger says: {trouble.value}"
        self._post_first(Answered(reply))
        if isinstance(reply, LedgerRefused) and self._holder.is_behind(reply.table, reply.current):
            self._source.rewind()

    def _post_first(self, event: Answered | LedgerAway) -> None:
        """Take what became of a command before all that has come meanwhile: it says until when
        leases are good, from when it was sent (D3), and is worth nothing later."""
        with self._work:
            self._inbox.appendleft(event)

    def _wake(self, wake: Wake) -> None:
        waiter = self._waiters.pop(wake.token, None)
        if waiter is None:  # it has stopped waiting
            if wake.lease is not None and self._leases.release(wake.lease):
                self._post(Idle())
            return
        waiter.lease, waiter.reason, waiter.sentence = wake.lease, wake.reason, wake.sentence
        waiter.woken.set()

    def _compare(self) -> None:
        """Start reading over if the ledger has a version that no event has told of; asked at every
        renewal."""
        now_ns = self._clock_ns()
        if now_ns - self._compared_ns < self.settings.renew_every_ms * 1_000_000:
            return
        with self._work:
            if self._inbox and isinstance(self._inbox[0], Answered | LedgerAway):
                return  # that first; at the next one
        self._compared_ns = now_ns
        try:
            reply = self._ledger.call(Newest())
        except LedgerUnavailable:
            return
        if not isinstance(reply, NewestVersions):
            return
        if any(self._holder.is_behind(table, current) for table, current in reply.versions):
            self._source.rewind()

    # --- the thread that reads version events --------------------------------------------------

    def _follow(self) -> None:
        while not self._stopping:
            try:
                events = self._source.events(EVENT_POLL_S)
            except LeaseholdError as error:
                self.last_trouble = error.message
                with self._work:
                    self._work.wait_for(lambda: self._stopping, EVENT_POLL_S)
                continue
            for event in events:
                try:
                    self._learn(event)
                except Exception as error:  # noqa: BLE001 - no other table waits for this one
                    self.last_trouble = words = _unusable(event, error)
                    LOG.error("%s", words)

    def _learn(self, event: VersionEvent) -> None:
        """Take an event. Raises whatever its body leads to, and nothing is known of it then."""
        with self._learned:
            versions = self._versions.get(event.table_id, {})
            if event.version in versions or event.version < max(versions, default=0) - 1:
                return
            kept = {**versions, event.version: _Known(event.body)}
            while len(kept) > VERSIONS_KEPT_MAX:
                del kept[min(kept)]
            names = kept[max(kept)].names
            # A fresh dict each time: users read without a lock.
            self._versions[event.table_id] = kept
            others = {n: t for n, t in self._table_ids.items() if t != event.table_id}
            self._table_ids = others | dict.fromkeys(names, event.table_id)
            self._given = {}  # after the names: who has found an old one puts it where nobody looks
            for listener in self._listeners:
                listener(event)
            self._learned.notify_all()
        # A table that is being dropped has no new users; its leases end with those it has.
        gone = TableGone(event.table_id)
        self._post(VersionKnown(event.table_id, event.version) if names else gone)

    def _newest(self, table_id: int) -> Descriptor:
        versions = self._versions[table_id]
        return versions[max(versions)].descriptor


def _unusable(event: VersionEvent, error: Exception) -> str:
    return (
        f"version {event.version} of table {event.name!r:.80} is left out: its event can't be used"
        f" ({type(error).__name__}: {str(error)[:200]})"
    )


def _event_of(descriptor: Descriptor) -> VersionEvent:
    return VersionEvent(
        descriptor.table_id,
        descriptor.name,
        descriptor.version,
        0,
        descriptor.modified_us,
        descriptor.to_wire(),
        0,
        "",
    )


def _session_ids() -> Iterator[int]:
    """Fresh random numbers: a ledger that lost its state would count the same ones twice."""
    while True:
        yield int.from_bytes(random_bytes(8), "big") % SESSION_ID_MAX + 1


def _limits(settings: ClientSettings) -> HolderLimits:
    return HolderLimits(
        session_ttl_ns=settings.session_ttl_ms * 1_000_000,
        renew_every_ns=settings.renew_every_ms * 1_000_000,
        margin_ns=settings.lease_margin_ms * 1_000_000,
    )


def _redis_ledger(settings: ClientSettings) -> Ledger:
    from leasehold.adapters.redis.ledger import RedisLedger

    return RedisLedger(settings.redis, settings.cluster.database)


def _kafka_source(settings: ClientSettings) -> VersionStream:
    from leasehold.adapters.kafka.version_stream import KafkaVersionStream

    topics = settings.topics
    return KafkaVersionStream(
        settings.kafka, topics.versions.name, topics.notices.name, topics.acks.name
    )
