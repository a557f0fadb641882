"""The fenced blocks of a Markdown document, what they say is printed, and whether that is so.

A document is plain Markdown; five comments, which no reader sees, say what else is to be done:

- `<!-- needs a cluster -->` anywhere: the document is run on real servers, by one integration test.
- `<!-- not run: REASON -->` right before a block: it is shown only.
- `<!-- file: NAME -->` right before a block: the block is saved under that name, and not run.
- `<!-- secure: WHO -->` right before a block: it is run on a cluster in secure mode, with the
  settings of its operator, or of its administrator.
- `<!-- kubernetes: NAME -->` right before a block: it is for a cluster with the chart of that set
  of values, and held against that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

RUN: Final = frozenset({"console", "python", "sql"})
NEEDS_CLUSTER: Final = "<!-- needs a cluster -->"
ELLIPSIS: Final = "…"
_BLOCK: Final = re.compile(
    r"(?:^<!-- (?P<mark>not run|file|secure|kubernetes): (?P<said>[^\n]+) -->\n)?"
    r"^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)

_INLINE: Final = re.compile(r"`(leasehold [^`]+)`")


class Block(NamedTuple):
    """`line` is that of its first line of text; `mark` and `said` are of the comment before it."""

    language: str
    text: str
    line: int
    mark: str = ""
    said: str = ""


class Command(NamedTuple):
    """One command of a console block, with the lines that are shown below it."""

    text: str
    shown: tuple[str, ...]
    line: int


def blocks(document: Path) -> list[Block]:
    """Return the fenced blocks of a document in order."""
    text = document.read_text("utf-8")
    return [
        Block(
            found["language"],
            found["text"],
            text.count("\n", 0, found.start("text")) + 1,
            found["mark"] or "",
            found["said"] or "",
        )
        for found in _BLOCK.finditer(text)
    ]


def needs_cluster(document: Path) -> bool:
    return NEEDS_CLUSTER in document.read_text("utf-8")


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a console block: a command goes on in lines that begin with `> `, and
    behind a line that ends with a backslash. Raises ValueError for output above the first one."""
    lines = block.text.splitlines()
    at = 0
    while at < len(lines):
        if not lines[at].startswith("$ "):
            raise ValueError(f"line {block.line + at} belongs to no command: {lines[at]!r}")
        begin, said = at, [lines[at][2:]]
        at += 1
        while at < len(lines) and (said[-1].endswith("\\") or lines[at].startswith("> ")):
            said.append(lines[at].removeprefix("> "))
            at += 1
        shown: list[str] = []
        while at < len(lines) and not lines[at].startswith("$ "):
            shown.append(lines[at])
            at += 1
        yield Command("\n".join(said), tuple(shown), block.line + begin)


def is_as_shown(printed: str, shown: Sequence[str]) -> bool:
    """Is that what is shown? `…` stands for any part of a line, alone on one for any lines."""
    pattern = "".join(_pattern(line) for line in shown)
    told = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    return re.fullmatch(pattern, told) is not None


def _pattern(line: str) -> str:
    if line.strip() == ELLIPSIS:
        return r"(?:[^\n]*\n)*"
    parts = (re.escape(part) for part in line.rstrip().split(ELLIPSIS))
    return r"[^\n]*".join(parts) + r"\n"


def inline_commands(document: Path) -> list[str]:
    """Return what stands in the text between backquotes and begins with `leasehold `, in order;
    what leaves something out (…) is only named there, not shown."""
    text = _BLOCK.sub("", document.read_text("utf-8"))
    found = (" ".join(each.split()) for each in _INLINE.findall(text))
    return [each for each in found if ELLIPSIS not in each]
