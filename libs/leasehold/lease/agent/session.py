"""An agent's session with the ledger: its counter, its expiry, whether it must register (D3, D6).

The session is what lives and dies; leases live as long as it does. One renewal serves all of
them, so the cost of staying alive does not grow with the tables.

Where the ledger may be replaced by another one while it lives (Sentinel), what it answers proves
nothing of the one that the master publishes through. There a call extends the session, from its
sending, once the master has vouched for it: it was then seen before the master left this ledger,
and whoever publishes through another one waits a TTL first (D6, D11).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

from leasehold.lease.commands import SESSION_ID_MAX, Command, Lease, OpenSession, Register, Renew
from leasehold.lease.replies import Extension, RefusalReason

AT_ONCE: Final = Extension(0, 0)

RENEWALS_PER_TTL: Final = 3
MARGINS_PER_TTL: Final = 30
LOOKS_PER_RENEWAL: Final = 5
"""How often the ledger is asked in the time of a renewal when half of the session has passed, and
the master has vouched for no call since."""
UNVOUCHED_MAX: Final = 16
"""Calls that are remembered until the master vouches for them."""


@dataclass(frozen=True, slots=True)
class HolderLimits:
    """The times and limits of an agent. `margin_ns` covers the difference in clock *rate* over one
    TTL. `rest_ns`: how long after the newest version a lease that nobody had used is asked for
    again; up to twice that, different for each session. 0: it is not given up before the newer one
    is held."""

    session_ttl_ns: int = 15_000_000_000
    renew_every_ns: int = 5_000_000_000
    margin_ns: int = 500_000_000
    retry_after_ns: int = 200_000_000
    waiters_max: int = 10_000
    rest_ns: int = 500_000_000

    def __post_init__(self) -> None:
        assert 0 < self.retry_after_ns <= self.renew_every_ns
        assert self.renew_every_ns + self.margin_ns < self.session_ttl_ns

    @classmethod
    def of_ttl(cls, session_ttl_ms: int) -> Self:
        """Return limits with the renewals and the margin that suit a session of so many ms."""
        ttl_ns = session_ttl_ms * 1_000_000
        return cls(ttl_ns, ttl_ns // RENEWALS_PER_TTL, ttl_ns // MARGINS_PER_TTL)


class AgentSession:
    """An agent's session with the ledger, and the next one when it is gone. `session_ids`: fresh
    random numbers from 1 to SESSION_ID_MAX, one per session."""

    __slots__ = (
        "_agent",
        "_confirmed",
        "_counter",
        "_ids",
        "_limits",
        "_run_id",
        "_sent_ns",
        "_unvouched",
        "_vouched",
        "expires_ns",
        "id",
        "is_open",
        "left",
        "must_register",
        "renew_ns",
        "retry_ns",
        "trouble",
    )

    def __init__(self, agent: str, ids: Iterator[int], limits: HolderLimits) -> None:
        self._agent = agent
        self._ids = ids
        self._limits = limits
        self._run_id = ""  # the ledger that has judged what is held here (D6)
        self._counter = 0  # rises with every call, so that no two calls look alike (D7)
        self._confirmed = 0  # the counter of the last one answered: what the ledger has (D6)
        self._sent_ns = 0
        self._unvouched: list[tuple[int, int]] = []  # (call, when it was sent), in order
        self._vouched = False  # a call to the ledger of that run id counts
        self.id = 0  # 0: none
        self.left = 0  # one that is to end before the next one begins; 0: none
        self.is_open = False
        self.must_register = False  # D6: ledger and agent may differ in what is held
        self.expires_ns = 0  # D3: by this agent's clock
        self.renew_ns = 0
        self.retry_ns = 0  # nothing is sent before
        self.trouble: RefusalReason | None = None  # why the ledger does not serve this agent

    @property
    def in_order(self) -> bool:
        return self.is_open and not self.must_register

    def renewal(self, held: int) -> Renew:
        self._counter += 1
        return Renew(self.id, self._counter, held, self._confirmed)

    def registration(self, leases: tuple[Lease, ...]) -> Command:
        """Opens the session, or registers under it all that is held."""
        if self.id == 0:
            self.id = next(self._ids)
            assert 1 <= self.id <= SESSION_ID_MAX, f"session id {self.id}"
            self._counter = self._confirmed = 0
        if not leases and not self.must_register:
            return OpenSession(self._agent, self.id)
        self._counter += 1
        return Register(self._agent, self.id, self._counter, leases)

    @property
    def counter(self) -> int:
        """The last one used."""
        return self._counter

    def confirmed(self) -> None:
        """The ledger has answered the opening, renewal or registration sent last."""
        self._confirmed = self._counter

    def sent(self, now_ns: int) -> None:
        self._sent_ns = now_ns

    def may_acquire(self) -> bool:
        """Whether a lease granted now is one that a master knows of: its session counts in the
        ledger that grants it. What one before has made it live is no word on that (D11)."""
        return self._vouched

    def is_awaiting_vouch(self, now_ns: int) -> bool:
        """Whether it is open, and usable only once the master has vouched for a call."""
        return self.is_open and bool(self._unvouched) and now_ns >= self.expires_ns

    def judged_by(self, run_id: str, now_ns: int, extension: Extension = AT_ONCE) -> None:
        """The ledger of this run id knows all that is held here, by the log's versions."""
        if run_id != self._run_id:
            self._unvouched.clear()  # the numbers of another ledger's calls
            self._vouched = False
        self._run_id = run_id
        self.is_open = True
        self.must_register = False
        self._extend_by(extension, now_ns)

    def renewed_by(self, run_id: str, now_ns: int, extension: Extension = AT_ONCE) -> None:
        if run_id != self._run_id:
            self.must_register = True  # D6: an answer by another ledger extends nothing
        else:
            self._extend_by(extension, now_ns)

    def served_by(self, run_id: str) -> None:
        """A lease was granted or released; by another ledger it is the only one it knows (D6)."""
        if run_id != self._run_id:
            self.must_register = True

    def _extend_by(self, extension: Extension, now_ns: int) -> None:
        self.renew_ns = self._sent_ns + self._limits.renew_every_ns
        self.trouble = None
        if not self._needs_vouch(extension):
            self._unvouched.clear()
            self._vouched = True
            self._extend(self._sent_ns, now_ns)
            return
        if len(self._unvouched) >= UNVOUCHED_MAX:
            del self._unvouched[-1]  # the first ones are vouched for first, this one last
        self._unvouched.append((extension.call, self._sent_ns))
        while self._unvouched and self._unvouched[0][0] <= extension.vouched:
            self._vouched = True
            self._extend(self._unvouched.pop(0)[1], now_ns)
        self._ask_soon(now_ns)

    def _needs_vouch(self, extension: Extension) -> bool:
        """Whether the call counts only once the master has seen it (D11)."""
        return extension.call > 0

    def _extend(self, sent_ns: int, now_ns: int) -> None:
        """Extend the session from the *sending* of a call (D3): a reply that comes after its own
        expiry grants nothing."""
        limits = self._limits
        expires_ns = sent_ns + limits.session_ttl_ns - limits.margin_ns
        self.expires_ns = max(self.expires_ns, expires_ns)

    def _ask_soon(self, now_ns: int) -> None:
        """Ask before the next renewal is due, where the master is late in vouching."""
        limits = self._limits
        if not self.expires_ns:  # it has just begun
            self.renew_ns = self._sent_ns + limits.retry_after_ns
        elif now_ns >= self.expires_ns - limits.session_ttl_ns // 2:
            pause_ns = max(limits.retry_after_ns, limits.renew_every_ns // LOOKS_PER_RENEWAL)
            self.renew_ns = self._sent_ns + pause_ns

    def wait(self, now_ns: int) -> None:
        self.retry_ns = now_ns + self._limits.retry_after_ns

    def leave(self) -> None:
        """Give the session up, which the ledger still has: nothing is used under it any more."""
        self.left = self.id
        self.gone(must_register=False)

    def gone(self, *, must_register: bool) -> None:
        """The ledger does not have it, or does not want it: the next call opens another."""
        self.id = 0
        self.is_open = False
        self.must_register = must_register
        self._unvouched.clear()
        self._vouched = False
