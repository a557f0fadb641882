"""COPY. FROM STDIN into a table each row is an INSERT of the same transaction; those that come
together are one statement. TO STDOUT it is a query, whose rows the wire writes in COPY's form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from leasehold.catalog.descriptor import Descriptor
from leasehold.model.errors import (
    DuplicateColumn,
    GeneratedAlways,
    InvalidColumnReference,
    Refused,
    UnknownColumn,
)
from leasehold.pgwire.copy.format import CopyFormat
from leasehold.pgwire.session import Column, CopyTarget, Fetched
from leasehold.sql.syntax.positions import with_position
from leasehold.sql.syntax.session_statements import CopyIn, CopyOptions, CopyOut


def format_of(
    said: CopyOptions, columns: Sequence[Column] = (), descriptor: Descriptor | None = None
) -> CopyFormat:
    """Return the format that a COPY asks for. `columns` are written, or read into the table of
    `descriptor`. Raises
    InvalidArgument, SyntaxInvalid, UnknownColumn, DuplicateColumn, InvalidColumnReference."""
    names = {column.name for column in columns}
    for name, at in said.force_quote or ():
        if name not in names:
            words = f"FORCE_QUOTE column {name!r} is not written by this COPY"
            raise UnknownColumn(words, column=name, position=at)
    forced = said.force_quote
    return CopyFormat(
        csv=said.csv,
        binary=said.binary,
        force_quote=None if forced is None else frozenset(name for name, _ in forced),
        delimiter=said.delimiter or "",
        null=said.null,
        header=said.header,
        header_matches=said.header_matches,
        quote=said.quote or '"',
        escape=said.escape or "",
        force_null=_forced("FORCE_NULL", said.force_null, names, descriptor),
        force_not_null=_forced("FORCE_NOT_NULL", said.force_not_null, names, descriptor),
    )


def _forced(
    option: str,
    said: Sequence[tuple[str, int]],
    names: set[str],
    descriptor: Descriptor | None,
) -> frozenset[str]:
    found: set[str] = set()
    for name, at in said:
        if descriptor is not None and name not in descriptor.by_name:
            words = f"column {name!r} of relation {descriptor.name!r} does not exist"
            raise UnknownColumn(words, column=name, position=at)
        if name in found:
            words = f"column {name!r} specified more than once"
            raise DuplicateColumn(words, column=name, position=at)
        if name not in names:
            words = f"{option} column {name!r} not referenced by COPY"
            raise InvalidColumnReference(words, column=name, position=at)
        found.add(name)
    return frozenset(found)


def copied(said: CopyIn, descriptor: Descriptor) -> tuple[str, tuple[Column, ...]]:
    """Return the INSERT of one row, and the columns that a line gives. Raises what `_columns`
    raises."""
    columns = _columns(said, descriptor)
    shown = ", ".join(_quoted(column.name) for column in columns)
    slots = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    # COPY takes what it is given, also for GENERATED ALWAYS AS IDENTITY.
    is_identity = any(descriptor.column(column.name).identity for column in columns)
    overriding = " OVERRIDING SYSTEM VALUE" if is_identity else ""
    into = f"{_quoted(said.table)} ({shown}){overriding}"
    text = f"INSERT INTO {into} VALUES ({slots})"  # noqa: S608 - quoted
    return text, tuple(columns)


def copied_out(said: CopyOut, descriptor: Descriptor) -> str:
    """Return the query of a table's rows. Raises what `_columns` raises."""
    shown = ", ".join(_quoted(column.name) for column in _columns(said, descriptor))
    return f"SELECT {shown} FROM {_quoted(said.table)}"  # noqa: S608 - quoted


def _columns(said: CopyIn | CopyOut, descriptor: Descriptor) -> list[Column]:
    """Return the columns that COPY names. Raises UnknownColumn, DuplicateColumn,
    GeneratedAlways."""
    if said.columns is None:
        names = [(c.name, said.at) for c in descriptor.by_name.values() if not c.generated]
    else:
        names = list(said.columns)
    columns: list[Column] = []
    for name, at in names:
        try:
            columns.append(_column(descriptor, name, {column.name for column in columns}))
        except Refused as error:
            raise with_position(error, at) from error
    return columns


def _column(descriptor: Descriptor, name: str, before: set[str]) -> Column:
    found = descriptor.by_name.get(name)
    if found is None:
        raise UnknownColumn(
            f"column {name!r} of relation {descriptor.name!r} does not exist", column=name
        )
    if found.generated:
        raise GeneratedAlways(f"column {name!r} is computed: it is not used by COPY", column=name)
    if name in before:
        raise DuplicateColumn(f"column {name!r} specified more than once", column=name)
    return Column(name, found.type)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class CopyPortal:
    """The portal of COPY … FROM STDIN, and the `CopyTarget` of its rows."""

    def __init__(
        self,
        table: str,
        columns: Sequence[Column],
        form: CopyFormat,
        take: Callable[[Sequence[Sequence[Any]]], None],
    ) -> None:
        self.table, self.columns, self.format = table, columns, form
        self._count = 0
        self._take = take

    @property
    def copy(self) -> CopyTarget | None:
        return self

    def take(self, rows: Sequence[Sequence[Any]]) -> None:
        self._take(rows)
        self._count += len(rows)

    def fetch(self, rows_max: int) -> Fetched:
        return Fetched((), f"COPY {self._count}")

    def close(self) -> None:
        """Do nothing: it holds nothing."""

    def rest(self, *, wholly: bool) -> None:
        """Do nothing: it has no rows."""
