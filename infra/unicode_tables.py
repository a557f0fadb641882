"""Writes `libs/leasehold/values/unicode_tables.py`: what `upper`, `lower` and `initcap` go by.

`python -m infra.unicode_tables`, in a Python whose own tables are of that version of Unicode (3.11
for 14.0.0): they are made from the files of the Unicode Character Database, and say the same.
Whoever sets another version gives every index over these functions another meaning.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

VERSION: Final = "14.0.0"
TARGET: Final = (
    Path(__file__)
    .resolve()
    .parent.parent.joinpath("libs", "leasehold", "values", "unicode_tables.py")
)
WIDTH: Final = 92
Run = tuple[int, int, int, int]
HEAD: Final = f'''"""Letters of Unicode {VERSION}. Written by infra/unicode_tables.py, not by hand.

A run is first-last/step:distance, in hexadecimal digits: the letter of each character in it is so
far away. Without a step it is 1, without a distance the run only says which characters there are.
"""

from typing import Final

VERSION: Final = "{VERSION}"
'''


def characters() -> Iterator[str]:
    """All but the surrogates, which are in no text."""
    yield from map(chr, range(0xD800))
    yield from map(chr, range(0xE000, sys.maxunicode + 1))


def simple_upper(character: str) -> str:
    """Return a letter's upper case by UnicodeData.txt, where Python has SpecialCasing.txt's as
    well."""
    for form in (character.upper(), character.title()):
        if len(form) == 1:
            return form
    return character


def simple_lower(character: str) -> str:
    return character.lower()[0]


def runs(pairs: Iterable[tuple[int, int]]) -> list[Run]:
    """Join characters of one distance that are 1 or 2 apart into runs; `pairs` are in order."""
    made: list[Run] = []
    for at, distance in pairs:
        if made:
            first, last, step, other = made[-1]
            gap = at - last
            if distance == other and gap in (1, 2) and (gap == step or first == last):
                made[-1] = (first, at, gap, distance)
                continue
        made.append((at, at, 1, distance))
    return made


def written(run: Run) -> str:
    first, last, step, distance = run
    text = f"{first:x}" if first == last else f"{first:x}-{last:x}"
    return text + (f"/{step}" if step > 1 else "") + (f":{distance:x}" if distance else "")


def assignment(name: str, pairs: Iterable[tuple[int, int]]) -> str:
    lines = [""]
    for word in map(written, runs(pairs)):
        if len(lines[-1]) + len(word) > WIDTH:
            lines.append("")
        lines[-1] += f" {word}"
    text = "\n".join(f"   {line}" for line in lines)
    return f'{name}: Final = """\n{text}\n"""\n'


def render() -> str:
    upper = [(ord(c), ord(simple_upper(c)) - ord(c)) for c in characters()]
    lower = [(ord(c), ord(simple_lower(c)) - ord(c)) for c in characters()]
    return "\n".join(
        [
            HEAD.rstrip("\n"),
            assignment("UPPER", (pair for pair in upper if pair[1])).rstrip("\n"),
            assignment("LOWER", (pair for pair in lower if pair[1])).rstrip("\n"),
            assignment("LETTERS_AND_DIGITS", ((ord(c), 0) for c in characters() if c.isalnum())),
        ]
    )


def main() -> int:
    if unicodedata.unidata_version != VERSION:
        print(
            f"unicode_tables: this Python has Unicode {unicodedata.unidata_version}; run it with"
            f" one that has {VERSION}",
            file=sys.stderr,
        )
        return 2
    TARGET.write_text(render(), encoding="utf-8")
    print(f"unicode_tables: wrote {TARGET}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
