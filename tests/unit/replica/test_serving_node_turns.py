"""Whoever waits for a node to take a step, and whoever tells of one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest

from leasehold.replica.serving_node import ServingNode
from leasehold.settings.client import ClientSettings

SOON_S = 20


def serving() -> tuple[ServingNode, Any]:
    inner = SimpleNamespace(followers=())
    node: Any = SimpleNamespace(error=None, on_tick=None, node=inner)
    return ServingNode(node, cast(Any, None), ClientSettings()), node


def test_who_tells_of_a_step_never_waits_for_those_who_look() -> None:
    """A look may read the store; a cancel, and the node itself, come by meanwhile."""
    waits, _ = serving()
    looks, may_end = threading.Event(), threading.Event()

    def met() -> bool:
        looks.set()
        return may_end.wait(SOON_S)

    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(waits.wait, met, SOON_S)
        try:
            assert looks.wait(SOON_S)
            pool.submit(waits.wake_waiters).result(SOON_S / 4)
        finally:
            may_end.set()
        assert waiting.result(SOON_S)


def test_a_step_while_somebody_looks_is_looked_at() -> None:
    waits, _ = serving()
    looked: list[int] = []

    def met() -> bool:
        looked.append(1)
        if len(looked) == 1:
            waits.wake_waiters()  # behind the look, before the wait
        return len(looked) >= 2

    assert waits.wait(met, SOON_S)


def test_waiting_ends_with_its_time_or_with_the_node() -> None:
    waits, node = serving()
    assert not waits.wait(lambda: False, 0.01)
    assert waits.wait(lambda: True, 0.0)
    node.error = RuntimeError("it has stopped")
    with pytest.raises(RuntimeError):
        waits.wait(lambda: False, SOON_S)
