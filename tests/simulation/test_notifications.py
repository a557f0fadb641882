"""Goal: on every node, in each of its lives, whoever listens is told what committed transactions
have told, in the log's order, each once, and nothing else; whatever fails.

Method: the workloads of the simulation with something to tell beside half of their requests, and a
session on each replicant that listens; compared with the log as its observer reads it (N1)."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from leasehold.in_process.node import MemoryNode
from leasehold.model.records.log import Decisions
from leasehold.replica.notifications import Listener, NodeNotifications
from leasehold.replication.node import Node
from tests.simulation.client import Asked, Client
from tests.simulation.simulation import Simulation
from tests.support.every_third import every_third

SEEDS = range(12)
CHANNELS = ("a", "b")
ALL = 1 << 30


class Life:
    """What a session has heard that listens from a node's start on, behind LSN `after`."""

    def __init__(self, node: Node, after: int) -> None:
        self.of = node
        self.after = self.through = after
        self.heard: list[tuple[str, str]] = []
        self.notifications = NodeNotifications("r", lambda _: None, lambda *_: False)
        self.listener = Listener(1)
        self.notifications.listen(self.listener, CHANNELS)


class Listening:
    """Follows a node through all of its lives."""

    def __init__(self, node: MemoryNode) -> None:
        self._node = node
        self.lives: list[Life] = []

    def applied(self, record: Decisions) -> None:
        node = self._node.node
        assert node is not None, "it applies records"
        if not self.lives or self.lives[-1].of is not node:
            self.lives.append(Life(node, record.first_lsn - 1))
        self.lives[-1].notifications.applied(record)

    def committed(self, lsn: int) -> None:
        life = self.lives[-1]
        assert not life.listener.waits, "what was told before is taken"
        life.notifications.committed(lsn)
        taken = life.notifications.take(life.listener, ALL)
        life.heard += [(told.channel, told.payload) for told in taken]
        life.through = lsn


@pytest.fixture(params=every_third(SEEDS))
def simulation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run whose clients have something to tell."""
    seed = request.param
    rng, ask = random.Random(f"{seed}/notify"), Client.ask

    def telling(self: Client, fields: Mapping[str, Any], **more: Any) -> Asked:
        if not {"table", "transaction"}.isdisjoint(fields) and rng.random() < 0.5:
            told = [[rng.choice(CHANNELS), str(rng.randrange(3))] for _ in range(rng.randrange(4))]
            fields = {**fields, "notify": [*told, [rng.choice(CHANNELS), str(len(self.asked))]]}
        return ask(self, fields, **more)

    monkeypatch.setattr(Client, "ask", telling)
    return Simulation(seed)


def test_each_is_told_once_in_order(simulation: Simulation) -> None:
    listening = {}
    for node in simulation.cluster.replicants():
        listening[node.settings.name] = Listening(node)
        node.followers = (listening[node.settings.name],)
    simulation.run()
    every = [(lsn, commit.notifications) for lsn, commit in simulation.reference.every]
    lives = [life for each in listening.values() for life in each.lives]
    for life in lives:
        wanted = [
            tuple(told)
            for lsn, notifications in every
            if notifications is not None and life.after < lsn <= life.through
            for told in notifications.sent
        ]
        assert life.heard == wanted, simulation.seed
    assert sum(len(life.heard) for life in lives) > 0, simulation.seed
