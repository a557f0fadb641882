"""How PostgreSQL lays rows out in its files, which is not how they lie here: what it knows is read
and has no effect, what it does not know is refused as there."""

from __future__ import annotations

from typing import Final

from leasehold.model.errors import InvalidArgument
from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.statement import Reading
from leasehold.sql.syntax.statements import HasNoEffect

handles("ReplicaIdentityStmt", "identity_type", "name")
_KNOWN_PARAMETERS: Final = frozenset(
    {"fillfactor", "parallel_workers", "toast_tuple_target", "user_catalog_table"}
)
_KNOWN_STARTS: Final = ("autovacuum_", "log_autovacuum_", "vacuum_")
_OF_COLUMN: Final = frozenset({"n_distinct", "n_distinct_inherited"})
_LAID_OUT: Final = "rows and values are not laid out as in PostgreSQL's files"
_BY_KEY: Final = "rows lie in the order of the primary key"
_EFFECTS: Final = {
    "AT_SetRelOptions": ("SET of storage parameters", _LAID_OUT),
    "AT_ResetRelOptions": ("RESET of storage parameters", _LAID_OUT),
    "AT_SetOptions": ("SET of a column's parameters", "no statistics are kept"),
    "AT_ResetOptions": ("RESET of a column's parameters", "no statistics are kept"),
    "AT_SetStatistics": ("SET STATISTICS", "no statistics are kept"),
    "AT_SetStorage": ("SET STORAGE", _LAID_OUT),
    "AT_SetCompression": ("SET COMPRESSION", _LAID_OUT),
    "AT_ClusterOn": ("CLUSTER ON", _BY_KEY),
    "AT_DropCluster": ("SET WITHOUT CLUSTER", _BY_KEY),
    "AT_DropOids": ("SET WITHOUT OIDS", "there are none"),
    "AT_ReplicaIdentity": ("REPLICA IDENTITY", "a feed has each row before and after its change"),
}


def read_storage_parameter(reading: Reading, body: Body) -> None:
    """Read a storage parameter of a table. Raises InvalidArgument (22023)."""
    position = reading.source.position(body["location"])
    space, name = body.get("defnamespace"), body["defname"]
    if space not in (None, "toast"):
        raise InvalidArgument(f"unrecognized parameter namespace {space!r}", position=position)
    if name not in _KNOWN_PARAMETERS and not name.startswith(_KNOWN_STARTS):
        raise InvalidArgument(f"unrecognized parameter {name!r}", position=position)


def read_no_effect(reading: Reading, body: Body, position: int) -> HasNoEffect | None:
    """Return an action of ALTER TABLE that says how PostgreSQL is to lay out its files; None:
    another one. Raises InvalidArgument (22023)."""
    known = _EFFECTS.get(body["subtype"])
    if known is None:
        return None
    reading.read("AlterTableCmd", body)
    what, why = known
    name, definition = body.get("name", ""), body.get("def", {})
    of_index = body["subtype"] == "AT_ClusterOn"
    options = definition.get("List", {}).get("items", [])
    for option in options:
        if name:
            _check_of_column(reading, option["DefElem"])
        else:
            read_storage_parameter(reading, option["DefElem"])
    if "ReplicaIdentityStmt" in definition:
        said = reading.read("ReplicaIdentityStmt", definition["ReplicaIdentityStmt"])
        name, of_index = said.get("name", ""), True
    column, index = ("", name) if of_index else (name, "")
    return HasNoEffect(f"{what} has no effect here: {why}", column, index, position)


def _check_of_column(reading: Reading, body: Body) -> None:
    if body["defname"] not in _OF_COLUMN:
        position = reading.source.position(body["location"])
        raise InvalidArgument(f"unrecognized parameter {body['defname']!r}", position=position)
