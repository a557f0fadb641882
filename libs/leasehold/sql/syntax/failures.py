"""What PostgreSQL's parser says is wrong → our errors.

libpg_query gives the words and the place of an error, not its SQLSTATE: that follows from the
words, which are PostgreSQL's own. What no line here knows is a syntax error, as most are.
"""

from __future__ import annotations

from typing import Final

from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidArgument,
    InvalidEscapeSequence,
    Refused,
    SyntaxInvalid,
    TooComplex,
    WindowingError,
)

_SAID_MAX: Final = 200
"""Characters: a quote that is not closed is said up to the text's end."""


class InvalidEscapedBytes(Refused):
    """An escape that makes no character."""

    sqlstate = "22021"


class UnsafeEscape(Refused):
    """An escape in a text that is not safe with the session's settings."""

    sqlstate = "22P06"


_KINDS: Final[tuple[tuple[str, type[Refused]], ...]] = (
    ("memory exhausted", TooComplex),
    ("invalid byte sequence", InvalidEscapedBytes),
    ("invalid Unicode escape value", SyntaxInvalid),
    ("invalid Unicode escape", InvalidEscapeSequence),
    ("unsafe use of", UnsafeEscape),
    ("frame start", WindowingError),
    ("frame end", WindowingError),
    ("precision for type float", InvalidArgument),
    ("MATCH PARTIAL", FeatureNotSupported),
    ("a column list with SET", FeatureNotSupported),
    ("CREATE ASSERTION", FeatureNotSupported),
    ("CREATE OR REPLACE CONSTRAINT TRIGGER", FeatureNotSupported),
    ("CREATE EXTENSION ... FROM", FeatureNotSupported),
    ("current database cannot", FeatureNotSupported),
    ("dropping an enum value", FeatureNotSupported),
    ("UNIQUE predicate", FeatureNotSupported),
    ("WITH CHECK OPTION not supported", FeatureNotSupported),
)
"""By how a sentence begins."""
_UNMARKED: Final = "constraints cannot be marked"


def failure(message: str, position: int) -> Refused:
    """Return the error for what PostgreSQL's parser says. `position` counts characters from 1, 0
    where it says none."""
    kind: type[Refused] = SyntaxInvalid
    for beginning, one in _KINDS:
        if message.startswith(beginning):
            kind = one
            break
    if _UNMARKED in message:
        kind = FeatureNotSupported
    if kind is TooComplex:
        message = "the text is nested too deeply"
    if len(message) > _SAID_MAX:
        message = f"{message[: _SAID_MAX - 1]}…"
    return kind(message, position=position) if position > 0 else kind(message)
