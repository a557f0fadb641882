"""EXPLAIN: the steps that SQLite takes for a statement, or what it would read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from leasehold.adapters.sqlite.statement_functions import install
from leasehold.sql.planning.emitted import Emitted
from leasehold.sql.planning.plan import Prepared
from leasehold.sql.planning.reads import describe_reads


def explain_statement(
    connection: apsw.Connection, prepared: Prepared, parameters: Sequence[Any] = ()
) -> list[tuple[Any, ...]]:
    """Return a row for each step of SQLite's plan, with the names of tables and indexes in the
    place of its own; or, with EXPLAIN (READS), for each place that would be read."""
    if prepared.tells_reads:
        tables = prepared.tables.values()
        values = (*parameters, *[None] * (len(prepared.parameters) - len(parameters)))
        return [(line,) for line in describe_reads(prepared.reads, tables, values)]
    names = {}
    for chosen in prepared.chosen:
        names[f"r{chosen.relation}"] = (chosen.table, "")
        names[f"i{chosen.relation}"] = (chosen.table, chosen.by)
    depth: dict[int, int] = {0: -1}
    lines: list[tuple[Any, ...]] = []
    for number, parent, text in query_plan(connection, prepared.emitted):
        depth[number] = depth.get(parent, -1) + 1
        lines.append(("  " * depth[number] + _shown(text, names),))
    return lines


def query_plan(connection: apsw.Connection, emitted: Emitted) -> list[tuple[int, int, str]]:
    """Return SQLite's own steps, each with its number, the number of the one above, and words."""
    install(connection, emitted)
    found = connection.execute(f"EXPLAIN QUERY PLAN {emitted.text}", [None] * emitted.highest)
    return [(number, parent, str(text)) for number, parent, _, text in found]


def _shown(text: str, names: dict[str, tuple[str, str]]) -> str:
    words = text.split(" ", 2)
    if len(words) < 2 or words[0] not in ("SCAN", "SEARCH") or words[1] not in names:
        return text
    table, index = names[words[1]]
    rest = words[2] if len(words) > 2 else ""
    condition = rest[rest.index("(") :] if "(" in rest else ""
    if index:
        verb = "Index Search" if words[0] == "SEARCH" else "Index Scan"
        return f"{verb} using {index} on {table} {condition}".rstrip()
    if words[0] == "SEARCH":
        return f"Primary Key Search on {table} {condition}".rstrip()
    return f"Seq Scan on {table}"
