"""A node that was stopped: whoever reads is told why, and not that it might yet become coherent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from leasehold.model.errors import NotCoherent, StoreUnwritable
from leasehold.replica.replica import Replica
from leasehold.replica.serving_node import ServingNode
from leasehold.settings.client import ClientSettings


class Node(SimpleNamespace):
    """A KafkaNode that holds a lease or not, and was stopped or not."""

    def __init__(self, *, coherent: bool, error: StoreUnwritable | None = None) -> None:
        agent = SimpleNamespace(leases=None)
        lease = SimpleNamespace(holds=lambda _now_ns: coherent)
        node = SimpleNamespace(lease=lease, agent=agent, followers=())
        super().__init__(error=error, on_tick=None, node=node)


FULL = "the store can't be written"


def served(node: Any) -> ServingNode:
    store: Any = None
    return ServingNode(node, store, ClientSettings())


@pytest.mark.parametrize("wait_s", [0.0, 5.0])
def test_c2_a_read_on_a_stopped_node_raises_what_stopped_it(wait_s: float) -> None:
    serving = served(Node(coherent=False, error=StoreUnwritable(FULL)))
    with pytest.raises(StoreUnwritable, match=FULL):
        serving.single_read(wait_s).check_coherent()
    with pytest.raises(StoreUnwritable, match=FULL):
        serving.reads("a report").check_coherent()


def test_c2_while_its_lease_lasts_it_reads_on_and_one_that_runs_is_not_coherent_yet() -> None:
    """What it has applied is right for as long as the lease says."""
    stopped = Node(coherent=True, error=StoreUnwritable(FULL))
    served(stopped).single_read().check_coherent()
    with pytest.raises(NotCoherent):
        served(Node(coherent=False)).single_read().check_coherent()


def test_an_lsn_is_waited_for_until_reads_see_it() -> None:
    """The node's own position may be ahead of what its store has committed."""
    node: Any = Node(coherent=True)
    shown = 9
    node.node.position = SimpleNamespace(lsn=9)
    node.node.sees_below = lambda lsn: lsn <= shown
    replica = Replica.__new__(Replica)
    replica.serving, replica._node = served(node), node
    with pytest.raises(NotCoherent, match="to apply LSN 9"):
        replica.wait_applied(9, timeout_s=0.0)
    shown = 10
    replica.wait_applied(9, timeout_s=0.0)


def test_the_error_does_not_grow_with_each_who_is_told() -> None:
    error = StoreUnwritable(FULL)
    serving = served(Node(coherent=False, error=error))
    lengths = set()
    for _ in range(5):
        with pytest.raises(StoreUnwritable):
            serving.wait(lambda: False, 0.0)
        trace, length = error.__traceback__, 0
        while trace is not None:
            trace, length = trace.tb_next, length + 1
        lengths.add(length)
    assert len(lengths) == 1
