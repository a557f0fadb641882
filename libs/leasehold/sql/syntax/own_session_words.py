"""Our own words of sessions: the modes of a transaction that PostgreSQL has no word for, and
VERIFYRETRY."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from postgast.pg_query_pb2 import Token as Kind

from leasehold.sql.syntax.marks import Mark, has_words, make_mark
from leasehold.sql.syntax.scanning import Token

ISOLATION: Final = "ISOLATION LEVEL"
AS_OF: Final = "AS OF"
MODES_ALONE: Final = "SET TRANSACTION"
VERIFYRETRY: Final = "VERIFYRETRY"

_LEVELS: Final = frozenset({"snapshot", "linearizable", "default"})
_BEFORE_TIMESTAMP: Final = frozenset({"timestamp", "timestamptz", "datetime", "lsn"})


def find_verifyretry(tokens: Sequence[Token]) -> list[Mark]:
    """SET VERIFYRETRY value: PostgreSQL's parser gets an = in the place of the last letter."""
    index = 2 if tokens[1:2] and tokens[1].word in ("local", "session") else 1
    if not (has_words(tokens, 0, "set") and has_words(tokens, index, "verifyretry")):
        return []
    behind = tokens[index + 1 : index + 2]
    if not behind or behind[0].word in ("=", "to"):
        return []
    return [make_mark(VERIFYRETRY, "verifyretr=", tokens[index : index + 1])]


def find_own_modes(tokens: Sequence[Token]) -> list[Mark]:
    """Blanks for each of them and a comma beside it. SET TRANSACTION, which needs a mode, becomes
    another SET if none is left."""
    first = _first_mode(tokens)
    if first is None:
        return []
    own: list[Mark] = []
    commas: set[int] = set()
    index = first
    while index < len(tokens):
        kind, end = _own_mode(tokens, index)
        if end == index:
            index += 1
            continue
        own.append(make_mark(kind, "", tokens[index:end]))
        if has_words(tokens, index - 1, ",") and index - 1 >= first and index - 1 not in commas:
            commas.add(index - 1)
        elif has_words(tokens, end, ","):
            commas.add(end)
        index = end
    left = len(tokens) - first - len(commas) - sum(len(one.tokens) for one in own)
    if own and left == 0 and tokens[0].word == "set":
        return [make_mark(MODES_ALONE, "SET t=1", tokens)]
    return own + [make_mark(",", "", tokens[comma : comma + 1]) for comma in commas]


def modes_alone(tokens: Sequence[Token]) -> list[Mark]:
    """Return the modes of a statement that has no others."""
    first = _first_mode(tokens)
    assert first is not None, "it has been found to be one"
    found: list[Mark] = []
    while first < len(tokens):
        kind, end = _own_mode(tokens, first)
        if end > first:
            found.append(make_mark(kind, "", tokens[first:end]))
        first = max(end, first + 1)
    return found


def _first_mode(tokens: Sequence[Token]) -> int | None:
    """Return where the modes of a transaction begin, None for a statement that has none."""
    if has_words(tokens, 0, "begin"):
        return 2 if tokens[1:2] and tokens[1].word in ("work", "transaction") else 1
    if has_words(tokens, 0, "start", "transaction"):
        return 2
    if not has_words(tokens, 0, "set"):
        return None
    if has_words(tokens, 1, "session", "characteristics", "as", "transaction"):
        return 5
    index = 2 if tokens[1:2] and tokens[1].word in ("local", "session") else 1
    return index + 1 if has_words(tokens, index, "transaction") else None


def _own_mode(tokens: Sequence[Token], index: int) -> tuple[str, int]:
    """Return the kind of the mode that stands there, and where it ends: where it begins if none
    does."""
    if has_words(tokens, index, "isolation", "level"):
        level = tokens[index + 2 : index + 3]
        own = bool(level) and level[0].word in _LEVELS
        return (ISOLATION, index + 3) if own else ("", index)
    if not has_words(tokens, index, "as", "of"):
        return "", index
    end = index + 2
    if end < len(tokens) and tokens[end].word in _BEFORE_TIMESTAMP:
        end += 1
    if end < len(tokens) and _is_timestamp(tokens[end]):
        return AS_OF, end + 1
    return "", index


def _is_timestamp(token: Token) -> bool:
    plain = token.kind == Kind.SCONST and token.word.startswith("'")
    return plain or token.kind in (Kind.ICONST, Kind.FCONST)
