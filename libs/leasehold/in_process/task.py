"""What all that runs on a bus in memory has in common: it dies, and starts again."""

from __future__ import annotations

from collections.abc import Callable

from leasehold.in_process.bus import Scheduler, Subscription


class MemoryTask:
    """What was under way in one life comes to nothing in the next."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.up = False
        self.life = 0
        self.subscriptions: dict[str, Subscription] = {}
        """By what is read; of this life."""

    def begin(self) -> None:
        """Begin another life."""
        assert not self.up, "it runs"
        self.up = True
        self.life += 1

    def crash(self) -> None:
        """Kill -9: no farewell."""
        self.up = False
        self.life += 1
        for subscription in self.subscriptions.values():
            subscription.cancel()
        self.subscriptions.clear()

    def in_this_life(self, action: Callable[[], None]) -> Callable[[], None]:
        """Return what does the action unless this life is over then."""
        life = self.life

        def act() -> None:
            if self.life == life and self.up:  # made after its end, it is of no life
                action()

        return act

    def later(self, delay_ns: int, action: Callable[[], None]) -> None:
        """Do the action after that time, in this life or never."""
        self.scheduler.later(delay_ns, self.in_this_life(action))
