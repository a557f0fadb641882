"""The cycle collector, in a process that makes many small tuples."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

THRESHOLDS: Final = (50_000, 20, 50)


def collect_seldom() -> None:
    """Make the cycle collector run seldom. What is there stays and is looked through no more, and
    records are tuples without cycles, tens of thousands a second: what the scans of the young
    generation would cost is a stall for every request behind."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


@contextmanager
def without_collecting() -> Iterator[None]:
    """Let the cycle collector rest in the block, in all threads of this process: for what makes
    very many objects that all stay, each hundred thousand of which it would look through."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
