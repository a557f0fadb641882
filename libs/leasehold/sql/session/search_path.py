"""A statement in the words of a session's search path → the same statement, in which each relation
is named behind its schema.

What goes on from a session (plans, replays, requests, jobs, views) is kept by its text, and has to
mean the same to whoever reads it later. So names are looked up once, where they are said, and the
text that goes on means the same under every path.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from leasehold.catalog.definitions import quoted
from leasehold.catalog.namespaces import qualified
from leasehold.catalog.schema_names import PUBLIC
from leasehold.model.errors import UnknownSchema
from leasehold.sql.syntax.name_places import NamePlace, StatementNames, find_name_places
from leasehold.sql.syntax.session_statements import Insertion
from leasehold.sql.syntax.source import Source

KEPT_CHARS_MAX: Final = 4_096
KEPT_TEXTS_MAX: Final = 1_000
NOWHERE: Final = "pg_nowhere"
"""Of what is named where no schema of the path is there: none can be made of that name."""

FindSchema = Callable[[str, bool], str | None]
"""Returns the schema in which a relation lies, or (True) a type, by the path: None for none, ""
where the name is to stay as it is."""


class Qualified(NamedTuple):
    """A text with its schemas, what was put into it, and what things of other schemas than public
    are called, each with the name that was said."""

    text: str
    insertions: tuple[Insertion, ...] = ()
    called: tuple[tuple[str, str], ...] = ()


def qualify(text: str, find_schema: FindSchema, makes_in: str | None) -> Qualified:
    """Return a text of one or several statements with a schema before each name. `makes_in`: the
    schema in which those are made that are said without one; None: the path has none. Raises
    UnknownSchema (3F000), and what `find_name_places` raises."""
    known = _kept(text) if len(text) <= KEPT_CHARS_MAX else find_name_places(text)
    made: set[tuple[str, bool]] = set()
    parts: list[str] = []
    insertions: list[Insertion] = []
    called: dict[str, str] = {}
    source = Source(text)
    at = length = 0
    for statement in known:
        for place in statement.places:
            schema = _schema_of(place, find_schema, makes_in, made, source)
            if schema is None:
                schema = makes_in or NOWHERE
            if not schema:
                continue
            if schema != PUBLIC:
                called[qualified(schema, place.name)] = place.name
            words = f"{quoted(schema)}."
            if place.in_string:
                words = words.replace("'", "''")
            before = source.written(at, place.offset)
            parts += (before, words)
            length += len(before)
            insertions.append(Insertion(length + 1, len(words)))
            length += len(words)
            at = place.offset
        made |= {(place.name, place.is_type) for place in statement.places if place.makes}
    if not insertions:
        return Qualified(text)
    parts.append(source.written(at, len(source.encoded)))
    return Qualified("".join(parts), tuple(insertions), tuple(called.items()))


_kept: Final[Callable[[str], tuple[StatementNames, ...]]] = lru_cache(KEPT_TEXTS_MAX)(
    find_name_places
)


def _schema_of(
    place: NamePlace,
    find_schema: FindSchema,
    makes_in: str | None,
    made: set[tuple[str, bool]],
    source: Source,
) -> str | None:
    if place.makes:
        if makes_in is None:
            raise UnknownSchema(
                "no schema has been selected to create in", position=source.position(place.offset)
            )
        return makes_in
    if (place.name, place.is_type) in made:
        return makes_in
    found = find_schema(place.name, place.is_type)
    # What is said in a string may be computed with later, when it is there.
    return "" if found is None and place.in_string and not made else found


def shift_back(position: int, insertions: tuple[Insertion, ...]) -> int:
    """Return which position of the text that was said is that one of the new text."""
    put = (min(each.length, max(position - each.position, 0)) for each in insertions)
    return position - sum(put)
