"""A log that is slow: brokers take hundreds of ms for each record, and no node is at fault.

Goal: who answers reads goes on answering them, without a gap (C3, C5); once the log is quick again
a node that dies is waited for no longer than before (C4). Method: a stage on which all that is sent
to the brokers, or read from them, takes long, with a writer; each ms it is looked who is coherent.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest

from leasehold.replication.coherency import CoherencySettings
from tests.simulation.simulation import MS
from tests.simulation.stage import Stage

SETTINGS: Final = CoherencySettings()
LEARNT_MS: Final = 6_000
"""Until a master knows how slow the log is: some grants have to be on their way for so long."""
LOOKED_MS: Final = 12_000


def slow(stage: Stage, produce_ms: int, deliver_ms: int = 1) -> None:
    for hops in stage.scripted.values():
        hops.produce_ms, hops.deliver_ms = produce_ms, deliver_ms


def longest_left_ms(stage: Stage, name: str) -> int:
    """Return how long a node's lease lasts at most, looked at for a second."""
    longest_ns = 0
    for _ in range(1_000):
        stage.passing(1)
        node = stage.node(name)
        assert node.node is not None, "it is up"
        longest_ns = max(longest_ns, node.node.lease.until_ns - node.now().mono_ns)
    return longest_ns // MS


class Writer:
    """Writes one row after the other."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._asked = b""
        self.answered = 0
        self.without_lease_ms: Counter[str] = Counter()

    def write_for(self, virtual_ms: int) -> None:
        """Write for so long, and count for how long each replicant does not answer reads."""
        stage = self._stage
        for _ in range(virtual_ms):
            if not self._asked or self._asked in stage.results:
                self.answered += bool(self._asked)
                self._asked = stage.ask(stage.update(1, self.answered))
            stage.passing(1)
            replicants = {node.settings.name for node in stage.cluster.replicants()}
            self.without_lease_ms.update(replicants - set(stage.coherent()))


@pytest.mark.parametrize("produce_ms", [40, 120, 250])
def test_c3_nodes_keep_their_leases_while_the_log_is_slow(produce_ms: int) -> None:
    """Ask, the record before it and its own take up to 750 ms, and a lease lasted 500: it was over
    when it arrived, on every node."""
    stage = Stage(election_timeout_ms=2_000)
    slow(stage, produce_ms)
    Writer(stage).write_for(LEARNT_MS)
    writer = Writer(stage)
    writer.write_for(LOOKED_MS)
    assert not writer.without_lease_ms
    assert writer.answered > LOOKED_MS // (8 * produce_ms), "writes go on"


def test_c5_who_is_alone_is_not_left_out_for_what_the_brokers_take() -> None:
    """Its acknowledgement takes as long as the master's records do, and nothing quicker is
    there."""
    stage = Stage(election_timeout_ms=2_000)
    stage.cluster.pubsub.away = True
    stage.node("r2").crash()
    slow(stage, 150, 120)
    Writer(stage).write_for(LEARNT_MS)
    writer = Writer(stage)
    writer.write_for(LOOKED_MS)
    assert writer.without_lease_ms["r1"] == 0
    assert writer.answered > 5, "writes go on"


def test_c4_leases_are_short_again_once_the_log_is_quick() -> None:
    stage = Stage(election_timeout_ms=2_000)
    slow(stage, 250)
    Writer(stage).write_for(LEARNT_MS)
    assert longest_left_ms(stage, "r1") > SETTINGS.duration_ms
    slow(stage, 1)
    Writer(stage).write_for(LEARNT_MS)
    assert longest_left_ms(stage, "r1") <= SETTINGS.duration_ms
    stage.node("r1").crash()
    asked, begun_ns = stage.ask(stage.update(2, 22)), stage.scheduler.now_ns
    stage.answer(asked)
    waited_ms = (stage.scheduler.now_ns - begun_ns) // MS
    assert waited_ms <= SETTINGS.duration_ms + SETTINGS.defer_ms + 20
