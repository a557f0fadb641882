"""ALTER … SET SCHEMA."""

from __future__ import annotations

from typing import Final, Literal

from leasehold.sql.ddl.enums import read_move_enum
from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.names import listed_schema, relation_name
from leasehold.sql.syntax.object_statements import RenameEnum
from leasehold.sql.syntax.statement import Reading
from leasehold.sql.syntax.statements import SetSchema

handles(
    "AlterObjectSchemaStmt",
    *("objectType", "relation", "object", "newschema", "missing_ok"),
)
_KINDS: Final[dict[str, Literal["table", "sequence"]]] = {
    "OBJECT_TABLE": "table",
    "OBJECT_SEQUENCE": "sequence",
}


def read_set_schema(reading: Reading, body: Body) -> SetSchema | RenameEnum:
    """ALTER {TABLE | SEQUENCE} [IF EXISTS] name SET SCHEMA schema, and ALTER TYPE … SET SCHEMA"""
    reading.read("AlterObjectSchemaStmt", body)
    if body["objectType"] == "OBJECT_TYPE":
        return read_move_enum(reading, body)
    kind = _KINDS.get(body["objectType"])
    if kind is None:
        said = body["objectType"].removeprefix("OBJECT_").replace("_", " ")
        reading.refuse(
            f"ALTER {said} … SET SCHEMA is not supported: tables, sequences and enum types are"
            " moved; make others anew",
            reading.verb,
        )
    relation = body["relation"]
    name = relation_name(reading, relation)
    to = listed_schema(reading, body["newschema"])
    position = reading.source.position(relation.get("location", 0))
    return SetSchema(kind, name, to, bool(body.get("missing_ok")), position)
