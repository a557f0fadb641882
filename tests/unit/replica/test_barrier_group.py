"""T6: who asks for a barrier joins one that is not yet sent, and never one on its way.

Method: an append that is held up by hand, threads that ask meanwhile; no clock.
"""

from __future__ import annotations

import threading

import pytest

from leasehold.model.errors import BusUnavailable
from leasehold.replica.barrier_group import BarrierGroup

WAIT_S = 10


class HeldLog:
    """`append` waits to be let go; offsets count up."""

    def __init__(self) -> None:
        self.sent = threading.Semaphore(0)
        self.let_go = threading.Semaphore(0)
        self.offsets = 0
        self.fails = False

    def append(self) -> int:
        self.offsets += 1
        offset = self.offsets
        self.sent.release()
        assert self.let_go.acquire(timeout=WAIT_S)
        if self.fails:
            raise BusUnavailable("no broker")
        return offset


class Asker(threading.Thread):
    def __init__(self, group: BarrierGroup[int]) -> None:
        super().__init__(daemon=True)
        self._group = group
        self.found: int | BusUnavailable | None = None
        self.start()

    def run(self) -> None:
        try:
            self.found = self._group.place()
        except BusUnavailable as error:
            self.found = error


def joined(group: BarrierGroup[int], requesters: int) -> list[Asker]:
    """So many threads that have asked, and wait."""
    found = [Asker(group) for _ in range(requesters)]
    while group.waiting < requesters:
        threading.Event().wait(0.001)
    return found


def test_one_on_its_way_is_not_joined_and_one_that_waits_is_shared() -> None:
    log = HeldLog()
    group = BarrierGroup(log.append)
    first = Asker(group)
    assert log.sent.acquire(timeout=WAIT_S)
    rest = joined(group, 5)
    log.let_go.release()
    first.join(WAIT_S)
    assert first.found == 1
    assert log.sent.acquire(timeout=WAIT_S)
    late = joined(group, 1)
    log.let_go.release()
    for requester in rest:
        requester.join(WAIT_S)
    assert [requester.found for requester in rest] == [2] * 5, "five share one"
    log.let_go.release()
    late[0].join(WAIT_S)
    assert late[0].found == 3
    assert log.offsets == 3


def test_a_failure_is_told_to_all_who_share_it_and_to_nobody_else() -> None:
    log = HeldLog()
    group = BarrierGroup(log.append)
    log.fails = True
    first = Asker(group)
    assert log.sent.acquire(timeout=WAIT_S)
    log.let_go.release()
    first.join(WAIT_S)
    assert isinstance(first.found, BusUnavailable)
    log.fails = False
    log.let_go.release()
    assert group.place() == 2


def test_alone_it_is_just_an_append() -> None:
    group = BarrierGroup(lambda: 7)
    assert group.place() == 7
    with pytest.raises(BusUnavailable):
        BarrierGroup(_no_broker).place()


def _no_broker() -> int:
    raise BusUnavailable("no broker")
