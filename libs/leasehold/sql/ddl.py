"""DDL statements of PostgreSQL's grammar → frozen statements, or a refusal with a sentence.

CREATE TABLE, DROP TABLE: ddl_table.py. TRUNCATE: ddl_truncate.py. CREATE, DROP and ALTER INDEX:
ddl_index.py. ALTER TABLE: ddl_alter.py. EXPLAIN [(DDL)] stands before any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from leasehold.model.errors import FeatureNotSupported, OutOfRange, Refused
from leasehold.sql.ddl_alter import alter_table
from leasehold.sql.ddl_index import alter_index, create_index, derived_name, drop_index
from leasehold.sql.ddl_sequence import alter_sequence, create_sequence, drop_sequence
from leasehold.sql.ddl_table import create_table, drop_table
from leasehold.sql.ddl_truncate import truncate
from leasehold.sql.parse import position_of_token, statements_of, tokens_of
from leasehold.sql.reader import Reader
from leasehold.sql.syntax.statements import (
    AddColumn,
    Change,
    ColumnDefinition,
    CreateIndex,
    CreateTable,
    Explain,
    Statement,
)
from leasehold.sql.words import is_word
from leasehold.values.time_zone import UTC, zone_of

__all__ = [
    "KNOWN_STATEMENTS",
    "AddColumn",
    "ColumnDefinition",
    "CreateIndex",
    "CreateTable",
    "Statement",
    "derived_name",
    "parse_ddl",
    "parse_statements",
]

KNOWN_STATEMENTS: Final = (
    "CREATE TABLE, DROP TABLE, TRUNCATE, ALTER TABLE, CREATE INDEX, DROP INDEX,"
    " ALTER INDEX … RENAME, CREATE SEQUENCE, DROP SEQUENCE, ALTER SEQUENCE … RESTART, and EXPLAIN"
    " of these"
)

STATEMENTS_MAX: Final = 128
"""Of one request: about 4 ms each, during which the master decides nothing else."""

_TEMPORARY: Final = "temporary and unlogged tables are not supported: every table is replicated"
_NOT_BUILT: Final = {
    "create or replace": "CREATE OR REPLACE is not supported",
    **{f"create {word}": _TEMPORARY for word in ("temp", "temporary", "unlogged")},
    **{f"create {word} temp": _TEMPORARY for word in ("global", "local")},
    **{f"create {word} temporary": _TEMPORARY for word in ("global", "local")},
}
_OTHER_OBJECTS: Final = frozenset(
    {
        *("access", "aggregate", "cast", "collation", "conversion", "database", "domain"),
        *("event", "extension", "foreign", "function", "group", "language", "materialized"),
        *("operator", "owned", "policy", "procedure", "publication", "recursive", "role"),
        *("routine", "rule", "schema", "server", "statistics", "subscription"),
        *("system", "tablespace", "text", "trigger", "type", "user", "view"),
    }
)


def parse_ddl(text: str) -> Statement:
    """The one statement in `text` (at most 64 KiB); of DROP TABLE a, b, which are two, the first.

    Raises SyntaxInvalid (42601), FeatureNotSupported (0A000) for whatever is valid but not
    known here, OutOfRange for limits, UnknownColumn and DuplicateColumn for a constraint of a new
    table, and what a default raises; `detail["position"]` counts characters from 1.
    """
    return _statement(Reader(text, tokens_of(text)))[0]


class Said(NamedTuple):
    """A statement and its own text."""

    statement: Statement
    sql: str


def parse_statements(text: str, zones: Sequence[str] = ()) -> tuple[Said, ...]:
    """The statements in `text`, one or several between semicolons. `zones`: the time zones of the
    sessions that say them, one after the other, the last one of all that follow; () = UTC. Raises
    what `parse_ddl` does, InvalidArgument (22023) for a zone that is not known; positions count in
    the whole text."""
    parts = statements_of(text)
    if len(parts) > STATEMENTS_MAX:
        _refuse_many(len(parts), position_of_token(parts[STATEMENTS_MAX][0]))
    found: list[Said] = []
    for number, tokens in enumerate(parts):
        sql = text[int(tokens[0].start) : int(tokens[-1].end) + 1]
        zone = zones[min(number, len(zones) - 1)] if zones else ""
        zone = "" if zone == UTC.key else zone
        if zone:
            zone_of(zone)
        found += [Said(each, sql) for each in _statement(Reader(text, tokens, zone))]
    _refuse_many(len(found), len(text))
    return tuple(found)


def _refuse_many(count: int, position: int) -> None:
    if count > STATEMENTS_MAX:
        raise OutOfRange(
            f"the text holds {count} statements; at most {STATEMENTS_MAX} are read",
            position=position,
        )


def _statement(reader: Reader) -> tuple[Statement, ...]:
    found: tuple[Statement, ...]
    if reader.at("explain"):
        found = (_explain(reader),)
    elif reader.at("drop table"):
        found = drop_table(reader)
    else:
        found = (_change(reader),)
    reader.end()
    return found


def _explain(reader: Reader) -> Explain:
    reader.expect("explain")
    if reader.at("analyze") or reader.at("analyse") or reader.at("verbose"):
        raise _unknown_option(reader)
    if reader.take("("):
        _only_ddl(reader)
        while reader.take(","):
            _only_ddl(reader)
        if not reader.take(")"):
            raise _unknown_option(reader)
    if not reader.at("drop table"):
        return Explain(_change(reader))
    position = reader.position
    dropped, *more = drop_table(reader)
    if more:
        raise FeatureNotSupported(
            "EXPLAIN shows the plan of one change: name one table", position=position
        )
    return Explain(dropped)


def _only_ddl(reader: Reader) -> None:
    if not reader.take("ddl"):
        raise _unknown_option(reader)


def _unknown_option(reader: Reader) -> Refused:
    if not is_word(reader.word()):
        return reader.unexpected("EXPLAIN (DDL) is what is known")
    return FeatureNotSupported(
        f"EXPLAIN takes no {reader.word().upper()!r:.40} here: EXPLAIN (DDL) shows"
        " the plan of a schema change, and nothing is run",
        position=reader.position,
    )


def _change(reader: Reader) -> Change:
    reader.refuse(_NOT_BUILT)
    if reader.at("create table"):
        return create_table(reader)
    if reader.at("create unique") or reader.at("create index"):
        return create_index(reader)
    if reader.at("truncate"):
        return truncate(reader)
    if reader.at("drop index"):
        return drop_index(reader)
    if reader.at("alter table"):
        return alter_table(reader)
    if reader.at("alter index"):
        return alter_index(reader)
    if reader.at("create sequence"):
        return create_sequence(reader)
    if reader.at("drop sequence"):
        return drop_sequence(reader)
    if reader.at("alter sequence"):
        return alter_sequence(reader)
    first, second = reader.word(), reader.word(1)
    if not is_word(first):
        raise reader.unexpected(f"known are {KNOWN_STATEMENTS}")
    if first not in ("create", "drop", "alter") or second in _OTHER_OBJECTS:
        named = f"{first} {second}" if second in _OTHER_OBJECTS else first
        raise FeatureNotSupported(
            f"statement {named.upper()!r:.40} is not supported as a schema change; known are"
            f" {KNOWN_STATEMENTS}",
            position=reader.position,
        )
    reader.expect(first)
    raise reader.unexpected(f"known are {KNOWN_STATEMENTS}")
