"""The thread in which the retry stream is looked after.

Whoever waits for a next attempt waits for a client's sake. The driver's own loop reads jobs, starts
runs and removes their folders on a file system that may be slow, and what a backfill does may keep
it for as long as a batch takes. So the stream has a thread of its own, and its jobs a pool of their
own in Spark's fair scheduler: within one pool they would stand behind those of a backfill.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Thread
from typing import Final, Protocol

log: Final = logging.getLogger(__name__)

POOL: Final = "retries"
POLL_S: Final = 0.2
STOP_S: Final = 15.0


class Stream(Protocol):
    """What is looked after: `verify_retry.RetryStream`."""

    trouble: str
    waiting: int

    def start(self) -> None: ...
    def turn(self) -> None: ...
    def close(self) -> None: ...


class RetryThread:
    """Starts a stream, has it turn until it is closed, and closes it, all in one thread. What ends
    it otherwise is raised by `check`."""

    def __init__(self, stream: Stream, take_pool: Callable[[str], None]) -> None:
        """Make ready to start. `take_pool` gives the calling thread's jobs a pool of Spark's."""
        self._stream = stream
        self._take_pool = take_pool
        self._closing = Event()
        self._begun = Event()
        self._failed: BaseException | None = None
        self._thread = Thread(target=self._work, name="retries", daemon=True)

    @property
    def trouble(self) -> str:
        """Return why the stream does not run; "" when it does, or has nothing to do."""
        return self._stream.trouble

    @property
    def waiting(self) -> int:
        """Return in how many buckets requests wait for their next attempt, as of the last look."""
        return self._stream.waiting

    def start(self) -> None:
        """Start the stream. Raises what starting it raises."""
        self._thread.start()
        self._begun.wait()
        self.check()

    def check(self) -> None:
        """Raise what has ended the thread."""
        if self._failed is not None:
            raise self._failed

    def close(self) -> None:
        """End the stream and the thread; one that hangs is left to the process's end."""
        self._closing.set()
        if self._thread.ident is None:
            self._stream.close()
            return
        self._thread.join(STOP_S)
        if self._thread.is_alive():
            log.warning("the retry stream does not end within %d s", STOP_S)

    def _work(self) -> None:
        try:
            self._take_pool(POOL)
            self._stream.start()
            self._begun.set()
            while not self._closing.wait(POLL_S):
                self._stream.turn()
        except BaseException as error:  # noqa: BLE001 - raised in the driver's own thread
            self._failed = error
        finally:
            self._begun.set()
            self._stream.close()
