"""Names that are too long are cut, as PostgreSQL cuts them, with a notice for each.

In a session's text only: whoever sends a request hears no notice, and is refused (22003).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from leasehold.catalog.object_names import NAME_BYTES_MAX
from leasehold.model.errors import Refused
from leasehold.sql.syntax.parsing import may_be_long
from leasehold.sql.syntax.scanning import Token, tokens_of
from leasehold.sql.syntax.source import Source

CODE: Final = "42622"


class Cut(NamedTuple):
    name: str
    to: str

    @property
    def notice(self) -> str:
        return f'identifier "{self.name}" will be truncated to "{self.to}"'


def with_short_names(text: str) -> tuple[str, tuple[Cut, ...]]:
    """The text with blanks for what was cut, so that all else stands where it stood."""
    if not may_be_long(text):
        return text, ()
    try:
        source = Source(text)
        tokens = tokens_of(source)
    except Refused:
        return text, ()  # whoever reads it next is refused likewise
    parts: list[str] = []
    cuts: list[Cut] = []
    done = 0
    for token in tokens:
        if not token.is_name or token.end - token.begin <= NAME_BYTES_MAX:
            continue
        begin, end = source.character(token.begin), source.character(token.end)
        name = token.name
        if len(name.encode()) <= NAME_BYTES_MAX:
            continue
        cut = Cut(name, name.encode()[:NAME_BYTES_MAX].decode(errors="ignore"))
        parts += [text[done:begin], _written(text[begin:end], token, cut.to).ljust(end - begin)]
        cuts.append(cut)
        done = end
    return "".join((*parts, text[done:])), tuple(cuts)


def _written(said: str, token: Token, name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if token.quoted else said[: len(name)]
