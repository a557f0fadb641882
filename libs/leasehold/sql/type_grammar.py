"""Words → the name of a type, as it is said: varchar(5), double precision, int[]."""

from __future__ import annotations

from typing import Final

from leasehold.model.errors import SyntaxInvalid
from leasehold.sql.query_lexer import NAME, NUMBER, WORD, Words
from leasehold.sql.syntax.tree import TypeName
from leasehold.values.interval import FIELDS

TYPE_WORDS: Final = {
    "double": ("precision",),
    "character": ("varying",),
    "bit": ("varying",),
    "national": ("character",),
}

DOMAINS: Final[dict[str, tuple[str, int | None]]] = {
    "sql_identifier": ("name", None),
    "character_data": ("varchar", None),
    "cardinal_number": ("integer", None),
    "yes_or_no": ("varchar", 3),
    "time_stamp": ("timestamptz", None),
}
"""The domains of information_schema: their types, and the length. Their checks (no number below 0,
YES or NO) are not made, nor is a time cut to hundredths of a second."""


def type_name(words: Words) -> TypeName:
    at = words.position
    if words.peek().kind not in (WORD, NAME):
        raise words.unexpected()
    found = words.advance()
    if found.text == "pg_catalog" and words.take("."):
        found = words.advance()
    name = found.text
    if name == "information_schema" and words.take("."):
        return _domain(words, at)
    if found.kind == NAME and name == "char":
        name = '"char"'  # another type than char
    if name in TYPE_WORDS:
        for second in TYPE_WORDS[name]:
            if words.take(second):
                name = f"{name} {second}"
    if name == "interval" and words.said() in FIELDS:
        words.refuse("a cast to INTERVAL with fields: write them behind a constant; it")
    modifiers: list[int] = []
    if words.take("("):
        while True:
            if words.at("-"):
                words.refuse("a negative scale")
            number = words.advance()
            if number.kind != NUMBER or not number.text.isdecimal() or len(number.text) > 9:
                raise SyntaxInvalid(
                    f"syntax error at or near {number.source!r:.80}", position=number.at
                )
            modifiers.append(int(number.text))
            if not words.take(","):
                break
        words.expect(")")
    for zone in ("with", "without"):
        if name in ("timestamp", "time") and words.take(zone, "time", "zone"):
            name = f"{name} {zone} time zone"
    return TypeName(at, name, tuple(modifiers), _brackets(words))


def _domain(words: Words, at: int) -> TypeName:
    """Of information_schema, behind the point: the type that it stands for."""
    name = words.advance().text
    known, length = DOMAINS.get(name, (f"information_schema.{name}", None))
    return TypeName(at, known, () if length is None else (length,), _brackets(words))


def _brackets(words: Words) -> bool:
    """Behind a type, an array's: its size says nothing, as in PostgreSQL."""
    found = words.take("array")
    if words.take("["):
        if words.peek().kind == NUMBER:
            words.advance()
        words.expect("]")
        found = True
        if words.at("["):
            words.refuse("an array of more than one dimension")
    return found
