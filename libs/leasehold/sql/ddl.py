"""One DDL statement of PostgreSQL's dialect → a frozen statement, or a refusal with a sentence.

CREATE TABLE [IF NOT EXISTS] t (column type [NOT NULL] [DEFAULT constant] …, PRIMARY KEY (…))
CREATE INDEX [IF NOT EXISTS] [i] ON t (column, …)
ALTER TABLE t ADD [COLUMN] [IF NOT EXISTS] column type [NOT NULL] [DEFAULT constant]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from leasehold.model.errors import (
    FeatureNotSupported,
    OutOfRange,
    Refused,
    SyntaxInvalid,
    UnknownColumn,
)
from leasehold.schema.descriptor import COLUMNS_MAX, NAME_BYTES_MAX
from leasehold.schema.types import Type
from leasehold.sql.literal import constant
from leasehold.sql.parse import name_of, only, position_of, tokens_of, tree_of, type_of

INDEX_COLUMNS_MAX: Final = 32

# sqlglot also reads other dialects' type words (STRING, VARBINARY, …), which mean nothing here.
_TYPE_WORDS: Final = {
    *("smallint", "int2", "integer", "int", "int4", "bigint", "int8"),
    *("double", "float", "float8", "text", "varchar", "character", "boolean", "bool", "bytea"),
    *("date", "timestamp", "timestamptz", "uuid"),
}


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """`default` is a storage value, None = no default (DEFAULT NULL is no default)."""

    name: str
    type: Type
    nullable: bool = True
    default: Any = None
    position: int = 1


@dataclass(frozen=True, slots=True)
class CreateTable:
    """`primary_key`: column names in key order; those columns are NOT NULL."""

    name: str
    columns: tuple[ColumnDefinition, ...]
    primary_key: tuple[str, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """`named` False: `name` was derived and may be numbered to make it free, as PostgreSQL does."""

    name: str
    table: str
    columns: tuple[str, ...]
    if_not_exists: bool = False
    named: bool = True


@dataclass(frozen=True, slots=True)
class AddColumn:
    table: str
    column: ColumnDefinition
    if_not_exists: bool = False


Statement: TypeAlias = CreateTable | CreateIndex | AddColumn

KNOWN_STATEMENTS: Final = "CREATE TABLE, CREATE INDEX and ALTER TABLE … ADD COLUMN"


def parse_ddl(text: str) -> Statement:
    """The one statement in `text` (at most 64 KiB).

    Raises SyntaxInvalid (42601), FeatureNotSupported (0A000) for whatever is valid but not
    known here, OutOfRange for limits, and what a default raises; `detail["position"]` counts
    characters from 1.
    """
    tokens = tokens_of(text)
    first = tokens[0].text.lower()
    if first not in ("create", "alter"):
        raise FeatureNotSupported(
            f"statement {first.upper()!r:.40} is not supported as a schema change; known are"
            f" {KNOWN_STATEMENTS}",
            position=tokens[0].start + 1,
        )
    tree = tree_of(text, tokens)
    try:
        return _statement(tree, tokens)
    except Refused as error:
        if "position" in error.detail:
            raise
        position = position_of(tree)
        raise type(error)(error.message, **{**error.detail, "position": position}) from error


def _statement(tree: exp.Expression, tokens: list[Token]) -> Statement:
    match tree:
        case exp.Create(kind="TABLE"):
            return _create_table(tree, tokens)
        case exp.Create(kind="INDEX"):
            return _create_index(tree)
        case exp.Alter(kind="TABLE"):
            return _alter_table(tree, tokens)
        case exp.Command():
            raise SyntaxInvalid(
                f"syntax error, or a statement not known here; known are {KNOWN_STATEMENTS}",
                position=tokens[0].start + 1,
            )
    raise FeatureNotSupported(
        f"this statement is not supported; known are {KNOWN_STATEMENTS}",
        position=tokens[0].start + 1,
    )


def _table_name(node: object) -> str:
    """A table's name; the schema `public` may be named, there is no other."""
    if not isinstance(node, exp.Table):
        raise SyntaxInvalid("a table's name is missing")
    only(node, "this", "db")
    schema = node.args.get("db")
    if schema is not None and name_of(schema) != "public":
        raise FeatureNotSupported(
            f"schema {name_of(schema)!r} does not exist: a database has the schema public only",
            position=position_of(node),
        )
    return name_of(node.this)


# ------------------------------------------------------------------ columns


def _column(node: exp.ColumnDef, tokens: list[Token]) -> tuple[ColumnDefinition, bool]:
    """A column's definition and whether it is the primary key."""
    only(node, "this", "kind", "constraints", "exists")
    position = position_of(node.this)
    name = name_of(node.this)
    if node.args.get("kind") is None:
        raise SyntaxInvalid(f"column {name!r} has no type", position=position)
    try:
        kind = _known_type(node, tokens)
        null: bool | None = None
        default: Any = None
        seen: set[type] = set()
        key = False
        for constraint in node.args.get("constraints") or ():
            said = constraint.args["kind"]
            only(constraint, "kind")
            if type(said) in seen:
                raise SyntaxInvalid("the same constraint stands twice")
            seen.add(type(said))
            match said:
                case exp.NotNullColumnConstraint():
                    null = bool(said.args.get("allow_null"))
                case exp.DefaultColumnConstraint():
                    default = constant(said.this, kind)
                case exp.PrimaryKeyColumnConstraint():
                    _plain_key(said)
                    key = True
                case _:
                    raise FeatureNotSupported(
                        f"constraint {said.sql('postgres')!r:.80} is not supported yet"
                    )
    except Refused as error:
        raise type(error)(
            f"column {name!r}: {error.message}",
            **{"column": name, "position": position, **error.detail},
        ) from error
    if key and null:
        raise SyntaxInvalid(f"column {name!r}: a primary key can't be NULL", position=position)
    nullable = null is not False and not key
    return ColumnDefinition(name, kind, nullable, default, position), key


def _plain_key(said: exp.Expression) -> None:
    only(said, "include")
    if said.args.get("include") is not None:
        only(said.args["include"])


def _known_type(node: exp.ColumnDef, tokens: list[Token]) -> Type:
    after = node.this.meta.get("end", -1)
    word = next((t.text.lower() for t in tokens if t.start > after), "")
    kind = node.args["kind"]
    if word.split()[0:1] and word.split()[0] not in _TYPE_WORDS:
        raise FeatureNotSupported(
            f"type {word!r:.80} is not known; known are: {', '.join(sorted(_TYPE_WORDS))}"
        )
    if not isinstance(kind, exp.DataType):
        raise FeatureNotSupported(f"type {word!r:.80} is not known")
    return type_of(kind)


# ------------------------------------------------------------------ statements


def _create_table(tree: exp.Create, tokens: list[Token]) -> CreateTable:
    if tree.args.get("expression") is not None:
        raise FeatureNotSupported("CREATE TABLE … AS is not supported: create, then insert")
    only(tree, "this", "kind", "exists")
    schema = tree.this
    if not isinstance(schema, exp.Schema):
        raise SyntaxInvalid("CREATE TABLE needs a list of columns", position=position_of(tree))
    only(schema, "this", "expressions")
    name = _table_name(schema.this)
    columns: list[ColumnDefinition] = []
    keys: list[tuple[str, ...]] = []
    for part in schema.expressions:
        match part:
            case exp.ColumnDef():
                column, is_key = _column(part, tokens)
                columns.append(column)
                if is_key:
                    keys.append((column.name,))
            case exp.PrimaryKey():
                keys.append(_key_columns(part))
            case exp.Identifier():
                raise SyntaxInvalid(
                    f"column {name_of(part)!r} has no type", position=position_of(part)
                )
            case _:
                raise FeatureNotSupported(
                    f"{part.sql('postgres')!r:.80} is not supported yet in CREATE TABLE",
                    position=position_of(part),
                )
    return _checked_table(name, columns, keys, bool(tree.args.get("exists")), position_of(tree))


def _key_columns(node: exp.PrimaryKey) -> tuple[str, ...]:
    only(node, "expressions", "include")
    if node.args.get("include") is not None:
        only(node.args["include"])
    return tuple(
        name_of(part.this if isinstance(part, exp.Column | exp.Ordered) else part)
        for part in node.expressions
    )


def _checked_table(
    name: str,
    columns: list[ColumnDefinition],
    keys: list[tuple[str, ...]],
    if_not_exists: bool,
    position: int,
) -> CreateTable:
    if len(columns) > COLUMNS_MAX:
        raise OutOfRange(
            f"table {name!r} has {len(columns)} columns; at most {COLUMNS_MAX} are allowed",
            position=position,
        )
    if not keys:
        raise FeatureNotSupported(
            f"table {name!r} has no PRIMARY KEY; tables without one are not supported yet",
            position=position,
        )
    if len(keys) > 1:
        raise SyntaxInvalid(f"table {name!r} has more than one PRIMARY KEY", position=position)
    key = keys[0]
    if len(key) > INDEX_COLUMNS_MAX or len(set(key)) != len(key):
        raise SyntaxInvalid(
            f"PRIMARY KEY ({', '.join(key)}): 1 to {INDEX_COLUMNS_MAX} different columns",
            position=position,
        )
    names = {column.name for column in columns}
    for column in key:
        if column not in names:
            raise UnknownColumn(
                f"column {column!r} named in PRIMARY KEY does not exist", position=position
            )
    bound = tuple(
        ColumnDefinition(c.name, c.type, c.nullable and c.name not in key, c.default, c.position)
        for c in columns
    )
    return CreateTable(name, bound, key, if_not_exists)


def _create_index(tree: exp.Create) -> CreateIndex:
    if tree.args.get("unique"):
        raise FeatureNotSupported("UNIQUE indexes are not supported yet")
    # CONCURRENTLY is how every index is built here; saying so changes nothing.
    only(tree, "this", "kind", "exists", "concurrently")
    index = tree.this
    assert isinstance(index, exp.Index), index
    only(index, "this", "table", "params")
    table = _table_name(index.args.get("table"))
    params = index.args.get("params")
    position = position_of(index)
    if params is None or not params.args.get("columns"):
        raise SyntaxInvalid("CREATE INDEX needs a list of columns", position=position)
    if params.args.get("where") is not None:
        raise FeatureNotSupported("partial indexes (WHERE) are not supported yet")
    if params.args.get("include"):
        raise FeatureNotSupported("INCLUDE columns are not supported yet")
    only(params, "columns", "using")
    method = params.args.get("using")
    if method is not None and method.name.lower() != "btree":
        raise FeatureNotSupported(f"index method {method.name!r:.40} is not supported; btree is")
    columns = tuple(_index_column(part) for part in params.args["columns"])
    if len(columns) > INDEX_COLUMNS_MAX or len(set(columns)) != len(columns):
        raise FeatureNotSupported(
            f"an index has 1 to {INDEX_COLUMNS_MAX} different columns", position=position
        )
    named = index.args.get("this") is not None
    name = name_of(index.this) if named else derived_name(table, columns)
    return CreateIndex(name, table, columns, bool(tree.args.get("exists")), named)


def _index_column(node: exp.Expression) -> str:
    position = position_of(node)
    if isinstance(node, exp.Ordered):
        if node.args.get("desc") or node.args.get("nulls_first"):
            raise FeatureNotSupported(
                "DESC and NULLS FIRST are not supported yet in an index", position=position
            )
        only(node, "this", "desc", "nulls_first")
        node = node.this
    if not isinstance(node, exp.Column):
        raise FeatureNotSupported(
            f"{node.sql('postgres')!r:.80}: an index is over plain columns for now; expressions,"
            " COLLATE and operator classes are not supported yet",
            position=position,
        )
    only(node, "this")
    return name_of(node.this)


def derived_name(table: str, columns: tuple[str, ...]) -> str:
    """PostgreSQL's form `t_a_b_idx`, cut in its middle where it would be too long."""
    stem = "_".join((table, *columns)).encode()[: NAME_BYTES_MAX - len("_idx")]
    return stem.decode(errors="ignore") + "_idx"


def _alter_table(tree: exp.Alter, tokens: list[Token]) -> AddColumn:
    actions = tree.args.get("actions") or []
    if len(actions) != 1:
        raise FeatureNotSupported("one action per ALTER TABLE for now", position=position_of(tree))
    action = actions[0]
    if not isinstance(action, exp.ColumnDef):
        raise FeatureNotSupported(
            f"ALTER TABLE … {action.sql('postgres')!r:.60} is not supported yet; ADD COLUMN is",
            position=position_of(action),
        )
    if tree.args.get("exists"):
        raise FeatureNotSupported("ALTER TABLE IF EXISTS is not supported: name a table there is")
    only(tree, "this", "kind", "actions", "only")
    column, is_key = _column(action, tokens)
    if is_key:
        raise FeatureNotSupported(
            f"column {column.name!r}: a PRIMARY KEY can't be added yet", position=column.position
        )
    return AddColumn(_table_name(tree.this), column, bool(action.args.get("exists")))
