"""The sequences that new columns draw their values from."""

from __future__ import annotations

from typing import NamedTuple

from leasehold.catalog import sequence as sequence_values
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.sequence import Numbering
from leasehold.catalog.sequence_ownership import (
    derive_sequence_name,
    find_sequence,
    make_sequence_relation,
    nextval_text,
)
from leasehold.model.errors import DuplicateObject
from leasehold.sql.syntax.statements import (
    ColumnDefinition,
)


class Drawn(NamedTuple):
    """The sequence of a column's definition: `text` is its default's; `made`: a sequence of its
    own."""

    numbering: Numbering
    text: str
    made: Descriptor | None = None


def resolve_drawn(
    table: str, definition: ColumnDefinition, catalog: Catalog, taken: set[str], before: int
) -> Drawn:
    """Find the sequence that a column's definition names, or make it. `before`: sequences that
    the statement has made already. Raises UnknownTable, WrongObject, DuplicateObject,
    InvalidArgument."""
    said = definition.numbering
    assert said is not None, "it draws"
    if said.named:
        found = find_sequence(catalog, said.named, said.position)
        return Drawn(Numbering(found.table_id), nextval_text(found.name))
    name = said.options.name or derive_sequence_name(table, definition.name, taken)
    if name in taken:
        raise DuplicateObject(f"{name!r} exists already", table=name, position=said.position)
    sequence = sequence_values.define_sequence(said.options, definition.type.name)
    made = make_sequence_relation(sequence, catalog.next_sequence_id() + before, name)
    return Drawn(Numbering(made.table_id, True, said.identity), nextval_text(name), made)
