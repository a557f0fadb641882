"""DECLARE, FETCH, MOVE and CLOSE, as PostgreSQL reads them."""

from __future__ import annotations

from typing import Final

from leasehold.model.errors import FeatureNotSupported, InvalidDefinition
from leasehold.sql.query_lexer import END, NUMBER, Words
from leasehold.sql.session_statements import CloseCursor, DeclareCursor, Fetch
from leasehold.sql.syntax.cursor_movement import ALL, Direction, Movement
from leasehold.values.integers import whole

COUNT_MAX: Final = 2**31 - 1
_QUERIES: Final = frozenset({"select", "selectv", "values", "with", "table", "("})
_OPTIONS: Final = ("binary", "insensitive", "asensitive", "scroll")
_ONE_STEP: Final = {
    "next": Movement(Direction.FORWARD, 1),
    "prior": Movement(Direction.BACKWARD, 1),
    "first": Movement(Direction.ABSOLUTE, 1),
    "last": Movement(Direction.ABSOLUTE, -1),
}
_COUNTED: Final = {"absolute": Direction.ABSOLUTE, "relative": Direction.RELATIVE}
_WAYS: Final = {"forward": Direction.FORWARD, "backward": Direction.BACKWARD}


def declare(words: Words, offset: int) -> DeclareCursor:
    """What follows DECLARE; `offset`: of the statement in its text."""
    name = words.name()
    said: set[str] = set()
    while not words.take("cursor"):
        if words.take("no"):
            words.expect("scroll")
            said.add("no scroll")
        elif words.said() in _OPTIONS:
            said.add(words.advance().text)
        else:
            raise words.unexpected()
    both = ""
    for one, other in (("asensitive", "insensitive"), ("scroll", "no scroll")):
        if {one, other} <= said:
            both = f"{one.upper()} and {other.upper()}"
    hold = False
    if words.said() in ("with", "without"):
        hold = words.advance().text == "with"
        words.expect("hold")
    words.expect("for")
    if words.said() not in _QUERIES:
        raise words.unexpected()
    begin, verb = words.position - 1 - offset, words.said()
    while words.peek().kind != END:
        words.advance()
    scrolls = None if not said & {"scroll", "no scroll"} else "scroll" in said
    return DeclareCursor(
        name,
        begin,
        verb,
        binary="binary" in said,
        insensitive="insensitive" in said,
        scrolls=scrolls,
        hold=hold,
        both=both,
    )


class InvalidCursor(InvalidDefinition):
    """Options that exclude each other."""

    sqlstate = "42P11"


def refuse_both(said: DeclareCursor) -> None:
    """Not where it is read: a transaction that has failed says that first."""
    if said.both:
        raise InvalidCursor(f"cannot specify both {said.both}")


def refuse_locking(said: DeclareCursor) -> None:
    """Of a query with FOR UPDATE, or SELECTV, whose rows are verified as they are now."""
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


def fetch(words: Words, *, moves: bool) -> Fetch:
    """What follows FETCH or MOVE."""
    movement = _movement(words) if words.peek(1).kind != END else _ONE_STEP["next"]
    if not words.take("from"):
        words.take("in")
    return Fetch(words.name(), movement, moves)


def _movement(words: Words) -> Movement:
    said = words.said()
    if said in _ONE_STEP:
        words.advance()
        return _ONE_STEP[said]
    if said in _COUNTED:
        words.advance()
        return Movement(_COUNTED[said], _count(words))
    if said in _WAYS:
        words.advance()
        if words.take("all"):
            return Movement(_WAYS[said], ALL)
        return Movement(_WAYS[said], _count(words) if _counts(words) else 1)
    if words.take("all"):
        return Movement(Direction.FORWARD, ALL)
    if _counts(words):
        return Movement(Direction.FORWARD, _count(words))
    return _ONE_STEP["next"]


def _counts(words: Words) -> bool:
    return words.peek().kind == NUMBER or words.said() in ("+", "-")


def _count(words: Words) -> int:
    negative = words.take("-")
    if not negative:
        words.take("+")
    found = words.peek()
    if found.kind != NUMBER or not found.text.isdecimal() or whole(found.text) > COUNT_MAX:
        raise words.unexpected()
    words.advance()
    count = whole(found.text)
    return -count if negative else count


def close(words: Words) -> CloseCursor:
    return CloseCursor(None if words.take("all") else words.name())
