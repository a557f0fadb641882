"""TRUNCATE [TABLE]."""

from __future__ import annotations

from leasehold.sql.reader import Reader
from leasehold.sql.syntax.statements import TableNamed, Truncate


def truncate(reader: Reader) -> Truncate:
    """TRUNCATE [TABLE] [ONLY] t [*], … [RESTART | CONTINUE IDENTITY] [CASCADE | RESTRICT]"""
    reader.expect("truncate")
    reader.take("table")
    tables = [_table(reader)]
    while reader.take(","):
        tables.append(_table(reader))
    restart = reader.take("restart identity")
    if not restart:
        reader.take("continue identity")
    return Truncate(tuple(tables), restart, reader.cascades())


def _table(reader: Reader) -> TableNamed:
    reader.take("only")  # tables do not inherit: every table is meant alone
    position = reader.position
    name = reader.qualified_name("a table's name")
    reader.take("*")
    return TableNamed(name, position)
