"""The log model's world: what a state holds, what bounds it, which rules can be switched off."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Final, NamedTuple

from leasehold.model.time_units import NS_PER_MS
from tests.models.coherency_part import Leases, Seen, Sent
from tests.models.mutants.replication import CoherencyRules, FastLogRules, LogRules

UPTIME: Final = 50  # ticks of the replicants' clocks when the model begins
FIRST_READER: Final = 9
"""The number in the incarnations of the first replicant; those of candidates are lower."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Every rule on is the protocol; tests turn one off and expect the harm to be found."""

    log: LogRules = field(default_factory=LogRules)
    coherency: CoherencyRules = field(default_factory=CoherencyRules)
    fast_log: FastLogRules = field(default_factory=FastLogRules)
    told_when_read: bool = True  # L4: a master tells of the log what it has read there
    claim_mismatch_skips: bool = True  # L1: a Claim overtaken by a record is skipped, no error
    own_claim_by_incarnation: bool = True  # L4: master only by a Claim of its own incarnation
    farewell_after_serving: bool = True  # C4: a node returns its lease, and serves no more before
    own_record_read_back: bool = True  # L4: answers only what was read back as its own
    epoch_given_up_after_error: bool = True  # L4
    repeats_wait_too: bool = True  # C1


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of everything may happen; each is part of the summary's words. `telling`: records
    that masters tell; `copies`: that is told of the log of a cluster that was copied from this.
    `readers`, `candidates`: how many there are (one candidate alone where there is one epoch).
    `any_crash`: any candidate may, not the first alone. `leaves`: replicants that end in order;
    `resigns`: masters that do. `lengths`: how many a lease may have, each a tick shorter."""

    ticks: int = 0
    records: int = 4
    commits: int = 1
    acks: int = 0
    tells: int = 0
    strangers: int = 0
    telling: int = 0
    copies: int = 0
    epochs: int = 1
    crashes: int = 0
    reboots: int = 0
    errors: int = 0
    readers: int = 1
    candidates: int = 2
    any_crash: bool = False
    leaves: int = 0
    resigns: int = 0
    lengths: int = 1

    def words(self) -> str:
        usual = asdict(Bounds(ticks=-1, records=-1, commits=-1))
        more = {name: value for name, value in asdict(self).items() if value != usual[name]}
        return ", ".join(f"{value} {name}" for name, value in more.items() if value)


class Candidate(NamedTuple):
    """`read`: records read. `flight`: the record that it waits to read back, -1 = none.
    `pending`: offsets whose answers wait. `watch`: serve_from_ns and the nodes it has seen.
    `leases`: those that it will have to wait for as the next master."""

    read: int
    incarnation: int
    master: bool = False
    flight: int = -1
    pending: tuple[int, ...] = ()
    serve_from_ns: int = 0
    watch: tuple[Seen, ...] = ()
    leases: Leases = Leases()


class Told(NamedTuple):
    """A record of the log that the master of that term has told: heard at any time, any number of
    times, or never."""

    epoch: int
    incarnation: bytes
    offset: int
    number: int


class Reader(NamedTuple):
    """A replicant; `booted` is the tick at which its clock showed 0. `granted`: epoch and
    incarnation of the master that last granted it a lease. `wrong`: what it has applied is not
    what the log begins with."""

    read: int
    incarnation: int
    booted: int
    asks: tuple[int, ...] = ()
    until_ns: int = 0
    granted: tuple[int, bytes] = (0, b"")
    wrong: bool = False
    left: bool = False


class World(NamedTuple):
    """`log` and `net` hold numbers of records (`Model.records`); `net`: sent and not landed.
    `answered`: request numbers whose result was given. `told`: positions that went by the fast way,
    each of which may be heard at any time, any number of times, or never; `records_told`: the same
    of records."""

    now: int
    log: tuple[int, ...]
    net: tuple[int, ...]
    candidates: tuple[Candidate, ...]
    readers: tuple[Reader, ...]
    acks: tuple[tuple[Sent, ...], ...]
    answered: frozenset[int]
    told: frozenset[Sent]
    records_told: frozenset[Told]
    commits: int
    acked: int
    crashes: int
    reboots: int
    errors: int
    leaves: int = 0
    resigns: int = 0


def incarnation(who: int, number: int) -> bytes:
    return bytes((who, number))


def reader_incarnation(which: int, number: int) -> bytes:
    return incarnation(FIRST_READER + which, number)


def clock_ns(world: World, reader: Reader) -> int:
    """A replicant's own clock."""
    return (world.now - reader.booted) * NS_PER_MS


def with_reader(world: World, which: int, reader: Reader) -> World:
    readers = tuple(reader if n == which else r for n, r in enumerate(world.readers))
    return world._replace(readers=readers)


def placed(world: World, who: int, candidate: Candidate) -> World:
    candidates = tuple(candidate if n == who else c for n, c in enumerate(world.candidates))
    return world._replace(candidates=candidates)
