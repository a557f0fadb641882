"""Coherency leases (C1–C5): who may answer reads, and whom a result must wait for.

`CoherencyLease` is the replicant's side, `CoherencyWatch` the master's. Grants ride in the log, so
a replicant that has read its grant has applied everything before it, and a deposed master's
grants don't count (L1). Only clock *rates* are trusted: the lease runs from the ask's own send
time on the requester's clock; the master counts from the later moment at which it appended the
grant.

A partial replica says which tables it holds (`PartReport`), and is waited for until it has applied
every record up to an answer's that is about one of those (C7). Of records before it was heard to
say so, those of earlier terms among them, it is taken to hold everything."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from leasehold.model.features import known_to
from leasehold.model.records.acks import Ack, PartReport
from leasehold.model.records.log import Grant
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.lease_lengths import GrantTrips, lease_length_ms
from leasehold.replication.log.about import EVERYTHING, About

ASKS_REMEMBERED_MAX: Final = 64
NODES_MAX: Final = 1_000
OWED_MAX: Final = 4_096
"""Records about what a partial replica holds that it has not applied: of one that owes more it is
waited for whatever they are about."""
ALL_OFFSETS: Final = 1 << 62
GIVEN_UP: Final = -1  # `asked_ns` of an ack by which a node returns its lease


@dataclass(frozen=True, slots=True)
class CoherencySettings:
    """Times in ms. A lease lasts `duration_ms`, up to `duration_ms_max` while the log is slow
    (`lease_lengths.py`): as long as an election waits for a master that says nothing, so who has
    just started waits no longer for leases that it knows nothing of (C6) than it does for that. A
    node that acknowledges fresh records `lag_ms_max` later than the pace of the coherent nodes,
    `slow_acks_max` times in a row, is left without a lease for a cool-down, which doubles each time
    until `fast_acks_forgive` quick ones in a row. A lease is renewed for a node up to
    `behind_records_max` records behind, but granted anew only up to `joins_behind_max`: from then
    on every answer waits until it has caught up (C1). Who goes on asking is let in one record
    further behind every `joins_patience_ms`: under steady writes a busy node is never nearer."""

    duration_ms: int = 500
    duration_ms_max: int = 2_000
    renewal_ms: int = 200
    defer_ms: int = 100
    lag_ms_max: int = 200
    slow_acks_max: int = 8
    fast_acks_forgive: int = 50
    cool_down_ms: int = 1_000
    cool_down_ms_max: int = 10_000
    behind_records_max: int = 64
    joins_behind_max: int = 8
    joins_patience_ms: int = 50


class CoherencyLease:
    """A replicant's own lease (C2, C3). Times are this host's CLOCK_BOOTTIME in ns."""

    def __init__(self, node: str, incarnation: bytes) -> None:
        self._node = node
        self._incarnation = incarnation
        self._asks: deque[int] = deque(maxlen=ASKS_REMEMBERED_MAX)
        self.until_ns = 0

    def ask(self, now_ns: int) -> int:
        """Note an ask sent now; return its send time, to be put into the ack."""
        self._asks.append(now_ns)
        return now_ns

    def granted(self, grant: Grant) -> bool:
        """Take a grant read from the log; return whether it was ours.

        C3 ⚠: it counts only for an ask that this incarnation made. A boot-time clock starts anew
        after a reboot, so an old echo could otherwise lie days in the future.
        """
        if grant.node != self._node:
            return False
        if not self._has_asked_for(grant):
            return False
        self.until_ns = max(self.until_ns, grant.asked_ns + grant.duration_ms * NS_PER_MS)
        return True

    def _has_asked_for(self, grant: Grant) -> bool:
        return grant.incarnation == self._incarnation and grant.asked_ns in self._asks

    def give_up(self) -> None:
        """Serve no reads from now on (before a clean stop)."""
        self.until_ns = 0
        self._asks.clear()

    def holds(self, now_ns: int) -> bool:
        """Return whether reads may be answered: to be asked before a statement takes its read
        snapshot (C2)."""
        return now_ns < self.until_ns


class RunningLease(NamedTuple):
    """A lease that is surely over (C4) at `until_ns`; its holder has applied what stands below
    `applied`, and perhaps more."""

    node: str
    incarnation: bytes
    applied: int
    until_ns: int


class RunningLeases(NamedTuple):
    """All leases that may run: `known` ones, and until `unknown_until_ns` those of anybody.
    `any_granted`: whether the log has ever granted one. `heard`: incarnations that have
    acknowledged since `heard_from_ns`, and when each did so last."""

    unknown_until_ns: int = 0
    known: tuple[RunningLease, ...] = ()
    any_granted: bool = False
    heard: tuple[tuple[bytes, int], ...] = ()
    heard_from_ns: int = 0


@dataclass(slots=True)
class _Node:
    """A node's incarnation as the master sees it.

    `wait_until_ns`: its last lease is surely over then (0: it never had one from this master).
    `turned_away_ns`: since when it asks for a lease and is too far behind, 0 = it is not.
    `has_left`: it has returned its lease for good.
    """

    incarnation: bytes
    applied: int = 0
    asked_ns: int = 0
    ask_heard_ns: int = 0
    heard_ns: int = 0
    wait_until_ns: int = 0
    slow_acks: int = 0
    fast_acks: int = 0
    cool_down_until_ns: int = 0
    cool_down_ms: int = 0
    turned_away_ns: int = 0
    has_left: bool = False
    held: frozenset[int] | None = None  # of a partial replica: the tables; None: everything
    held_all: frozenset[int] = frozenset()  # those of them of which it has all rows
    whole_until: int = 0  # of records below it is taken to hold everything
    owed: deque[int] = field(default_factory=deque)  # offsets of those about what it holds
    trips: GrantTrips = field(default_factory=GrantTrips)

    def holds_all(self, table_id: int) -> bool:
        """Return whether it has all rows of a table."""
        return self.held is None or table_id in self.held_all

    def has_below(self) -> int:
        """Return the offset below which it has applied every record that is about what it holds.

        C7: nothing is skipped that it owes: below the first owed record, or below the last record
        of which it is not known what it was about, it counts by what it has applied itself."""
        if self.held is None or self.applied < self.whole_until:
            return self.applied
        while self.owed and self.owed[0] < self.applied:
            self.owed.popleft()
        return self.owed[0] if self.owed else ALL_OFFSETS

    def owes(self, offset: int) -> None:
        """Take it that the record at `offset`, read back now, is about what it holds."""
        if len(self.owed) >= OWED_MAX:
            self.whole_until = offset + 1
            self.owed.clear()
        else:
            self.owed.append(offset)


@dataclass(slots=True)
class _Timing:
    """A record whose acknowledgements are timed: one at a time, by the nodes that were coherent
    when it was read back, `append_ns` after it was sent. `applied`: who has applied it, and when
    the master heard of it."""

    offset: int
    read_back_ns: int
    append_ns: int
    waits: list[_Node]
    applied: list[tuple[int, _Node]] = field(default_factory=list)


class CoherencyWatch:
    """The master's side: grants, and the offset below which results may be given (C1, C4, C5)."""

    def __init__(
        self,
        settings: CoherencySettings,
        claimed_ns: int,
        running: RunningLeases,
        claimed_end: int = 0,
    ) -> None:
        """Take over the leases that may run when this master's Claim was read back, and the log
        ended at `claimed_end`. ⚠ C6: who may hold one is waited for as if this master had granted
        it (C1, C4), and everybody while it is not known who may."""
        self._settings = settings
        self._claimed_end = claimed_end
        self._nodes: dict[tuple[str, bytes], _Node] = {
            (lease.node, lease.incarnation): _Node(
                lease.incarnation,
                lease.applied,
                heard_ns=claimed_ns,
                wait_until_ns=lease.until_ns,
            )
            for lease in running.known
        }
        self._timing: _Timing | None = None
        self._append_ns = 0  # of the record that was read back last: how long it was on its way
        self.serve_from_ns = max(claimed_ns, running.unknown_until_ns)
        wait_ms = settings.duration_ms + settings.defer_ms if running.any_granted else 0
        heard_all_ns = running.heard_from_ns + wait_ms * NS_PER_MS
        self._heard_all_ns = max(heard_all_ns, running.unknown_until_ns)
        self._heard_before = running.heard

    def take_ack(self, ack: Ack, log_end: int, now_ns: int) -> None:
        """Take an acknowledgement; `log_end` is the next offset of the log as the master knows."""
        node = self._heard(ack.node, ack.incarnation)
        if node is None:
            return
        node.heard_ns = now_ns
        self._applied(node, ack.offset, now_ns)
        if ack.asked_ns == GIVEN_UP:
            node.asked_ns = 0
            node.wait_until_ns = 0  # it has stopped serving before it said so
            node.has_left = True
        elif ack.asked_ns:
            node.asked_ns = ack.asked_ns
            node.ask_heard_ns = now_ns
        self._time(now_ns)

    def _applied(self, node: _Node, offset: int, now_ns: int) -> None:
        """Take that a node has applied what stands below an offset, which only rises."""
        node.applied = max(node.applied, offset)
        node.trips.applied(node.applied, now_ns, self._append_ns)

    def _heard(self, name: str, incarnation: bytes) -> _Node | None:
        """Return the node that says something, known from here on; None: there is no room."""
        node = self._nodes.get((name, incarnation))
        if node is None:
            if len(self._nodes) >= NODES_MAX:
                return None
            node = self._nodes[name, incarnation] = _Node(incarnation)
            for other, state in self._nodes.items():
                if other[0] == name and other != (name, incarnation):
                    # A restarted node does not escape its cool-down.
                    node.cool_down_until_ns = state.cool_down_until_ns
                    node.cool_down_ms = state.cool_down_ms
        return node

    def take_part(self, report: PartReport, log_end: int, now_ns: int) -> None:
        """Take what a partial replica says that it holds; `log_end` as of `take_ack`.

        An incarnation holds the same from its first ask to its end, but for tables that take the
        place of others (`read_back`). ⚠ Records below `log_end` were read back, or written by other
        masters, when nobody had asked what they are about for its sake: of those it counts by what
        it has applied (C7)."""
        node = self._heard(report.node, report.incarnation)
        if node is None:
            return
        node.heard_ns = now_ns
        held = frozenset(table_id for table_id, _, _ in report.tables)
        node.held_all |= {table_id for table_id, _, which in report.tables if not which}
        if node.held is None:
            node.held, node.whole_until = held, log_end
        elif not held <= node.held:
            node.held, node.whole_until = node.held | held, log_end

    @property
    def asks_what_is_written(self) -> bool:
        """Return whether any node holds some tables only, so that `read_back` has to be told which
        ones a record is about."""
        return any(node.held is not None for node in self._nodes.values())

    def holders(self, table_id: int, nodes: Iterable[str]) -> frozenset[str]:
        """Return those of the named nodes that hold all of a table, as far as is known: whose word
        on it can be compared with that of others. Of a node's incarnations the one counts that was
        heard last: one from before may have held more, and says nothing any more."""
        last: dict[str, _Node] = {}
        for (name, _), node in list(self._nodes.items()):  # in one piece: other threads look, too
            if name not in last or node.heard_ns >= last[name].heard_ns:
                last[name] = node
        return frozenset(
            name for name in nodes if name not in last or last[name].holds_all(table_id)
        )

    def take_published(self, ack: Ack, now_ns: int) -> None:
        """Take a position that was published (`fast_path/acks.py`).

        It says that this incarnation has applied what stands below `offset`. A position only rises
        while an incarnation lives, so that stays true: it makes no difference to any answer when
        it is heard, how often, or in which order with those from the topic (C1 takes the highest),
        and without it an answer is only later. ⚠ It says nothing of another incarnation, whose
        store may be older. Whether there is such an incarnation, asks for a lease or returns it
        (C3, C4), only the topic says: who is told of here comes, stays and goes by that alone.
        """
        node = self._nodes.get((ack.node, ack.incarnation))
        if node is not None:
            self._applied(node, ack.offset, now_ns)
            self._time(now_ns)

    def read_back(
        self, offset: int, now_ns: int, about: About = EVERYTHING, append_ns: int = 0
    ) -> None:
        """Take it that the record at `offset`, which is about that, was read back now, `append_ns`
        after it was sent, and time its acknowledgements. Who holds a table holds from here on what
        follows it (`About.heirs`)."""
        self._append_ns = append_ns
        for node in self._nodes.values():
            if node.held is None:
                continue
            node.held |= {heir for heir, former in about.heirs if former in node.held}
            node.held_all |= {heir for heir, former in about.heirs if former in node.held_all}
            if about.tables is None or not node.held.isdisjoint(about.tables):
                node.owes(offset)
        self._time(now_ns)
        if self._timing is None:
            waits = [node for node in self._nodes.values() if now_ns < node.wait_until_ns]
            if waits:
                self._timing = _Timing(offset, now_ns, append_ns, waits)

    def _time(self, now_ns: int) -> None:
        """Note who has applied the record that is timed; one whose lease is over is C4's matter."""
        timing = self._timing
        if timing is None:
            return
        done = [node for node in timing.waits if node.applied > timing.offset]
        timing.applied += [(now_ns, node) for node in done]
        timing.waits = [
            node
            for node in timing.waits
            if node.applied <= timing.offset and now_ns < node.wait_until_ns
        ]
        if not timing.waits:
            self._timing = None
            self._judge_speed(timing, now_ns)

    def _judge_speed(self, timing: _Timing, now_ns: int) -> None:
        """Judge who was slow: slow but alive must not slow every write (C5).

        Slow is who comes long after the pace, which is when half of the nodes had applied the
        record: on a machine where every process waits for a processor all are late together, and
        leaving all of them out would serve no write and forbid every read. One that is alone has
        nobody to be compared with but the master, whose record went to the brokers and back as its
        acknowledgement did: it has as long for that. ⚠ Alone is also who was the quickest where the
        leases of the others have ended meanwhile.
        """
        if not timing.applied:
            return
        pace_ns = timing.applied[(len(timing.applied) - 1) // 2][0]
        if len(timing.applied) == 1:
            pace_ns = timing.read_back_ns + timing.append_ns
        for applied_ns, node in timing.applied:
            if applied_ns - pace_ns > self._settings.lag_ms_max * NS_PER_MS:
                self._was_slow(node, now_ns)
            else:
                node.slow_acks = 0
                node.fast_acks += 1
                if node.fast_acks >= self._settings.fast_acks_forgive:
                    node.cool_down_ms = 0

    def _was_slow(self, node: _Node, now_ns: int) -> None:
        node.fast_acks = 0
        node.slow_acks += 1
        if node.slow_acks >= self._settings.slow_acks_max:
            node.slow_acks = 0
            node.cool_down_ms = min(
                max(node.cool_down_ms * 2, self._settings.cool_down_ms),
                self._settings.cool_down_ms_max,
            )
            node.cool_down_until_ns = now_ns + node.cool_down_ms * NS_PER_MS

    def grants(self, log_end: int, now_ns: int) -> tuple[Grant, ...]:
        """Return grants to put into the record that is appended now (C3); call only when it is.

        A node counts as coherent from the append of its grant, hence the state changes here.
        """
        given: list[Grant] = []
        duration = self._lease_length_ms(now_ns)
        for (name, incarnation), node in self._nodes.items():
            if not node.asked_ns or now_ns < node.cool_down_until_ns:
                continue
            renews = now_ns < node.wait_until_ns
            settings = self._settings
            behind_max = settings.behind_records_max
            if not renews:
                node.turned_away_ns = node.turned_away_ns or now_ns
                patient_ms = (now_ns - node.turned_away_ns) // NS_PER_MS
                joins_max = settings.joins_behind_max + patient_ms // settings.joins_patience_ms
                behind_max = min(behind_max, joins_max)
            if log_end - node.applied > behind_max:
                continue
            node.turned_away_ns = 0
            given.append(Grant(name, incarnation, node.asked_ns, duration))
            node.trips.granted(log_end, node.ask_heard_ns)
            node.asked_ns = 0
            # Its lease runs from when it sent the ask, and that was before it was heard. ⚠ One that
            # was granted for longer before still runs (C4).
            until_ns = node.ask_heard_ns + (duration + settings.defer_ms) * NS_PER_MS
            node.wait_until_ns = max(node.wait_until_ns, until_ns)
        return tuple(given)

    def _lease_length_ms(self, now_ns: int) -> int:
        """Return how long the leases last that are granted now: as those need who have one or ask
        for one, since who has died was quick once."""
        settings = self._settings
        nodes = [n for n in self._nodes.values() if n.asked_ns or now_ns < n.wait_until_ns]
        return lease_length_ms(
            (node.trips for node in nodes),
            settings.renewal_ms,
            settings.duration_ms,
            max(settings.duration_ms, settings.duration_ms_max),
        )

    def all_know(self, what: int, now_ns: int) -> bool:
        """Whether every process that is heard of reads what has that number, coherent or not. A
        candidate hears them, too; until it has done so for as long as anybody takes to acknowledge
        it says no."""
        return now_ns >= self._heard_all_ns and self.heard_know(what, now_ns)

    def heard_know(self, what: int, now_ns: int) -> bool:
        """Whether every process that was heard of by now reads what has that number; others may be
        there that were not heard yet."""
        lately_ns = now_ns - self._silence_ns()
        heard = [incarnation for incarnation, at_ns in self._heard_before if at_ns > lately_ns]
        heard += [node.incarnation for node in self._nodes.values() if not node.has_left]
        return all(known_to(each) >= what for each in heard)

    def has_asks(self) -> bool:
        return any(node.asked_ns for node in self._nodes.values())

    def nodes(self) -> frozenset[tuple[str, bytes]]:
        """Return name and incarnation of each node that was heard of lately."""
        return frozenset(self._nodes)

    def coherent(self, now_ns: int) -> frozenset[str]:
        """Return the names of the nodes that may be serving reads now."""
        return frozenset(
            name for (name, _), node in list(self._nodes.items()) if now_ns < node.wait_until_ns
        )

    def applied_by_all(self, now_ns: int) -> int | None:
        """Return the offset below which every coherent node has applied all that is about what it
        holds (C1, C7), None: there is nobody to wait for. A node that is not renewed drops out when
        its last lease is surely over (C4)."""
        nodes = list(self._nodes.values())  # in one piece: other threads look, too
        waited = [node.has_below() for node in nodes if now_ns < node.wait_until_ns]
        least = min(waited) if waited else ALL_OFFSETS
        return least if least < ALL_OFFSETS else None

    def applied_past(self, offset: int, now_ns: int) -> frozenset[str]:
        """Return the names of coherent nodes that have applied the record at `offset`."""
        return frozenset(
            name
            for (name, _), node in self._nodes.items()
            if now_ns < node.wait_until_ns and node.applied > offset
        )

    def records_behind(self, log_end: int, now_ns: int) -> int:
        """Return how many records of this master's the slowest coherent node is behind, 0 when
        there is none."""
        applied = self.applied_by_all(now_ns)
        return 0 if applied is None else max(0, log_end - max(applied, self._claimed_end))

    def may_answer(self, offset: int, now_ns: int) -> bool:
        """Return whether results of the record at `offset` may be given now (C1, C4)."""
        if now_ns < self.serve_from_ns:
            return False
        applied = self.applied_by_all(now_ns)
        return applied is None or applied > offset

    def _silence_ns(self) -> int:
        """Return after how long without a word a process counts no more."""
        return 20 * self._settings.duration_ms * NS_PER_MS

    def sweep(self, now_ns: int) -> None:
        """Forget incarnations whose lease is over and which were not heard of for a long time."""
        silence_ns = self._silence_ns()
        for name in [
            name
            for name, node in self._nodes.items()
            if now_ns >= node.wait_until_ns and now_ns - node.heard_ns > silence_ns
        ]:
            del self._nodes[name]
