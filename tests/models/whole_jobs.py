"""A master's schema changes behind a number, so that a state can hold the real coordinator.

Calls of the coordinator's ledger side are answered in the step that makes them; those of the job,
which change what others may do, wait in it until the model says that they arrive.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy, deepcopy
from typing import Any, Final, NamedTuple, TypeAlias

from leasehold.catalog.catalog import Catalog
from leasehold.lease.commands import Command
from leasehold.lease.master.ledger_watch import LedgerWatch, Phase
from leasehold.model.ports import Now
from leasehold.model.records.log import CatalogWrite
from leasehold.replication.effects import CallLedger
from leasehold.replication.effects import Effect as NodeEffect
from leasehold.replication.master.schema_changes import SchemaChanges, SchemaSettings
from leasehold.schema_change.coordinator.coordinator import CoordinatorSettings
from leasehold.schema_change.coordinator.ledger import LedgerSideSettings
from tests.models.lease_objects import Objects
from tests.models.whole_world import TTL, Rules, run_id
from tests.support.lease.states import key_of_sessions, key_of_watch

SETTINGS: Final = SchemaSettings(
    # No pauses: how long something is left alone is for the model to choose.
    CoordinatorSettings(
        poll_ms=0,
        poll_max_ms=0,
        ledger_retry_ms=0,
        ledger=LedgerSideSettings(session_ttl_ms=TTL, look_ms=1, look_again_ms=1),
    )
)
NEVER_NS: Final = 2**62


class Tick(NamedTuple):
    """The master looks at the ledger."""


class Changed(NamedTuple):
    lsn: int


class Replied(NamedTuple):
    """The pending call has arrived."""

    token: int
    command: Command


Event: TypeAlias = Tick | Changed | Replied


class Stepped(NamedTuple):
    """`obeyed`: commands of this master that the ledger has carried out."""

    jobs: int
    ledger: int
    obeyed: tuple[Command, ...]
    harm: str


class Jobs:
    def __init__(self, rules: Rules, objects: Objects) -> None:
        self._rules = rules
        self._objects = objects
        self._kept: list[SchemaChanges] = []
        self._numbers: dict[Any, int] = {}
        self._stepped: dict[Any, Stepped] = {}
        self._taken: dict[Any, tuple[int, tuple[CatalogWrite, ...]] | None] = {}

    def begin(self, who: int, catalog: Catalog, epoch: int) -> int:
        """D2: from the log alone."""
        changes = SchemaChanges(SETTINGS, str(who), catalog, epoch)
        return self._keep(changes)

    def pending(self, number: int) -> tuple[tuple[int, Command], ...]:
        """Calls of the job that have not arrived."""
        calls = self._kept[number].coordinator._calls
        return tuple((token, sent.command) for token, sent in calls.items())

    def waiting(self, number: int, job_id: int) -> str:
        return self._kept[number].coordinator.waiting_for(job_id)

    def take_write(
        self, number: int, catalog: Catalog, prefix: tuple[int, ...], lsn: int
    ) -> tuple[int, tuple[CatalogWrite, ...]] | None:
        """The next writes for the log, and the state without them."""
        key = number, prefix
        if key not in self._taken:
            changes = self._copied(number, catalog)
            writes = changes.next_write(lsn)
            if writes is not None:
                changes.appended()
            self._taken[key] = None if writes is None else (self._keep(changes), writes)
        return self._taken[key]

    def step(
        self,
        number: int,
        event: Event,
        now_ns: int,
        catalog: Catalog,
        prefix: tuple[int, ...],
        ledger: int,
        run: int,
    ) -> Stepped:
        """`catalog` is that of `prefix`, which stands for it in what is remembered."""
        key = number, type(event).__name__, event, now_ns, prefix, ledger, run
        found = self._stepped.get(key)
        if found is None:
            changes = self._copied(number, catalog)
            found = self._stepped[key] = self._made(changes, event, Now(now_ns, 0), ledger, run)
        return found

    def _made(
        self, changes: SchemaChanges, event: Event, now: Now, ledger: int, run: int
    ) -> Stepped:
        # Looks are for the model to choose, too.
        changes.coordinator.ledger._look_ns = 0 if isinstance(event, Tick) else NEVER_NS
        obeyed: list[Command] = []
        effects: list[NodeEffect] = []
        try:
            match event:
                case Tick():
                    effects += changes.tick(frozenset(), now)
                case Changed(lsn):
                    effects += changes.catalog_changed(lsn, now)
                case Replied(token, command):
                    effects.append(CallLedger(token, command))
            answered = isinstance(event, Replied)
            while effects:
                effect = effects.pop(0)
                if not isinstance(effect, CallLedger):
                    continue
                waits = self._waits(changes, effect.token)
                if waits and not answered:
                    continue
                answered = False
                before = ledger
                ledger, reply = self._objects.call(ledger, effect.command, run_id(run))
                if ledger != before:
                    obeyed.append(effect.command)
                effects += changes.ledger_replied(effect.token, reply, now)
        except AssertionError as error:
            return Stepped(self._keep(changes), ledger, tuple(obeyed), str(error))
        return Stepped(self._keep(changes), ledger, tuple(obeyed), "")

    @staticmethod
    def _waits(changes: SchemaChanges, token: Any) -> bool:
        sent = changes.coordinator._calls.get(token)
        return sent is not None and sent.job_id != 0

    # ------------------------------------------------------------ copies and keys

    def _copied(self, number: int, catalog: Catalog) -> SchemaChanges:
        """A copy that follows `catalog` in the place of its own, wherever it keeps that."""
        kept = self._kept[number]
        memo = {id(thing): thing for thing in self._shared(kept)}
        return deepcopy(kept, memo | {id(kept._catalog): catalog})

    def _shared(self, changes: SchemaChanges) -> Iterator[Any]:
        """What never changes, or is the world's and not the coordinator's."""
        coordinator = changes.coordinator
        yield from (SETTINGS, SETTINGS.coordinator, SETTINGS.coordinator.ledger)
        yield from changes._writes
        for memory in coordinator._memories.values():
            yield from (memory.stage, memory.expects, memory.wrote)
        yield from coordinator._calls.values()

    def _keep(self, changes: SchemaChanges) -> int:
        self._renumber(changes)
        key = _key(changes)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._kept)
            self._kept.append(changes)
        return found

    @staticmethod
    def _renumber(changes: SchemaChanges) -> None:
        """Tokens from 1, so that equal states have equal ones."""
        coordinator = changes.coordinator
        tokens = {old: new for new, old in enumerate(sorted(coordinator._calls), 1)}
        coordinator._calls = {tokens[old]: sent for old, sent in coordinator._calls.items()}
        coordinator._token = len(tokens)
        for memory in coordinator._memories.values():
            memory.token = tokens.get(memory.token, 0)


def _key(changes: SchemaChanges) -> Any:
    """Equal for states that behave alike. Left out: what is for people, and times that have
    passed (with SETTINGS every retry is due at once)."""
    coordinator = changes.coordinator
    side = coordinator.ledger
    memories = tuple(
        (
            job_id,
            memory.stage,
            memory.expects and memory.expects.marks,
            memory.wrote and memory.wrote.marks,
            memory.token,
            memory.drained,
        )
        for job_id, memory in sorted(coordinator._memories.items())
    )
    calls = tuple((t, s.job_id, repr(s.command)) for t, s in sorted(coordinator._calls.items()))
    ledger_side = (
        _watch_key(side._watch),
        key_of_sessions(side._sessions),
        side._recorded,
        side._looking,
        tuple(side._seeds),
        side._away,
        None if side._known is None else tuple(sorted(side._known)),
        side._asking,
        tuple(sorted(side._unlike.union(side._catalog.changed_since(side._changes)))),
        side.epoch_lost,
    )
    due = coordinator._due
    unseen = side._catalog.jobs_changed_since(due._changes)
    looked_at = tuple(sorted(due._due)), tuple(sorted(due._next.items())), tuple(sorted(unseen))
    return memories, calls, looked_at, ledger_side, tuple(map(repr, changes._writes))


def _watch_key(watch: LedgerWatch) -> Any:
    """Without the end of a wait that is over."""
    if watch.phase is Phase.WAITING:
        return key_of_watch(watch)
    ended = copy(watch)
    ended._until_ns = 0
    return key_of_watch(ended)
