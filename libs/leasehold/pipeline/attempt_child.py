"""Computes next attempts in a child process, which a conflict may end without ending its worker.

A process that dies of a conflict can say nothing afterwards, and its stream begins again at the
same one, for ever. So a worker of the retry computes in a child. Who has ended `ENDED_MAX` of them,
one after the other, is given up unread, and a dead letter says why.

⚠ Not marks in a file of what is computed next: on a cluster it would be one of each machine's own,
and an end that had other reasons, such as a machine that was switched off, would count.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import msgpack

ENDED_MAX: Final = 2
_FIRST_TO_GO: Final = "1000"
"""Of a thousand, as the kernel counts: where memory is short the child ends, and no other."""
log: Final = logging.getLogger(__name__)

Entry = TypeVar("Entry")


def compute_aside(
    entries: Sequence[Entry], compute: Callable[[Entry], Any], give_up: Callable[[Entry], Any]
) -> Iterator[Any]:
    """Yield what `compute` returns for each entry, in their order: what can be packed, tuples as
    such. For one that has ended as many children as may, what `give_up` returns, here. Raises
    OSError where no child can be had."""
    left, ended = deque(entries), 0
    while left:
        for result in _in_child(tuple(left), compute):
            left.popleft()
            ended = 0
            yield result
        if not left:
            return
        ended += 1
        log.error("a process has ended while it computed a next attempt")
        if ended == ENDED_MAX:
            ended = 0
            yield give_up(left.popleft())


def _in_child(entries: Sequence[Entry], compute: Callable[[Entry], Any]) -> Iterator[Any]:
    """Yield what a child tells until it ends."""
    reading, writing = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        raise
    if child == 0:
        os.close(reading)
        _tell(entries, compute, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as source:
            yield from msgpack.Unpacker(source, use_list=False)
    finally:
        os.waitpid(child, 0)


def _tell(entries: Sequence[Entry], compute: Callable[[Entry], Any], writing: int) -> NoReturn:
    """End this process, with all told or by what meets it. Nothing of its parent's is closed or
    flushed by it."""
    code = 1
    try:
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")
        with os.fdopen(writing, "wb") as target:
            for entry in entries:
                target.write(msgpack.packb(compute(entry)))
                target.flush()
        code = 0
    except BaseException:
        log.exception("a next attempt can't be computed")
    finally:
        os._exit(code)
