"""The places at which a statement names relations and types without their schema, so that it can be
put there.

Names of WITH are none of them, nor are aliases. A text in quotes that is a relation's name, as
in nextval('s'), is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from leasehold.sql.syntax.accounting import Body
from leasehold.sql.syntax.parsing import Parsed, parse
from leasehold.sql.syntax.statement import Reading, Span, Words, names_of, only
from leasehold.sql.syntax.types import may_be_made

NAMES_MAX: Final = 10_000
_MAKERS: Final = {
    "CreateStmt": "relation",
    "ViewStmt": "view",
    "CreateSeqStmt": "sequence",
    "into": "rel",
}
"""The fields that name what a statement makes."""
_DROPPED: Final = frozenset({"OBJECT_TABLE", "OBJECT_VIEW", "OBJECT_INDEX", "OBJECT_SEQUENCE"})
_COUNTERS: Final = frozenset({"nextval", "currval", "setval"})
_REGCLASS: Final = "regclass"
_TEMPORARY: Final = "t"
_NO_NAMES: Final[frozenset[str]] = frozenset()


class NamePlace(NamedTuple):
    """A name without its schema, which is to be put at `offset`, a byte of the text. `makes`: the
    statement makes what has that name. `in_string`: it stands in a string constant."""

    offset: int
    name: str
    makes: bool = False
    in_string: bool = False
    is_type: bool = False


class StatementNames(NamedTuple):
    """The names of one statement, in the order of the text, and its node's kind."""

    places: tuple[NamePlace, ...]
    kind: str


def find_name_places(text: str) -> tuple[StatementNames, ...]:
    """Return the names of each statement in a text. Raises what `parse` raises."""
    parsed = parse(text)
    if not parsed:
        return ()
    words = Words(parsed[0].source)
    return tuple(_of_statement(Reading(one, words)) for one in parsed)


def _of_statement(reading: Reading) -> StatementNames:
    parsed = reading.parsed
    found = [*_in_tree(parsed), *_in_lists(reading)]
    return StatementNames(tuple(sorted(found)), parsed.kind)


# ------------------------------------------------------------------ what the tree places


def _in_tree(parsed: Parsed) -> Iterator[NamePlace]:
    """Yield the names whose place the tree tells. It may be deep: it is walked without
    recursion."""
    left: list[tuple[str, Any, frozenset[str]]] = [(parsed.kind, parsed.body, _NO_NAMES)]
    while left:
        kind, node, hidden = left.pop()
        if isinstance(node, list):
            left += [(kind, each, hidden) for each in node]
            continue
        if not isinstance(node, dict):
            continue
        if "relname" in node:
            # In FROM a name of WITH comes first; what is written or changed is none.
            if not (kind == "RangeVar" and node["relname"] in hidden):
                yield from _of_relation(node, makes=False)
            continue
        if "withClause" in node:
            hidden = names_behind(node["withClause"], hidden, left)
        if kind == "FuncCall" and counts_from(node):
            yield from _in_string(parsed, only(node.get("args", [{"": {}}])[0]))
        if kind in ("typeName", "TypeName") and "names" in node:
            yield from _of_type(node)
        if kind == "TypeCast" and casts_to_regclass(node):
            yield from _in_string(parsed, only(node["arg"]))
        maker = _MAKERS.get(kind)
        for name, value in node.items():
            if name == maker:
                yield from _of_relation(value, makes=True)
            elif name not in ("withClause", "lockedRels"):
                left.append((name, value, hidden))


def names_behind(
    clause: Body, hidden: frozenset[str], left: list[tuple[str, Any, frozenset[str]]]
) -> frozenset[str]:
    """Put the queries of WITH aside with the names that each of them sees, and return those that
    hold behind it."""
    bodies = [node["CommonTableExpr"] for node in clause["ctes"]]
    if clause.get("recursive"):
        hidden |= {body["ctename"] for body in bodies}
    for body in bodies:
        left.append(("ctequery", body["ctequery"], hidden))
        hidden |= {body["ctename"]}
    return hidden


def _of_relation(body: Body, *, makes: bool) -> Iterator[NamePlace]:
    temporary = makes and body.get("relpersistence") == _TEMPORARY
    if "schemaname" not in body and not temporary:
        yield NamePlace(body.get("location", 0), body["relname"], makes)


def _of_type(body: Body) -> Iterator[NamePlace]:
    names = names_of(body["names"])
    if len(names) == 1 and may_be_made(names[0]) and body.get("location", 0) >= 0:
        yield NamePlace(body.get("location", 0), names[0], is_type=True)


def counts_from(body: Body) -> bool:
    """Return whether a call's first argument names a sequence."""
    return names_of(body["funcname"])[-1] in _COUNTERS


def casts_to_regclass(body: Body) -> bool:
    """Return whether a cast reads the name of a relation."""
    kind = body["typeName"]
    return names_of(kind["names"])[-1] == _REGCLASS and "arrayBounds" not in kind


def _in_string(parsed: Parsed, argument: tuple[str, Body]) -> Iterator[NamePlace]:
    """Yield the name that a string constant is, if it is one without a schema."""
    kind, body = argument
    if kind != "A_Const" or "sval" not in body:
        return
    said = body["sval"].get("sval", "").strip()
    quoted = len(said) > 2 and said[0] == said[-1] == '"'
    name = said[1:-1] if quoted else said.lower()
    if '"' in name or not name or name.isdecimal() or name == "-":
        return
    if not quoted and "." in name:
        return
    offset = body.get("location", 0)
    begin = parsed.source.encoded.find(b"'", offset)
    if begin - offset in (0, 1):  # '…' or E'…'; what is written otherwise stays as it is
        yield NamePlace(begin + 1, name, in_string=True)


# ------------------------------------------------------------------ what only the words place


def _in_lists(reading: Reading) -> Iterator[NamePlace]:
    """Yield the names in lists, of which the tree tells no place."""
    body = reading.parsed.body
    match reading.parsed.kind:
        case "DropStmt" if body["removeType"] in _DROPPED:
            first = reading.behind(reading.verb + 2, "concurrently", "if exists")
            spans = reading.listed(Span(first, reading.span.end))
            for node, span in zip(body["objects"], spans, strict=True):
                names = names_of(node["List"]["items"])
                if len(names) == 1:
                    yield NamePlace(reading.tokens[span.first].begin, names[0])
        case "CreateEnumStmt" | "AlterEnumStmt":
            yield from _listed_type(reading, body["typeName"], makes="vals" in body)
        case "RenameStmt" if body["renameType"] == "OBJECT_TYPE":
            yield from _listed_type(reading, body["object"]["List"]["items"])
        case "AlterOwnerStmt" | "AlterObjectSchemaStmt" if body["objectType"] == "OBJECT_TYPE":
            yield from _listed_type(reading, body["object"]["List"]["items"])
        case "CommentStmt":
            yield from _commented(reading, body)
        case "CreateSeqStmt" | "AlterSeqStmt":
            for node in body.get("options", ()):
                yield from _owner(reading, node["DefElem"])


def _listed_type(reading: Reading, nodes: list[Any], *, makes: bool = False) -> Iterator[NamePlace]:
    """Yield the type behind CREATE TYPE or ALTER TYPE."""
    names = names_of(nodes)
    if len(names) == 1:
        begin = reading.tokens[reading.verb + 2].begin
        yield NamePlace(begin, names[0], makes, is_type=True)


def _commented(reading: Reading, body: Body) -> Iterator[NamePlace]:
    kind, first = body["objtype"], reading.verb + 3
    qualifies = kind in ("OBJECT_COLUMN", "OBJECT_TABCONSTRAINT")
    if kind == "OBJECT_TABCONSTRAINT":
        first = reading.next(first, "on") + 1
    elif kind != "OBJECT_COLUMN" and kind not in _DROPPED:
        return
    names = names_of(body["object"]["List"]["items"])
    if len(names) == 1 + qualifies:
        yield NamePlace(reading.tokens[first].begin, names[0])


def _owner(reading: Reading, option: Body) -> Iterator[NamePlace]:
    """Yield the table of OWNED BY."""
    if option["defname"] != "owned_by":
        return
    names = names_of(option["arg"]["List"]["items"])
    if len(names) == 2:
        first = reading.next(reading.at(option["location"]), "by") + 1
        yield NamePlace(reading.tokens[first].begin, names[0])
