"""Faults of machines and of the broker, by the seed: disks, power, clocks, an outage for all.

By a generator of their own, beside those of `chaos.py`. Each run draws which kinds it has; some
have none.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tests.simulation.disks import Trouble

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

MS: Final = 1_000_000
SECOND: Final = 1_000 * MS
MINUTE_MS: Final = 60_000
LOOK_NS: Final = SECOND
"""As often a node looks at its disk (`node/disk_watch.py`)."""
ROOM_LOOK_NS: Final = SECOND // 2
"""As often a process that waits for room before it starts."""
PERCENT_FAST: Final = 1.01


class MachineFaults:
    """Draws one fault after the other until it is stopped."""

    def __init__(self, simulation: Simulation, rng: random.Random) -> None:
        self._sim = simulation
        self._rng = rng
        self._pause_ms = rng.choice((300, 900, 2_500))
        self._on = False
        self.count = 0
        kinds: tuple[Callable[[], None], ...] = (
            self._disk,
            self._disk,
            self._power,
            self._broker,
            self._clock,
        )
        self._kinds = [kind for kind in kinds if rng.random() < 0.5]
        ailing = [each for each in Trouble if each is not Trouble.NONE]
        self.troubles = [each for each in ailing if rng.random() < 0.6]
        # By a generator of its own: what seeds that are named somewhere draw stays what it is.
        self._slowing = random.Random(f"{simulation.seed}/slow brokers")

    def make_one_fast(self) -> None:
        """Perhaps let one machine's clocks run 1 % fast or slow, from the beginning: leases trust
        rates (C3, D3), so far."""
        if self._rng.random() < 0.4:
            clocks = [node.clock for node in self._sim.cluster.nodes.values()]
            clocks += [agent.clock for agent in self._sim.cluster.subscribers.values()]
            clock = self._rng.choice(clocks)
            clock.rate = self._rng.choice((PERCENT_FAST, 1 / PERCENT_FAST))

    # ------------------------------------------------------------ when

    def start(self) -> None:
        self._on = True
        if self._kinds:
            self._plan()
        if self._slowing.random() < 0.3:
            self._slow_brokers_later()
        self.watch_disks()

    def stop(self) -> None:
        """Begin no more, and mend what is broken."""
        self._on = False
        self._sim.cluster.bus.heal()
        for name in self._sim.cluster.nodes:
            self._sim.disks.of(name).trouble = Trouble.NONE

    def _plan(self) -> None:
        delay_ms = self._rng.randrange(1, 2 * self._pause_ms)
        self._sim.scheduler.later(delay_ms * MS, self._strike)

    def _strike(self) -> None:
        if self._on:
            self._rng.choice(self._kinds)()
            self.count += 1
            self._plan()

    def _later(self, action: Callable[[], None]) -> None:
        span_ns = self._rng.choice((100, 600, 2_000)) * self._rng.randrange(MS // 2, MS)
        self._sim.scheduler.later(span_ns, action)

    def _name(self) -> str:
        master = self._sim.cluster.master()
        if master is not None and self._rng.random() < 0.5:
            return master.settings.name
        return self._rng.choice(sorted(self._sim.cluster.nodes))

    # ------------------------------------------------------------ disks

    def watch_disks(self) -> None:
        """Let each node see how much room its disk has, now and then, and leave where that is too
        little."""
        self._sim.scheduler.later(LOOK_NS, self._look)

    def _look(self) -> None:
        for name, node in self._sim.cluster.nodes.items():
            if node.up and not node.stopping:
                self._see(name)
        self.watch_disks()

    def _see(self, name: str) -> None:
        node = self._sim.cluster.nodes[name]

        def see() -> None:
            runner = node.runner
            assert runner is not None, "what comes to a process that is down is dropped"
            runner.step(self._sim.disks.of(name).seen(), node.now())
            if node.up and runner.node.disk.is_out and not node.stopping:
                self._sim.note(f"{name} leaves, its disk is nearly full")
                node.stop()
                self.restart_once_there_is_room(name)

        node.guarded(see)()

    def restart_once_there_is_room(self, name: str) -> None:
        """As whoever looks after processes does, and as a process waits at its start
        (`await_room`)."""
        delay_ns = self._rng.randrange(ROOM_LOOK_NS, 3 * ROOM_LOOK_NS)
        self._sim.scheduler.later(delay_ns, lambda: self._sim.restart(name))

    def _disk(self) -> None:
        if not self.troubles:
            return
        name, trouble = self._name(), self._rng.choice(self.troubles)
        disk = self._sim.disks.of(name)
        self._sim.note(f"{name}'s disk: {trouble.name}")
        disk.trouble = trouble

        def over() -> None:
            disk.trouble = Trouble.NONE

        self._later(over)

    def _power(self) -> None:
        """Its machine goes off and on again, and has not written all that it had committed."""
        name = self._name()
        node = self._sim.cluster.nodes[name]
        if not node.up:
            return
        node.crash()
        lost = self._sim.disks.of(name).cut_power()
        self._sim.note(f"{name} loses its power, and {lost} commits")
        node.clock.boot_ns = -int(self._sim.scheduler.now_ns * node.clock.rate) + MS
        self._later(lambda: self._sim.restart(name))

    # ------------------------------------------------------------ the rest

    def _broker(self) -> None:
        """Nobody reaches it: shorter than an append waits, or longer."""
        bus, now_ns = self._sim.cluster.bus, self._sim.scheduler.now_ns
        span_ms = self._rng.choice((30, 300, 1_200, 4_000))
        self._sim.note(f"the broker is away for {span_ms} ms")
        bus.be_away(now_ns + span_ms * MS)

    def _slow_brokers_later(self) -> None:
        delay_ms = self._slowing.randrange(1, 4_000)
        self._sim.scheduler.later(delay_ms * MS, self._slow_brokers)

    def _slow_brokers(self) -> None:
        """They take long for each record, whoever sends it, for some seconds."""
        if not self._on:
            return
        weather = self._sim.weather
        weather.produce_ms = self._slowing.choice((20, 100, 250))
        self._sim.note(f"brokers take {weather.produce_ms} ms for a record")
        self.count += 1
        span_ms = self._slowing.choice((500, 2_000, 5_000))

        def over() -> None:
            weather.produce_ms = 0
            if self._on:
                self._slow_brokers_later()

        self._sim.scheduler.later(span_ms * MS, over)

    def _clock(self) -> None:
        """It is set by minutes, for a while or for good."""
        name = self._name()
        shift_ms = self._rng.randrange(-30 * MINUTE_MS, 30 * MINUTE_MS)
        clock = self._sim.cluster.nodes[name].clock
        self._sim.note(f"{name}'s wall clock is set, {shift_ms} ms off")
        clock.wall_shift_us = shift_ms * 1_000
        if self._rng.random() < 0.5:

            def right_again() -> None:
                clock.wall_shift_us = 0

            self._later(right_again)
