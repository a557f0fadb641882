"""Tells which running jobs are to be looked at now. A job that waits for an answer, for its own
record or for a time costs nothing until that comes, however many of them there are."""

from __future__ import annotations

from heapq import heappop, heappush

from leasehold.catalog.catalog import Catalog


class DueJobs:
    """The running jobs of a catalog, each due or at rest. ⚠ One that changed in the catalog is due:
    what it rested for may count no more. All are due at first."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._due = set(catalog.running)
        self._times: list[tuple[int, int]] = []  # (at_ns, job id), a heap
        self._next: dict[int, int] = {}  # the next of them by job
        self._changes = catalog.job_changes

    def follow(self) -> tuple[list[int], list[int]]:
        """Take what has changed in the catalog; return the running jobs that have changed, by their
        ids, and those that have ended."""
        changed = self._catalog.jobs_changed_since(self._changes)
        self._changes = self._catalog.job_changes
        running, ended = [], []
        for job_id in sorted(changed):
            if job_id in self._catalog.running:
                self._due.add(job_id)
                running.append(job_id)
            else:
                self._due.discard(job_id)
                ended.append(job_id)
        return running, ended

    def wake(self, job_id: int) -> None:
        """Let a job be due, if it runs."""
        if job_id in self._catalog.running:
            self._due.add(job_id)

    def rest(self, job_id: int) -> None:
        """Let a job rest until something else wakes it."""
        self._due.discard(job_id)

    def wake_at(self, job_id: int, at_ns: int) -> None:
        """Let a job be due at that time, or earlier."""
        known_ns = self._next.get(job_id)
        if known_ns is None or at_ns < known_ns:  # else it is looked at before, and says so again
            self._next[job_id] = at_ns
            heappush(self._times, (at_ns, job_id))

    def take(self, now_ns: int) -> list[int]:
        """Return the jobs that are due, by their ids; they stay so until they `rest`."""
        while self._times and self._times[0][0] <= now_ns:
            at_ns, job_id = heappop(self._times)
            if self._next.get(job_id) == at_ns:
                del self._next[job_id]
            self.wake(job_id)
        return sorted(self._due)

    def next_ns(self) -> int | None:
        """Return the next time at which a job is due that rests; None: there is none."""
        return self._times[0][0] if self._times else None
