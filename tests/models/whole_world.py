"""The whole model's world: what a state holds, what bounds it, which rules can be switched off."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Final, NamedTuple

from leasehold.lease.agent.session import HolderLimits
from leasehold.lease.ledger.state import TableRow
from leasehold.model.time_units import NS_PER_MS
from tests.models.coherency_part import Seen
from tests.models.mutants.lease import Rules as LeaseRules
from tests.models.mutants.replication import ReplicationRules

TABLE: Final = 1
NOTHING: Final = TableRow(0, 0, 0)  # of the table in a ledger that is empty
TTL: Final = 2  # ticks that a session lives
NO_MASTER: Final = -1  # has not claimed
SHUT_OUT: Final = -2  # deposed, and the ledger knows
BEGIN: Final = 10  # the tick at which the model begins; 0 would mean "never" to the real code
LIMITS: Final = HolderLimits(
    session_ttl_ns=TTL * NS_PER_MS,
    renew_every_ns=NS_PER_MS,
    margin_ns=0,
    retry_after_ns=NS_PER_MS,
)


@dataclass(frozen=True, slots=True)
class Rules:
    """Every rule of replication, jobs, verification and leases; a test switches one off."""

    replication: ReplicationRules = field(default_factory=ReplicationRules)
    lease: LeaseRules = field(default_factory=LeaseRules)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of everything may happen. `records`: in the log after the first Claim. `writes`:
    requests, each under any version up to the newest. `acks`: asks for a coherency lease.
    `losses`: the ledger comes back empty, or as it began, under another run id. `subscriber`: the
    follower has no store, so it decodes under its lease and serves no reads. `steady`: its user
    stays; `mute`: it renews no more; `prompt`: it reads the log as it grows."""

    ticks: int = 0
    records: int = 4
    writes: int = 0
    acks: int = 0
    takeovers: int = 0
    losses: int = 0
    subscriber: bool = False
    steady: bool = False
    mute: bool = False
    prompt: bool = False

    def words(self) -> str:
        return ", ".join(
            name if value is True else f"{value} {name}"
            for name, value in asdict(self).items()
            if value
        )


class Master(NamedTuple):
    """`jobs`: number of its SchemaChanges (`Jobs`), or one of those below. `flight`: the record
    that it waits to read back, -1 = none. `pending`: offsets whose answers wait (C1)."""

    jobs: int = NO_MASTER
    flight: int = -1
    pending: tuple[int, ...] = ()
    serve_from_ns: int = 0
    watch: tuple[Seen, ...] = ()


class Follower(NamedTuple):
    """A replicant, or a subscriber. `read`: records of the log it has. `agent`: number of its
    Holder. `using`: the version that its one user has pinned, 0 = there is none."""

    read: int
    agent: int
    using: int
    asks: tuple[int, ...] = ()
    until_ns: int = 0


class World(NamedTuple):
    """`log` and `net` hold numbers of records; `net`: sent and not landed. `ahead`: the ledger
    was one ahead of the log when the last Claim was read. `harm`: of an act, not of a state."""

    now: int
    log: tuple[int, ...]
    net: tuple[int, ...]
    masters: tuple[Master, ...]
    ledger: int
    run: int
    follower: Follower
    answered: bool = False
    ahead: bool = False
    harm: str = ""
    decided: int = 0
    acked: int = 0
    losses: int = 0


def now_ns(world: World) -> int:
    return world.now * NS_PER_MS


def run_id(run: int) -> str:
    return f"run-{run}"


def incarnation(who: int) -> bytes:
    return bytes((who, 0))


def placed(world: World, who: int, master: Master) -> World:
    masters = tuple(master if n == who else m for n, m in enumerate(world.masters))
    return world._replace(masters=masters)
