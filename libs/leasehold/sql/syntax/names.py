"""The names of tables, sequences and indexes."""

from __future__ import annotations

from typing import Final

from leasehold.catalog.schema_names import PG_TEMP, PUBLIC
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
    """Return the name of a relation; `public` may be named before it, and of one that is made and
    may be `temporary` pg_temp; there is no other schema. ONLY changes nothing: tables do not
    inherit. Raises FeatureNotSupported."""
    location = body.get("location", 0)
    if body.get("relpersistence", _KEPT) not in (_KEPT, _TEMPORARY):
        reading.refuse(UNLOGGED, reading.span.first)
    if is_temporary(body) and not temporary:
        reading.refuse(OTHERS, reading.span.first)
    if "alias" in body:
        refuse("an alias", reading.source.position(location))
    first = body.get("catalogname") or body.get("schemaname")
    if first == PG_TEMP:
        return str(body["relname"])
    if first == PUBLIC and body.get("relpersistence") == _TEMPORARY:
        raise InvalidDefinition(
            "cannot create temporary relation in non-temporary schema",
            position=reading.source.position(location),
        )
    _refuse_schema(reading, first, reading.at(location))
    return str(body["relname"])


def listed_name(reading: Reading, parts: tuple[str, ...], word_index: int) -> str:
    """The name that a list spells (DROP TABLE), which stands at `word_index`."""
    _refuse_schema(reading, parts[0] if len(parts) > 1 else None, word_index, len(parts))
    return parts[-1]


def _refuse_schema(reading: Reading, first: str | None, word_index: int, parts: int = 2) -> None:
    if first not in (None, PUBLIC) or parts > 2:
        reading.refuse(
            f"schema {first!r} does not exist: a database has the schema public only", word_index
        )
