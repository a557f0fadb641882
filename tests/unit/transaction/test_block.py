"""Between BEGIN and COMMIT: what transaction control does, by where the client stands."""

from __future__ import annotations

import pytest

from leasehold.transaction.block import (
    Block,
    BlockStatus,
    NoTransaction,
    TransactionActive,
    UnknownSavepoint,
)
from leasehold.transaction.isolation import isolation_of

COMMITTED = isolation_of("read committed")


@pytest.fixture
def block() -> Block:
    made = Block()
    assert made.begin(COMMITTED, read_only=False)
    return made


def standing(block: Block) -> BlockStatus:
    return block.status


def test_begin_inside_a_block_changes_nothing(block: Block) -> None:
    assert not block.begin(isolation_of("snapshot"), read_only=True)
    assert (block.isolation, block.read_only) == (COMMITTED, False)


def test_an_error_fails_a_block_and_nothing_outside_of_one(block: Block) -> None:
    block.fail()
    assert standing(block) == BlockStatus.FAILED
    block.end()
    block.fail()
    assert standing(block) == BlockStatus.IDLE


def test_rolling_back_to_a_savepoint_opens_a_failed_block_and_keeps_that_one(block: Block) -> None:
    block.savepoint("a", 1)
    block.savepoint("b", 2)
    block.savepoint("a", 3)
    block.fail()
    assert block.roll_back_to("b") == 2
    assert standing(block) == BlockStatus.OPEN
    assert block.roll_back_to("b") == 2
    assert block.roll_back_to("a") == 1  # the later one of that name is gone
    with pytest.raises(UnknownSavepoint):
        block.roll_back_to("b")


def test_release_takes_the_later_ones_along(block: Block) -> None:
    block.savepoint("a", 1)
    block.savepoint("b", 2)
    block.release("a")
    assert block.savepoints == []
    with pytest.raises(UnknownSavepoint):
        block.release("b")


def test_outside_of_a_block_there_are_no_savepoints() -> None:
    with pytest.raises(NoTransaction):
        Block().savepoint("a", 0)
    with pytest.raises(NoTransaction):
        Block().release("a")


def test_the_level_can_be_set_until_something_has_run(block: Block) -> None:
    block.set_modes(isolation_of("snapshot"), read_only=True)
    block.used = True
    block.set_modes(isolation_of("snapshot"))
    with pytest.raises(TransactionActive):
        block.set_modes(COMMITTED)
    with pytest.raises(TransactionActive):
        block.set_modes(read_only=False)
