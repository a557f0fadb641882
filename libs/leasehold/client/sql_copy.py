"""COPY … FROM STDIN into a table: each row is an INSERT of the same transaction; those that come
together are one statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from leasehold.model.errors import DuplicateColumn, GeneratedAlways, Refused, UnknownColumn
from leasehold.pgwire.copy_format import CopyFormat
from leasehold.pgwire.session import Column, CopyTarget, Fetched
from leasehold.schema.descriptor import Descriptor
from leasehold.sql.parse import placed
from leasehold.sql.session_statements import CopyIn


def format_of(said: CopyIn) -> CopyFormat:
    """Raises InvalidCopyOption."""
    return CopyFormat(
        csv=said.csv,
        delimiter=said.delimiter or "",
        null=said.null,
        header=said.header,
        quote=said.quote or '"',
        escape=said.escape or "",
    )


def copied(said: CopyIn, descriptor: Descriptor) -> tuple[str, tuple[Column, ...]]:
    """The INSERT of one row, and the columns that a line gives. Raises UnknownColumn,
    DuplicateColumn, GeneratedAlways."""
    if said.columns is None:
        names = [(c.name, said.at) for c in descriptor.by_name.values() if not c.generated]
    else:
        names = list(said.columns)
    columns: list[Column] = []
    for name, at in names:
        try:
            columns.append(_column(descriptor, name, {column.name for column in columns}))
        except Refused as error:
            raise placed(error, at) from error
    shown = ", ".join(_quoted(column.name) for column in columns)
    slots = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    text = f"INSERT INTO {_quoted(said.table)} ({shown}) VALUES ({slots})"  # noqa: S608 - quoted
    return text, tuple(columns)


def _column(descriptor: Descriptor, name: str, before: set[str]) -> Column:
    found = descriptor.by_name.get(name)
    if found is None:
        raise UnknownColumn(
            f"column {name!r} of relation {descriptor.name!r} does not exist", column=name
        )
    if found.generated:
        raise GeneratedAlways(f"column {name!r} is computed: COPY can't fill it", column=name)
    if name in before:
        raise DuplicateColumn(f"column {name!r} specified more than once", column=name)
    return Column(name, found.type)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Target:
    """A `CopyTarget`."""

    def __init__(
        self,
        table: str,
        columns: Sequence[Column],
        form: CopyFormat,
        take: Callable[[Sequence[Sequence[Any]]], None],
    ) -> None:
        self.table, self.columns, self.format = table, columns, form
        self.count = 0
        self._take = take

    def take(self, rows: Sequence[Sequence[Any]]) -> None:
        self._take(rows)
        self.count += len(rows)


class CopyPortal:
    def __init__(self, target: Target) -> None:
        self._target = target

    @property
    def copy(self) -> CopyTarget | None:
        return self._target

    def fetch(self, rows_max: int) -> Fetched:
        return Fetched((), f"COPY {self._target.count}")

    def close(self) -> None:
        """It holds nothing."""
