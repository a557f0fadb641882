"""The places at which a query names a schema, so that another name of it can be put there.

A text in quotes that is a relation's name, as in nextval('app.s'), has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from leasehold.catalog.definitions import quoted
from leasehold.sql.syntax.accounting import Body
from leasehold.sql.syntax.name_places import casts_to_regclass, counts_from
from leasehold.sql.syntax.parsing import Parsed, parse
from leasehold.sql.syntax.statement import Words, names_of, only

_OF_TABLE: Final = 3
"""Parts of the name of a column behind its table's and its schema's."""
_ESCAPED: Final = 'u&"'
"""Before a name whose characters may be said by their numbers."""


class _Place(NamedTuple):
    """A place at which a schema's name stands, in bytes."""

    begin: int
    end: int
    in_string: bool = False


def rename_schema_in(text: str, schema: str, to: str) -> str:
    """Return a text in which what lies in a schema is named behind its new name. Raises what
    `parse` raises."""
    folded = text.lower()
    if not (schema in folded or schema.replace('"', '""') in text or _ESCAPED in folded):
        return text  # as most
    parsed = parse(text)
    if not parsed:
        return text
    words = Words(parsed[0].source)
    places = sorted({place for one in parsed for place in _find(one, words, schema)})
    source, at = parsed[0].source.encoded, 0
    parts: list[bytes] = []
    for place in places:
        name = quoted(to)
        if place.in_string:
            name = name.replace("'", "''")
        parts += (source[at : place.begin], name.encode())
        at = place.end
    return b"".join((*parts, source[at:])).decode()


def _find(parsed: Parsed, words: Words, schema: str) -> Iterator[_Place]:
    """Yield the places in one statement. Its tree may be deep: it is walked without recursion."""
    left: list[tuple[str, Any]] = [(parsed.kind, parsed.body)]
    while left:
        kind, node = left.pop()
        if isinstance(node, list):
            left += [(kind, each) for each in node]
            continue
        if not isinstance(node, dict):
            continue
        if _names_schema(kind, node, schema):
            yield _place_of_word(words, words.at(node.get("location", 0)))
        argument = _named_in_string(kind, node)
        if argument is not None:
            yield from _in_string(parsed, argument, schema)
        left += node.items()


def _place_of_word(words: Words, word_index: int) -> _Place:
    token, *behind = words.tokens[word_index : word_index + 3]
    escaped = len(behind) > 1 and behind[0].word == "uescape"
    return _Place(token.begin, behind[1].end if escaped else token.end)


def _names_schema(kind: str, node: Body, schema: str) -> bool:
    """Return whether a node is a name that begins with the schema."""
    if "relname" in node:
        return bool(node.get("schemaname") == schema)
    if kind in ("typeName", "TypeName") and node.get("location", -1) >= 0 and "names" in node:
        parts = names_of(node["names"])
        return len(parts) > 1 and parts[0] == schema
    if kind == "ColumnRef":
        said = [only(each) for each in node["fields"]]
        return len(said) >= _OF_TABLE and said[0][1].get("sval") == schema
    return False


def _named_in_string(kind: str, node: Body) -> tuple[str, Body] | None:
    """Return the constant that is a relation's name, None for a node that has none."""
    if kind == "FuncCall" and counts_from(node):
        return only(node.get("args", [{"": {}}])[0])
    if kind == "TypeCast" and casts_to_regclass(node):
        return only(node["arg"])
    return None


def _in_string(parsed: Parsed, argument: tuple[str, Body], schema: str) -> Iterator[_Place]:
    kind, body = argument
    if kind != "A_Const" or "sval" not in body:
        return
    source, offset = parsed.source.encoded, body.get("location", 0)
    begin = source.find(b"'", offset) + 1
    if begin - 1 - offset not in (0, 1):  # '…' or E'…'; what is written otherwise stays as it is
        return
    begin += len(source[begin:]) - len(source[begin:].lstrip(b" "))
    said = quoted(schema).replace("'", "''").encode()
    for written in {said, b'"' + schema.replace('"', '""').replace("'", "''").encode() + b'"'}:
        found = source[begin : begin + len(written) + 1]
        same = found == written + b"." or (
            not written.startswith(b'"') and found.lower() == written + b"."
        )
        if same:
            yield _Place(begin, begin + len(written), in_string=True)
