"""The cycle collector rests while it is told to, and is then as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from leasehold.adapters.os.garbage import without_collecting


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    gc.enable()


def test_it_rests_in_the_block_whatever_ends_that() -> None:
    def fail() -> None:
        with without_collecting():
            assert not gc.isenabled()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert gc.isenabled()


def test_it_stays_off_where_it_was_off() -> None:
    gc.disable()
    with without_collecting():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_blocks_may_stand_in_each_other() -> None:
    with without_collecting():
        with without_collecting():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
