"""WITH (fillfactor = 70, …) behind a table: how PostgreSQL lays rows out in its files.

Rows lie elsewhere here, so what PostgreSQL knows is read and has no effect; what it does not know
is refused as there.
"""

from __future__ import annotations

from typing import Final

from leasehold.model.errors import InvalidArgument
from leasehold.sql.reader import Kind, Reader

_KNOWN: Final = frozenset(
    {"fillfactor", "parallel_workers", "toast_tuple_target", "user_catalog_table"}
)
_KNOWN_STARTS: Final = ("autovacuum_", "log_autovacuum_", "vacuum_")


def storage_parameters(reader: Reader) -> None:
    """[WITH (name [= value], …)]. Raises InvalidArgument (22023) for what PostgreSQL has not."""
    if reader.at("with ("):
        reader.expect("with")
        reader.listed(lambda: _parameter(reader))


def _parameter(reader: Reader) -> None:
    position = reader.position
    name = reader.name("a storage parameter's name")
    if reader.take("."):
        if name != "toast":
            raise InvalidArgument(f"unrecognized parameter namespace {name!r}", position=position)
        name = reader.name("a storage parameter's name")
    if name not in _KNOWN and not name.startswith(_KNOWN_STARTS):
        raise InvalidArgument(f"unrecognized parameter {name!r}", position=position)
    if reader.take("="):
        reader.take("-")
        found = reader.peek()
        if found is None or (found.kind is Kind.SIGN and not found.text[:1].isdigit()):
            raise reader.unexpected("a storage parameter's value is expected")
        reader.advance()
