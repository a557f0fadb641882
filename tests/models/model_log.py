"""Log, claims and coherency leases: two candidates for mastership, one replicant that serves reads.

What is real: which records count (`admit`), the replicant's lease (`CoherencyLease`), whom a
master waits for and what it grants (`CoherencyWatch`). What the model adds is the world: appends
that land late or after their sender gave up, acknowledgements that arrive late, in any order or
never, processes that pause at any point (they just don't take their next step), crash and come
back as another incarnation, and a replicant's machine that reboots, whose clock then starts anew.

Time is a small number of ticks of one millisecond each; every clock runs at the same rate, the
replicant's has an offset of its own. Positions are not in the state: what a reader knows follows
from how far it has read (`admit` folded over the log), which is what L1 promises.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from leasehold.model.errors import LogStopped
from leasehold.model.records import Ack, Claim, Commit, Decisions, Grant, LogPosition, LogRecord
from leasehold.replication.coherency import (
    NS_PER_MS,
    CoherencyLease,
    CoherencyRules,
    CoherencySettings,
    CoherencyWatch,
    _Node,
)
from leasehold.replication.log import LogRules, Verdict, admit

UPTIME: Final = 50  # ticks of the replicant's clock when the model begins
READER: Final = "r"
SETTINGS: Final = CoherencySettings(
    # No defer: it is for clock *rates*, which are equal here, so every bound is met exactly.
    duration_ms=2,
    renewal_ms=1,
    defer_ms=0,
    lag_ms_max=1_000_000,
    behind_records_max=1_000,
)


@dataclass(frozen=True, slots=True)
class Rules:
    """Every rule on is the protocol; tests turn one off and expect the harm to be found."""

    log: LogRules = field(default_factory=LogRules)
    coherency: CoherencyRules = field(default_factory=CoherencyRules)
    claim_mismatch_skips: bool = True  # L1: a Claim overtaken by a record is skipped, no error
    own_claim_by_incarnation: bool = True  # L4: master only by a Claim of its own incarnation
    own_record_read_back: bool = True  # L4: answers only what was read back as its own
    epoch_given_up_after_error: bool = True  # L4
    repeats_wait_too: bool = True  # C1


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of everything may happen; each is part of the summary's words."""

    ticks: int = 0
    records: int = 4
    commits: int = 1
    acks: int = 0
    epochs: int = 1
    crashes: int = 0
    reboots: int = 0
    errors: int = 0

    def words(self) -> str:
        return ", ".join(f"{value} {name}" for name, value in asdict(self).items() if value)


class Seen(NamedTuple):
    """One incarnation of the replicant as a master's watch has it."""

    incarnation: bytes
    applied: int
    asked_ns: int
    wait_until_ns: int


class Candidate(NamedTuple):
    """`read`: records read. `flight`: the record that it waits to read back, -1 = none.
    `pending`: offsets whose answers wait. `watch`: serve_from_ns and the nodes it has seen."""

    read: int
    incarnation: int
    master: bool = False
    flight: int = -1
    pending: tuple[int, ...] = ()
    serve_from_ns: int = 0
    watch: tuple[Seen, ...] = ()


class Reader(NamedTuple):
    """The replicant; `booted` is the tick at which its clock showed 0."""

    read: int
    incarnation: int
    booted: int
    asks: tuple[int, ...] = ()
    until_ns: int = 0


class Sent(NamedTuple):
    """An acknowledgement on its way to one of the candidates."""

    incarnation: bytes
    applied: int
    asked_ns: int


class World(NamedTuple):
    """`log` and `net` hold numbers of records (`Model.records`); `net`: sent and not landed.
    `answered`: request numbers whose result was given."""

    now: int
    log: tuple[int, ...]
    net: tuple[int, ...]
    candidates: tuple[Candidate, ...]
    reader: Reader
    acks: tuple[tuple[Sent, ...], ...]
    answered: frozenset[int]
    commits: int
    acked: int
    crashes: int
    reboots: int
    errors: int


class Known(NamedTuple):
    """What everyone who has read so far knows: the position, the requests that are in the log,
    or why reading stopped there."""

    position: LogPosition
    requests: frozenset[int]
    verdict: Verdict
    stopped: str


@dataclass
class Model:
    rules: Rules = field(default_factory=Rules)
    bounds: Bounds = field(default_factory=Bounds)
    records: list[LogRecord] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._granted: dict[Any, tuple[tuple[Grant, ...], tuple[Seen, ...]]] = {}
        self._numbers: dict[Any, int] = {}
        nothing = Known(LogPosition(), frozenset(), Verdict.SKIP, "")
        self._known: dict[tuple[int, ...], Known] = {(): nothing}

    # ------------------------------------------------------------ records and positions

    def number(self, record: LogRecord) -> int:
        """Records of equal content are one record: their digest is this number."""
        key: tuple[Any, ...] = tuple(record)
        if isinstance(record, Decisions):
            requests = tuple(commit.request_id for commit in record.commits)
            key = (*record[:5], requests, record.grants)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.records)
            self.records.append(record)
            self.words.append(words(record))
        return found

    def known(self, prefix: tuple[int, ...]) -> Known:
        found = self._known.get(prefix)
        if found is None:
            found = self._known[prefix] = self._judged(prefix)
        return found

    def _judged(self, prefix: tuple[int, ...]) -> Known:
        before = self.known(prefix[:-1])
        if before.stopped:
            return before
        number = prefix[-1]
        record = self.records[number]
        digest = number.to_bytes(2, "big")
        overtaken = (
            isinstance(record, Claim)
            and record.epoch == before.position.epoch + 1
            and record.previous != before.position.digest
        )
        if overtaken and not self.rules.claim_mismatch_skips:
            return before._replace(stopped="the Claim's digest is not that of the record before")
        try:
            verdict, after = admit(before.position, len(prefix) - 1, record, digest, self.rules.log)
        except LogStopped as error:
            return before._replace(stopped=error.message)
        requests = before.requests
        if verdict is Verdict.APPLY:
            assert isinstance(record, Decisions)
            requests |= {int(commit.request_id) for commit in record.commits}
        return Known(after, requests, verdict, "")

    # ------------------------------------------------------------ the start and the harm

    def starts(self) -> list[tuple[str, World]]:
        """Candidate 0 is master of epoch 1, everyone has read its Claim, nobody has a lease."""
        claim = self.number(Claim(1, incarnation(0, 0), b"", "0"))
        first = Candidate(1, 0, master=True)
        world = World(
            0,
            (claim,),
            (),
            (first, *(Candidate(1, 0),) * (self.bounds.epochs > 1)),
            Reader(1, 0, -UPTIME),
            ((),) * (1 + (self.bounds.epochs > 1)),
            frozenset(),
            *(0,) * 5,
        )
        return [("candidate 0 is master of epoch 1", world)]

    def invariant(self, world: World) -> str | None:
        reader = world.reader
        everyone = (*(c.read for c in world.candidates), reader.read)
        for read in everyone:
            if stopped := self.known(world.log[:read]).stopped:
                return f"L1 L2: a reader stops: {stopped}"
        counted = self.known(world.log)
        if not world.answered <= counted.requests and not counted.stopped:
            return f"L4: request {max(world.answered - counted.requests)} was answered, no record"
        if clock_ns(world) < reader.until_ns:
            missed = world.answered - self.known(world.log[: reader.read]).requests
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
                _, world = self._read(world, who)
                candidate = world.candidates[who]
        return world

    def _steps(self, world: World) -> Iterator[tuple[str, World]]:
        if world.now < self.bounds.ticks:
            yield "time passes", world._replace(now=world.now + 1)
        for number in dict.fromkeys(world.net):
            yield from self._lands(world, number)
        for who in range(len(world.candidates)):
            yield from self._candidate(world, who)
        yield from self._reader(world)

    def _lands(self, world: World, number: int) -> Iterator[tuple[str, World]]:
        net = list(world.net)
        net.remove(number)
        yield (
            f"lands in the log at {len(world.log)}: {self.words[number]}",
            world._replace(log=(*world.log, number), net=tuple(net)),
        )

    def _candidate(self, world: World, who: int) -> Iterator[tuple[str, World]]:
        candidate = world.candidates[who]
        if candidate.master and candidate.read < len(world.log):
            yield self._read(world, who)
        room = len(world.log) + len(world.net) < self.bounds.records + 1
        if candidate.master:
            if candidate.flight < 0 and room:
                yield from self._append(world, who)
            yield from self._answer(world, who)
            yield from self._fail(world, who)
        elif room:
            yield from self._claim(world, who)
        for ack in dict.fromkeys(world.acks[who]):
            yield self._acked(world, who, ack)
        if who == 0 and world.crashes < self.bounds.crashes:
            yield self._crash(world, who)

    def _read(self, world: World, who: int) -> tuple[str, World]:
        candidate = world.candidates[who]
        number = world.log[candidate.read]
        known = self.known(world.log[: candidate.read + 1])
        after = candidate._replace(read=candidate.read + 1)
        record = self.records[number]
        if known.verdict is Verdict.CLAIMED and not known.stopped:
            assert isinstance(record, Claim)
            after = after._replace(master=False, flight=-1, pending=(), watch=())
            if self._is_own_claim(record, who, candidate):
                after = self._takes_office(after, known, world)
        elif known.verdict is Verdict.APPLY and candidate.master and number == candidate.flight:
            offset = candidate.read
            after = after._replace(flight=-1)
            if self.rules.own_record_read_back:
                after = after._replace(pending=(*candidate.pending, offset))
        label = (
            f"candidate {who} reads {self.words[number]}: {known.stopped or known.verdict.value}"
        )
        if after.master and not candidate.master:
            label += ", and is master now"
        return label, placed(world, who, after)

    def _is_own_claim(self, claim: Claim, who: int, candidate: Candidate) -> bool:
        if claim.node != str(who):
            return False
        own = incarnation(who, candidate.incarnation)
        return claim.incarnation == own or not self.rules.own_claim_by_incarnation

    def _takes_office(self, candidate: Candidate, known: Known, world: World) -> Candidate:
        """L7: what may not have been answered is answered by it, under C4's wait."""
        watch = CoherencyWatch(
            SETTINGS,
            world.now * NS_PER_MS,
            known.position.longest_grant_ms,
            self.rules.coherency,
        )
        pending = (candidate.read - 1,) if known.requests else ()
        return candidate._replace(master=True, pending=pending, serve_from_ns=watch.serve_from_ns)

    def _append(self, world: World, who: int) -> Iterator[tuple[str, World]]:
        """The next record: with a commit, or with grants alone."""
        candidate = world.candidates[who]
        position = self.known(world.log[: candidate.read]).position
        grants, seen = self._grants(candidate, world.now)
        after = candidate._replace(watch=seen)
        choices: list[tuple[Commit, ...]] = [()] if grants else []
        if world.commits < self.bounds.commits:
            request = str(world.commits).encode()
            choices.append((Commit(request, 1, position.commit_us + 1, {}, (), 1),))
        for commits in choices:
            record = Decisions(
                epoch=position.epoch,
                incarnation=incarnation(who, candidate.incarnation),
                sequence=position.sequence + 1,
                previous=position.digest,
                first_lsn=position.lsn + 1,
                commits=commits,
                refusals=(),
                decided_through={},
                answered_through=0,
                grants=grants,
            )
            number = self.number(record)
            moved = placed(world, who, after._replace(flight=number))
            answered = world.answered
            if not self.rules.own_record_read_back:
                answered |= {int(commit.request_id) for commit in commits}
            yield (
                f"candidate {who} appends {self.words[number]}",
                moved._replace(
                    net=tuple(sorted((*world.net, number))),
                    commits=world.commits + len(commits),
                    answered=answered,
                ),
            )

    def _grants(self, candidate: Candidate, now: int) -> tuple[tuple[Grant, ...], tuple[Seen, ...]]:
        key = candidate.watch, candidate.read, now
        found = self._granted.get(key)
        if found is None:
            watch = self._watch(candidate)
            grants = watch.grants(candidate.read, now * NS_PER_MS)
            found = self._granted[key] = grants, self._seen(watch)
        return found

    def _claim(self, world: World, who: int) -> Iterator[tuple[str, World]]:
        """Whenever it likes: an election's time-out may come at any moment of a pause."""
        candidate = world.candidates[who]
        position = self.known(world.log[: candidate.read]).position
        if position.epoch >= self.bounds.epochs:
            return
        claim = Claim(
            position.epoch + 1,
            incarnation(who, candidate.incarnation),
            position.digest,
            str(who),
        )
        number = self.number(claim)
        if number in world.net or number in world.log:
            return
        net = tuple(sorted((*world.net, number)))
        yield f"candidate {who} bids: {self.words[number]}", world._replace(net=net)

    def _answer(self, world: World, who: int) -> Iterator[tuple[str, World]]:
        candidate = world.candidates[who]
        now_ns = world.now * NS_PER_MS
        if not self.rules.repeats_wait_too:
            known = self.known(world.log[: candidate.read]).requests
            if not known <= world.answered:
                yield (
                    f"candidate {who} is asked again and answers at once",
                    world._replace(answered=world.answered | known),
                )
        if not candidate.pending:
            return
        offset = candidate.pending[0]
        if self._watch(candidate).may_answer(offset, now_ns):
            answered = world.answered | self.known(world.log[: offset + 1]).requests
            after = candidate._replace(pending=candidate.pending[1:])
            yield (
                f"candidate {who} gives the answers of offset {offset}",
                placed(world, who, after)._replace(answered=answered),
            )

    def _fail(self, world: World, who: int) -> Iterator[tuple[str, World]]:
        """The append timed out for its sender; the record may land all the same, later."""
        candidate = world.candidates[who]
        if candidate.flight < 0 or world.errors == self.bounds.errors:
            return
        after = candidate._replace(flight=-1)
        if self.rules.epoch_given_up_after_error:
            after = after._replace(master=False, pending=(), watch=())
        yield (
            f"candidate {who} is told that its append failed",
            placed(world, who, after)._replace(errors=world.errors + 1),
        )

    def _crash(self, world: World, who: int) -> tuple[str, World]:
        candidate = world.candidates[who]
        after = Candidate(candidate.read, candidate.incarnation + 1)
        known = self.known(world.log[: candidate.read])
        words_after = "restarts"
        if not self.rules.own_claim_by_incarnation:
            # The process finds that the last Claim is its node's and goes on as master.
            last = [self.records[n] for n in world.log[: candidate.read]]
            claims = [r for r in last if isinstance(r, Claim) and r.epoch == known.position.epoch]
            if claims and claims[-1].node == str(who):
                after = self._takes_office(after, known, world)
                words_after = "restarts and goes on as master"
        return (
            f"candidate {who} crashes and {words_after}",
            placed(world, who, after)._replace(crashes=world.crashes + 1),
        )

    # ------------------------------------------------------------ acknowledgements, the watch

    def _acked(self, world: World, who: int, ack: Sent) -> tuple[str, World]:
        candidate = world.candidates[who]
        waiting = list(world.acks[who])
        waiting.remove(ack)
        acks = tuple(tuple(waiting) if n == who else a for n, a in enumerate(world.acks))
        if candidate.master:
            watch = self._watch(candidate)
            record = Ack(
                READER,
                ack.incarnation,
                "replicant",
                ack.applied,
                0,
                0,
                ack.asked_ns,
                coherent=False,
                serves="",
                sent_us=0,
            )
            watch.acked(record, candidate.read, world.now * NS_PER_MS)
            candidate = candidate._replace(watch=self._seen(watch))
        return (
            f"candidate {who} hears that the replicant has applied below {ack.applied}",
            placed(world, who, candidate)._replace(acks=acks),
        )

    def _watch(self, candidate: Candidate) -> CoherencyWatch:
        watch = CoherencyWatch(SETTINGS, 0, 0, self.rules.coherency)
        watch.serve_from_ns = candidate.serve_from_ns
        for seen in candidate.watch:
            watch._nodes[READER, seen.incarnation] = _Node(
                seen.incarnation, seen.applied, seen.asked_ns, 0, seen.wait_until_ns
            )
        return watch

    @staticmethod
    def _seen(watch: CoherencyWatch) -> tuple[Seen, ...]:
        return tuple(
            Seen(incarnation, node.applied, node.asked_ns, node.wait_until_ns)
            for (_, incarnation), node in sorted(watch._nodes.items())
        )

    # ------------------------------------------------------------ the replicant

    def _lease(self, reader: Reader) -> CoherencyLease:
        own = incarnation(9, reader.incarnation)
        lease = CoherencyLease(READER, own, self.rules.coherency)
        lease._asks.extend(reader.asks)
        lease.until_ns = reader.until_ns
        return lease

    def _reader(self, world: World) -> Iterator[tuple[str, World]]:
        reader = world.reader
        if reader.read < len(world.log):
            yield self._reader_reads(world)
        if world.acked < self.bounds.acks:
            lease = self._lease(reader)
            asked = lease.ask(clock_ns(world))
            sent = Sent(incarnation(9, reader.incarnation), reader.read, asked)
            acks = tuple((*waiting, sent) for waiting in world.acks)
            after = reader._replace(asks=tuple(lease._asks))
            yield (
                "the replicant acknowledges and asks for a lease",
                world._replace(reader=after, acks=acks, acked=world.acked + 1),
            )
        if world.reboots < self.bounds.reboots:
            after = Reader(reader.read, reader.incarnation + 1, world.now)
            yield (
                "the replicant's machine reboots, its clock starts at 0",
                world._replace(reader=after, reboots=world.reboots + 1),
            )

    def _reader_reads(self, world: World) -> tuple[str, World]:
        reader = world.reader
        known = self.known(world.log[: reader.read + 1])
        record = self.records[world.log[reader.read]]
        lease = self._lease(reader)
        if known.verdict is Verdict.APPLY and not known.stopped:
            assert isinstance(record, Decisions)
            for grant in record.grants:
                lease.granted(grant)
        after = reader._replace(read=reader.read + 1, until_ns=lease.until_ns)
        read = self.words[world.log[reader.read]]
        label = f"the replicant reads {read}: {known.stopped or known.verdict.value}"
        return label, world._replace(reader=after)

    def show(self, world: World) -> str:
        masters = [str(n) for n, c in enumerate(world.candidates) if c.master]
        held = (world.reader.until_ns - clock_ns(world)) // NS_PER_MS
        read = [c.read for c in world.candidates]
        return (
            f"tick {world.now} | log of {len(world.log)} | believe to be master: "
            f"{' '.join(masters) or 'nobody'} | read {read}, replicant {world.reader.read}"
            f" | its lease {f'runs {held} more' if held > 0 else 'is over'}"
            f" | answered {sorted(world.answered)}"
        )


def incarnation(who: int, number: int) -> bytes:
    return bytes((who, number))


def clock_ns(world: World) -> int:
    """The replicant's own clock."""
    return (world.now - world.reader.booted) * NS_PER_MS


def placed(world: World, who: int, candidate: Candidate) -> World:
    candidates = tuple(candidate if n == who else c for n, c in enumerate(world.candidates))
    return world._replace(candidates=candidates)


def words(record: LogRecord) -> str:
    """A record in a few words, for traces."""
    if isinstance(record, Claim):
        return f"Claim(epoch {record.epoch} for {record.node}.{record.incarnation[1]})"
    assert isinstance(record, Decisions)
    commits = ", ".join(f"request {c.request_id.decode()}" for c in record.commits)
    grants = ", ".join(_grant(grant) for grant in record.grants)
    inside = "; ".join(part for part in (commits, grants) if part)
    return f"Decisions(epoch {record.epoch}.{record.sequence}: {inside})"


def _grant(grant: Grant) -> str:
    return f"grant for the ask of {grant.asked_ns // NS_PER_MS}"
