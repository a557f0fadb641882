"""Random inputs, good ones among them: how all fuzzes of a whole database go (README.md)."""

from __future__ import annotations

import gc
import logging
import os
import random
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

SEED: Final = int(os.environ.get("SEED") or random.SystemRandom().getrandbits(32))
ROUND: Final = int(os.environ.get("ROUND") or 0)
"""The first one; with SEED it repeats a failure."""
INPUTS: Final = 1_000
INPUTS_LONG: Final = int(os.environ.get("INPUTS") or 1_000_000)
ROUND_INPUTS: Final = 10_000
"""Of one database: then another one begins, so that what its judges remember has an end, and a
failure is found again in a short time."""
GOOD_S: Final = 1.0
"""Processor time of this process within which a good input is answered by all nodes together."""
INPUT_S: Final = 5.0
"""Of one bad input, with its answer: what PostgreSQL's statement_timeout and our budgets bound."""
MEMORY_BYTES_MAX: Final = 400 << 20
"""That a fuzz may take beside what its first database has taken: topics in memory hold all that
was sent, and judges remember what was answered."""
TRIES_MAX: Final = 40

Given: TypeAlias = Any


class Target(Protocol):
    """A whole database, or one of its readers."""

    def give(self, given: Given) -> None:
        """Put a bad input. Raises AssertionError for an answer that is none of ours."""
        ...

    def good(self) -> None:
        """Put a good one, and demand its answer."""
        ...

    def end(self) -> None:
        """Demand that all is as if there had been good ones alone."""
        ...

    def close(self) -> None: ...


Open: TypeAlias = Callable[[Path], Target]
Make: TypeAlias = Callable[[random.Random, Any], Given]
"""A bad input; it may look at the target for what makes sense there."""


class Told(logging.Handler):
    """What was logged that says a defect of ours: a traceback, or the words of one."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.defects: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        words = record.getMessage()
        if record.exc_info or "internal error" in words or "Traceback" in words:
            self.defects.append(f"{record.name}: {words}")


@contextmanager
def listening() -> Iterator[Told]:
    """Hear what is logged, alone: pytest would keep a line for each of a hundred thousand
    inputs, with the error that it tells and all that this one holds."""
    told = Told()
    root = logging.getLogger()
    before = root.handlers[:]
    root.handlers[:] = [told]
    try:
        yield told
    finally:
        root.handlers[:] = before


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def fuzz(
    name: str, folder: Path, open_target: Open, make: Make, inputs: int, together: int
) -> None:
    """Give so many inputs, a good one behind each `together` of them. Raises AssertionError with
    what to set to see it again, and the inputs that it takes."""
    print(f"{name}: SEED={SEED}, {inputs} inputs")
    before = 0
    number, left = ROUND, inputs
    while left > 0:
        here = min(left, ROUND_INPUTS)
        left -= here
        _round(name, folder / str(number), open_target, make, number, here, together)
        gc.collect()
        if not before:
            before = peak_bytes()
        number += 1
    taken = peak_bytes() - before
    assert taken < MEMORY_BYTES_MAX, f"SEED={SEED}: {taken >> 20} MB more than at first"


def _round(
    name: str,
    folder: Path,
    open_target: Open,
    make: Make,
    number: int,
    inputs: int,
    together: int,
) -> None:
    chance = random.Random(f"{SEED}/{name}/{number}")
    target = open_target(folder)
    since: list[Given] = []
    try:
        with listening() as told:
            try:
                for count in range(1, inputs + 1):
                    since.append(make(chance, target))
                    _give(target, since[-1:])
                    if count % together == 0 or count == inputs:
                        _good(target, told)
                        since.clear()
                target.end()
            except Exception as error:
                found = _narrowed(folder, open_target, since)
                words = f"{name}: SEED={SEED} ROUND={number}: {type(error).__name__}: {error}"
                shown = "\n".join(f"{each!r:.4000}" for each in found)
                raise AssertionError(f"{words}\nafter {len(found)} inputs:\n{shown}") from error
    finally:
        target.close()


def _give(target: Target, inputs: Sequence[Given]) -> None:
    for given in inputs:
        began_s = time.process_time()
        target.give(given)
        took_s = time.process_time() - began_s
        assert took_s < INPUT_S, f"{took_s:.1f} s of the processor for one input"


def _good(target: Target, told: Told) -> None:
    began_s = time.process_time()
    target.good()
    took_s = time.process_time() - began_s
    assert took_s < GOOD_S, f"{took_s:.1f} s of the processor for a good input"
    assert not told.defects, told.defects


def _narrowed(folder: Path, open_target: Open, since: Sequence[Given]) -> Sequence[Given]:
    """Return few of the inputs that fail on a fresh database; all of them where that takes more
    than these."""
    tries = iter(range(TRIES_MAX))

    def fails(inputs: Sequence[Given]) -> bool:
        target = open_target(folder.with_name(f"{folder.name}-again-{next(tries)}"))
        try:
            with listening() as told:
                _give(target, inputs)
                _good(target, told)
                target.end()
        except Exception:  # noqa: BLE001 - whatever it is, it is what was looked for
            return True
        finally:
            target.close()
        return False

    kept, part = list(since), max(1, len(since) // 2)
    try:
        if not fails(kept):
            return kept
        while kept and part:
            at = 0
            while at < len(kept) and len(kept) > 1:
                fewer = [*kept[:at], *kept[at + part :]]
                if fewer and fails(fewer):
                    kept = fewer
                else:
                    at += part
            part //= 2
    except StopIteration:
        pass
    return kept
