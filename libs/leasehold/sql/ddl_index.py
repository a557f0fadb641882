"""CREATE [UNIQUE] INDEX, DROP INDEX, ALTER INDEX … RENAME TO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from leasehold.catalog.object_names import joined_names, object_name
from leasehold.model.errors import FeatureNotSupported, Refused
from leasehold.sql.ddl_constraint import kept_text
from leasehold.sql.expressions.default import refuse_changing
from leasehold.sql.expressions.expression import column_of_expression
from leasehold.sql.parse import placed
from leasehold.sql.reader import Expression, Kind, Reader
from leasehold.sql.syntax.statements import CreateIndex, DropIndex, IndexExpression, RenameIndex

INDEX_COLUMNS_MAX: Final = 32

_AFTER_COLUMNS: Final = {
    "nulls not distinct": "NULLS NOT DISTINCT is not supported yet: NULLs never collide",
    "nulls distinct": "NULLS DISTINCT need not be said: NULLs never collide",
    "with": "storage parameters of an index are not supported: there are none",
    "tablespace": "tablespaces are not supported",
}
_AFTER_COLUMN: Final = {
    "collate": "COLLATE is not supported: text is compared by code point",
    "desc": "DESC is not supported yet in an index",
    "nulls first": "NULLS FIRST is not supported yet in an index",
}


def create_index(reader: Reader) -> CreateIndex:
    """CREATE [UNIQUE] INDEX [CONCURRENTLY] [[IF NOT EXISTS] i] ON t [USING btree]
    ({column | function(…) | (expression)}, …) [INCLUDE (column, …)] [WHERE predicate]"""
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
    parts = reader.listed(lambda: (reader.position, _part(reader, table)))
    included = _included(reader) if reader.take("include") else ()
    reader.refuse(_AFTER_COLUMNS)
    predicate = _kept(reader.expression(), table) if reader.take("where") else None
    all_parts = [part for _, part in (*parts, *included)]
    if len(all_parts) > INDEX_COLUMNS_MAX or len(set(all_parts)) != len(all_parts):
        raise FeatureNotSupported(
            f"an index has 1 to {INDEX_COLUMNS_MAX} different columns, included ones among them",
            position=position,
        )
    parts_of_name = _names(all_parts)
    return CreateIndex(
        name if named else derived_name(table, parts_of_name),
        table,
        tuple(part for _, part in parts),
        exists,
        named,
        unique,
        tuple(column for _, column in included),
        predicate,
        tuple(position for position, _ in (*parts, *included)),
        parts_of_name,
        reader.zone,
    )


def _part(reader: Reader, table: str) -> str | IndexExpression:
    """A column, a function of the row, or another expression in parentheses."""
    part: str | IndexExpression
    if reader.at("("):
        said = reader.enclosed_expression()
        # (a) is the column a, as in PostgreSQL.
        kept = _kept(said, table)
        part = column_of_expression(kept.text) or IndexExpression(f"({kept.text})", kept.position)
    elif reader.at_call():
        part = _kept(reader.call(), table)
    else:
        part = reader.name("a column's name")
        reader.refuse({".": "a column of the table itself is named without it"})
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
    return part


def _included(reader: Reader) -> tuple[tuple[int, str], ...]:
    def one() -> tuple[int, str]:
        if reader.at("(") or reader.at_call():
            raise FeatureNotSupported(
                "expressions are not supported in INCLUDE, as in PostgreSQL: name columns",
                position=reader.position,
            )
        return reader.position, reader.name("a column's name")

    return reader.listed(one)


def _kept(said: Expression, table: str) -> IndexExpression:
    """Raises InvalidObject for what is not the same each time it is computed."""
    try:
        refuse_changing(said.text)
    except Refused as error:
        raise placed(error, said.position) from error
    return IndexExpression(kept_text(said, table), said.position)


def _names(parts: Sequence[str | IndexExpression]) -> tuple[str, ...]:
    """What a derived name says of each: the function's name for a function, as PostgreSQL."""
    stems: list[str] = []
    names: list[str] = []
    for part in parts:
        if isinstance(part, str):
            names.append(part)
            continue
        stem = part.text.partition("(")[0].strip() or "expr"
        names.append(f"{stem}{stems.count(stem) or ''}")
        stems.append(stem)
    return tuple(names)


def derived_name(table: str, columns: tuple[str, ...], suffix: str = "idx") -> str:
    """PostgreSQL's form `t_a_b_idx`."""
    return object_name(table, joined_names(columns), suffix)


def drop_index(reader: Reader) -> DropIndex:
    """DROP INDEX [CONCURRENTLY] [IF EXISTS] i [CASCADE | RESTRICT]"""
    reader.expect("drop index")
    concurrently = reader.take("concurrently")
    exists = reader.take("if exists")
    position = reader.position
    name = reader.qualified_name("the index's name")
    reader.refuse({",": "one DROP INDEX names one index: send several"})
    if concurrently:
        reader.refuse({"cascade": "DROP INDEX CONCURRENTLY does not support CASCADE"})
    return DropIndex(name, exists, position, reader.cascades())


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
