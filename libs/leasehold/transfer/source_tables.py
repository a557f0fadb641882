"""Tables and sequences as the catalog of the source says them, in PostgreSQL's own words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class SourceColumn(NamedTuple):
    """A column. `type` as format_type writes it; `labels`: of an enum type, or of that of an
    array's elements; `identity`: "", "a" (ALWAYS)
    or "d" (BY DEFAULT); `generated`: its expression is stored."""

    name: str
    type: str
    not_null: bool
    default: str | None = None
    identity: str = ""
    generated: bool = False
    labels: tuple[str, ...] = ()


class SourceConstraint(NamedTuple):
    """A constraint. `kind`: u, c, f, x as pg_constraint has it; the primary key is the table's."""

    name: str
    kind: str
    definition: str


class SourceIndex(NamedTuple):
    name: str
    definition: str


class SourceTable(NamedTuple):
    """A table. `key`: columns of its primary key; `rows_about`: what the planner believes, -1 where
    it was never analysed; `replica_identity`: d, f, i or n; `more`: what else belongs to it and is
    nothing of ours (triggers, policies, rules)."""

    name: str
    columns: Sequence[SourceColumn]
    key: tuple[str, ...] = ()
    constraints: Sequence[SourceConstraint] = ()
    indexes: Sequence[SourceIndex] = ()
    partitioned: bool = False
    rows_about: int = -1
    bytes_about: int = 0
    replica_identity: str = "d"
    more: Sequence[str] = ()


class SourceSequence(NamedTuple):
    """A sequence. `table`, `column`: who owns it, "" nobody; `identity`: it is an identity column's
    own."""

    name: str
    type: str
    start: int
    increment: int
    least: int
    most: int
    cache: int
    cycles: bool
    table: str = ""
    column: str = ""
    identity: bool = False


class SourceSchema(NamedTuple):
    """What a schema of the source has. `others`: kinds and names of what is neither table nor
    sequence."""

    tables: Sequence[SourceTable]
    sequences: Sequence[SourceSequence] = ()
    others: Sequence[str] = ()
