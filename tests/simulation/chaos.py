"""Faults by the seed: what the network does all the time, and what happens to whom, when."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from leasehold.in_process.network import Hops, PipelineHops

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

US = 1_000
MS = 1_000_000
DAY_MS = 86_400_000
HOUR_US = 3_600_000_000
CLOCKS_APART_MS = 30_000


class Weather:
    """How the network is now; one for all."""

    def __init__(self) -> None:
        self.rough = False
        self.append_errors = 0.0
        self.untold = 0.0
        self.produce_ms = 0
        """What brokers take for each record, beside the network."""

    def calm_down(self) -> None:
        self.rough = False
        self.append_errors = 0.0
        self.untold = 0.0
        self.produce_ms = 0


class ChaosHops(Hops):
    """`slow` multiplies this node's delays."""

    def __init__(self, rng: random.Random, weather: Weather) -> None:
        self._rng = rng
        self._weather = weather
        self.slow = 1

    def _delay_ns(self) -> int:
        rng = self._rng
        if self._weather.rough and rng.random() < 0.02:
            return rng.randrange(5 * MS, 80 * MS)
        return rng.randrange(50 * US, 2 * MS) * self.slow

    def deliver_ns(self) -> int:
        return self._delay_ns()

    def produce_ns(self) -> int:
        return self._delay_ns() + self._weather.produce_ms * MS

    def ledger_ns(self) -> int:
        return self._delay_ns()

    def publish_ns(self) -> int:
        return self._delay_ns()

    def publish_outcome(self) -> str:
        if self._rng.random() >= self._weather.untold:
            return "ok"
        return self._rng.choice(("lost", "unanswered", "twice"))

    def survives_crash(self) -> bool:
        return self._rng.random() < 0.5

    def late_ns(self) -> int:
        return self._rng.choice((0, 5 * MS, 100 * MS, 1_000 * MS))

    def append_outcome(self) -> str:
        if self._rng.random() >= self._weather.append_errors:
            return "ok"
        return self._rng.choice(("lost", "unknown", "unknown"))


class ChaosPipelineHops(PipelineHops):
    def __init__(self, rng: random.Random, weather: Weather) -> None:
        self._rng = rng
        self._weather = weather

    def produce_ns(self) -> int:
        return self._rng.randrange(50 * US, 3 * MS)

    def batch_ns(self) -> int:
        return self._rng.randrange(1 * MS, 60 * MS)

    def batch_offsets(self) -> int:
        return self._rng.randrange(1, 60)

    def compacted(self) -> bool:
        return self._rng.random() < 0.5

    def zombie_ns(self) -> int:
        if not self._weather.rough or self._rng.random() < 0.7:
            return 0
        return self._rng.randrange(1 * MS, 3_000 * MS)


class Chaos:
    """Draws one fault after the other until it is stopped."""

    def __init__(self, simulation: Simulation, rng: random.Random, pause_ms: int) -> None:
        self._sim = simulation
        self._rng = rng
        self._pause_ms = pause_ms
        self._on = False
        self._idled = False
        self.count = 0
        # By a generator of its own: what seeds that are named somewhere draw stays what it is.
        self._handing_over = random.Random(f"{simulation.seed}/handing over")
        self.handed_over = 0
        self._faults: list[tuple[int, Callable[[], None]]] = [
            (10, self._crash_node),
            (8, self._pause_node),
            (8, self._isolate_node),
            (4, self._slow_node),
            (4, self._crash_changefeed),
            (5, self._crash_pipeline),
            (6, self._subscriber),
            (3, self._ledger),
            (3, self._wall_clock),
            (1, self._idle),
            (6, self._append_errors),
            (4, self._fast_acks),
        ]
        # Swarm testing: a run without some kinds of fault reaches states that one with all of
        # them never does (a job that gets on, a master that stays).
        self._faults = [fault for fault in self._faults if rng.random() < 0.6] or self._faults

    def start(self) -> None:
        self._on = True
        self._sim.weather.rough = True
        self._plan()
        if self._handing_over.random() < 0.5:
            self._hand_over_later()

    def stop(self) -> None:
        self._on = False

    def _plan(self) -> None:
        delay_ms = self._rng.randrange(1, 2 * self._pause_ms)
        self._sim.scheduler.later(delay_ms * MS, self._strike)

    def _strike(self) -> None:
        if not self._on:
            return
        weights = [weight for weight, _ in self._faults]
        (fault,) = self._rng.choices([fault for _, fault in self._faults], weights)
        fault()
        self.count += 1
        self._plan()

    def _hand_over_later(self) -> None:
        delay_ms = self._handing_over.choice((300, 1_000, 3_000))
        later_ms = self._handing_over.randrange(1, delay_ms)
        self._sim.scheduler.later(later_ms * MS, self._hand_over)

    def _hand_over(self) -> None:
        """The master is told to stop, as in a rolling restart, whatever else goes on."""
        if not self._on:
            return
        master = self._sim.cluster.master()
        if master is not None and not master.stopping:
            name = master.settings.name
            self._sim.note(f"{name} is told to stop")
            self.handed_over += 1
            master.stop()
            down_ms = self._handing_over.choice((100, 400, 1_500))
            self._sim.scheduler.later(down_ms * MS, lambda: self._sim.restart(name))
        self._hand_over_later()

    def _span_ns(self) -> int:
        return self._rng.choice((20, 150, 400, 700, 1_500, 3_500)) * self._rng.randrange(
            MS // 2, MS
        )

    def _later(self, action: Callable[[], None]) -> None:
        self._sim.scheduler.later(self._span_ns(), action)

    def _node(self) -> str:
        master = self._sim.cluster.master()
        if master is not None and self._rng.random() < 0.5:
            return master.settings.name
        return self._rng.choice(sorted(self._sim.cluster.nodes))

    def _crash_node(self) -> None:
        sim, rng = self._sim, self._rng
        name = self._node()
        node = sim.cluster.nodes[name]
        if not node.up:
            return
        how = rng.choices(("crashes", "reboots", "loses its store", "stops"), (6, 3, 2, 1))[0]
        sim.note(f"{name} {how}")
        if how == "stops":
            node.stop()
        else:
            node.crash()
        if how != "crashes" and how != "stops":
            node.clock.boot_ns = -int(sim.scheduler.now_ns * node.clock.rate) + MS
        if how == "loses its store":
            others = [other for other in sorted(sim.cluster.nodes) if other != name]
            sim.restore(name, rng.choice([*others, ""]))
        self._later(lambda: sim.restart(name))

    def _pause_node(self) -> None:
        name, span_ns = self._node(), self._span_ns()
        self._sim.note(f"{name} is paused for {span_ns // MS} ms")
        self._sim.cluster.nodes[name].pause(self._sim.scheduler.now_ns + span_ns)

    def _isolate_node(self) -> None:
        name, span_ns = self._node(), self._span_ns()
        self._sim.note(f"{name} is cut off for {span_ns // MS} ms")
        self._sim.cluster.nodes[name].isolate(self._sim.scheduler.now_ns + span_ns)

    def _slow_node(self) -> None:
        name = self._rng.choice(sorted(self._sim.hops))
        hops = self._sim.hops[name]
        hops.slow = self._rng.choice((3, 20, 100))
        self._sim.note(f"{name} is {hops.slow} times slower")

        def fast_again() -> None:
            hops.slow = 1

        self._later(fast_again)

    def _crash_changefeed(self) -> None:
        feed = self._sim.cluster.changefeed
        if feed.up:
            self._sim.note("the changefeed crashes")
            feed.crash()
            self._later(self._sim.restart_rest)

    def _crash_pipeline(self) -> None:
        cluster = self._sim.cluster
        which, name = self._rng.choice(((cluster.backfill, "backfill"), (cluster.retry, "retry")))
        if which.up:
            self._sim.note(f"the {name} crashes")
            which.crash()
            self._later(self._sim.restart_rest)

    def _subscriber(self) -> None:
        sim, rng = self._sim, self._rng
        if not sim.cluster.subscribers:
            return
        name = rng.choice(sorted(sim.cluster.subscribers))
        agent = sim.cluster.subscribers[name]
        until_ns = sim.scheduler.now_ns + self._span_ns()
        how = rng.choice(("crashes", "is paused", "is cut off"))
        sim.note(f"{name} {how}")
        if how == "crashes" and agent.up:
            agent.crash()
            self._later(sim.restart_rest)
        elif how == "is paused":
            agent.paused_until_ns = until_ns
        else:
            agent.isolated_until_ns = until_ns

    def _ledger(self) -> None:
        sim, rng = self._sim, self._rng
        ledger = sim.cluster.ledger
        how = rng.choice(("restarts", "loses its tail", "loses its state", "FLUSHALL", "is away"))
        sim.note(f"the ledger: {how}")
        if how == "restarts":
            ledger.restart()
        elif how == "loses its tail":
            ledger.restart(lose_last=rng.randrange(1, 60))
        elif how == "loses its state":
            ledger.restart(lose_state=True)
        elif how == "FLUSHALL":
            ledger.flush()
        else:
            # The same server as of the fast way; that one alone may be away too, below.
            ledger.reachable = False
            sim.cluster.pubsub.away = True
            self._later(sim.ledger_back)
            self._later(sim.ears_back)

    def _wall_clock(self) -> None:
        name = self._node()
        most_ms = self._rng.choice((CLOCKS_APART_MS, CLOCKS_APART_MS, 2 * DAY_MS, 60 * DAY_MS))
        if self._idled:
            most_ms = CLOCKS_APART_MS
        shift_ms = self._rng.randrange(-most_ms, most_ms)
        self._sim.note(f"{name}'s wall clock is {shift_ms} ms off")
        self._sim.cluster.nodes[name].clock.wall_shift_us = shift_ms * 1_000

    def _idle(self) -> None:
        """Nothing happens for hours, once in a run: all hosts were suspended. Less than an id is
        remembered for: what is under way is decided all the same. ⚠ Not beside a clock that is days
        off: if its host is master next, nothing tells it of hours in which there was none."""
        sim, hours = self._sim, self._rng.choice((1, 10, 20))
        shifts = [node.clock.wall_shift_us for node in sim.cluster.nodes.values()]
        if self._idled or max(map(abs, shifts)) > CLOCKS_APART_MS * 1_000:
            return
        self._idled = True
        sim.note(f"nothing happens for {hours} hours")
        sim.scheduler.set_clock_on(hours * HOUR_US)
        clocks = [node.clock for node in sim.cluster.nodes.values()]
        clocks += [agent.clock for agent in sim.cluster.subscribers.values()]
        for clock in clocks:
            clock.boot_ns += hours * HOUR_US * US

    @property
    def has_idled(self) -> bool:
        """Return whether hours have passed in which the log told nobody the time."""
        return self._idled

    def _append_errors(self) -> None:
        weather = self._sim.weather
        weather.append_errors = self._rng.choice((0.02, 0.1, 0.4))
        self._sim.note(f"{weather.append_errors:.0%} of appends to the log fail")

        def over() -> None:
            weather.append_errors = 0.0

        self._later(over)

    def _fast_acks(self) -> None:
        """What is told is lost, doubled or not answered for; or nobody passes it on."""
        sim, weather = self._sim, self._sim.weather
        if self._rng.random() < 0.4:
            sim.note("the fast way of acknowledgements is away")
            sim.cluster.pubsub.away = True
            self._later(sim.ears_back)
            return
        weather.untold = self._rng.choice((0.05, 0.5, 1.0))
        sim.note(f"{weather.untold:.0%} of what is told to masters goes astray")

        def over() -> None:
            weather.untold = 0.0

        self._later(over)
