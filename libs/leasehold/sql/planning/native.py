"""The text of what SQLite does as PostgreSQL would, by the word that an expression has for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_INFIX: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})
_TESTS: Final = {
    "is null": "IS NULL",
    "is not null": "IS NOT NULL",
    "is true": "IS TRUE",
    "is not true": "IS NOT TRUE",
    "is false": "IS FALSE",
    "is not false": "IS NOT FALSE",
}


def native_text(word: str, texts: list[str]) -> str:
    """Return the text of a word over these operands."""
    if word in _INFIX:
        return f"({texts[0]} {word} {texts[1]})"
    if word in ("and", "or"):
        return f"({f' {word.upper()} '.join(texts)})"
    if word in _TESTS:
        return f"({texts[0]} {_TESTS[word]})"
    return _NATIVE[word.split()[0]](word, texts)


def _case(word: str, texts: list[str]) -> str:
    pairs = zip(texts[:-1:2], texts[1:-1:2], strict=True)
    branches = " ".join(f"WHEN {test} THEN {value}" for test, value in pairs)
    return f"(CASE {branches} ELSE {texts[-1]} END)"


def _case_of(word: str, texts: list[str]) -> str:
    return f"(CASE {texts[0]} {_case('case', texts[1:])[len('(CASE ') :]}"


def _rows(word: str, texts: list[str]) -> str:
    half = len(texts) // 2
    return f"(({', '.join(texts[:half])}) {word.split()[1]} ({', '.join(texts[half:])}))"


_NATIVE: Final[dict[str, Callable[[str, list[str]], str]]] = {
    "not": lambda word, texts: f"(NOT {texts[0]})",
    "in": lambda word, texts: f"({texts[0]} IN ({', '.join(texts[1:])}))",
    "case": lambda word, texts: (_case_of if word == "case of" else _case)(word, texts),
    "coalesce": lambda word, texts: f"coalesce({', '.join(texts)})",
    "nullif": lambda word, texts: f"nullif({', '.join(texts)})",
    "greatest": lambda word, texts: f"lh_{word.replace(' ', '_')}({', '.join(texts)})",
    "least": lambda word, texts: f"lh_{word.replace(' ', '_')}({', '.join(texts)})",
    "real": lambda word, texts: f"CAST({texts[0]} AS REAL)",
    "same": lambda word, texts: texts[0] if word == "same" else f"({texts[0]} IS {texts[1]})",
    "other": lambda word, texts: f"({texts[0]} IS NOT {texts[1]})",
    "limit": lambda word, texts: f"lh_limit({texts[0]})",
    "offset": lambda word, texts: f"lh_offset({texts[0]})",
    "row": _rows,
}
