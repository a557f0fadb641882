"""A bounded pool of threads that are started when they are needed and end when they are told to."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from time import monotonic

Work = Callable[[], None]


class WorkerThreads:
    """Runs what `submit` is given, each piece once, on one of at most `threads_max` threads.

    Lighter than concurrent.futures: no result, no future (a piece must not raise).
    """

    def __init__(self, name: str, threads_max: int) -> None:
        self._name = name
        self._threads_max = threads_max
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._lock = Lock()
        self._threads: list[Thread] = []
        self._free = 0
        """Threads that wait, minus pieces that wait for them."""

    def submit(self, work: Work) -> None:
        """Queue a piece of work. Raises RuntimeError where the machine has no thread for it, and
        none works that would come to it."""
        with self._lock:
            if self._free <= 0 and len(self._threads) < self._threads_max:
                self._start_one()
            self._free -= 1
        self._queue.put(work)

    def _start_one(self) -> None:
        name = f"{self._name}-{len(self._threads)}"
        thread = Thread(target=self._run, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # a limit of the system's; it may have one again later
            if not self._threads:
                raise
            return
        self._threads.append(thread)
        self._free += 1

    def stop(self, timeout_s: float) -> bool:
        """Ends the threads once they have done what was submitted; False: some still work after
        `timeout_s`, all in all."""
        with self._lock:
            threads = list(self._threads)
        for _ in threads:
            self._queue.put(None)
        end_s = monotonic() + timeout_s
        for thread in threads:
            thread.join(max(end_s - monotonic(), 0.0))
        return not any(thread.is_alive() for thread in threads)

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            work()
            with self._lock:
                self._free += 1
