"""CREATE [UNIQUE] INDEX, DROP INDEX, ALTER INDEX … RENAME TO."""

from __future__ import annotations

from typing import Final

from leasehold.model.errors import FeatureNotSupported
from leasehold.schema.descriptor import NAME_BYTES_MAX
from leasehold.sql.ddl_table import refuse_dropping_more
from leasehold.sql.reader import Kind, Reader
from leasehold.sql.statements import CreateIndex, DropIndex, RenameIndex

INDEX_COLUMNS_MAX: Final = 32

_AFTER_COLUMNS: Final = {
    "include": "INCLUDE columns are not supported yet",
    "where": "partial indexes (WHERE) are not supported yet",
    "nulls not distinct": "NULLS NOT DISTINCT is not supported yet: NULLs never collide",
    "nulls distinct": "NULLS DISTINCT need not be said: NULLs never collide",
    "with": "storage parameters of an index are not supported: there are none",
    "tablespace": "tablespaces are not supported",
}
_EXPRESSION: Final = "an index is over plain columns for now; expressions are not supported yet"
_AFTER_COLUMN: Final = {
    "(": _EXPRESSION,
    ".": _EXPRESSION,
    "collate": "COLLATE is not supported: text is compared by code point",
    "desc": "DESC is not supported yet in an index",
    "nulls first": "NULLS FIRST is not supported yet in an index",
}


def create_index(reader: Reader) -> CreateIndex:
    """CREATE [UNIQUE] INDEX [CONCURRENTLY] [[IF NOT EXISTS] i] ON t [USING btree] (column, …)"""
    reader.expect("create")
    unique = reader.take("unique")
    reader.expect("index")
    reader.take("concurrently")  # how every index is built here; saying so changes nothing
    exists = reader.take("if not exists")
    named = exists or not reader.at("on")
    name = reader.name("the index's name") if named else ""
    reader.expect("on")
    reader.take("only")
    table = reader.qualified_name("the table's name")
    if reader.at("using") and reader.word(1) != "btree":
        raise FeatureNotSupported(
            f"index method {reader.word(1)!r:.40} is not supported; btree is",
            position=reader.position,
        )
    reader.take("using btree")
    position = reader.position
    columns = reader.listed(lambda: _column(reader))
    reader.refuse(_AFTER_COLUMNS)
    if len(columns) > INDEX_COLUMNS_MAX or len(set(columns)) != len(columns):
        raise FeatureNotSupported(
            f"an index has 1 to {INDEX_COLUMNS_MAX} different columns", position=position
        )
    return CreateIndex(
        name if named else derived_name(table, columns), table, columns, exists, named, unique
    )


def _column(reader: Reader) -> str:
    reader.refuse({"(": _EXPRESSION})
    name = reader.name("a column's name")
    reader.refuse(_AFTER_COLUMN)
    ordered = any(reader.at(words) for words in ("asc", "nulls last"))
    following = reader.peek()
    if following and not ordered and following.kind in (Kind.WORD, Kind.NAME):
        raise FeatureNotSupported(
            f"operator class {following.text!r:.80} is not supported", position=reader.position
        )
    if reader.take("asc"):
        reader.refuse(_AFTER_COLUMN)
    reader.take("nulls last")
    return name


def derived_name(table: str, columns: tuple[str, ...], suffix: str = "idx") -> str:
    """PostgreSQL's form `t_a_b_idx`, cut in its middle where it would be too long."""
    stem = "_".join((table, *columns)).encode()[: NAME_BYTES_MAX - len(suffix) - 1]
    return f"{stem.decode(errors='ignore')}_{suffix}"


def drop_index(reader: Reader) -> DropIndex:
    """DROP INDEX [CONCURRENTLY] [IF EXISTS] i [RESTRICT]"""
    reader.expect("drop index")
    reader.take("concurrently")
    exists = reader.take("if exists")
    position = reader.position
    name = reader.qualified_name("the index's name")
    refuse_dropping_more(reader)
    return DropIndex(name, exists, position)


def alter_index(reader: Reader) -> RenameIndex:
    """ALTER INDEX [IF EXISTS] i RENAME TO j"""
    reader.expect("alter index")
    exists = reader.take("if exists")
    position = reader.position
    name = reader.qualified_name("the index's name")
    if not reader.at("rename") and reader.word(0) in ("set", "reset", "alter", "attach", "depends"):
        raise FeatureNotSupported(
            f"ALTER INDEX … {reader.word().upper()} is not supported; RENAME TO is",
            position=reader.position,
        )
    reader.expect("rename to")
    return RenameIndex(name, reader.name("the index's new name"), exists, position)
