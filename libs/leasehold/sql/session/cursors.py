"""DECLARE, FETCH and MOVE."""

from __future__ import annotations

from typing import Final

from leasehold.model.errors import FeatureNotSupported, InvalidDefinition
from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.cursor_movement import ALL, Direction, Movement
from leasehold.sql.syntax.session_statements import DeclareCursor, Fetch
from leasehold.sql.syntax.statement import Reading

handles("DeclareCursorStmt", "portalname", "options", "query")
handles("FetchStmt", "direction", "howMany", "portalname", "ismove")

_BINARY, _SCROLL, _NO_SCROLL, _INSENSITIVE, _ASENSITIVE, _HOLD = (1 << bit for bit in range(6))
"""As PostgreSQL packs a cursor's options into a number."""
_ALL: Final = (1 << 63) - 1
_DIRECTIONS: Final = {f"FETCH_{direction.name}": direction for direction in Direction}


def declared(reading: Reading, body: Body) -> DeclareCursor:
    """DECLARE c [options] CURSOR [WITH HOLD] FOR query"""
    reading.read("DeclareCursorStmt", body)
    options = body["options"]
    both = ""
    if options & _ASENSITIVE and options & _INSENSITIVE:
        both = "ASENSITIVE and INSENSITIVE"
    if options & _SCROLL and options & _NO_SCROLL:
        both = "SCROLL and NO SCROLL"
    scrolls = bool(options & _SCROLL) if options & (_SCROLL | _NO_SCROLL) else None
    word_index = reading.next(reading.span.first, "for") + 1
    return DeclareCursor(
        body["portalname"],
        reading.position(word_index) - 1 - reading.offset,
        reading.word(word_index),
        binary=bool(options & _BINARY),
        insensitive=bool(options & _INSENSITIVE),
        scrolls=scrolls,
        hold=bool(options & _HOLD),
        both=both,
    )


def explained_cursor(reading: Reading, body: Body, text: str) -> tuple[DeclareCursor, str]:
    """Return the cursor of EXPLAIN DECLARE …, and the statement's text with blanks for DECLARE up
    to its query."""
    cursor = declared(reading, body)
    declare = reading.position(reading.next(reading.span.first, "declare")) - 1 - reading.offset
    return cursor, text[:declare].ljust(cursor.begin) + text[cursor.begin :]


class InvalidCursor(InvalidDefinition):
    """Options that exclude each other."""

    sqlstate = "42P11"


def refuse_both(said: DeclareCursor) -> None:
    """Refuse options that exclude each other. It is not done where they are read: a transaction
    that has failed says that first."""
    if said.both:
        raise InvalidCursor(f"cannot specify both {said.both}")


def refuse_locking(said: DeclareCursor) -> None:
    """Refuse what a cursor can't be over a query with FOR UPDATE, or SELECTV, whose rows are
    verified as they are now."""
    if said.hold:
        raise FeatureNotSupported(
            "DECLARE CURSOR WITH HOLD ... FOR UPDATE is not supported",
            detail="Holdable cursors must be READ ONLY.",
        )
    if said.scrolls:
        raise FeatureNotSupported(
            "DECLARE SCROLL CURSOR ... FOR UPDATE is not supported",
            detail="Scrollable cursors must be READ ONLY.",
        )
    if said.insensitive:
        raise InvalidCursor(
            "DECLARE INSENSITIVE CURSOR ... FOR UPDATE is not valid",
            detail="Insensitive cursors must be READ ONLY.",
        )


def fetched(reading: Reading, body: Body) -> Fetch:
    """FETCH and MOVE."""
    reading.read("FetchStmt", body)
    direction, count = _DIRECTIONS[body["direction"]], body.get("howMany", 0)
    movement = Movement(direction, ALL if count == _ALL else count)
    return Fetch(body["portalname"], movement, bool(body.get("ismove")))
