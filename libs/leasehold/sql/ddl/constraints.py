"""PRIMARY KEY, UNIQUE, CHECK and FOREIGN KEY, as a column and as a table say them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from leasehold.catalog.elements import OnChange
from leasehold.catalog.namespaces import bare, qualified
from leasehold.model.errors import DuplicateColumn, FeatureNotSupported, OutOfRange
from leasehold.sql.expressions.expression import (
    name_enums_for_good,
    with_exact_numbers,
    without_table,
)
from leasehold.sql.expressions.plain_words import with_plain_words
from leasehold.sql.syntax.accounting import Body, Sentence, handles
from leasehold.sql.syntax.kept import EXPRESSION_BYTES_MAX
from leasehold.sql.syntax.names import name_beside, relation_name
from leasehold.sql.syntax.positions import refused_at
from leasehold.sql.syntax.statement import Expression, Reading, names_of
from leasehold.sql.syntax.statements import (
    CheckDefinition,
    ForeignKeyDefinition,
    UniqueDefinition,
)

KEY_COLUMNS_MAX: Final = 32

_DEFERRED: Final = (
    "only a UNIQUE constraint and a foreign key can be DEFERRABLE: all other constraints are NOT"
    " DEFERRABLE"
)
ATTRIBUTES: Final = {
    "deferrable": _DEFERRED,
    "initially deferred": _DEFERRED,
    "no inherit": "NO INHERIT is not supported: tables do not inherit",
    "not enforced": "NOT ENFORCED constraints are not supported",
    "enforced": "ENFORCED need not be said: every constraint is",
}
"""What PostgreSQL knows behind a constraint, and nobody has built here."""
_TRAILING: Final = (
    *(("not", word) for word in ("deferrable", "enforced", "valid")),
    *(("initially", word) for word in ("deferred", "immediate")),
    ("no", "inherit"),
    ("deferrable",),
    ("enforced",),
)
"""The longer before those that they end in."""
_EXCLUDE: Final = "EXCLUDE constraints are not supported"
_ACTIONS: Final = {
    "a": OnChange.NO_ACTION,
    "r": OnChange.RESTRICT,
    "c": OnChange.CASCADE,
    "n": OnChange.SET_NULL,
    "d": OnChange.SET_DEFAULT,
}

handles(
    "Constraint",
    *("contype", "conname", "location", "keys", "raw_expr", "pktable", "fk_attrs", "pk_attrs"),
    *("fk_matchtype", "fk_upd_action", "fk_del_action", "fk_del_set_cols", "skip_validation"),
    *("initially_valid", "is_enforced", "generated_when", "generated_kind", "deferrable"),
    *("initdeferred", "nulls_not_distinct", "indexname", "including"),
    options=Sentence(
        "with", "storage parameters of a constraint are not supported: there are none"
    ),
    is_no_inherit=Sentence("no inherit", ATTRIBUTES["no inherit"]),
    without_overlaps="WITHOUT OVERLAPS",
    exclusions=Sentence("exclude", _EXCLUDE),
    access_method=Sentence("exclude", _EXCLUDE),
    where_clause=Sentence("exclude", _EXCLUDE),
    indexspace=Sentence("using index tablespace", "tablespaces are not supported"),
    fk_with_period="PERIOD",
    pk_with_period="PERIOD",
    later=["reset_default_tblspc", "cooked_expr", "old_conpfeqop", "old_pktable_oid"],
)
"""An identity column's options are taken before its constraint is read."""


class KeyDefinition(NamedTuple):
    """[CONSTRAINT name] PRIMARY KEY (a, b) [INCLUDE (c)]."""

    columns: tuple[str, ...]
    position: int
    name: str | None = None
    included: tuple[str, ...] = ()


class ByIndex(NamedTuple):
    """[CONSTRAINT name] {UNIQUE | PRIMARY KEY} USING INDEX index."""

    index_name: str
    position: int
    name: str | None
    primary: bool
    deferrable: str = ""


Constraint: TypeAlias = (
    KeyDefinition | UniqueDefinition | CheckDefinition | ForeignKeyDefinition | ByIndex
)


def find_constraint(reading: Reading, body: Body) -> int:
    """Return where a constraint's own first word stands, behind CONSTRAINT and its name."""
    word_index = reading.at(body.get("location", 0))
    return reading.behind_name(word_index + 1) if "conname" in body else word_index


def read_table_constraint(reading: Reading, body: Body, table: str, end: int) -> Constraint:
    """[CONSTRAINT n] PRIMARY KEY (…) | UNIQUE (…) | {PRIMARY KEY | UNIQUE} USING INDEX i |
    CHECK (…) | FOREIGN KEY (…) …; `end`: of its words."""
    word_index = find_constraint(reading, body)
    name = name_beside(reading, body)
    match body["contype"]:
        case "CONSTR_PRIMARY" | "CONSTR_UNIQUE" as kind if "indexname" in body:
            reading.read("Constraint", body)
            attributes = _attributes(reading, word_index, end)
            primary = kind == "CONSTR_PRIMARY"
            if not primary:
                attributes = _not_deferring(reading, attributes)
            _refuse_attributes(reading, attributes)
            index = qualified(reading.schema, body["indexname"])
            place = reading.position(word_index)
            return ByIndex(index, place, name, primary, deferrable_of(body))
        case "CONSTR_PRIMARY":
            reading.read("Constraint", body)
            columns = read_distinct_columns(reading, body["keys"], "PRIMARY KEY", word_index)
            _refuse_attributes(reading, _attributes(reading, word_index, end))
            included = _included(reading, body, "PRIMARY KEY", word_index)
            return KeyDefinition(columns, reading.position(word_index), name, included)
        case "CONSTR_UNIQUE":
            reading.read("Constraint", body)
            columns = read_distinct_columns(reading, body["keys"], "UNIQUE", word_index)
            attributes = _attributes(reading, word_index, end)
            _refuse_attributes(reading, _not_deferring(reading, attributes))
            return UniqueDefinition(
                columns,
                name,
                reading.position(word_index),
                bool(body.get("nulls_not_distinct")),
                _included(reading, body, "UNIQUE", word_index),
                deferrable_of(body),
            )
        case "CONSTR_CHECK":
            found = read_check(reading, body, table)
            _refuse_attributes(reading, _attributes(reading, word_index, end))
            return found
        case "CONSTR_FOREIGN":
            attributes = _attributes(reading, word_index, end)
            columns = read_distinct_columns(reading, body["fk_attrs"], "FOREIGN KEY", word_index)
            found_key = read_references(reading, body, columns, reading.position(word_index))
            _refuse_attributes(reading, _not_deferring(reading, attributes))
            return found_key
        case "CONSTR_EXCLUSION":
            reading.refuse(_EXCLUDE, word_index)
    raise FeatureNotSupported(
        "NOT NULL as a constraint of a table is not supported: say it of the column",
        position=reading.position(word_index),
    )


def deferrable_of(body: Body) -> str:
    """Return INITIALLY what a constraint is, "immediate" or "deferred"; "" = not deferrable."""
    if body.get("initdeferred"):
        return "deferred"
    return "immediate" if body.get("deferrable") else ""


def _not_deferring(reading: Reading, places: Sequence[int]) -> list[int]:
    """Return the attributes but those by which a constraint is deferrable."""
    phrases = (("deferrable",), ("initially", "deferred"))
    return [one for one in places if not any(reading.said(one, *each) for each in phrases)]


def _included(reading: Reading, body: Body, what: str, word_index: int) -> tuple[str, ...]:
    """Return the columns of INCLUDE (…), repeated ones too. Raises OutOfRange."""
    found = names_of(body.get("including", []))
    size = len(body["keys"]) + len(found)
    if found and size > KEY_COLUMNS_MAX:
        raise OutOfRange(
            f"{what} with INCLUDE has {size} columns; at most {KEY_COLUMNS_MAX} are allowed",
            position=reading.position(reading.opening(reading.next(word_index, "include"))),
        )
    return found


def _attributes(reading: Reading, word_index: int, end: int) -> list[int]:
    """Return where each of the attributes that end a constraint begins. The tree does not tell what
    is said from what is so."""
    found: list[int] = []
    while True:
        for phrase in _TRAILING:
            begin = end - len(phrase)
            if begin > word_index + 1 and reading.said(begin, *phrase):
                break
        else:
            return found[::-1]
        if reading.word(begin - 1) in ("references", "."):  # a table that is called enforced
            return found[::-1]
        found.append(begin)
        end = begin


def _refuse_attributes(reading: Reading, places: Sequence[int]) -> None:
    for word_index in places:
        reading.refuse_listed(ATTRIBUTES, word_index)


def read_references(
    reading: Reading, body: Body, columns: tuple[str, ...], position: int
) -> ForeignKeyDefinition:
    """REFERENCES table [(columns)] [MATCH …] [ON DELETE … [(columns)]] [ON UPDATE …] [NOT VALID]"""
    parent_body = body["pktable"]
    parent = relation_name(reading, parent_body)
    reading.read("Constraint", body)
    word_index = reading.at(parent_body.get("location", 0))
    to = read_distinct_columns(reading, body.get("pk_attrs", []), "REFERENCES", word_index)
    on_delete, on_update = _ACTIONS[body["fk_del_action"]], _ACTIONS[body["fk_upd_action"]]
    what = f"ON DELETE {on_delete.upper()}"
    sets = read_distinct_columns(reading, body.get("fk_del_set_cols", []), what, word_index)
    return ForeignKeyDefinition(
        columns,
        parent,
        to,
        name_beside(reading, body),
        bool(body.get("skip_validation")),
        position,
        on_delete,
        on_update,
        body["fk_matchtype"] == "f",
        sets,
        deferrable_of(body),
    )


def read_check(reading: Reading, body: Body, table: str) -> CheckDefinition:
    """CHECK (expression) [NOT VALID]; its text names the table's columns without the table."""
    word_index = find_constraint(reading, body)
    if not body.get("is_enforced"):
        reading.refuse(ATTRIBUTES["not enforced"], word_index)
    reading.read("Constraint", body)
    text = keep_text(reading.enclosed(reading.opening(word_index)), table, reading)
    not_valid = bool(body.get("skip_validation"))
    position = reading.position(word_index)
    name = name_beside(reading, body)
    return CheckDefinition(text, name, not_valid, position, reading.zone)


def keep_text(said: Expression, table: str, reading: Reading) -> str:
    """An expression over a row as a descriptor keeps it. Raises OutOfRange, UnknownTable."""
    with refused_at(said.position):
        text = name_enums_for_good(
            with_exact_numbers(with_plain_words(said.text)), reading.enums.find
        )
        if len(text.encode()) > EXPRESSION_BYTES_MAX:
            raise OutOfRange(f"the expression has more than {EXPRESSION_BYTES_MAX} bytes")
        return without_table(text, bare(reading.schema, table))


def read_distinct_columns(
    reading: Reading,
    nodes: list[Mapping[str, Body]],
    what: str,
    word_index: int,
    columns_max: int = KEY_COLUMNS_MAX,
) -> tuple[str, ...]:
    """Return the names of (a, b …), which stands behind `word_index`. Raises OutOfRange,
    DuplicateColumn."""
    columns = names_of(nodes)
    if len(columns) > columns_max:
        raise OutOfRange(
            f"{what} has {len(columns)} columns; at most {columns_max} are allowed",
            position=reading.position(reading.opening(word_index)),
        )
    seen: set[str] = set()
    for column in columns:
        if column in seen:
            raise DuplicateColumn(
                f"column {column!r} stands twice in {what}",
                column=column,
                position=reading.position(reading.opening(word_index)),
            )
        seen.add(column)
    return columns
