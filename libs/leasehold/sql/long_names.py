"""Names that are too long are cut, as PostgreSQL cuts them, with a notice for each.

In a session's text only: whoever sends a request hears no notice, and is refused (22003).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from leasehold.catalog.descriptor import NAME_BYTES_MAX
from leasehold.model.errors import Refused
from leasehold.sql.query_lexer import NAME, WORD, Word, words_of

CODE: Final = "42622"
_MAY_BE_LONG: Final = re.compile(r"[\w$]{64}|\"[^\"]{32}")
_OTHERS_MAY_BE_LONG: Final = re.compile(r"[\w$]{16}|\"[^\"]{8}")
"""Of texts that are not ASCII: a character has up to four bytes. A quote in a name is two."""


class Cut(NamedTuple):
    name: str
    to: str

    @property
    def notice(self) -> str:
        return f'identifier "{self.name}" will be truncated to "{self.to}"'


def with_short_names(text: str) -> tuple[str, tuple[Cut, ...]]:
    """The text with blanks for what was cut, so that all else stands where it stood."""
    pattern = _MAY_BE_LONG if text.isascii() else _OTHERS_MAY_BE_LONG
    if pattern.search(text) is None:
        return text, ()
    try:
        words = words_of(text)
    except Refused:
        return text, ()  # whoever reads it next is refused likewise
    parts: list[str] = []
    cuts: list[Cut] = []
    done = 0
    for word in words:
        if word.kind not in (WORD, NAME) or len(word.text.encode()) <= NAME_BYTES_MAX:
            continue
        cut = Cut(word.text, word.text.encode()[:NAME_BYTES_MAX].decode(errors="ignore"))
        begin, end = word.at - 1, word.at - 1 + len(word.source)
        parts += [text[done:begin], _written(word, cut.to).ljust(len(word.source))]
        cuts.append(cut)
        done = end
    return "".join((*parts, text[done:])), tuple(cuts)


def _written(word: Word, name: str) -> str:
    return word.source[: len(name)] if word.kind == WORD else '"' + name.replace('"', '""') + '"'
