"""The lease model's world: what a state holds and what bounds it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final, NamedTuple

from leasehold.lease.agent.session import HolderLimits
from leasehold.lease.commands import KillSession
from tests.models.lease_objects import Named

TTL: Final = 3
LIMITS: Final = HolderLimits(
    session_ttl_ns=TTL, renew_every_ns=1, margin_ns=0, retry_after_ns=1, rest_ns=1
)
TABLE: Final = 1
VERSIONS_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Bounds:
    """`aways`: calls given up without an answer; `losses`: restarts of the ledger with the state
    of the beginning; `flushes`: it is emptied under the same run id; `takeovers`: new masters.
    `failovers`: a replica with the state of the beginning takes the ledger's place, which lives on.
    `strays`: the agent never finds the new one. `returns`: the master goes back to the one before;
    agent and master then each have the other one. `prompt`: the agent's calls are answered in the
    same step. `steady`: the one user stays.
    `hasty`: jobs neither drain nor ask the watch, so that the ledger alone has to hold D1."""

    ticks: int = 3
    aways: int = 0
    losses: int = 0
    flushes: int = 0
    takeovers: int = 0
    failovers: int = 0
    strays: bool = False
    returns: int = 0
    prompt: bool = False
    steady: bool = False
    hasty: bool = False

    def words(self) -> str:
        return ", ".join(
            name if value is True else f"{value} {name}"
            for name, value in asdict(self).items()
            if value
        )


class Log(NamedTuple):
    """What the log says: the table's versions, and the ledger's run id on record."""

    current: int = 1
    min_version: int = 1
    recorded: str = ""


class World(NamedTuple):
    """`ledger`, `holder`, `watch`, `sessions` are numbers of real objects (`Objects`).
    `call`: sent and not yet arrived; `reply`: on its way back; `late`: calls whose senders have
    given them up. `kills`: deaths decided and not yet sent. `using`: versions of the users.
    `old`, `old_run`: the ledger whose place was taken; the agent talks with it while `astray`."""

    now: int
    ledger: int
    run: int
    log: Log
    holder: int
    call: Named | None
    reply: Named | None
    using: tuple[int, ...]
    epoch: int
    watch: int
    sessions: int
    kills: tuple[KillSession, ...]
    late: tuple[Named, ...]
    harm: str
    aways: int = 0
    losses: int = 0
    flushes: int = 0
    takeovers: int = 0
    failovers: int = 0
    old: int = -1
    old_run: int = 0
    astray: bool = False
    returns: int = 0


def run_id(world: World) -> str:
    return f"run-{world.run}"
