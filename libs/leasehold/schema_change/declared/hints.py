"""Hints in the comments of a declared schema: what no statement of the wanted state can say.

    -- leasehold: renamed from OLD       of a table, column, sequence or enum type
        -- leasehold: using EXPRESSION       how a column's values get its type

A hint is of what begins on its own line before it, else of what begins next.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

from leasehold.model.errors import SyntaxInvalid
from leasehold.sql.syntax.parsing import Parsed
from leasehold.sql.syntax.scanning import comments_of, kinds_of
from leasehold.sql.syntax.source import Source

_HINT: Final = re.compile(r"--\s*leasehold\s*:\s*(.*?)\s*", re.DOTALL)
_RENAMED: Final = re.compile(r"renamed\s+from\s+(?:\"((?:[^\"]|\"\")+)\"|([A-Za-z_][\w$]*))")
_USING: Final = re.compile(r"using\s+(.+)", re.DOTALL)
_KNOWN: Final = "known are: renamed from OLD, using EXPRESSION"


class Place(NamedTuple):
    """Something that a hint may be of: the statement, or one of its columns or constraints. `begin`
    is a byte of the source. `kind`: table, column, constraint, index, sequence, type or view."""

    begin: int
    kind: str
    name: str
    table: str = ""


class Hint(NamedTuple):
    """A hint. Of `renamed_from` and `using` one is said."""

    place: Place
    renamed_from: str
    using: str
    position: int


def find_hints(source: Source, statements: Sequence[Parsed]) -> list[Hint]:
    """Return the hints of a text. Raises SyntaxInvalid for one that is not known, that stands where
    nothing follows, or whose kind of thing can't have it: else it would be passed over."""
    # ⚠ To PostgreSQL a statement begins with the comments before it.
    begins = kinds_of(source).begins
    places = sorted(
        place
        for each in statements
        for place in _places_of(each, begins[bisect_left(begins, each.begin)])
    )
    found = []
    for begin, end in comments_of(source):
        said = _HINT.fullmatch(source.written(begin, end))
        if said is not None:
            found.append(_read_hint(source, begin, said[1], places))
    return found


def _read_hint(source: Source, begin: int, words: str, places: Sequence[Place]) -> Hint:
    position = source.position(begin)
    renamed, using = _RENAMED.fullmatch(words), _USING.fullmatch(words)
    if renamed is None and using is None:
        raise SyntaxInvalid(f"the hint {words!r:.80} is not known; {_KNOWN}", position=position)
    line = source.encoded.rfind(b"\n", 0, begin) + 1
    before = [place for place in places if line <= place.begin < begin]
    behind = [place for place in places if place.begin > begin]
    if not before and not behind:
        raise SyntaxInvalid(
            "this hint stands behind everything that it could belong to: write it on the line"
            " of its table, column or sequence, or on one before that",
            position=position,
        )
    place = before[-1] if before else behind[0]
    if place.kind == "view":
        raise SyntaxInvalid(
            f"a view is made anew under another name: view {place.name!r} needs no hint",
            position=position,
        )
    if renamed is not None:
        quoted, plain = renamed.groups()
        old = quoted.replace('""', '"') if quoted else plain.lower()
        return Hint(place, old, "", position)
    assert using is not None, "one of both"
    if place.kind != "column":
        raise SyntaxInvalid(
            f"this hint is of {place.kind} {place.name!r}: USING is for a column", position=position
        )
    return Hint(place, "", using[1], position)


def _places_of(statement: Parsed, begin: int) -> list[Place]:
    body = statement.body
    match statement.kind:
        case "CreateStmt":
            table = body["relation"]["relname"]
            return [
                Place(begin, "table", table),
                *(p for e in body.get("tableElts", ()) for p in _elements_of(e, table)),
            ]
        case "IndexStmt" if "idxname" in body:
            return [Place(begin, "index", body["idxname"], body["relation"]["relname"])]
        case "CreateSeqStmt":
            return [Place(begin, "sequence", body["sequence"]["relname"])]
        case "CreateEnumStmt":
            return [Place(begin, "type", body["typeName"][-1]["String"]["sval"])]
        case "ViewStmt":
            return [Place(begin, "view", body["view"]["relname"])]
        case "AlterTableStmt":
            table = body["relation"]["relname"]
            made = (each["AlterTableCmd"].get("def", {}) for each in body.get("cmds", ()))
            return [
                Place(begin, place.kind, place.name, table)
                for element in made
                for place in _elements_of(element, table)
            ]
    return []


def _elements_of(element: dict[str, dict[str, object]], table: str) -> list[Place]:
    column, constraint = element.get("ColumnDef"), element.get("Constraint")
    if column is not None and "colname" in column:
        return [Place(_begin(column), "column", str(column["colname"]), table)]
    if constraint is not None and "conname" in constraint:
        return [Place(_begin(constraint), "constraint", str(constraint["conname"]), table)]
    return []


def _begin(body: dict[str, object]) -> int:
    location = body.get("location", 0)
    assert isinstance(location, int), location
    return location
