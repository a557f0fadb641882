"""The names of tables, sequences and indexes."""

from __future__ import annotations

from typing import Final

from leasehold.catalog.schema_names import PUBLIC
from leasehold.sql.syntax.accounting import Body, refuse
from leasehold.sql.syntax.statement import Reading

_KEPT: Final = "p"
TEMPORARY: Final = (
    "temporary and unlogged tables are not supported: every table is replicated; CREATE TABLE and"
    " DROP TABLE within one transaction, or WITH"
)


def relation_name(reading: Reading, body: Body) -> str:
    """Return the name of a relation; `public` may be named before it, there is no other schema.
    ONLY changes nothing: tables do not inherit. Raises FeatureNotSupported."""
    location = body.get("location", 0)
    if body.get("relpersistence", _KEPT) != _KEPT:
        reading.refuse(TEMPORARY, reading.span.first)
    if "alias" in body:
        refuse("an alias", reading.source.position(location))
    first = body.get("catalogname") or body.get("schemaname")
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
