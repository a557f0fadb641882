"""A budget counts work and memory, and refuses before either is spent."""

from __future__ import annotations

import random
import threading

import pytest

from leasehold.adapters.os.memory_pool import MemoryPool
from leasehold.model.budget import (
    CALL_WORK_MAX,
    GRAIN_BYTES,
    LOOK_WORK,
    Budget,
    charge,
    give_back,
    hold,
    spending,
)
from leasehold.model.errors import OutOfMemory, QueryCanceled, TooComplex

MB = 1 << 20
PLENTY = 1 << 60


def test_a_call_that_nothing_can_stop_is_refused_before_it_begins() -> None:
    budget = Budget(PLENTY)
    budget.charge(CALL_WORK_MAX)
    with pytest.raises(TooComplex):
        budget.charge(CALL_WORK_MAX + 1)


def test_without_a_budget_the_limit_of_a_call_holds_all_the_same() -> None:
    charge(CALL_WORK_MAX)
    with pytest.raises(TooComplex):
        charge(CALL_WORK_MAX + 1)


@pytest.mark.parametrize("step", [1_000, LOOK_WORK, CALL_WORK_MAX])
def test_a_look_comes_once_in_look_work_or_with_each_larger_call(step: int) -> None:
    looks: list[int] = []
    budget = Budget(PLENTY, look=lambda: looks.append(1))
    steps = 4_000
    for _ in range(steps):
        budget.charge(step)
    assert len(looks) == steps * min(step, LOOK_WORK) // LOOK_WORK


def test_what_a_look_raises_ends_the_work() -> None:
    def look() -> None:
        raise QueryCanceled("its time is over")

    budget = Budget(PLENTY, look=look)
    budget.charge(LOOK_WORK - 1)
    with pytest.raises(QueryCanceled):
        budget.charge(1)


def test_memory_of_a_statement_ends_at_its_limit_which_the_error_names() -> None:
    budget = Budget(10 * MB, setting="LEASEHOLD_SQL_MEMORY_MB")
    budget.hold(10 * MB)
    with pytest.raises(OutOfMemory, match=r"10 MB.*LEASEHOLD_SQL_MEMORY_MB"):
        budget.hold(1)
    assert budget.held == 10 * MB
    budget.give_back(1)
    budget.hold(1)


def test_memory_of_a_node_is_shared_and_comes_back() -> None:
    pool = MemoryPool(10 * MB)
    first, second = (Budget(PLENTY, pool) for _ in range(2))
    first.hold(6 * MB)
    with pytest.raises(OutOfMemory, match="10 MB"):
        second.hold(5 * MB)
    second.hold(4 * MB)
    first.close()
    second.hold(6 * MB)
    second.close()
    second.close()
    assert pool.held == 0


def test_the_pool_never_holds_more_than_its_limit_nor_less_than_the_budgets() -> None:
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    pool = MemoryPool(20 * MB)
    budgets = [Budget(12 * MB, pool) for _ in range(5)]
    for _ in range(3_000):
        budget = chance.choice(budgets)
        kind = chance.randrange(5)
        if kind == 4:
            budget.close()
        elif kind == 3 and budget.held:
            budget.give_back(chance.randrange(budget.held))
        else:
            before = budget.held
            try:
                budget.hold(chance.randrange(3 * MB))
            except OutOfMemory:
                assert budget.held == before
        assert sum(each.held for each in budgets) <= pool.held <= pool.bytes_max
    for budget in budgets:
        budget.close()
    assert pool.held == 0


def test_small_rows_ask_the_pool_once_for_many() -> None:
    pool = MemoryPool(10 * MB)
    budget = Budget(PLENTY, pool)
    budget.hold(1)
    assert pool.held == GRAIN_BYTES
    for _ in range(600):
        budget.hold(100)
    assert pool.held == GRAIN_BYTES


def test_the_last_bytes_of_the_pool_are_given_out_exactly() -> None:
    pool = MemoryPool(GRAIN_BYTES + 10)
    first, second = (Budget(PLENTY, pool) for _ in range(2))
    first.hold(GRAIN_BYTES)
    second.hold(10)
    with pytest.raises(OutOfMemory):
        second.hold(1)


def test_a_budget_holds_for_its_thread_and_block_alone() -> None:
    outer, inner = Budget(PLENTY), Budget(PLENTY)
    with spending(outer):
        hold(1)
        with spending(inner):
            hold(5)
            give_back(2)
        other = threading.Thread(target=hold, args=(100,))
        other.start()
        other.join()
        hold(4)
    hold(8)
    assert (outer.held, inner.held) == (5, 3)
