"""How far a backup or a restore is: a bar for a terminal, a line at each step for a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from leasehold.backup.told import Told
from leasehold.cli.output import Output


class _Bars:
    """Shows how far the work is: a bar for a terminal, a line at each step for a file."""

    def __init__(self, bars: Progress, output: Output) -> None:
        self._bars = bars
        self._output = output
        self._task: TaskID | None = None

    def step(self, words: str) -> None:
        self._show(words, None)

    def begin(self, words: str, total: int) -> None:
        self._show(words, total)

    def add(self, done: int) -> None:
        if self._task is not None:
            self._bars.advance(self._task, done)

    def _show(self, words: str, total: int | None) -> None:
        if not self._output.is_terminal:
            self._output.note(f"{words} …")
            return
        if self._task is not None:
            self._bars.remove_task(self._task)
        self._task = self._bars.add_task(words, total=total)


@contextmanager
def shown(output: Output) -> Iterator[Told]:
    """Draw the bars until the block ends."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with output.progress(*columns) as bars:
        yield _Bars(bars, output)
