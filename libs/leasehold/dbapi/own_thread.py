"""A thread of one's own for what blocks, awaited from an event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")
STOP_AGAIN_S: Final = 0.02
"""What is stopped may be between two statements, where there is nothing to stop."""


class _Piece(NamedTuple):
    work: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Any]


class OwnThread:
    """A thread that does one piece of work after the other. It ends with `end`, whatever becomes of
    the loop."""

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[_Piece | Callable[[], Any] | None] = SimpleQueue()
        # The thread knows the queue alone, so that whoever owns it can be collected, and end it.
        self._thread = Thread(target=_serve, args=(self._queue,), name=name, daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[], T], stop: Callable[[], None]) -> T:
        """Return what `work` does, or raise. A task that is cancelled meanwhile calls `stop` until
        the work has ended, and is cancelled then: nothing of it goes on behind its back."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._queue.put(_Piece(work, loop, done))
        cancelled: asyncio.CancelledError | None = None
        while not done.done():
            try:
                await asyncio.wait({done}, timeout=None if cancelled is None else STOP_AGAIN_S)
            except asyncio.CancelledError as error:
                cancelled = error
            if cancelled is not None and not done.done():
                stop()
        if cancelled is None:
            return done.result()
        done.exception()  # looked at: it was stopped, which is no news
        raise cancelled

    def end(self) -> None:
        """End it after what was given it; returns when it has ended."""
        self._queue.put(None)
        self._thread.join()

    def abandon(self, last: Callable[[], Any]) -> None:
        """Let it do this yet and end, with nobody waiting."""
        self._queue.put(last)
        self._queue.put(None)


def _serve(queue: SimpleQueue[_Piece | Callable[[], Any] | None]) -> None:
    while (piece := queue.get()) is not None:
        if not isinstance(piece, _Piece):
            with contextlib.suppress(Exception):  # nobody is there who could be told
                piece()
            continue
        tell = _worked(piece)
        # Whoever is told may count on it that nothing of the work is kept alive here.
        del piece
        tell()
        del tell


def _worked(piece: _Piece) -> Callable[[], None]:
    """Do the work, and return what tells of it."""
    work, loop, done = piece
    try:
        return partial(_tell, loop, done, work(), None)
    except BaseException as error:  # noqa: BLE001 - it is raised where the work is awaited
        return partial(_tell, loop, done, None, error)
    finally:
        del piece, work, loop, done  # an error's traceback keeps what stands here


def _tell(
    loop: asyncio.AbstractEventLoop,
    done: asyncio.Future[Any],
    result: Any,
    failure: BaseException | None,
) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody awaits it any more
        loop.call_soon_threadsafe(_settle, done, result, failure)


def _settle(done: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
    if done.done():
        return
    if failure is None:
        done.set_result(result)
    elif isinstance(failure, StopIteration):
        done.set_exception(RuntimeError("the work raised StopIteration"))
    else:
        done.set_exception(failure)
