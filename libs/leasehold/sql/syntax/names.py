"""The names of tables, sequences and indexes."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from leasehold.catalog.definitions import quoted
from leasehold.catalog.namespaces import SEPARATOR, qualified
from leasehold.catalog.schema_names import PG_TEMP, PUBLIC, SCHEMAS
from leasehold.model.errors import InvalidDefinition
from leasehold.sql.syntax.accounting import Body, refuse
from leasehold.sql.syntax.statement import Reading

_KEPT: Final = "p"
_TEMPORARY: Final = "t"
UNLOGGED: Final = (
    "unlogged tables are not supported: every table is replicated, but for temporary ones"
)
OTHERS: Final = "temporary views and sequences are not supported: temporary tables are"
ON_COMMIT: Final = {
    "ONCOMMIT_NOOP": "",
    "ONCOMMIT_PRESERVE_ROWS": "",
    "ONCOMMIT_DELETE_ROWS": "delete",
    "ONCOMMIT_DROP": "drop",
}
"""What becomes of a temporary table when a transaction commits, by PostgreSQL's word."""


def is_temporary(body: Body) -> bool:
    """Return whether the relation that is made is a temporary one."""
    return body.get("relpersistence") == _TEMPORARY or body.get("schemaname") == PG_TEMP


def relation_name(reading: Reading, body: Body, *, temporary: bool = False) -> str:
    """Return the name of a relation, which begins with its schema unless that is public; one that
    is made may be `temporary`, in pg_temp. ONLY changes nothing: tables do not inherit. Raises
    FeatureNotSupported."""
    location = body.get("location", 0)
    if body.get("relpersistence", _KEPT) not in (_KEPT, _TEMPORARY):
        reading.refuse(UNLOGGED, reading.span.first)
    if is_temporary(body) and not temporary:
        reading.refuse(OTHERS, reading.span.first)
    if "alias" in body:
        refuse("an alias", reading.source.position(location))
    if body.get("schemaname") not in (None, PG_TEMP) and body.get("relpersistence") == _TEMPORARY:
        raise InvalidDefinition(
            "cannot create temporary relation in non-temporary schema",
            position=reading.source.position(location),
        )
    return qualified(schema_of(reading, body), body["relname"])


def schema_of(reading: Reading, body: Body) -> str:
    """Return the schema that stands before a relation's name, "" = public, a session's own, or
    none. Raises FeatureNotSupported."""
    word_index = reading.at(body.get("location", 0))
    if "catalogname" in body:
        _refuse_database(reading, word_index)
    schema = body.get("schemaname")
    return "" if schema == PG_TEMP else _schema_said(reading, schema, word_index)


def listed_element(node: Any) -> str:
    """Return an element of a setting that is a list of names, in quotes where it needs them."""
    ((_, body),) = node.items()
    return quoted(body.get("sval", {}).get("sval", ""))


def name_beside(reading: Reading, body: Body, field: str = "conname") -> str | None:
    """Return the name of an index or a constraint, which lies beside its table; None: none is
    said."""
    name = body.get(field)
    return None if name is None else qualified(reading.schema, name)


def listed_name(reading: Reading, parts: tuple[str, ...], word_index: int) -> str:
    """The name that a list spells (DROP TABLE), which stands at `word_index`."""
    if len(parts) > 2:
        _refuse_database(reading, word_index)
    schema = _schema_said(reading, parts[0] if len(parts) > 1 else None, word_index)
    return qualified(schema, parts[-1])


def listed_schema(reading: Reading, schema: str) -> str:
    """Return the schema of SET SCHEMA, "" = public. Raises FeatureNotSupported."""
    return _schema_said(reading, schema, reading.span.end - 1)


def _schema_said(reading: Reading, schema: str | None, word_index: int) -> str:
    if schema in (None, PUBLIC):
        return ""
    if schema in SCHEMAS or schema == PG_TEMP:
        reading.refuse(f"what is in schema {schema} can't be changed", word_index)
    assert schema is not None
    if SEPARATOR in schema:
        reading.refuse(
            f"schema {schema!r:.80} does not exist: no name of one has a dot", word_index
        )
    return schema


def _refuse_database(reading: Reading, word_index: int) -> NoReturn:
    reading.refuse("cross-database references are not implemented", word_index)
