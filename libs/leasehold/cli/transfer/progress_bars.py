"""Rows on their way: bars for a terminal, a line now and then for a file."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from leasehold.adapters.os.clock import boottime_ns
from leasehold.cli.output import Output
from leasehold.cli.terminal_text import escape_control
from leasehold.transfer.following import Lag

LINE_EVERY_NS: Final = 10_000_000_000
_STREAM: Final = ""
"""Stands for no table."""


class RowProgress:
    """Rows of tables that have come, from whichever thread tells of them."""

    def __init__(self, output: Output, totals: Mapping[str, int]) -> None:
        self._output = output
        self._totals = totals
        self._lock = threading.Lock()
        self._rows = dict.fromkeys(totals, 0)
        self._began_ns = self._told_ns = boottime_ns()
        self.came = 0
        """In this run alone."""
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[words]}", markup=False),
            TimeElapsedColumn(),
        )
        self._bars: Progress = output.progress(*columns)
        self._tasks: dict[str, TaskID] = {}

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Draw the bars until the block ends."""
        with self._bars:
            yield

    def note(self, words: str) -> None:
        self._output.note(words)

    def rows(self, table: str, rows: int, bytes_: int) -> None:
        """Count rows of a table; without bytes they were there before."""
        with self._lock:
            self._rows[table] = self._rows.get(table, 0) + rows
            if bytes_:
                self.came += rows
            self._draw(table)

    def lag(self, lag: Lag) -> None:
        """Show how far the target is behind the source."""
        words = f"{lag.applied:,} changes came; {lag.bytes:,} bytes of the source's log behind"
        if self._output.is_terminal:
            if _STREAM not in self._tasks:
                self._tasks[_STREAM] = self._bars.add_task("following", total=None, words="")
            self._bars.update(self._tasks[_STREAM], words=words)
        elif boottime_ns() - self._told_ns >= LINE_EVERY_NS:
            self._told_ns = boottime_ns()
            self._output.note(words)

    @property
    def per_second(self) -> float:
        """Return the rows of this run, per second since it began."""
        return self.came * 1e9 / max(1, boottime_ns() - self._began_ns)

    def _draw(self, table: str) -> None:
        rows, total = self._rows[table], max(self._totals.get(table, 0), self._rows[table])
        if self._output.is_terminal:
            if table not in self._tasks:
                self._tasks[table] = self._bars.add_task(escape_control(table), words="")
            words = f"{rows:,} rows, {self.per_second:,.0f}/s in all"
            self._bars.update(self._tasks[table], total=total, completed=rows, words=words)
        elif boottime_ns() - self._told_ns >= LINE_EVERY_NS:
            self._told_ns = boottime_ns()
            all_rows = sum(self._rows.values())
            self._output.note(f"{all_rows:,} rows, {self.per_second:,.0f}/s ({table})")
