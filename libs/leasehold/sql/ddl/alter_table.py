"""ALTER TABLE, and RENAME of tables, columns, constraints, indexes and sequences."""

from __future__ import annotations

from typing import Any, Final

from leasehold.catalog.descriptor import COLUMNS_MAX
from leasehold.catalog.namespaces import qualified
from leasehold.model.errors import OutOfRange
from leasehold.sql.ddl.column_types import check_collation, read_column_type
from leasehold.sql.ddl.columns import find_drawn_sequence, read_column_definition, read_identity
from leasehold.sql.ddl.constraints import (
    ByIndex,
    KeyDefinition,
    deferrable_of,
    keep_text,
    read_distinct_columns,
    read_table_constraint,
)
from leasehold.sql.ddl.sequence_options import only_restart, read_sequence_options
from leasehold.sql.ddl.storage_parameters import read_no_effect
from leasehold.sql.expressions.default import check_default
from leasehold.sql.expressions.expression import name_enums_for_good
from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.left_out import ACTIONS, refuse_left_out
from leasehold.sql.syntax.names import relation_name, schema_of
from leasehold.sql.syntax.own_schema_words import ADD_LOCK, DROP_LOCK
from leasehold.sql.syntax.positions import refused_at
from leasehold.sql.syntax.statement import Reading, Span, only
from leasehold.sql.syntax.statements import (
    Action,
    AddCheck,
    AddColumn,
    AddForeignKey,
    AddIdentity,
    AddLock,
    AddPrimaryKey,
    AddUnique,
    AddUniqueByIndex,
    AlterConstraint,
    AlterIdentity,
    AlterTable,
    AlterType,
    CheckDefinition,
    DropColumn,
    DropConstraint,
    DropExpression,
    DropIdentity,
    DropLock,
    DropNotNull,
    ForeignKeyDefinition,
    RenameColumn,
    RenameConstraint,
    RenameIndex,
    RenameSequence,
    RenameTable,
    RestartIdentity,
    SetDefault,
    SetIdentity,
    SetNotNull,
    UniqueDefinition,
    ValidateConstraint,
)

ACTIONS_MAX: Final = COLUMNS_MAX

handles("AlterTableStmt", "relation", "cmds", "objtype", "missing_ok")
handles(
    "AlterTableCmd",
    *("subtype", "name", "def", "behavior", "missing_ok"),
    "newowner",
    num="a column by its number",
    later=["recurse"],
)
_OF_LATER_CONSTRAINTS: Final = {
    "alterEnforceability": "[NOT] ENFORCED",
    "alterInheritability": "[NO] INHERIT",
}
handles(
    "ATAlterConstraint",
    *("conname", "alterDeferrability", "deferrable", "initdeferred", "is_enforced"),
    *("alterEnforceability", "alterInheritability", "noinherit"),
)
handles(
    "RenameStmt",
    *("renameType", "relationType", "relation", "subname", "newname", "behavior", "missing_ok"),
    "object",
)

_RENAMED: Final = frozenset(
    {
        *("OBJECT_TABLE", "OBJECT_COLUMN", "OBJECT_TABCONSTRAINT"),
        *("OBJECT_INDEX", "OBJECT_SEQUENCE"),
    }
)
_OTHER_COLUMN_ACTIONS: Final = {
    "set expression": "SET EXPRESSION is not supported: drop the column and add it again",
}


def read_alter_table(reading: Reading, body: Body) -> AlterTable:
    """ALTER TABLE [IF EXISTS] [ONLY] t action, …"""
    reading.read("AlterTableStmt", body)
    table = relation_name(reading, body["relation"])
    reading.schema = schema_of(reading, body["relation"])
    word_index = reading.at(body["relation"]["location"])
    commands = body["cmds"]
    spans = list(reading.listed(Span(_first_action(reading, word_index), reading.span.end)))
    if len(commands) > ACTIONS_MAX:
        position = reading.position(spans[ACTIONS_MAX].first)
        raise OutOfRange(f"at most {ACTIONS_MAX} actions in a row", position=position)
    actions = [
        _Action(reading, node["AlterTableCmd"], table, span).read()
        for node, span in zip(commands, spans, strict=True)
    ]
    exists = bool(body.get("missing_ok"))
    return AlterTable(table, tuple(actions), exists, reading.position(word_index))


def _first_action(reading: Reading, word_index: int) -> int:
    """Return the word behind the table's name, which stands at `word_index`; ONLY (t) has it in
    parentheses."""
    return reading.behind(reading.behind_name(word_index), ")", "*")


class _Action:
    """The reader of one action, whose words are `span`."""

    def __init__(self, reading: Reading, body: Body, table: str, span: Span) -> None:
        self._reading = reading
        self._body = body
        self._table = table
        self._span = span
        self._position = reading.position(span.first)

    def read(self) -> Action:
        """Raises FeatureNotSupported with the words of what is not built."""
        body, position = self._body, self._position
        name, exists = body.get("name", ""), bool(body.get("missing_ok"))
        cascade = body.get("behavior") == "DROP_CASCADE"
        found: Action
        without_effect = read_no_effect(self._reading, body, position)
        if without_effect is not None:
            return without_effect
        match body["subtype"]:
            case "AT_AddColumn":
                return self._add_column()
            case "AT_AddConstraint":
                return self._add_constraint()
            case "AT_DropColumn" if self._reading.mark(DROP_LOCK, self._span.first + 1):
                found = DropLock(name, exists, position)  # nothing rests on a lock
            case "AT_DropColumn":
                found = DropColumn(name, exists, position, cascade)
            case "AT_DropConstraint":
                name = qualified(self._reading.schema, name)
                found = DropConstraint(name, exists, position, cascade)
            case "AT_ValidateConstraint":
                found = ValidateConstraint(qualified(self._reading.schema, name), position)
            case "AT_AlterConstraint":
                found = self._alter_constraint()
            case "AT_SetNotNull":
                found = SetNotNull(name, position)
            case "AT_DropNotNull":
                found = DropNotNull(name, position)
            case "AT_DropExpression":
                found = DropExpression(name, exists, position)
            case "AT_DropIdentity":
                found = DropIdentity(name, exists, position)
            case "AT_ColumnDefault":
                found = self._set_default(name)
            case "AT_AlterColumnType":
                found = self._alter_type(name)
            case "AT_AddIdentity":
                numbering = read_identity(self._reading, body["def"]["Constraint"])
                found = AddIdentity(name, numbering, position)
            case "AT_SetIdentity":
                found = self._set_identity(name)
            case _:
                self._refuse()
        self._reading.read("AlterTableCmd", body)
        return found

    def _refuse(self) -> None:
        reading, first = self._reading, self._span.first
        left_out = ACTIONS.get(self._body["subtype"])
        if left_out is not None:
            refuse_left_out(left_out, reading.position(first))
        if reading.said(first, "alter") and not reading.said(first + 1, "constraint"):
            column = reading.behind(first + 1, "column")
            reading.refuse_listed(_OTHER_COLUMN_ACTIONS, reading.behind_name(column))
        words = [word for word in (reading.word(first), reading.word(first + 1)) if word.isalpha()]
        length = 2 if words[0] in ("alter", "no", "not", "add", "drop") else 1
        said = " ".join(words[:length]).upper()
        reading.refuse(f"ALTER TABLE … {said:.40} is not supported", first)

    # ---------------------------------------------------------- ADD

    def _add_column(self) -> AddColumn:
        reading, body = self._reading, self._body
        reading.read("AlterTableCmd", body)
        kind, definition = only(body["def"])
        assert kind == "ColumnDef", kind
        span = Span(reading.at(definition["location"]), self._span.end)
        column, key = read_column_definition(reading, definition, self._table, span)
        added = None if key is None else AddPrimaryKey(key.columns, key.position, key.name)
        return AddColumn(column, bool(body.get("missing_ok")), added)

    def _add_constraint(
        self,
    ) -> AddLock | AddUnique | AddUniqueByIndex | AddCheck | AddForeignKey | AddPrimaryKey:
        reading = self._reading
        reading.read("AlterTableCmd", self._body)
        kind, body = only(self._body["def"])
        assert kind == "Constraint", kind
        word_index = self._span.first + 1
        mark = reading.mark(ADD_LOCK, word_index)
        if mark is not None:
            reading.read("Constraint", body)
            columns = read_distinct_columns(
                reading, body["keys"], "the lock", word_index, COLUMNS_MAX
            )
            return AddLock(reading.name(word_index + 1), columns, self._position)
        match read_table_constraint(reading, body, self._table, self._span.end):
            case UniqueDefinition() as unique:
                return AddUnique(unique)
            case CheckDefinition() as check:
                return AddCheck(check)
            case ForeignKeyDefinition() as key:
                return AddForeignKey(key)
            case KeyDefinition(columns, position, name, included):
                return AddPrimaryKey(columns, position, name, included=included)
            case ByIndex(index, position, name, primary, deferrable):
                if primary:
                    return AddPrimaryKey((), position, name, index)
                return AddUniqueByIndex(index, name, position, deferrable)

    # ---------------------------------------------------------- ALTER CONSTRAINT

    def _alter_constraint(self) -> AlterConstraint:
        """[NOT] DEFERRABLE [INITIALLY …]; where nothing is said it is NOT DEFERRABLE."""
        reading = self._reading
        kind, body = only(self._body["def"])
        assert kind == "ATAlterConstraint", kind
        for field, word in _OF_LATER_CONSTRAINTS.items():
            if body.get(field):
                reading.refuse(
                    f"ALTER CONSTRAINT changes when a foreign key is looked at: {word} is not"
                    " supported",
                    self._span.first,
                )
        reading.read("ATAlterConstraint", body)
        name = qualified(reading.schema, body["conname"])
        return AlterConstraint(name, deferrable_of(body), self._position)

    # ---------------------------------------------------------- ALTER COLUMN

    def _set_default(self, column: str) -> SetDefault:
        if "def" not in self._body:
            return SetDefault(column, None, self._position)
        reading = self._reading
        word_index = reading.next(self._span.first + 1, "set", "default")
        said = reading.kept(Span(word_index + 2, self._span.end))
        zone = reading.zone
        if find_drawn_sequence(said.text) is not None:
            return SetDefault(column, said.text, self._position, zone)
        with refused_at(said.position):
            check_default(said.text, reading.enums.find)
            text = name_enums_for_good(said.text, reading.enums.find)
        value = None if said.text == "null" else text
        return SetDefault(column, value, self._position, zone)

    def _alter_type(self, column: str) -> AlterType:
        """TYPE type [USING expression]"""
        reading, span = self._reading, self._span
        kind, body = only(self._body["def"])
        assert kind == "ColumnDef", kind
        reading.read("ColumnDef", body, near=reading.tokens[span.first].begin)
        if "collClause" in body:
            check_collation(reading, body["collClause"]["collname"], span.first)
        type_body = body["typeName"]
        kind_made = read_column_type(reading, type_body)
        using = None
        if "raw_default" in body:
            word_index = reading.at(type_body["location"])
            while reading.word(word_index) != "using":
                word_index = (
                    reading.closed(word_index)
                    if reading.word(word_index) == "("
                    else word_index + 1
                )
            said = reading.kept(Span(word_index + 1, span.end))
            using = keep_text(said, self._table, reading)
        return AlterType(column, kind_made, using, self._position, reading.zone)

    def _set_identity(self, column: str) -> SetIdentity | RestartIdentity | AlterIdentity:
        """SET GENERATED …, SET option, RESTART [[WITH] n]: one or more."""
        reading = self._reading
        nodes: list[Any] = self._body["def"]["List"]["items"]
        word_index = reading.behind_name(reading.behind(self._span.first + 1, "column"))
        said = [node for node in nodes if node["DefElem"]["defname"] == "generated"]
        options = read_sequence_options(reading, nodes, word_index, restarts=True)
        kind = ""
        if said:
            kind = chr(said[0]["DefElem"]["arg"]["Integer"]["ival"])
        if len(nodes) == len(said):
            return SetIdentity(column, kind, self._position)
        if not kind and options == only_restart(options):
            return RestartIdentity(column, options.restart, self._position)
        return AlterIdentity(column, options, kind, self._position)


# ------------------------------------------------------------------ RENAME


def read_rename(reading: Reading, body: Body) -> AlterTable | RenameIndex | RenameSequence | None:
    """ALTER {TABLE | INDEX | SEQUENCE} … RENAME; None: of something else."""
    kind, of = body["renameType"], body.get("relationType")
    if kind not in _RENAMED or (kind == "OBJECT_COLUMN" and of != "OBJECT_TABLE"):
        return None
    reading.read("RenameStmt", body)
    name = relation_name(reading, body["relation"])
    schema = schema_of(reading, body["relation"])
    word_index = reading.at(body["relation"]["location"])
    position, exists = reading.position(word_index), bool(body.get("missing_ok"))
    to = body["newname"] if kind == "OBJECT_COLUMN" else qualified(schema, body["newname"])
    if kind == "OBJECT_INDEX":
        return RenameIndex(name, to, exists, position)
    if kind == "OBJECT_SEQUENCE":
        return RenameSequence(name, to, exists, position)
    said_at = reading.position(_first_action(reading, word_index))
    action: Action
    if kind == "OBJECT_TABLE":
        action = RenameTable(to, said_at)
    elif kind == "OBJECT_COLUMN":
        action = RenameColumn(body["subname"], to, said_at)
    else:
        action = RenameConstraint(qualified(schema, body["subname"]), to, said_at)
    return AlterTable(name, (action,), exists, position)
