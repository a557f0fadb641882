"""Log, claims and coherency leases: candidates for mastership, replicants that serve reads; two
and one where bounds say nothing else.

What is real: which records count (`admit`), a replicant's lease (`CoherencyLease`), whom a
master waits for and what it grants (`CoherencyWatch`), which told records are taken (`LogPath`).
What the model adds is the world: appends that land late or after their sender gave up,
acknowledgements that arrive late, in any order or never, positions told by the fast way that are
heard late, in any order, again and again or never (by whoever is master then, which is more than
the channels allow; and those of another cluster's node of the same name), records of the log told
by whoever has read them as master and heard in the same way (and one of another cluster, whose log
this one was copied from), processes that pause at any point (they just don't take their next step),
crash and come back as another incarnation, and a replicant's machine that reboots, whose clock then
starts anew.

Time is a small number of ticks of one millisecond each; every clock runs at the same rate, the
replicant's has an offset of its own. Positions are not in the state: what a reader knows follows
from how far it has read (`admit` folded over the log), which is what L1 promises.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import is_
from typing import Final

from leasehold.model.errors import LogStopped
from leasehold.model.records.log import Claim, Commit, Decisions, LogPosition
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.coherency import GIVEN_UP, CoherencyLease
from leasehold.replication.fast_path.log import FastLogSettings, LogPath
from leasehold.replication.log.admission import Verdict
from tests.models.coherency_part import NO_LEASES, CoherencyPart, Sent
from tests.models.log_candidate import CandidateSteps
from tests.models.log_records import Records
from tests.models.log_world import (
    FIRST_READER,
    UPTIME,
    Bounds,
    Candidate,
    Reader,
    Rules,
    Told,
    World,
    clock_ns,
    incarnation,
    reader_incarnation,
    with_reader,
)
from tests.models.mutants.replication import admit_under

STRANGER: Final = Sent(bytes((FIRST_READER,)) + b"elsewhere", 1_000, 0)
"""What a node of the same name tells in a cluster that was copied from this one, and is ahead."""


TELLING: Final = FastLogSettings(row_min=1, pause_ms=0)
"""It is taken as soon as something is heard."""


@dataclass
class Model:
    rules: Rules = field(default_factory=Rules)
    bounds: Bounds = field(default_factory=Bounds)

    def __post_init__(self) -> None:
        skips = self.rules.claim_mismatch_skips
        self.records = Records(self.rules.log, mismatch_skips=skips)
        self._admit = admit_under(self.rules.log)
        self.coherency = CoherencyPart()
        self.candidates = CandidateSteps(self.rules, self.bounds, self.records, self.coherency)

    # ------------------------------------------------------------ the start and the harm

    def starts(self) -> list[tuple[str, World]]:
        """Candidate 0 is master of epoch 1, everyone has read its Claim, nobody has a lease."""
        claim = self.records.number(Claim(1, incarnation(0, 0), b"", "0"))
        first = Candidate(1, 0, master=True)
        candidates = self.bounds.candidates if self.bounds.epochs > 1 else 1
        world = World(
            0,
            (claim,),
            (),
            (first, *(Candidate(1, 0),) * (candidates - 1)),
            (Reader(1, 0, -UPTIME),) * self.bounds.readers,
            ((),) * candidates,
            frozenset(),
            frozenset((STRANGER,) * bool(self.bounds.strangers)),
            frozenset(self._told_elsewhere(claim)[: self.bounds.copies]),
            *(0,) * 5,
        )
        return [("candidate 0 is master of epoch 1", world)]

    def _told_elsewhere(self, claim: int) -> list[Told]:
        """What the same master tells of its own log, in the cluster that this one was copied from
        right after the Claim: the same term, and the digest before it is the same."""
        digest = self.records.known((claim,)).position.digest
        master = incarnation(0, 0)
        commit = Commit(b"77", 1, 1, {}, (), 1)
        record = Decisions(1, master, 1, digest, 1, (commit,), (), {}, 0, ())
        return [Told(1, master, 1, self.records.number(record))]

    def invariant(self, world: World) -> str | None:
        places = [one.read for one in world.candidates] + [one.read for one in world.readers]
        for read in places:
            if stopped := self.records.known(world.log[:read]).stopped:
                return f"L1 L2: a reader stops: {stopped}"
        if any(reader.wrong for reader in world.readers):
            return "L1 L2: the replicant has applied what does not stand in the log there"
        counted = self.records.known(world.log)
        if not world.answered <= counted.requests and not counted.stopped:
            return f"L4: request {max(world.answered - counted.requests)} was answered, no record"
        for reader in world.readers:
            if clock_ns(world, reader) >= reader.until_ns:
                continue
            missed = world.answered - self.records.known(world.log[: reader.read]).requests
            if missed:
                return f"C1 C2: a read at the replicant misses the answered request {min(missed)}"
        return None

    # ------------------------------------------------------------ transitions

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        for label, after in self._steps(world):
            yield label, self._settled(after)

    def _settled(self, world: World) -> World:
        """Standbys read at once. Nothing is lost by it: a bid made from an old position is one
        whose landing is late, and a later read-back of one's own Claim only waits longer (C4)."""
        for who, candidate in enumerate(world.candidates):
            while not candidate.master and candidate.read < len(world.log):
                _, world = self.candidates.reads(world, who)
                candidate = world.candidates[who]
        return self._without_past(world)

    def _without_past(self, world: World) -> World:
        """Without leases that are over, and those known to who can claim no more."""
        candidates = []
        for candidate in world.candidates:
            leases = self.coherency.running(candidate.leases, world.now)
            epoch = self.records.known(world.log[: candidate.read]).position.epoch
            if epoch >= self.bounds.epochs:
                leases = NO_LEASES
            if leases is not candidate.leases:
                candidate = candidate._replace(leases=leases)
            candidates.append(candidate)
        if all(map(is_, candidates, world.candidates)):
            return world
        return world._replace(candidates=tuple(candidates))

    def _steps(self, world: World) -> Iterator[tuple[str, World]]:
        if world.now < self.bounds.ticks:
            yield "time passes", world._replace(now=world.now + 1)
        for number in dict.fromkeys(world.net):
            yield from self._lands(world, number)
        for who in range(len(world.candidates)):
            yield from self.candidates.steps(world, who)
        for which in range(len(world.readers)):
            yield from self._reader(world, which)

    def _lands(self, world: World, number: int) -> Iterator[tuple[str, World]]:
        net = list(world.net)
        net.remove(number)
        yield (
            f"lands in the log at {len(world.log)}: {self.records.words[number]}",
            world._replace(log=(*world.log, number), net=tuple(net)),
        )

    # ------------------------------------------------------------ the replicants

    def _lease(self, which: int, reader: Reader) -> CoherencyLease:
        own = reader_incarnation(which, reader.incarnation)
        return self.coherency.lease(own, reader.asks, reader.until_ns)

    def _reader(self, world: World, which: int) -> Iterator[tuple[str, World]]:
        reader = world.readers[which]
        name = self._name(which)
        own = reader_incarnation(which, reader.incarnation)
        if reader.read < len(world.log):
            yield self._reader_reads(world, which)
        for record in sorted(world.records_told):
            yield from self._reader_hears(world, which, record)
        if world.acked < self.bounds.acks and not reader.left:
            yield self._reader_asks(world, which)
        if world.leaves < self.bounds.leaves and not reader.left:
            yield self._reader_leaves(world, which)
        told = world.told | {Sent(own, reader.read, 0)}
        if world.told < told and len(told) <= self.bounds.tells + self.bounds.strangers:
            yield f"{name} tells what it has applied", world._replace(told=told)
        if world.reboots < self.bounds.reboots:
            after = Reader(reader.read, reader.incarnation + 1, world.now, wrong=reader.wrong)
            yield (
                f"{name}'s machine reboots, its clock starts at 0",
                with_reader(world, which, after)._replace(reboots=world.reboots + 1),
            )

    def _reader_asks(self, world: World, which: int) -> tuple[str, World]:
        reader = world.readers[which]
        lease = self._lease(which, reader)
        asked = lease.ask(clock_ns(world, reader))
        sent = Sent(reader_incarnation(which, reader.incarnation), reader.read, asked)
        acks = tuple((*waiting, sent) for waiting in world.acks)
        after = reader._replace(asks=tuple(lease._asks))
        return (
            f"{self._name(which)} acknowledges and asks for a lease",
            with_reader(world, which, after)._replace(acks=acks, acked=world.acked + 1),
        )

    def _reader_leaves(self, world: World, which: int) -> tuple[str, World]:
        """C4: it serves no more, and says so; what is on its way of its asks may be heard behind
        that."""
        reader = world.readers[which]
        lease = self._lease(which, reader)
        if self.rules.farewell_after_serving:
            lease.give_up()
        own = reader_incarnation(which, reader.incarnation)
        sent = Sent(own, reader.read, GIVEN_UP)
        acks = tuple((*waiting, sent) for waiting in world.acks)
        after = reader._replace(asks=tuple(lease._asks), until_ns=lease.until_ns, left=True)
        moved = with_reader(world, which, after)
        return (
            f"{self._name(which)} leaves, and returns its lease",
            moved._replace(acks=acks, leaves=world.leaves + 1),
        )

    def _name(self, which: int) -> str:
        return "the replicant" if self.bounds.readers == 1 else f"replicant {which}"

    def _reader_reads(self, world: World, which: int) -> tuple[str, World]:
        reader = world.readers[which]
        known = self.records.known(world.log[: reader.read + 1])
        after = reader._replace(read=reader.read + 1)
        if known.verdict is Verdict.APPLY and not known.stopped:
            after = self._granted(which, after, world.log[reader.read], known.position)
        read = self.records.words[world.log[reader.read]]
        label = f"{self._name(which)} reads {read}: {known.stopped or known.verdict.value}"
        return label, with_reader(world, which, after)

    def _granted(self, which: int, reader: Reader, number: int, position: LogPosition) -> Reader:
        record = self.records.records[number]
        assert isinstance(record, Decisions)
        lease = self._lease(which, reader)
        ours = [lease.granted(grant) for grant in record.grants]
        if any(ours):
            reader = reader._replace(granted=(position.epoch, position.incarnation))
        return reader._replace(until_ns=lease.until_ns)

    def _reader_hears(self, world: World, which: int, told: Told) -> Iterator[tuple[str, World]]:
        """The real `LogPath` says whether it is taken; then it is judged as `Node` does it."""
        reader = world.readers[which]
        position = self.records.known(world.log[: reader.read]).position
        ways = LogPath(TELLING, reader.read)
        ways.follow((position.epoch, position.incarnation), reader.granted, 0)
        if ways.term != (told.epoch, told.incarnation) or not ways.receive(
            told.offset, 1, whole=True
        ):
            return
        record, digest = self.records.records[told.number], told.number.to_bytes(2, "big")
        try:
            verdict, after = self._admit(position, told.offset, record, digest)
        except LogStopped:
            return  # Kafka is asked
        if verdict is Verdict.SKIP:
            return
        true = self.records.known(world.log[: told.offset + 1])
        right = told.offset < len(world.log) and not true.stopped and true.position == after
        moved = reader._replace(wrong=not right)
        if right:
            moved = moved._replace(read=told.offset + 1)
            if verdict is Verdict.APPLY:
                moved = self._granted(which, moved, told.number, after)
        words = self.records.words[told.number]
        label = f"{self._name(which)} is told {words} at {told.offset}"
        yield label, with_reader(world, which, moved)

    def show(self, world: World) -> str:
        masters = [str(n) for n, c in enumerate(world.candidates) if c.master]
        read = [c.read for c in world.candidates]
        return (
            f"tick {world.now} | log of {len(world.log)} | believe to be master: "
            f"{' '.join(masters) or 'nobody'} | read {read}"
            f" | {' | '.join(self._show_reader(world, reader) for reader in world.readers)}"
            f" | answered {sorted(world.answered)}"
        )

    @staticmethod
    def _show_reader(world: World, reader: Reader) -> str:
        held = (reader.until_ns - clock_ns(world, reader)) // NS_PER_MS
        runs = f"runs {held} more" if held > 0 else "is over"
        return f"replicant has read {reader.read}, its lease {runs}"
