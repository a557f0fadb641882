"""EXPLAIN: the steps that SQLite takes for a statement, or what it would read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import apsw

from leasehold.adapters.sqlite.kept_rows import kept_tables
from leasehold.adapters.sqlite.statement_functions import install
from leasehold.sql.planning.emitted import Emitted
from leasehold.sql.planning.plan import JSON, Prepared
from leasehold.sql.planning.reads import READS_NOTHING, describe_reads

Step: TypeAlias = tuple[int, int, str]
"""A step of SQLite's plan: its number, that of the one above (0: none), and words."""
_ONE_ROW: Final = "SCAN CONSTANT ROW"


def explain_statement(
    connection: apsw.Connection, prepared: Prepared, parameters: Sequence[Any] = ()
) -> list[tuple[Any, ...]]:
    """Return a row for each step of SQLite's plan, with the names of tables and indexes in the
    place of its own; or, with EXPLAIN (READS), for each place that would be read."""
    if prepared.tells_reads:
        tables = prepared.tables.values()
        values = (*parameters, *[None] * (len(prepared.parameters) - len(parameters)))
        found = (describe_reads(plan.reads, tables, values) for plan in prepared.plans)
        lines_read = dict.fromkeys(line for lines in found for line in lines)
        if len(lines_read) > 1:
            lines_read.pop(READS_NOTHING, None)  # said of a part
        return [(line,) for line in lines_read]
    names = {}
    for chosen in prepared.chosen:
        names[f"r{chosen.relation}"] = (chosen.table, "")
        names[f"i{chosen.relation}"] = (chosen.table, chosen.by)
    with kept_tables(connection, prepared.parts):
        steps = [query_plan(connection, each.emitted) for each in prepared.plans]
    plan = _one_after_another(steps)
    if prepared.columns is not None and prepared.columns[0].kind == JSON:
        return [(_document(prepared, plan, names),)]
    depth: dict[int, int] = {0: -1}
    lines: list[tuple[Any, ...]] = []
    for number, parent, text in plan:
        depth[number] = depth.get(parent, -1) + 1
        lines.append(("  " * depth[number] + _shown(text, names),))
    return lines


def _document(
    prepared: Prepared, plan: Sequence[Step], names: Mapping[str, tuple[str, str]]
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


def _one_after_another(steps: Sequence[Sequence[Step]]) -> list[Step]:
    """Return the steps of a statement's parts as those of one, with numbers of their own."""
    made: list[Step] = []
    last = 0
    for part in steps:
        before = last
        for number, parent, text in part:
            made.append((number + before, parent + before if parent else 0, text))
            last = max(last, number + before)
    return made


def query_plan(connection: apsw.Connection, emitted: Emitted) -> list[Step]:
    """Return SQLite's own steps."""
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
