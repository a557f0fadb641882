"""TRUNCATE [TABLE]."""

from __future__ import annotations

from typing import Final

from leasehold.sql.reader import Reader
from leasehold.sql.statements import TableNamed, Truncate

_CASCADE: Final = (
    "CASCADE is not supported: name the tables whose foreign keys refer to it in the same TRUNCATE"
)


def truncate(reader: Reader) -> Truncate:
    """TRUNCATE [TABLE] [ONLY] t [*], … [RESTART IDENTITY | CONTINUE IDENTITY] [RESTRICT]"""
    reader.expect("truncate")
    reader.take("table")
    tables = [_table(reader)]
    while reader.take(","):
        tables.append(_table(reader))
    restart = reader.take("restart identity")
    if not restart:
        reader.take("continue identity")
    reader.refuse({"cascade": _CASCADE})
    reader.take("restrict")
    return Truncate(tuple(tables), restart)


def _table(reader: Reader) -> TableNamed:
    reader.take("only")  # tables do not inherit: every table is meant alone
    position = reader.position
    name = reader.qualified_name("a table's name")
    reader.take("*")
    return TableNamed(name, position)
