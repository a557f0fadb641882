"""Elements of a schema written as the statements that make them."""

from __future__ import annotations

from collections.abc import Container, Iterable
from itertools import zip_longest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.definitions import (
    check_text,
    default_text,
    foreign_key_text,
    is_call,
    primary_key_text,
    quoted,
    unique_text,
    without_parentheses,
)
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import EXPRESSION, Check, Column, ForeignKey, Index
from leasehold.catalog.object_names import object_name, primary_key_name
from leasehold.catalog.sequence import Options, Sequence, define_sequence
from leasehold.catalog.sequence_ownership import LABEL
from leasehold.catalog.states import State
from leasehold.catalog.view import View

_SERIALS = {"smallint": "smallserial", "integer": "serial", "bigint": "bigserial"}


def names_text(names: Iterable[str]) -> str:
    """Return names between commas."""
    return ", ".join(map(quoted, names))


def text_literal(text: str) -> str:
    """Return a text as a constant."""
    return "'" + text.replace("'", "''") + "'"


def alter_text(table: str, *actions: str) -> str:
    """Return ALTER TABLE with these actions."""
    return f"ALTER TABLE {quoted(table)} {', '.join(actions)}"


def is_serial(table: Descriptor, column: Column, catalog: Catalog) -> bool:
    """Return whether SERIAL says all of the sequence that a column draws from."""
    drawn = column.draws_from
    if not drawn or column.identity or column.own_sequences != (drawn,):
        return False
    if column.type.name not in _SERIALS or column.nullable:
        return False
    sequence = catalog.newest(drawn)
    assert sequence.sequence is not None, "it is one"
    plain = define_sequence(Options(), column.type.name)
    derived = object_name(table.name, column.name, LABEL)
    return sequence.name == derived and sequence.sequence._replace(begins=None) == plain


def column_text(table: Descriptor, column: Column, catalog: Catalog, there: Container[str]) -> str:
    """Return a column as CREATE TABLE and ADD COLUMN say it. Of a sequence that SERIAL does not
    make, or that is `there`, it says only that the column draws from it."""
    if is_serial(table, column, catalog) and _drawn(column, catalog).name not in there:
        return f"{quoted(column.name)} {_SERIALS[column.type.name]}"
    text = f"{quoted(column.name)} {column.type}"
    if column.identity:
        text += f" {identity_text(table, column, catalog)}"
    elif column.generated:
        text += f" GENERATED ALWAYS AS ({default_text(column)}) STORED"
    elif column.draws_from:
        text += f" DEFAULT {drawn_text(_drawn(column, catalog).name)}"
    elif column.has_default:
        text += f" DEFAULT {expression_text(column)}"
    in_key = column.element_id in table.primary_key
    return text if column.nullable or in_key else f"{text} NOT NULL"


def _drawn(column: Column, catalog: Catalog) -> Descriptor:
    return catalog.newest(column.draws_from)


def expression_text(column: Column) -> str:
    """Return what stands behind DEFAULT."""
    return default_text(column) or "NULL"


def drawn_text(sequence: str) -> str:
    """Return the default that draws from a sequence."""
    return f"nextval({text_literal(quoted(sequence))})"


def identity_text(table: Descriptor, column: Column, catalog: Catalog) -> str:
    """Return GENERATED … AS IDENTITY with what is not said by itself."""
    sequence = _drawn(column, catalog)
    assert sequence.sequence is not None, "it is one"
    parts = []
    if sequence.name != object_name(table.name, column.name, LABEL):
        parts.append(f"SEQUENCE NAME {quoted(sequence.name)}")
    parts += option_words(sequence.sequence, define_sequence(Options(), column.type.name))
    said = f" ({' '.join(parts)})" if parts else ""
    kind = "ALWAYS" if column.identity == "a" else "BY DEFAULT"
    return f"GENERATED {kind} AS IDENTITY{said}"


def option_words(wanted: Sequence, there: Sequence) -> list[str]:
    """Return the options by which a sequence differs from one that is there."""
    words = []
    if wanted.type != there.type:
        words.append(f"AS {wanted.type}")
    for word, one, other in (
        ("INCREMENT BY", wanted.increment, there.increment),
        ("MINVALUE", wanted.least, there.least),
        ("MAXVALUE", wanted.most, there.most),
        ("START WITH", wanted.start, there.start),
        ("CACHE", wanted.cache, there.cache),
    ):
        # Bounds go with the type and the direction, where they are not said.
        if one != other or (wanted.type != there.type and word in ("MINVALUE", "MAXVALUE")):
            words.append(f"{word} {one}")
    if wanted.cycles != there.cycles:
        words.append("CYCLE" if wanted.cycles else "NO CYCLE")
    return words


def create_sequence_text(sequence: Descriptor) -> str:
    """Return CREATE SEQUENCE, whoever is to own it."""
    assert sequence.sequence is not None, "it is one"
    options = option_words(sequence.sequence, define_sequence(Options()))
    return " ".join(("CREATE SEQUENCE", quoted(sequence.name), *options))


def create_table_text(
    table: Descriptor, catalog: Catalog, foreign_keys: Iterable[ForeignKey], there: Container[str]
) -> str:
    """Return CREATE TABLE with its key, CHECK and UNIQUE constraints, and these foreign keys;
    `there`: see `column_text`."""
    parts = [column_text(table, column, catalog, there) for column in table.by_name.values()]
    if not table.hidden_key:
        parts.append(key_text(table))
    parts += [check_definition(check) for check in table.checks if check.state is State.PUBLIC]
    parts += [unique_definition(table, index) for index in table.named_indexes if index.constraint]
    parts += [foreign_key_definition(table, key, catalog) for key in foreign_keys]
    lines = ",\n    ".join(parts)
    return f"CREATE TABLE {quoted(table.name)} (\n    {lines}\n)"


def key_text(table: Descriptor) -> str:
    """Return a primary key, with its name where that does not follow from the table's."""
    text = primary_key_text(table)
    if table.key_constraint == primary_key_name(table.name):
        return text
    return f"CONSTRAINT {quoted(table.key_constraint)} {text}"


def check_definition(check: Check) -> str:
    """Return a CHECK with its name."""
    return f"CONSTRAINT {quoted(check.name)} {check_text(check)}{_validity(check.state)}"


def unique_definition(table: Descriptor, index: Index) -> str:
    """Return a UNIQUE constraint with its name."""
    return f"CONSTRAINT {quoted(index.name)} {unique_text(table, index)}"


def foreign_key_definition(table: Descriptor, key: ForeignKey, catalog: Catalog) -> str:
    """Return a FOREIGN KEY with its name."""
    text = foreign_key_text(table, key, catalog.newest(key.parent))
    return f"CONSTRAINT {quoted(key.name)} {text}{_validity(key.state)}"


def create_index_text(table: Descriptor, index: Index) -> str:
    """Return CREATE INDEX."""
    expressions = map(without_parentheses, index.expressions)
    keys = [
        (said if is_call(said := next(expressions)) else f"({said})")
        if each == EXPRESSION
        else quoted(table.by_id[each].name)
        for each in index.columns
    ]
    orders = zip_longest(keys, index.orders, fillvalue="")
    parts = ", ".join(f"{key} {order}".rstrip() for key, order in orders)
    unique = "UNIQUE " if index.unique else ""
    text = f"CREATE {unique}INDEX {quoted(index.name)} ON {quoted(table.name)} ({parts})"
    if index.included:
        text += f" INCLUDE ({names_text(table.by_id[each].name for each in index.included)})"
    text += " NULLS NOT DISTINCT" if index.equal_nulls else ""
    return f"{text} WHERE {index.predicate}" if index.predicate else text


def view_text(view: View, *, replaces: bool = False) -> str:
    """Return CREATE [OR REPLACE] VIEW."""
    verb = "CREATE OR REPLACE VIEW" if replaces else "CREATE VIEW"
    names = names_text(column.name for column in view.columns)
    return f"{verb} {quoted(view.name)} ({names}) AS {view.text}"


def _validity(state: State) -> str:
    return "" if state is State.PUBLIC else " NOT VALID"
