"""The account of PostgreSQL's nodes: which of their fields are read here, and what is said of the
others.

The tree names each field that a text has set. Who converts a node refuses (0A000) every field that
is not in the node's line here (`handles`): so nothing is ever read over, also not what a later
libpg_query brings. `tests/unit/sql/test_syntax.py` holds the lines against the library's fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from leasehold.model.errors import FeatureNotSupported
from leasehold.sql.syntax.source import Source

Body = dict[str, Any]


class Sentence(str):
    """What is said of a field in the place of "… is not supported"; `words`: those of the text that
    set it."""

    words: tuple[str, ...]

    def __new__(cls, words: str, sentence: str) -> Sentence:
        made = super().__new__(cls, sentence)
        made.words = tuple(words.lower().split())
        return made


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a node. `read` are those that whoever converts it reads; `refused` has
    PostgreSQL's words for what else may be set, or a sentence."""

    read: frozenset[str]
    refused: Mapping[str, str] = field(default_factory=dict)


NAMES: Final[dict[str, str]] = {
    "MergeStmt": "MERGE",
    "GroupingFunc": "GROUPING",
    "XmlExpr": "XML",
    "XmlSerialize": "XMLSERIALIZE",
    "RangeTableFunc": "XMLTABLE",
    "RangeTableSample": "TABLESAMPLE",
    "JsonTable": "JSON_TABLE",
    "JsonFuncExpr": "JSON_EXISTS, JSON_QUERY and JSON_VALUE",
    "JsonObjectConstructor": "JSON_OBJECT",
    "JsonArrayConstructor": "JSON_ARRAY",
    "JsonArrayQueryConstructor": "JSON_ARRAY",
    "JsonObjectAgg": "JSON_OBJECTAGG",
    "JsonArrayAgg": "JSON_ARRAYAGG",
    "JsonParseExpr": "JSON",
    "JsonScalarExpr": "JSON_SCALAR",
    "JsonSerializeExpr": "JSON_SERIALIZE",
    "JsonIsPredicate": "IS JSON",
    "MergeSupportFunc": "MERGE_ACTION",
    "CollateClause": "COLLATE",
    "NamedArgExpr": "an argument by its name",
    "MultiAssignRef": "SET (…) = of one value",
    "SetToDefault": "DEFAULT",
    "CurrentOfExpr": "WHERE CURRENT OF",
}


NODES: Final[dict[str, Fields]] = {}
"""By the type of a node. One without a line is refused as a whole, by `NAMES` or its own name."""


def handles(kind: str, *read: str, later: Iterable[str] = (), **refused: str) -> frozenset[str]:
    """Notes a node's line, and gives what is read, to look at. `later`: what PostgreSQL sets after
    it has parsed; no text can, and it is refused as all else."""
    assert kind not in NODES, kind
    unset = {name: f"{name} of {NAMES.get(kind, kind)}" for name in later}
    NODES[kind] = Fields(frozenset(read), {**refused, **unset})
    return NODES[kind].read


def refuse(what: str, position: int) -> NoReturn:
    sentence = what if isinstance(what, Sentence) else f"{what} is not supported"
    raise FeatureNotSupported(sentence, position=position)


def refuse_node(source: Source, kind: str, body: Body, near: int = 0) -> NoReturn:
    """Refuse a node of a type that has no place here. `near` is a location, for one that knows none
    of its own."""
    refuse(NAMES.get(kind, kind), source.position(location_of(body, near)))


def refuse_unread(source: Source, kind: str, body: Body, near: int = 0) -> NoReturn:
    """Refuse a body that holds more than its line says."""
    fields = NODES[kind]
    for name, value in body.items():
        if name not in fields.read:
            what = fields.refused.get(name) or f"{name} of {NAMES.get(kind, kind)}"
            refuse(what, source.position(location_of(value, location_of(body, near))))
    raise AssertionError(kind)


def location_of(value: Any, default: int = 0) -> int:
    """Return where a node begins, as far as it knows: its own place, else the first of those
    within."""
    found = _first_location(value)
    return default if found is None else found


def _first_location(value: Any) -> int | None:
    places = [value]
    while places:
        one = places.pop()
        if isinstance(one, dict):
            own = one.get("location", -1)
            if isinstance(own, int) and own >= 0:
                return own
            places += reversed(list(one.values()))
        elif isinstance(one, list):
            places += reversed(one)
    return None
