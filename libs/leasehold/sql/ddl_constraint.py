"""PRIMARY KEY, UNIQUE and CHECK, as a column and as a table say them."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from leasehold.catalog.elements import OnChange
from leasehold.catalog.object_names import primary_key_name
from leasehold.model.errors import (
    DuplicateColumn,
    FeatureNotSupported,
    OutOfRange,
    Refused,
)
from leasehold.sql.expressions.expression import (
    EXPRESSION_BYTES_MAX,
    with_exact_numbers,
    without_table,
)
from leasehold.sql.parse import placed
from leasehold.sql.reader import Expression, Reader
from leasehold.sql.syntax.statements import CheckDefinition, ForeignKeyDefinition, UniqueDefinition

KEY_COLUMNS_MAX: Final = 32

_EVENTS: Final = ("on delete", "on update")
_STARTS: Final = ("constraint", "primary key", "unique", "check", "foreign key")
_NOT_BUILT: Final = {
    "exclude": "EXCLUDE constraints are not supported",
    "like": "LIKE is not supported: name the columns",
}
_NULLS: Final = {
    "nulls not distinct": "NULLS NOT DISTINCT is not supported yet: NULLs never collide",
    "nulls distinct": "NULLS DISTINCT need not be said: NULLs never collide",
    "using index": "a constraint USING INDEX is not supported yet: it builds its own",
}
_MATCH: Final = {
    "match partial": "MATCH PARTIAL is not supported, as in PostgreSQL: a reference with a NULL in"
    " it refers to nothing (MATCH SIMPLE) or has NULLs alone (MATCH FULL)",
}
_SOME_COLUMNS: Final = {
    "(": "a column list with SET NULL or SET DEFAULT is for ON DELETE alone, as in PostgreSQL",
}
_DEFERRED: Final = (
    "only a foreign key can be said to be DEFERRABLE INITIALLY DEFERRED: it and UNIQUE are looked"
    " at when the transaction commits, all others with each row"
)
_ATTRIBUTES: Final = {
    "include": "INCLUDE columns are not supported yet",
    "with": "storage parameters of a constraint are not supported: there are none",
    "using index tablespace": "tablespaces are not supported",
    "deferrable": _DEFERRED,
    "not deferrable": _DEFERRED,
    "initially": _DEFERRED,
    "no inherit": "NO INHERIT is not supported: tables do not inherit",
    "not enforced": "NOT ENFORCED constraints are not supported",
    "enforced": "ENFORCED need not be said: every constraint is",
}
_NO_NAME: Final = "a PRIMARY KEY, DEFAULT or NOT NULL has no name of its own yet: leave it out"


class KeyDefinition(NamedTuple):
    """PRIMARY KEY (a, b)."""

    columns: tuple[str, ...]
    position: int


Constraint: TypeAlias = KeyDefinition | UniqueDefinition | CheckDefinition | ForeignKeyDefinition


def at_constraint(reader: Reader) -> bool:
    """Does a table's constraint come next, and not a column?

    Raises FeatureNotSupported for EXCLUDE and LIKE, which stand there, too.
    """
    if reader.at("like") or reader.at("exclude (") or reader.at("exclude using"):
        reader.refuse(_NOT_BUILT)
    return any(reader.at(start) for start in _STARTS)


def constraint_name(reader: Reader) -> str | None:
    return reader.name("the constraint's name") if reader.take("constraint") else None


def table_constraint(reader: Reader, table: str) -> Constraint:
    """[CONSTRAINT n] PRIMARY KEY (…) | UNIQUE (…) | CHECK (…) [NOT VALID]"""
    name = constraint_name(reader)
    reader.refuse(_NOT_BUILT)
    position = reader.position
    if reader.at("primary key"):
        if name != primary_key_name(table):
            refuse_name(reader, name)
        reader.expect("primary key")
        columns = distinct_columns(reader, "PRIMARY KEY")
        refuse_attributes(reader)
        return KeyDefinition(columns, position)
    if reader.take("unique"):
        reader.refuse(_NULLS)
        columns = distinct_columns(reader, "UNIQUE")
        refuse_attributes(reader)
        reader.refuse({"not valid": "a UNIQUE constraint can't be NOT VALID"})
        return UniqueDefinition(columns, name, position)
    if reader.at("check"):
        return check(reader, table, name, may_be_not_valid=True)
    if reader.take("foreign key"):
        columns = distinct_columns(reader, "FOREIGN KEY")
        return references(reader, columns, name, position, may_be_not_valid=True)
    raise reader.unexpected("PRIMARY KEY, UNIQUE, CHECK or FOREIGN KEY is expected")


def references(
    reader: Reader,
    columns: tuple[str, ...],
    name: str | None,
    position: int,
    *,
    may_be_not_valid: bool = False,
) -> ForeignKeyDefinition:
    """REFERENCES table [(columns)] [MATCH …] [ON DELETE … [(columns)]] [ON UPDATE …] [NOT VALID]"""
    reader.expect("references")
    parent = reader.qualified_name("the table's name")
    to = distinct_columns(reader, "REFERENCES") if reader.at("(") else ()
    reader.refuse(_MATCH)
    full = reader.take("match full")
    if not full:
        reader.take("match simple")
    said: dict[str, OnChange] = {}
    sets: tuple[str, ...] = ()
    while (event := next((e for e in _EVENTS if reader.at(e)), "")) and event not in said:
        reader.expect(event)
        said[event] = _on_change(reader)
        if said[event] in (OnChange.SET_NULL, OnChange.SET_DEFAULT) and reader.at("("):
            if event != _EVENTS[0]:
                reader.refuse(_SOME_COLUMNS)
            sets = distinct_columns(reader, f"ON DELETE {said[event].upper()}")
    not_valid = may_be_not_valid and reader.take("not valid")
    # It says what is so here; NOT VALID may stand on either side of it.
    if reader.take("deferrable initially deferred") and not not_valid:
        not_valid = may_be_not_valid and reader.take("not valid")
    refuse_attributes(reader)
    on_delete, on_update = (said.get(event, OnChange.NO_ACTION) for event in _EVENTS)
    return ForeignKeyDefinition(
        *(columns, parent, to, name, not_valid, position, on_delete, on_update), full, sets
    )


def _on_change(reader: Reader) -> OnChange:
    found = next((action for action in OnChange if reader.take(action.value)), None)
    if found is None:
        raise reader.unexpected("NO ACTION, RESTRICT, CASCADE, SET NULL or SET DEFAULT is expected")
    return found


def refuse_name(reader: Reader, name: str | None) -> None:
    if name is not None:
        raise FeatureNotSupported(f"constraint {name!r}: {_NO_NAME}", position=reader.position)


def refuse_attributes(reader: Reader) -> None:
    """What PostgreSQL knows behind a constraint, and nobody has built here."""
    reader.refuse(_ATTRIBUTES)


def unique_column(reader: Reader, column: str, name: str | None) -> UniqueDefinition:
    """UNIQUE behind a column."""
    position = reader.position
    reader.expect("unique")
    reader.refuse(_NULLS)
    refuse_attributes(reader)
    return UniqueDefinition((column,), name, position)


def check(
    reader: Reader, table: str, name: str | None, *, may_be_not_valid: bool = False
) -> CheckDefinition:
    """CHECK (expression) [NOT VALID]; its text names the table's columns without the table."""
    position = reader.position
    reader.expect("check")
    text = kept_text(reader.enclosed_expression(), table)
    refuse_attributes(reader)
    not_valid = may_be_not_valid and reader.take("not valid")
    refuse_attributes(reader)
    return CheckDefinition(text, name, not_valid, position, reader.zone)


def kept_text(said: Expression, table: str) -> str:
    """An expression over a row as a descriptor keeps it. Raises OutOfRange, UnknownTable."""
    text = with_exact_numbers(said.text)
    if len(text.encode()) > EXPRESSION_BYTES_MAX:
        raise OutOfRange(
            f"the expression has more than {EXPRESSION_BYTES_MAX} bytes", position=said.position
        )
    try:
        return without_table(text, table)
    except Refused as error:
        raise placed(error, said.position) from error


def distinct_columns(
    reader: Reader, what: str, columns_max: int = KEY_COLUMNS_MAX
) -> tuple[str, ...]:
    """(a, b …). Raises OutOfRange, DuplicateColumn."""
    position = reader.position
    columns = reader.names()
    if len(columns) > columns_max:
        raise OutOfRange(
            f"{what} has {len(columns)} columns; at most {columns_max} are allowed",
            position=position,
        )
    seen: set[str] = set()
    for column in columns:
        if column in seen:
            raise DuplicateColumn(
                f"column {column!r} stands twice in {what}", column=column, position=position
            )
        seen.add(column)
    return columns
