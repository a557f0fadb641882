"""The sequences of tables: descriptors, names, who owns one and who draws from it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from leasehold.catalog import sequence as sequence_values
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.definitions import quoted
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import NEXTVAL, Column
from leasehold.catalog.object_names import free_object_name
from leasehold.catalog.sequence import BIGINT, ROW_KEY, Owner, Sequence
from leasehold.model.errors import (
    DependentObjects,
    FeatureNotSupported,
    OutOfRange,
    UnknownColumn,
    UnknownTable,
    WrongObject,
)
from leasehold.model.records.requests import Operation, OperationKind
from leasehold.values.types import Type

LABEL: Final = "seq"
OWNED_MAX: Final = 16
"""Sequences that one column has for its own."""


def make_sequence_relation(sequence: Sequence, table_id: int, name: str) -> Descriptor:
    """Return version 1 of a sequence, in the columns that PostgreSQL's have."""
    return Descriptor(
        table_id,
        name,
        1,
        (
            Column(sequence_values.LAST, "last_value", BIGINT, nullable=False),
            Column(sequence_values.COUNT, "log_cnt", BIGINT, nullable=False),
            Column(sequence_values.CALLED, "is_called", Type("boolean"), nullable=False),
            Column(sequence_values.EPOCH, "epoch", BIGINT, nullable=False, hidden=True),
        ),
        (sequence_values.COUNT,),
        next_element_id=sequence_values.EPOCH + 1,
        sequence=sequence,
    )


def derive_sequence_name(table: str, column: str, taken: set[str]) -> str:
    """Return `t_c_seq`, of which the longer part is cut where it has to be, and a number is put
    behind it where it is taken: as PostgreSQL does."""
    return free_object_name(table, column, LABEL, taken)


def nextval_text(sequence: str) -> str:
    """Return the default that draws from a sequence as PostgreSQL shows it."""
    name = quoted(sequence).replace("'", "''")
    return f"{NEXTVAL}'{name}'::regclass)"


def find_sequence(catalog: Catalog, name: str, position: int = 1) -> Descriptor:
    """Return the sequence of that name. Raises UnknownTable, WrongObject."""
    try:
        found = catalog.resolve(name)
    except UnknownTable:
        raise UnknownTable(
            f"relation {name!r} does not exist", table=name, position=position
        ) from None
    if found.sequence is None:
        raise WrongObject(f"{name!r} is not a sequence", table=name, position=position)
    return found


def refuse_sequence(table: Descriptor, position: int = 1) -> Descriptor:
    """Return `table`, which must not be a sequence. Raises WrongObject."""
    if table.sequence is not None:
        raise WrongObject(
            f"{table.name!r} is not a table: it is a sequence", table=table.name, position=position
        )
    return table


class Owning(NamedTuple):
    """A column, and what it will have of sequences."""

    table: Descriptor
    column: Column
    made: Column


def find_owner_changes(catalog: Catalog, sequence: Descriptor, owner: Owner) -> list[Owning]:
    """Return the columns to change, that which gets it first: none where it is owned like that.
    Raises UnknownTable, UnknownColumn, WrongObject, FeatureNotSupported, OutOfRange."""
    found: list[Owning] = []
    target: tuple[int, int] | None = None
    if owner.table:
        table = refuse_sequence(_find_table(catalog, owner), owner.position)
        column = _find_column(table, owner)
        target = table.table_id, column.element_id
        if sequence.table_id not in column.own_sequences:
            found.append(
                Owning(table, column, _take_sequence(catalog, column, sequence, owner.position))
            )
    for user in find_users(catalog, sequence.table_id):
        table, column = user.table, user.column
        if user.is_identity:
            raise FeatureNotSupported(
                "cannot change ownership of identity sequence",
                detail=f'Sequence "{sequence.name}" is linked to table "{table.name}".',
                position=owner.position,
            )
        if user.owns and (table.table_id, column.element_id) != target:
            left = (other for other in column.own_sequences if other != sequence.table_id)
            made = column.with_sequence_default(column.draws_from, left, column.identity)
            found.append(Owning(table, column, made))
    return found


def _find_table(catalog: Catalog, owner: Owner) -> Descriptor:
    try:
        return catalog.resolve(owner.table)
    except UnknownTable:
        raise UnknownTable(
            f"relation {owner.table!r} does not exist", table=owner.table, position=owner.position
        ) from None


def _find_column(table: Descriptor, owner: Owner) -> Column:
    try:
        return table.column(owner.column)
    except UnknownColumn as error:
        error.detail = {**error.detail, "position": owner.position}
        raise


def _take_sequence(catalog: Catalog, column: Column, sequence: Descriptor, position: int) -> Column:
    """Return the column with `sequence` for its own, beside those that are still there. Raises
    OutOfRange."""
    own = [left.table_id for left in find_existing(column.own_sequences, catalog)]
    if len(own) >= OWNED_MAX:
        raise OutOfRange(
            f"column {column.name!r} has {OWNED_MAX} sequences for its own, the most allowed",
            column=column.name,
            position=position,
        )
    return column.with_sequence_default(
        column.draws_from, (*own, sequence.table_id), column.identity
    )


def list_own_sequences(table: Descriptor) -> Iterator[int]:
    """Yield the ids of the sequences that go when the table goes."""
    for column in table.columns:
        yield from column.own_sequences


def find_existing(own: Iterable[int], catalog: Catalog) -> tuple[Descriptor, ...]:
    """Return, of sequences that columns have for their own, those that have not gone by
    themselves."""
    there = (catalog.newest(sequence) for sequence in own if catalog.has(sequence))
    return tuple(sequence for sequence in there if sequence.names)


class User(NamedTuple):
    """A column that draws from a sequence, or has it for its own, or both."""

    table: Descriptor
    column: Column
    draws: bool
    owns: bool

    @property
    def is_identity(self) -> bool:
        """Whether the column is an identity column, which has what it draws from as a part of
        itself."""
        return self.draws and bool(self.column.identity)

    @property
    def words(self) -> str:
        return f"default value for column {self.column.name} of table {self.table.name}"


def find_users(catalog: Catalog, sequence_id: int) -> Iterator[User]:
    for table in catalog.tables():
        for column in table.columns:
            draws = column.draws_from == sequence_id
            owns = sequence_id in column.own_sequences
            if draws or owns:
                yield User(table, column, draws, owns)


def find_drawing_users(catalog: Catalog, sequence: Descriptor, position: int) -> list[User]:
    """Return the columns whose default draws from a sequence, before that is dropped by itself.
    Raises DependentObjects for an identity column, of which it is a part."""
    found = [user for user in find_users(catalog, sequence.table_id) if user.draws]
    for user in found:
        if user.is_identity:
            words = f"column {user.column.name} of table {user.table.name}"
            raise DependentObjects(
                f"cannot drop sequence {sequence.name} because {words} requires it",
                hint=f"You can drop {words} instead.",
                sequence=sequence.name,
                position=position,
            )
    return found


def find_used_elsewhere(
    catalog: Catalog,
    table: Descriptor,
    columns: Collection[int],
    own: Collection[int],
    beside: Collection[str] = (),
) -> list[User]:
    """Return who draws from the sequences `own`, which go with columns of a table, but for these
    columns, and for tables that go `beside`."""
    found: list[User] = []
    for sequence_id in sorted(own):
        for user in find_users(catalog, sequence_id):
            itself = user.table.table_id == table.table_id
            goes = (itself and user.column.element_id in columns) or user.table.name in beside
            if user.draws and not goes:
                found.append(user)
    return found


def refuse_used_elsewhere(catalog: Catalog, table: Descriptor, users: Iterable[User]) -> None:
    """Refuse that sequences of a table's columns go while others draw from them. Raises
    DependentObjects."""
    for user in users:
        sequence = catalog.newest(user.column.draws_from).name
        raise DependentObjects(
            f"cannot drop sequence {sequence} because other objects depend on it",
            detail=f"{user.words} depends on sequence {sequence}",
            hint=f"ALTER TABLE {quoted(user.table.name)} ALTER {quoted(user.column.name)}"
            " DROP DEFAULT first, or say CASCADE, which does that.",
            table=table.name,
        )


def set_operation(sequence: Descriptor, last: int, *, called: bool) -> Operation:
    """Return what a request says to set a sequence (`transaction/sequence_operations.py`)."""
    values = {"set": last, "called": called}
    return Operation(OperationKind.UPDATE, sequence.name, ROW_KEY, values)


def check_bounds_operation(sequence: Descriptor) -> Operation:
    """Return what a request says that is to be refused where the sequence stands beyond its new
    bounds."""
    assert sequence.sequence is not None, sequence
    bounds = sequence.sequence.least, sequence.sequence.most
    return Operation(OperationKind.UPDATE, sequence.name, ROW_KEY, {"within": bounds})
