"""How far an import is, kept in a table of the target.

PURE. Each part of an import (the whole, a range, the stream) has one row; who goes on writes the
next one and takes the former away, in the very request that brings the rows. So a part moves with
its rows or not at all, a request that comes twice, or late from a process that was killed, finds
the row gone that it has to take away (40001), and two imports of one name don't mix. *Not* a file:
it would have to move with commits of another machine. *Not* ids derived from ranges alone: what
became of an id is known for a day, and an import may rest for longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from leasehold.transfer.quoting import quote_name, quote_text

TABLE: Final = "leasehold_imports"
CREATE: Final = (
    f"CREATE TABLE IF NOT EXISTS {TABLE} (import text, part text, step bigint, place text NOT NULL,"
    " rows bigint NOT NULL, done boolean NOT NULL, PRIMARY KEY (import, part, step))"
)
WHOLE: Final = ""
"""The part that stands for the import itself."""
STREAM: Final = "stream"
COLUMNS: Final = ("import", "part", "step", "place", "rows", "done")
Fields = Mapping[str, Any]


class Part(NamedTuple):
    """A part as it is kept. `rows`: that it has brought so far."""

    name: str
    step: int
    place: str
    rows: int = 0
    done: bool = False

    def moved(self, place: str, rows: int, *, done: bool = False) -> Part:
        """Return it one step on."""
        return Part(self.name, self.step + 1, place, self.rows + rows, done)


def part_of_range(table: str, number: int) -> str:
    """Return the name of a range's part."""
    return f"rows/{number}/{table}"


def table_of(part: str) -> tuple[str, int] | None:
    """Return table and number of a range's part, None for another one's."""
    kind, _, rest = part.partition("/")
    number, _, table = rest.partition("/")
    return (table, int(number)) if kind == "rows" else None


def insert_parts(name: str, parts: Iterable[Part]) -> Fields:
    """Return the operation that begins parts."""
    rows = [[name, *part] for part in parts]
    return {"table": TABLE, "op": "insert", "columns": list(COLUMNS), "rows": rows}


def move_part(name: str, before: Part, after: Part) -> list[Fields]:
    """Return the operations by which a part goes on, refused where it isn't as it was `before`."""
    return [remove_part(name, before), insert_parts(name, [after])]


def remove_part(name: str, part: Part) -> Fields:
    """Return the operation that takes a part away, refused where it isn't as it was."""
    return {"table": TABLE, "op": "delete", "key": [name, part.name, part.step], "expect": 0}


def parts_query(name: str) -> str:
    """Return the query of all parts of an import."""
    shown = ", ".join(map(quote_name, COLUMNS[1:]))
    return f'SELECT {shown} FROM {TABLE} WHERE "import" = {quote_text(name)}'


def part_query(name: str, part: str) -> str:
    """Return the query of one part."""
    return f"{parts_query(name)} AND part = {quote_text(part)}"


def read_parts(rows: Iterable[Sequence[str | None]]) -> dict[str, Part]:
    """Return parts by name, of rows of `parts_query` as texts."""
    found: dict[str, Part] = {}
    for part, step, place, count, done in rows:
        assert part is not None
        found[part] = Part(part, int(step or 0), place or "", int(count or 0), done == "t")
    return found
