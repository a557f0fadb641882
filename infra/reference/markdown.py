"""Markdown of tables and of values, as all pages have them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; a bar within a cell is escaped, a line break becomes a blank."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def code(text: str) -> str:
    """Return `text` as code, also where it has a backtick itself."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def sentence(text: str) -> str:
    """Return the first paragraph of a docstring as one line."""
    return " ".join(text.strip().partition("\n\n")[0].split())


def amount(number: float, unit: str = "") -> str:
    """Return a number with its unit, bytes and milliseconds in units that people read."""
    if unit == "bytes":
        for size, name in _UNITS:
            if number >= size and number % size == 0:
                return f"{number // size:,} {name}"
    if unit == "ms":
        return span(int(number))
    return f"{number:,} {unit}".strip()


def span(milliseconds: int) -> str:
    """Return a time in the largest unit that it is a whole number of."""
    for size, name in ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "s")):
        if milliseconds >= size and milliseconds % size == 0:
            number = milliseconds // size
            return f"{number:,} {name}{'s' if number > 1 and name != 's' else ''}"
    return f"{milliseconds:,} ms"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
