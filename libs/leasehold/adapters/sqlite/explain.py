"""EXPLAIN: the steps that SQLite takes for a statement, or what it would read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import apsw

from leasehold.adapters.sqlite.statement_functions import install
from leasehold.sql.planning.emitted import Emitted
from leasehold.sql.planning.plan import JSON, Prepared
from leasehold.sql.planning.reads import describe_reads

_ONE_ROW: Final = "SCAN CONSTANT ROW"


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
    plan = query_plan(connection, prepared.emitted)
    if prepared.columns is not None and prepared.columns[0].kind == JSON:
        return [(_document(prepared, plan, names),)]
    depth: dict[int, int] = {0: -1}
    lines: list[tuple[Any, ...]] = []
    for number, parent, text in plan:
        depth[number] = depth.get(parent, -1) + 1
        lines.append(("  " * depth[number] + _shown(text, names),))
    return lines


def _document(
    prepared: Prepared, plan: Sequence[tuple[int, int, str]], names: Mapping[str, tuple[str, str]]
) -> str:
    """Return the plan as PostgreSQL's JSON has one: a node within the other. Nobody counts costs,
    and what SQLite does beside scans is told in its words."""
    keys = {table.name: table.key_constraint for table in prepared.tables.values()}
    within: dict[int, list[dict[str, Any]]] = {0: []}
    for number, parent, text in plan:
        node = _node(text, names, keys)
        within.get(parent, within[0]).append(node)
        within[number] = node["Plans"] = []
    roots = within[0]
    for nodes in within.values():
        for node in nodes:
            if not node["Plans"]:
                del node["Plans"]
    if prepared.write is not None:
        kind = prepared.write.bound.kind.capitalize()
        whole = {"Node Type": "ModifyTable", "Operation": kind, "Plans": roots}
    elif len(roots) == 1:
        (whole,) = roots
    else:
        whole = {"Node Type": "Result", "Plans": roots}
    if not whole.get("Plans", True):
        del whole["Plans"]
    return json.dumps([{"Plan": whole}], indent=2)


def _node(
    text: str, names: Mapping[str, tuple[str, str]], keys: Mapping[str, str]
) -> dict[str, Any]:
    words = text.split(" ", 2)
    if len(words) < 2 or words[0] not in ("SCAN", "SEARCH") or words[1] not in names:
        return {"Node Type": "Result" if text == _ONE_ROW else text.capitalize()}
    table, index = names[words[1]]
    rest = words[2] if len(words) > 2 else ""
    by_key = words[0] == "SEARCH"
    node: dict[str, Any] = {"Node Type": "Index Scan" if index or by_key else "Seq Scan"}
    if index or by_key:
        node["Index Name"] = index or keys.get(table, "")
    node["Relation Name"] = table
    if "(" in rest:
        node["Index Cond"] = rest[rest.index("(") :]
    return node


def query_plan(connection: apsw.Connection, emitted: Emitted) -> list[tuple[int, int, str]]:
    """Return SQLite's own steps, each with its number, the number of the one above, and words."""
    install(connection, emitted)
    found = connection.execute(f"EXPLAIN QUERY PLAN {emitted.text}", [None] * emitted.highest)
    return [(number, parent, str(text)) for number, parent, _, text in found]


def _shown(text: str, names: Mapping[str, tuple[str, str]]) -> str:
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
