"""CREATE and ALTER SEQUENCE."""

from __future__ import annotations

from leasehold.catalog.sequence import Options
from leasehold.sql.ddl.sequence_options import only_restart, read_sequence_options
from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.names import relation_name, schema_of
from leasehold.sql.syntax.statement import Reading
from leasehold.sql.syntax.statements import (
    AlterSequence,
    CreateSequence,
    OwnSequence,
    RestartSequence,
)

handles(
    "CreateSeqStmt",
    *("sequence", "options", "if_not_exists"),
    later=["ownerId", "for_identity"],
)
handles("AlterSeqStmt", "sequence", "options", "missing_ok", later=["for_identity"])


def read_create_sequence(reading: Reading, body: Body) -> CreateSequence:
    """CREATE SEQUENCE [IF NOT EXISTS] s option …"""
    reading.read("CreateSeqStmt", body)
    name, word_index, options = _said(reading, body, restarts=False)
    exists = bool(body.get("if_not_exists"))
    schema = schema_of(reading, body["sequence"])
    return CreateSequence(name, options, exists, reading.position(word_index), schema)


def read_alter_sequence(
    reading: Reading, body: Body
) -> RestartSequence | OwnSequence | AlterSequence:
    """ALTER SEQUENCE [IF EXISTS] s option …; RESTART and OWNED BY {t.c | NONE} are options."""
    reading.read("AlterSeqStmt", body)
    name, word_index, options = _said(reading, body, restarts=True)
    exists, position = bool(body.get("missing_ok")), reading.position(word_index)
    owner = options.owner
    if owner is not None and options == Options(position=options.position, owner=owner):
        return OwnSequence(name, owner, exists, position)
    if options == only_restart(options):
        return RestartSequence(name, options.restart, exists, position)
    return AlterSequence(name, options, exists, position)


def _said(reading: Reading, body: Body, *, restarts: bool) -> tuple[str, int, Options]:
    """The sequence's name, where it stands, and the options behind it."""
    name = relation_name(reading, body["sequence"])
    word_index = reading.at(body["sequence"]["location"])
    first = reading.behind_name(word_index)
    return (
        name,
        word_index,
        read_sequence_options(reading, body.get("options", []), first, restarts=restarts),
    )
