"""The acknowledgements of a node: how far it is, whether it asks for a coherency lease (C3), and
from where the log is to be kept for a copy of its store that somebody takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from leasehold.catalog.part import WHOLE, Part
from leasehold.model.features import Feature, known_to
from leasehold.model.ports import Now
from leasehold.model.records.acks import AccessReport, Ack, PartReport
from leasehold.model.records.log import LogPosition
from leasehold.model.time_units import NS_PER_MS, NS_PER_S
from leasehold.replication.coherency import GIVEN_UP, CoherencyLease
from leasehold.replication.effects import Effect, PublishAck, Send, Topic, Wake
from leasehold.replication.fast_path.acks import FastAcks
from leasehold.replication.fast_path.state_machine import NOT_PUBLISHED, FastPath
from leasehold.replication.log.foreign import ForeignRecords
from leasehold.replication.log.truncation import COPY_ROLE, copy_name
from leasehold.replication.node_settings import NodeSettings

ACCESS_TOLD_EVERY_S: Final = 5
PART_TOLD_EVERY_S: Final = 5
FOLLOWER_ACK_MS: Final = 500
"""How often a node tells its position that asks for no lease: a master or a standby. Nobody waits
for it, and each time costs the broker three requests; a new master hears of all of them before it
says what everybody knows (`CoherencyWatch.all_know`)."""


class Acknowledger:
    """Makes acknowledgements. Positions that it is given are committed in the store: between a
    node's ticks its own may be ahead of what readers see (C1)."""

    def __init__(
        self,
        settings: NodeSettings,
        incarnation: bytes,
        lease: CoherencyLease,
        foreign: ForeignRecords,
        part: Callable[[], Part] = lambda: WHOLE,
    ) -> None:
        self._settings = settings
        self._incarnation = incarnation
        self._lease = lease
        renewal_ms = settings.master.coherency.renewal_ms
        every_ms = renewal_ms if settings.serving else max(renewal_ms, FOLLOWER_ACK_MS)
        self._renewal_ns = every_ms * NS_PER_MS
        self._fast = FastAcks(settings.fast_acks)
        self._acked_ns = 0
        self._acked_offset = -1
        self._acked_role = ""
        self._given_up = False
        self._access_told_ns = -ACCESS_TOLD_EVERY_S * NS_PER_S
        self._part = part
        self._part_told: tuple[int, bytes, int] | None = None  # term, tables
        self._part_told_ns = 0
        self._foreign = foreign
        self.copies: Callable[[], Mapping[str, int]] = dict
        """The log position of the copy of this store that another node is taking now, by node."""

    @property
    def path(self) -> FastPath:
        """Return the state machine of the fast path, for whoever looks at it."""
        return self._fast.path

    def is_due(self, position: LogPosition) -> bool:
        """Return whether somebody waits for the acknowledgement of what was applied last."""
        return self._settings.serving and position.offset != self._acked_offset

    def acknowledge(self, position: LogPosition, role: str, now: Now) -> list[Effect]:
        """Acknowledge what was applied, and ask for a lease when the renewal is due (C3)."""
        if self._given_up:
            return []
        effects: list[Effect] = []
        serving = self._settings.serving
        # Who has another role now says so at once: operators look at that.
        if now.mono_ns - self._acked_ns >= self._renewal_ns or role != self._acked_role:
            self._acked_ns, self._acked_role = now.mono_ns, role
            asked_ns = self._lease.ask(now.mono_ns) if serving else 0
            effects += self._tell_part(position, now)
            effects.append(self._on_topic(self._ack(position, role, asked_ns, now)))
            effects += self._copied(position, role, now)
            effects += self._tell_who_is_let_in(now)
        elif self._fast.overdue(now.mono_ns):
            effects.append(self._on_topic(self._ack(position, role, 0, now)))
        elif serving and position.offset != self._acked_offset:
            effects += self._publish(position, role, now)
        wake_ns = self._acked_ns + self._renewal_ns
        fast_ns = self._fast.due_ns()
        effects.append(Wake(wake_ns if fast_ns is None else min(wake_ns, fast_ns)))
        return effects

    def give_up(self, position: LogPosition, role: str, now: Now) -> Send:
        """Acknowledge for the last time, so that nobody waits for this node."""
        self._given_up = True
        return self._on_topic(self._ack(position, role, GIVEN_UP, now))

    def confirm(self, number: int, now: Now, *, received: bool) -> None:
        """Take Redis's word for whether the acknowledgement of that number was received."""
        self._fast.confirm(number, now.mono_ns, received=received)

    def _publish(self, position: LogPosition, role: str, now: Now) -> list[Effect]:
        self._acked_offset = position.offset
        epoch, incarnation = position.epoch, position.incarnation
        number, on_topic = self._fast.choose(epoch, incarnation, now.mono_ns)
        effects: list[Effect] = []
        ack = self._ack(position, role, 0, now)
        if number != NOT_PUBLISHED:
            effects.append(PublishAck(number, epoch, incarnation, ack))
        if on_topic:
            effects.append(self._on_topic(ack))
        return effects

    def _ack(self, position: LogPosition, role: str, asked_ns: int, now: Now) -> Ack:
        return Ack(
            node=self._settings.name,
            incarnation=self._incarnation,
            role=role,
            offset=position.offset,
            epoch=position.epoch,
            lsn=position.lsn,
            asked_ns=asked_ns,
            coherent=self._lease.holds(now.mono_ns),
            serves=self._settings.serves,
            sent_us=now.wall_us,
            foreign=self._foreign.of_late(now.mono_ns),
        )

    def _on_topic(self, ack: Ack) -> Send:
        self._acked_offset = ack.offset
        self._fast.on_topic()
        return Send(Topic.ACKS, 0, ack.node.encode(), ack, 0)

    def _tell_part(self, position: LogPosition, now: Now) -> list[Effect]:
        """Tell a master what is held here, if that is not everything: before it is first asked for
        a lease, when that changes, and now and then, since what is said may be lost and people look
        on."""
        part = self._part()
        if part.tables is None or known_to(position.incarnation) < Feature.PARTIAL_REPLICAS:
            return []
        told = position.epoch, position.incarnation, len(part.tables)
        due = now.mono_ns - self._part_told_ns >= PART_TOLD_EVERY_S * NS_PER_S
        if told == self._part_told and not due:
            return []
        self._part_told, self._part_told_ns = told, now.mono_ns
        name = self._settings.name
        tables = tuple(
            (table_id, held.name, held.which()) for table_id, held in sorted(part.tables.items())
        )
        report = PartReport(name, self._incarnation, tables, now.wall_us)
        return [Send(Topic.ACKS, 0, name.encode(), report, 0)]

    def _tell_who_is_let_in(self, now: Now) -> list[Effect]:
        """Tell those who look on, seldom, that clients are let in here without being asked."""
        open_to = self._settings.open_to
        due = now.mono_ns - self._access_told_ns >= ACCESS_TOLD_EVERY_S * NS_PER_S
        if not open_to or not due:
            return []
        self._access_told_ns = now.mono_ns
        name = self._settings.name
        return [Send(Topic.ACKS, 0, name.encode(), AccessReport(name, open_to, now.wall_us), 0)]

    def _copied(self, position: LogPosition, role: str, now: Now) -> list[Effect]:
        """Acknowledge in the place of each node that takes a copy: the log is to be kept from
        there. ⚠ Each by a name of its own: a copy that begins later must not let go what one that
        has just been taken needs."""
        effects: list[Effect] = []
        for taker, offset in self.copies().items():
            name = copy_name(self._settings.name, taker)
            ack = self._ack(position, role, 0, now)._replace(
                node=name, role=COPY_ROLE, offset=offset, coherent=False, serves=""
            )
            effects.append(Send(Topic.ACKS, 0, name.encode(), ack, 0))
        return effects
