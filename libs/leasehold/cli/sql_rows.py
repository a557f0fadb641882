"""Rows of a query as a table for people, as CSV, or as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from rich.text import Text

from leasehold.cli.output import Output
from leasehold.cli.terminal_text import (
    escape_control,
    escape_control_in_json,
    escape_control_in_lines,
)
from leasehold.pgwire.messages.backend import Field
from leasehold.values.declared import BY_NAME, NUMBERS

_OIDS: Final = {numbers.oid: name for name, numbers in BY_NAME.items()}
_NUMBERS: Final = NUMBERS | {"oid"}


class Rows(Protocol):
    """What is done with one result: `begin`, `row` for each, `end`."""

    def begin(self, fields: Sequence[Field]) -> None: ...
    def row(self, values: Sequence[str | None]) -> None: ...
    def end(self) -> None: ...


class TableRows:
    def __init__(self, output: Output) -> None:
        self._output = output
        self._heads: list[str] = []
        self._rows: list[list[Text]] = []

    def begin(self, fields: Sequence[Field]) -> None:
        self._rows = []
        self._heads = [_head(field) for field in fields]

    def row(self, values: Sequence[str | None]) -> None:
        self._rows.append([_cell(value) for value in values])

    def end(self) -> None:
        count = len(self._rows)
        self._output.table(self._heads, self._rows, "no rows")
        self._output.note(f"({count:,} row{'s' * (count != 1)})")
        self._rows = []


def _head(field: Field) -> str:
    """Return the head of a column as `Output.table` takes it: a > in front means numbers."""
    if _OIDS.get(field.oid) in _NUMBERS:
        return ">" + field.name
    return " " + field.name if field.name.startswith(">") else field.name


def _cell(value: str | None) -> Text:
    return Text("NULL", "dim") if value is None else Text(escape_control(value))


class CsvRows:
    """Rows as PostgreSQL's COPY writes them: NULL is nothing, an empty text is quoted. A file gets
    the values as they are, a terminal with escapes for what it would obey."""

    def __init__(self) -> None:
        self._is_terminal = sys.stdout.isatty()

    def begin(self, fields: Sequence[Field]) -> None:
        self.row([field.name for field in fields])

    def row(self, values: Sequence[str | None]) -> None:
        line = ",".join(map(_quote, values))
        sys.stdout.write((escape_control_in_lines(line) if self._is_terminal else line) + "\n")

    def end(self) -> None:
        sys.stdout.flush()


def _quote(value: str | None) -> str:
    if value is None:
        return ""
    plain = value and value == value.strip() and not any(c in value for c in ',"\r\n')
    return value if plain else '"' + value.replace('"', '""') + '"'


class JsonRows:
    """An object for each row, on a line of its own. Numbers that JSON can hold exactly are numbers,
    jsonb is what it is, all else is text as PostgreSQL writes it."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._reads: list[Callable[[str], Any]] = []

    def begin(self, fields: Sequence[Field]) -> None:
        self._names = []
        for field in fields:
            name, again = field.name, 2
            while name in self._names:  # an object has each name once
                name, again = f"{field.name}_{again}", again + 1
            self._names.append(name)
        self._reads = [_JSON.get(_OIDS.get(field.oid, ""), str) for field in fields]

    def row(self, values: Sequence[str | None]) -> None:
        made = {
            name: None if value is None else read(value)
            for name, read, value in zip(self._names, self._reads, values, strict=True)
        }
        sys.stdout.write(escape_control_in_json(json.dumps(made, ensure_ascii=False)) + "\n")

    def end(self) -> None:
        sys.stdout.flush()


def _double(text: str) -> float | str:
    return text if text in ("NaN", "Infinity", "-Infinity") else float(text)


_JSON: Final[Mapping[str, Callable[[str], Any]]] = {
    "boolean": lambda text: text == "t",
    "smallint": int,
    "integer": int,
    "bigint": int,
    "oid": int,
    "real": _double,
    "double precision": _double,
    "json": json.loads,
    "jsonb": json.loads,
}

FORMATS: Final = ("table", "csv", "json")


def make_rows(form: str, output: Output) -> Rows:
    match form:
        case "csv":
            return CsvRows()
        case "json":
            return JsonRows()
    return TableRows(output)
