"""Users on many threads while the holder's thread moves them on: no use is lost or stranded."""

from __future__ import annotations

import sys
from threading import Barrier, Thread

from leasehold.lease.agent.held_leases import FOREVER_NS, HeldLeases
from leasehold.lease.commands import Lease

THREADS = 4
USES = 4_000
MOVES = 300


def test_d4_no_lease_is_idle_while_it_is_used() -> None:
    """The interpreter switches threads as often as it can. Each user checks that a lease which
    it holds is not reported idle with no user on it; at the end all but the newest are idle. Half
    of them take the lease that they had before, as long as new users may."""
    leases = HeldLeases(FOREVER_NS)
    first = leases.add(Lease(1, 1))
    leases.put_first(first)
    start = Barrier(THREADS + 1)
    failures: list[str] = []

    def user(keeps: bool) -> None:
        start.wait()
        lease = None
        for _ in range(USES):
            if lease is None or not keeps or not leases.acquire_again(lease):
                lease = leases.acquire(1)
            if lease is None or lease.is_idle:
                failures.append(f"{lease}")
                return
            leases.release(lease)

    threads = [Thread(target=user, args=(number % 2 == 0,)) for number in range(THREADS)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        start.wait()
        for version in range(2, MOVES):
            leases.put_first(leases.add(Lease(1, version)))
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(interval)
    assert failures == []
    reported = {lease.id.version for lease in leases.idle}
    assert reported == set(range(1, MOVES - 1)), "each retired lease was reported when it emptied"
    assert all(lease.is_idle for lease in leases.each())


def test_d4_a_lease_is_given_again_only_as_long_as_it_is_what_new_users_get() -> None:
    leases = HeldLeases(1_000)
    leases.put_first(leases.add(Lease(1, 1)))
    lease = leases.acquire(1)
    assert lease is not None
    assert leases.acquire_again(lease, 999)
    assert len(lease.users) == 2
    assert not leases.acquire_again(lease, 1_000), "D3: it has run out"
    leases.put_first(leases.add(Lease(1, 2)))
    assert not leases.acquire_again(lease)
    leases.release(lease)
    assert not leases.idle
    assert leases.release(lease)
    assert not leases.acquire_again(lease)
    assert list(leases.idle) == [lease], "who was refused has been no user"
    gone = leases.acquire(1)
    assert gone is not None
    leases.release(gone)
    leases.remove(gone)
    assert not leases.acquire_again(gone)
