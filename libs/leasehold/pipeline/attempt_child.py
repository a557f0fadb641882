"""Computes next attempts in a child process, which a conflict may end without ending its worker.

A process that dies of a conflict can say nothing afterwards, and its stream begins again at the
same one, for ever. So a worker of the retry has a child compute. Who has ended `ENDED_MAX` of them,
one after the other, is given up unread, and a dead letter says why.

⚠ Not marks in a file of what is computed next: on a cluster it would be one of each machine's own,
and an end that had other reasons, such as a machine that was switched off, would count.
"""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

import msgpack

from leasehold.model.closing import Closing

ENDED_MAX: Final = 2
_FIRST_TO_GO: Final = "1000"
"""Of a thousand, as the kernel counts: where memory is short the child ends, and no other."""
log: Final = logging.getLogger(__name__)


class _ChildEnded(Exception):
    """Tells that a child has ended before it told what it was asked for."""


class AttemptChild(Closing):
    """A child that computes for this process, one entry after the other: forked when it is first
    asked, since that costs milliseconds, and anew when one has ended. It ends with its parent.

    Entries and what `compute` returns are what can be packed; tuples arrive as such. For one
    thread."""

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        self._compute = compute
        self._child = 0
        self._requests: io.BufferedWriter | None = None
        self._results: Any = None
        self._source: io.FileIO | None = None

    def results(self, entries: Iterable[Any], give_up: Callable[[Any], Any]) -> Iterator[Any]:
        """Yield what is computed for each entry, in their order; for one that has ended as many
        children as may, what `give_up` returns, here. Raises OSError where none can be had."""
        for entry in entries:
            for _ in range(ENDED_MAX):
                try:
                    result = self._ask(entry)
                    break
                except _ChildEnded:
                    log.error("a process has ended while it computed a next attempt")
            else:
                result = give_up(entry)
            yield result

    def close(self) -> None:
        """End the child, if there is one."""
        for end in (self._requests, self._source):
            if end is not None:
                with suppress(BrokenPipeError):
                    end.close()
        if self._child:
            os.waitpid(self._child, 0)
        self._child, self._requests, self._source = 0, None, None

    def _ask(self, entry: Any) -> Any:
        if self._requests is None:
            self._fork()
        assert self._requests is not None
        try:
            self._requests.write(msgpack.packb(entry))
            self._requests.flush()
            return next(self._results)
        except (BrokenPipeError, StopIteration):
            self.close()
            raise _ChildEnded from None

    def _fork(self) -> None:
        """Raises OSError."""
        asked, asking = os.pipe()
        told, telling = os.pipe()
        try:
            child = os.fork()
        except OSError:
            for end in (asked, asking, told, telling):
                os.close(end)
            raise
        if child == 0:
            os.close(asking)
            os.close(told)
            _serve(self._compute, asked, telling)
        os.close(asked)
        os.close(telling)
        self._child = child
        self._requests = os.fdopen(asking, "wb")
        # Without a buffer: what has come is to be seen at once.
        self._source = io.FileIO(told, "rb")
        self._results = msgpack.Unpacker(self._source, use_list=False)


def _serve(compute: Callable[[Any], Any], asked: int, telling: int) -> NoReturn:
    """Compute until there is no more to be asked, and end. Nothing of the parent's is closed or
    flushed by it."""
    code = 1
    try:
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")
        with io.FileIO(asked, "rb") as source, os.fdopen(telling, "wb") as target:
            for entry in msgpack.Unpacker(source, use_list=False):
                target.write(msgpack.packb(compute(entry)))
                target.flush()
        code = 0
    except BaseException:
        log.exception("a next attempt can't be computed")
    finally:
        os._exit(code)
