"""How the command shows things: tables and bars for people, JSON for programs.

Answers go to standard output, everything else (progress, errors) to standard error, so that
`leasehold … --json | jq` never meets a word that is not JSON. Colour and bars are only for
terminals; NO_COLOR is respected (rich does both). No word that is shown can steer a terminal
(terminal_text.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.progress import Progress, ProgressColumn
from rich.table import Table
from rich.text import Text

from leasehold.adapters.codec.json_text import json_text
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.hints import hint_of_code
from leasehold.cli.terminal_text import (
    escape_control,
    escape_control_in_json,
    escape_control_in_lines,
)
from leasehold.model.errors import LeaseholdError
from leasehold.model.records.requests import Outcome


class Output:
    """The two streams of a command. With `as_json` programs read: one JSON value per call of
    `json`, each on a line of its own."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.out = Console(highlight=False, soft_wrap=True)
        self.err = Console(stderr=True, highlight=False, soft_wrap=True)

    @property
    def is_terminal(self) -> bool:
        """Whether a person looks on and a line may be drawn over."""
        return self.err.is_terminal and not self.as_json

    def json(self, value: Any) -> None:
        sys.stdout.write(escape_control_in_json(json_text(value)) + "\n")
        sys.stdout.flush()

    def data(self, data: bytes) -> None:
        """Write bytes as they are, for programs and files."""
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def line(self, words: str = "", style: str = "") -> None:
        shown = escape_control_in_lines(words)
        if self.out.is_terminal:
            self.out.print(Text(shown, style))
        else:  # a fifth of the time of thousands of tables was rich's, for lines without a style
            sys.stdout.write(shown + "\n")

    def note(self, words: str) -> None:
        """Write words for people only, beside the answer."""
        if not self.as_json:
            self.err.print(Text(escape_control_in_lines(words), "dim"))

    def error(self, words: str, code: str = "", hint: str | None = None) -> None:
        """Write what is wrong, and what to do about it; `hint` None: what is known of the code, ""
        = nothing."""
        hint = hint_of_code(code) if hint is None else hint
        if self.as_json:
            self.json({"error": words, "code": code, **({"hint": hint} if hint else {})})
        shown = escape_control_in_lines(words)
        self.err.print(Text.assemble(("leasehold: ", "bold red"), shown))
        if hint:
            self.err.print(Text(f"hint: {escape_control_in_lines(hint)}"))

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[Any]], empty: str) -> None:
        """Write a table, or `empty` if it has no row. Heads that start with ">" are numbers (to the
        right)."""
        heads = [escape_control(head) for head in heads]
        listed = [[_cell(value) for value in row] for row in rows]
        if not listed:
            self.line(empty, "dim")
            return
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for head in heads:
            right = head.startswith(">")
            name = Text(head.removeprefix(">"))  # a name is no markup
            table.add_column(name, justify="right" if right else "left")
        for row in listed:
            table.add_row(*row)
        self.out.print(table, soft_wrap=False) if self.out.is_terminal else self._plain(
            heads, listed
        )

    def _plain(self, heads: Sequence[str], rows: Sequence[Sequence[Text]]) -> None:
        """Write a table into a file or a pipe: full width, whatever a terminal would cut off."""
        names = [head.removeprefix(">") for head in heads]
        texts = [names, *([cell.plain for cell in row] for row in rows)]
        widths = [max(len(row[at]) for row in texts) for at in range(len(names))]
        for row in texts:
            cells = [
                cell.rjust(width) if head.startswith(">") else cell.ljust(width)
                for cell, width, head in zip(row, widths, heads, strict=True)
            ]
            sys.stdout.write("  ".join(cells).rstrip() + "\n")

    def progress(self, *columns: str | ProgressColumn) -> Progress:
        """Return a bar on standard error; it draws nothing where no person looks on."""
        return Progress(
            *columns, console=self.err, disable=not self.is_terminal, refresh_per_second=8
        )


STYLES = {
    "coherent": "green",
    "follows": "green",
    "incoherent": "yellow",
    "silent": "red",
    "ready": "green",
    "grace": "yellow",
    "closed": "yellow",
    "away": "red",
    "succeeded": "green",
    "failed": "red",
    "cancelled": "yellow",
    "running": "cyan",
    "paused": "yellow",
    "rolling back": "yellow",
}


def _cell(value: Any) -> Text:
    if isinstance(value, Text):
        return value
    if value is None:
        return Text("–", "dim")
    words = f"{value:,}" if type(value) is int else escape_control(str(value))
    return Text(words, STYLES.get(words, ""))


def refusal_words(refused: Outcome | LeaseholdError) -> str:
    """Returns the message of a refusal with its detail behind it, where that says more."""
    detail = refused.detail.get("detail")
    return f"{refused.message} ({detail})" if detail else refused.message


def show_outcome(
    outcome: Outcome, output: Output, words: Callable[[], str], style: str = "", **more: object
) -> ExitCode:
    """Show what became of the one request of a command, and return its exit code. `words` says it
    for people if the request was committed; `more` is what JSON says beside the outcome."""
    if output.as_json:
        output.json({**more, **outcome._asdict()})
    elif outcome.lsn:
        output.line(words(), style)
    if outcome.lsn:
        return ExitCode.OK
    output.error(f"{outcome.code}: {outcome.message}", outcome.code)
    return ExitCode.NOT_RIGHT


def clock_time(unix_us: int) -> str:
    """Return the local date and time of an event, for people; "–" for none."""
    if unix_us <= 0:
        return "–"
    timestamp = datetime.fromtimestamp(unix_us / 1e6, UTC).astimezone()
    return timestamp.strftime("%Y-%m-%d %H:%M:%S")
