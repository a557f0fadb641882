"""Text that strangers wrote, made safe to show on a terminal.

A terminal obeys control characters: it sets titles, moves the cursor, hides or rewrites lines.
Marks that turn the direction of writing show a line in another order than it has. Both are shown
as escapes instead, as psql does.
"""

from __future__ import annotations

from typing import Final

_CONTROL: Final = (*range(32), *range(127, 160))
_DIRECTION: Final = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Unicode's bidirectional formatting characters."""
_NAMED: Final = {9: "\\t", 10: "\\n", 13: "\\r"}
_ESCAPES: Final[dict[int, str]] = (
    {code: f"\\x{code:02x}" for code in _CONTROL}
    | {code: f"\\u{code:04x}" for code in _DIRECTION}
    | _NAMED
)
_ESCAPES_BUT_LINES: Final = {code: words for code, words in _ESCAPES.items() if code != 10}
_JSON_ESCAPES: Final = {code: f"\\u{code:04x}" for code in (*range(127, 160), *_DIRECTION)}


def escape_control(text: str) -> str:
    """Returns `text` on one line, with an escape for each character that a terminal would obey."""
    return text if text.isascii() and text.isprintable() else text.translate(_ESCAPES)


def escape_control_in_lines(text: str) -> str:
    """Returns `text` as `escape_control` does, with its line breaks."""
    return text if text.isascii() and text.isprintable() else text.translate(_ESCAPES_BUT_LINES)


def escape_control_in_json(text: str) -> str:
    """Returns the same JSON value as JSON `text`, in which no character is left that a terminal
    would obey: JSON itself forbids only the first 32 inside of texts."""
    return text if text.isascii() and "\x7f" not in text else text.translate(_JSON_ESCAPES)
