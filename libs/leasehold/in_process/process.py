"""A node's process when all of a database is in one: it dies, stands still, or is cut off, and what
happens to it meanwhile waits or is lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from leasehold.in_process.bus import Scheduler
from leasehold.in_process.network import NodeClock
from leasehold.in_process.task import MemoryTask
from leasehold.model.ports import Now
from leasehold.node.runner import NodeRunner


class MemoryProcess(MemoryTask):
    """The process of a node, which has a `runner` while it is up. All times are the scheduler's,
    but for those of `now`."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler)
        self.runner: NodeRunner | None = None
        self.clock = NodeClock()
        self.paused_until_ns = 0
        self.isolated_until_ns = 0
        self.worked_ns = 0
        """What the work of the turn that runs has taken so far, where a simulation counts it."""
        self._held: deque[Callable[[], None]] = deque()  # while paused
        self._cut_off: deque[Callable[[], None]] = deque()  # while isolated

    def now(self) -> Now:
        """Return the time by this process's own clocks."""
        return self.clock.now(self.scheduler)

    def begin(self) -> None:
        super().begin()
        self._held.clear()
        self._cut_off.clear()

    def crash(self) -> None:
        super().crash()
        self.runner = None

    # ------------------------------------------------------------ what is done to it

    def pause(self, until_ns: int) -> None:
        """Stop it as SIGSTOP does until then: what arrives meanwhile waits."""
        self.paused_until_ns = max(self.paused_until_ns, until_ns)

    def isolate(self, until_ns: int) -> None:
        """Cut it off from broker and ledger until then; the process and its clock go on."""
        self.isolated_until_ns = max(self.isolated_until_ns, until_ns)

    def heal(self) -> None:
        """End a pause and an isolation now."""
        self.paused_until_ns = self.isolated_until_ns = 0
        self._release()

    @property
    def paused(self) -> bool:
        return self.scheduler.now_ns < self.paused_until_ns

    @property
    def isolated(self) -> bool:
        return self.scheduler.now_ns < self.isolated_until_ns

    # ------------------------------------------------------------ what happens to it

    def run(self, action: Callable[[], None]) -> None:
        """Do what is this process's to do now. What that has taken by its end it stands still for
        afterwards, and what it has sent leaves no earlier."""
        self.worked_ns = 0
        action()
        worked_ns, self.worked_ns = self.worked_ns, 0
        if worked_ns and self.up:
            self.pause(self.scheduler.now_ns + worked_ns)

    def guarded(self, action: Callable[[], None]) -> Callable[[], None]:
        """Return what does the action in this life or never, and after the pause if paused."""

        def act() -> None:
            if self.paused or self._held:
                # In order, also when the pause is made longer meanwhile.
                self._held.append(action)
                self.scheduler.at(self.paused_until_ns, self._release)
                return
            self.run(action)

        return self.in_this_life(act)

    def from_network(self, action: Callable[[], None]) -> Callable[[], None]:
        """Return what does the action as `guarded`, and not before an isolation is over."""
        inner = self.guarded(action)

        def act() -> None:
            if self.isolated or self._cut_off:
                self._cut_off.append(inner)
                self.scheduler.at(self.isolated_until_ns, self._release)
                return
            inner()

        return self.in_this_life(act)

    def _release(self) -> None:
        while self._cut_off and not self.isolated:
            self._cut_off.popleft()()
        while self._held and not self.paused and self.up:
            self.run(self._held.popleft())
        if self._held and self.paused:  # by what that has taken
            self.scheduler.at(self.paused_until_ns, self._release)
