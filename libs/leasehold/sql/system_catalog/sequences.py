"""Sequences in pg_catalog and information_schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from leasehold.catalog import definitions as text
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.namespaces import schema_shown
from leasehold.catalog.privileges import ALL
from leasehold.catalog.sequence import Sequence
from leasehold.sql.system_catalog import oids
from leasehold.values.oids import oid_of
from leasehold.values.types import INTEGER_BITS, Type

if TYPE_CHECKING:
    from leasehold.sql.system_catalog.rows import SystemCatalog

Row = Mapping[str, Any]
LastValue = Callable[[Descriptor], int | None]
"""The number that a sequence has given last; None where it has given none."""


def _sequences(catalog: SystemCatalog) -> Iterator[tuple[Descriptor, Sequence]]:
    return ((table, table.sequence) for table in catalog.sequences if table.sequence is not None)


def sequence_rows(catalog: SystemCatalog) -> Iterator[Row]:
    """pg_sequence."""
    for table, found in _sequences(catalog):
        yield {
            "seqrelid": oids.table_oid(table.table_id),
            "seqtypid": oid_of(Type(found.type)),
            "seqstart": found.start,
            "seqincrement": found.increment,
            "seqmax": found.most,
            "seqmin": found.least,
            "seqcache": found.cache,
            "seqcycle": int(found.cycles),
        }


def sequences_view(catalog: SystemCatalog) -> Iterator[Row]:
    """pg_sequences."""
    for table, found in _sequences(catalog):
        yield {
            "schemaname": schema_shown(table),
            "sequencename": table.name,
            "sequenceowner": catalog.role_name(catalog.access.owner_of(table.table_id)),
            "data_type": oid_of(Type(found.type)),
            "start_value": found.start,
            "min_value": found.least,
            "max_value": found.most,
            "increment_by": found.increment,
            "cycle": int(found.cycles),
            "cache_size": found.cache,
            "last_value": catalog.last_value(table),
        }


def information_sequences(catalog: SystemCatalog) -> Iterator[Row]:
    """information_schema.sequences, which leaves identity columns' out."""
    internal = {owned.sequence for owned in owned_sequences(catalog) if owned.internal}
    for table, found in _sequences(catalog):
        if table.table_id in internal or not catalog.rights.sees(table, ALL["sequence"]):
            continue
        yield {
            "sequence_catalog": catalog.database,
            "sequence_schema": schema_shown(table),
            "sequence_name": table.name,
            "data_type": found.type,
            "numeric_precision": INTEGER_BITS[found.type],
            "numeric_precision_radix": 2,
            "numeric_scale": 0,
            "start_value": str(found.start),
            "minimum_value": str(found.least),
            "maximum_value": str(found.most),
            "increment": str(found.increment),
            "cycle_option": "YES" if found.cycles else "NO",
        }


class Owned(NamedTuple):
    """A sequence that a column has for its own; `number` is the column's."""

    sequence: int
    table: Descriptor
    number: int
    internal: bool  # an identity column's


def owned_sequences(catalog: SystemCatalog) -> Iterator[Owned]:
    there = {sequence.table_id for sequence in catalog.sequences}
    for table in catalog.base_tables:
        for number, column in enumerate(text.columns_of(table), 1):
            for sequence in filter(there.__contains__, column.own_sequences):
                internal = bool(column.identity) and sequence == column.draws_from
                yield Owned(sequence, table, number, internal)


def dependencies(catalog: SystemCatalog) -> Iterator[Row]:
    """pg_depend, as far as sequences are concerned: on the column that owns them; and defaults on
    what they draw from."""
    relation, default = oids.RELATIONS["pg_class"], oids.RELATIONS["pg_attrdef"]
    common = {"classid": relation, "objsubid": 0, "refclassid": relation}
    for owned in owned_sequences(catalog):
        yield {
            **common,
            "objid": oids.table_oid(owned.sequence),
            "refobjid": oids.table_oid(owned.table.table_id),
            "refobjsubid": owned.number,
            "deptype": "i" if owned.internal else "a",
        }
    for table in catalog.base_tables:
        for column in text.columns_of(table):
            if column.draws_from and not column.identity:
                yield {
                    **common,
                    "classid": default,
                    "objid": oids.element_oid(table.table_id, column.element_id),
                    "refobjid": oids.table_oid(column.draws_from),
                    "refobjsubid": 0,
                    "deptype": "n",
                }


def identity_of(catalog: SystemCatalog, column: Column) -> Row:
    """What information_schema.columns tells of it."""
    if not column.identity:
        return {"is_identity": "NO", "identity_cycle": "NO"}
    said: dict[str, Any] = {
        "is_identity": "YES",
        "identity_generation": "ALWAYS" if column.identity == "a" else "BY DEFAULT",
    }
    assert column.numbering is not None, column
    found = catalog.sequence(column.numbering.sequence)
    if found is None or found.sequence is None:
        return {**said, "identity_cycle": "NO"}
    sequence = found.sequence
    return {
        **said,
        "identity_cycle": "YES" if sequence.cycles else "NO",
        "identity_start": str(sequence.start),
        "identity_increment": str(sequence.increment),
        "identity_maximum": str(sequence.most),
        "identity_minimum": str(sequence.least),
    }
