"""Schema changes of PostgreSQL's grammar → frozen statements, or a refusal with a sentence.

EXPLAIN [(DDL)] may stand before each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, NoReturn

from leasehold.model import byte_limits
from leasehold.model.errors import FeatureNotSupported, OutOfRange, SyntaxInvalid
from leasehold.sql.ddl.alter_table import read_alter_table, read_rename
from leasehold.sql.ddl.create_table import read_create_table
from leasehold.sql.ddl.drops import (
    read_drop_index,
    read_drop_sequence,
    read_drop_table,
    read_truncate,
)
from leasehold.sql.ddl.enums import (
    follow_enums,
    read_alter_enum,
    read_create_enum,
    read_drop_enum,
    read_enum_owner,
    read_rename_enum,
    refuse_other_type,
)
from leasehold.sql.ddl.grants import (
    changes_owner,
    read_change_owner,
    read_drop_owned,
    read_grant,
    read_reassign_owned,
    refuse_default_privileges,
)
from leasehold.sql.ddl.indexes import read_create_index
from leasehold.sql.ddl.other_objects import (
    drops_absent,
    read_comment,
    read_create_extension,
    read_create_schema,
    read_drop_absent,
    read_drop_schema,
    read_rename_schema,
)
from leasehold.sql.ddl.role_settings import read_database_setting, read_role_setting
from leasehold.sql.ddl.roles import (
    read_alter_role,
    read_create_role,
    read_drop_role,
    read_grant_role,
    read_rename_role,
)
from leasehold.sql.ddl.sequences import read_alter_sequence, read_create_sequence
from leasehold.sql.ddl.set_schema import read_set_schema
from leasehold.sql.ddl.views import (
    read_alter_view,
    read_create_view,
    read_drop_view,
    read_rename_view,
    read_rename_view_column,
)
from leasehold.sql.syntax.accounting import Body
from leasehold.sql.syntax.enum_names import ANY_NAME, EnumNames
from leasehold.sql.syntax.left_out import STATEMENTS, refuse_left_out
from leasehold.sql.syntax.marks import Mark, skip_explain
from leasehold.sql.syntax.own_schema_words import EXPLAINED_CHANGE
from leasehold.sql.syntax.parsing import parse
from leasehold.sql.syntax.statement import Reading, Words
from leasehold.sql.syntax.statements import (
    Change,
    Explain,
    Statement,
)
from leasehold.sql.syntax.words import is_word
from leasehold.values.time_zone import UTC, zone_of

STATEMENT_BYTES_MAX: Final = byte_limits.STATEMENT
STATEMENTS_MAX: Final = 128
"""Of one request: about 4 ms each, during which the master decides nothing else."""
KNOWN_STATEMENTS: Final = (
    "CREATE TABLE, DROP TABLE, TRUNCATE, ALTER TABLE, CREATE INDEX, DROP INDEX,"
    " ALTER INDEX … RENAME, CREATE SEQUENCE, DROP SEQUENCE, ALTER SEQUENCE … RESTART, EXPLAIN of"
    " these, CREATE VIEW, DROP VIEW, CREATE, ALTER and DROP TYPE, CREATE SCHEMA, DROP SCHEMA,"
    " CREATE, ALTER and DROP ROLE, GRANT and REVOKE"
)
CHANGE_KINDS: Final = frozenset(
    {
        *("CreateStmt", "IndexStmt", "CreateSeqStmt", "AlterTableStmt", "AlterSeqStmt"),
        *("RenameStmt", "DropStmt", "TruncateStmt", "CommentStmt", "ViewStmt"),
        *("CreateRoleStmt", "AlterRoleStmt", "DropRoleStmt", "GrantRoleStmt", "GrantStmt"),
        *("CreateEnumStmt", "AlterEnumStmt", "AlterOwnerStmt", "AlterObjectSchemaStmt"),
        *("ReassignOwnedStmt", "DropOwnedStmt", "AlterDefaultPrivilegesStmt", "AlterRoleSetStmt"),
        "AlterDatabaseSetStmt",
    }
)

_CONVERTERS: Final[Mapping[str, Callable[[Reading, Body], Change]]] = {
    "CreateStmt": read_create_table,
    "IndexStmt": read_create_index,
    "CreateSeqStmt": read_create_sequence,
    "AlterSeqStmt": read_alter_sequence,
    "TruncateStmt": read_truncate,
    "CommentStmt": read_comment,
    "CreateExtensionStmt": read_create_extension,
    "CreateSchemaStmt": read_create_schema,
    "ViewStmt": read_create_view,
    "CreateEnumStmt": read_create_enum,
    "AlterEnumStmt": read_alter_enum,
    "AlterOwnerStmt": read_enum_owner,
    "AlterObjectSchemaStmt": read_set_schema,
    "CompositeTypeStmt": refuse_other_type,
    "CreateRangeStmt": refuse_other_type,
    "CreateDomainStmt": refuse_other_type,
    "CreateRoleStmt": read_create_role,
    "AlterRoleStmt": read_alter_role,
    "DropRoleStmt": read_drop_role,
    "GrantRoleStmt": read_grant_role,
    "GrantStmt": read_grant,
    "ReassignOwnedStmt": read_reassign_owned,
    "DropOwnedStmt": read_drop_owned,
    "AlterDefaultPrivilegesStmt": refuse_default_privileges,
    "AlterRoleSetStmt": read_role_setting,
    "AlterDatabaseSetStmt": read_database_setting,
}
_DROPS: Final[Mapping[str, Callable[[Reading, Body], tuple[Change, ...]]]] = {
    "OBJECT_TABLE": read_drop_table,
    "OBJECT_INDEX": read_drop_index,
    "OBJECT_SEQUENCE": read_drop_sequence,
    "OBJECT_VIEW": read_drop_view,
    "OBJECT_TYPE": read_drop_enum,
    "OBJECT_SCHEMA": read_drop_schema,
}
_OTHER_SEQUENCE_CHANGES: Final = {
    "set": "a sequence stays in the schema public, and is always logged",
}
_OTHER_INDEX_CHANGES: Final = ("set", "reset", "alter", "attach", "depends")


class Said(NamedTuple):
    """A statement and its own text."""

    statement: Statement
    sql: str


def parse_ddl(text: str) -> Statement:
    """The one statement in `text` (at most 64 KiB); of DROP TABLE a, b, which are two, the first.

    Raises SyntaxInvalid (42601), FeatureNotSupported (0A000) for whatever is valid but not
    known here, OutOfRange for limits, UnknownColumn and DuplicateColumn for a constraint of a new
    table, and what a default raises; `detail["position"]` counts characters from 1.
    """
    readings = _readings(text)
    if len(readings) > 1:
        words = readings[0]
        raise SyntaxInvalid(
            "one statement at a time: a second one follows here",
            position=words.position(words.next(words.span.end, ";")),
        )
    return schema_statements(readings[0])[0]


def parse_statements(
    text: str, zones: Sequence[str] = (), enums: EnumNames = ANY_NAME
) -> tuple[Said, ...]:
    """The statements in `text`, one or several between semicolons. `zones`: the time zones of the
    sessions that say them, one after the other, the last one of all that follow; () = UTC. `enums`:
    the enum types before the first; what statements make of them those behind know. Raises
    what `parse_ddl` does, InvalidArgument (22023) for a zone that is not known; positions count in
    the whole text."""
    found: list[Said] = []
    for number, reading in enumerate(_readings(text)):
        zone = zones[min(number, len(zones) - 1)] if zones else ""
        reading.zone = "" if zone == UTC.key else zone
        if reading.zone:
            zone_of(zone)
        reading.enums = enums
        for statement in schema_statements(reading):
            found.append(Said(statement, reading.text))
            if not isinstance(statement, Explain):
                follow_enums(enums, statement)
    _refuse_many(len(found), len(text))
    return tuple(found)


def may_be_temporary(text: str) -> bool:
    """Return whether a text may make a temporary table; False: surely not."""
    return "temp" in text.lower()


def _readings(text: str) -> list[Reading]:
    parsed = parse(text, STATEMENT_BYTES_MAX)
    if not parsed:
        raise SyntaxInvalid("the text holds no statement", position=1)
    words = Words(parsed[0].source)
    readings = [Reading(one, words) for one in parsed]
    if len(readings) > STATEMENTS_MAX:
        one = readings[STATEMENTS_MAX]
        _refuse_many(len(readings), one.position(one.span.first))
    return readings


def _refuse_many(count: int, position: int) -> None:
    if count > STATEMENTS_MAX:
        raise OutOfRange(
            f"the text holds {count} statements; at most {STATEMENTS_MAX} are read",
            position=position,
        )


def schema_statements(reading: Reading) -> tuple[Statement, ...]:
    """Return the statement that is read; DROP of several things is one for each."""
    explained = reading.mark(EXPLAINED_CHANGE, reading.span.first)
    if explained is not None:
        _refuse_options(reading, explained)
    body = reading.parsed.body
    changes: tuple[Change, ...]
    read = _read_drop(body) if reading.parsed.kind == "DropStmt" else None
    if read is not None:
        changes = read(reading, body)
    else:
        changes = (_change(reading, reading.parsed.kind, body),)
    if explained is None:
        return changes
    if len(changes) > 1:
        raise FeatureNotSupported(
            "EXPLAIN shows the plan of one change: name one thing",
            position=reading.position(reading.verb),
        )
    return (Explain(changes[0]),)


def _refuse_options(reading: Reading, explained: Mark) -> None:
    """Refuse what EXPLAIN before a change does not take, which is all but DDL."""
    first = reading.span.first + 1
    for word_index in range(first, first + len(explained.tokens) - 1):
        if reading.word(word_index) in ("(", ",", ")", "ddl"):
            continue
        if not is_word(reading.word(word_index)):
            said = f"syntax error at or near {reading.word(word_index)!r:.80}"
            raise SyntaxInvalid(
                f"{said}: EXPLAIN (DDL) is what is known", position=reading.position(word_index)
            )
        reading.refuse(
            f"EXPLAIN takes no {reading.word(word_index).upper()!r:.40} here: EXPLAIN (DDL) shows"
            " the plan of a schema change, and nothing is run",
            word_index,
        )


def _read_drop(body: Body) -> Callable[[Reading, Body], tuple[Change, ...]] | None:
    """Return what reads a DROP of such things, None for what is refused."""
    if drops_absent(body):
        return read_drop_absent
    return _DROPS.get(body["removeType"])


def _change(reading: Reading, kind: str, body: Body) -> Change:
    if kind in _CONVERTERS:
        return _CONVERTERS[kind](reading, body)
    found: Change | None = None
    if kind == "AlterTableStmt" and changes_owner(body):
        return read_change_owner(reading, body)
    elif kind == "AlterTableStmt" and body["objtype"] == "OBJECT_TABLE":
        return read_alter_table(reading, body)
    elif kind == "RenameStmt" and body["renameType"] == "OBJECT_ROLE":
        return read_rename_role(reading, body)
    elif kind == "RenameStmt" and body["renameType"] == "OBJECT_TYPE":
        return read_rename_enum(reading, body)
    elif kind == "RenameStmt" and body["renameType"] == "OBJECT_VIEW":
        return read_rename_view(reading, body)
    elif kind == "RenameStmt" and _is_of_view(body):
        return read_rename_view_column(reading, body)
    elif kind == "AlterTableStmt" and body["objtype"] == "OBJECT_VIEW":
        found = read_alter_view(reading, body)
    elif kind == "RenameStmt" and body["renameType"] == "OBJECT_SCHEMA":
        return read_rename_schema(reading, body)
    elif kind == "RenameStmt":
        found = read_rename(reading, body)
    if found is None:
        _refuse(reading)
    return found


def _is_of_view(body: Body) -> bool:
    return bool(body["renameType"] == "OBJECT_COLUMN" and body.get("relationType") == "OBJECT_VIEW")


def _refuse(reading: Reading) -> NoReturn:
    verb = reading.verb
    if reading.parsed.kind == "ExplainStmt":
        verb += skip_explain(reading.tokens[verb:])
    first, second = reading.word(verb), reading.word(verb + 1)
    left_out = STATEMENTS.get(reading.parsed.kind)
    if left_out is not None:
        refuse_left_out(left_out, reading.position(verb))
    if (first, second) in (("alter", "index"), ("alter", "sequence")):
        word_index = reading.behind_name(reading.behind(verb + 2, "if exists"))
        if second == "sequence":
            reading.refuse_listed(_OTHER_SEQUENCE_CHANGES, word_index)
        elif reading.word(word_index) in _OTHER_INDEX_CHANGES:
            said = reading.word(word_index).upper()
            reading.refuse(f"ALTER INDEX … {said} is not supported; RENAME TO is", word_index)
    if (first, second) == ("alter", "table"):
        word_index = reading.behind_name(reading.behind(verb + 2, "if exists", "only"))
        reading.refuse(
            f"ALTER TABLE … {reading.word(word_index).upper()} is not supported", word_index
        )
    if (first, second) == ("create", "materialized"):
        sentence = (
            "materialized views are not supported: CREATE VIEW, which is computed when it is read,"
            " or CREATE TABLE and INSERT … SELECT"
        )
        reading.refuse(sentence, verb + 1)
    if (first, second) == ("alter", "view"):
        sentence = (
            "of ALTER VIEW are supported RENAME, OWNER TO, SET and RESET of options: CREATE OR"
            " REPLACE VIEW changes its query"
        )
        reading.refuse(sentence, verb)
    if (first, second) == ("create", "table"):
        sentence = "CREATE TABLE … AS is for SQL sessions: CREATE TABLE here, then rows"
        reading.refuse(sentence, reading.next(verb, "as"))
    named = f"{first} {second}" if first in ("create", "drop", "alter") else first
    reading.refuse(
        f"statement {named.upper()!r:.40} is not supported as a schema change; known are"
        f" {KNOWN_STATEMENTS}",
        verb,
    )
