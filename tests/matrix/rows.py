"""What the rows must be: the accepted writes played on a dictionary, as the end shows them."""

from __future__ import annotations

from typing import Any, Final

from leasehold.model.errors import UnknownTable
from leasehold.schema.job import Status
from tests.matrix.world import World
from tests.simulation.harm import demand

ROWS_MAX: Final = 1_000
CONVERSIONS: Final = {"int": int, "text": str}

Rows = dict[int, dict[str, Any]]


def demand_rows(world: World) -> None:
    """Every acknowledged write is there, and nothing else."""
    shown = _shown(world)
    if shown is None:
        return
    expected = _expected(world, succeeded=world.the_job.status is Status.SUCCEEDED)
    demand(shown.keys() == expected.keys(), "rows", f"rows {sorted(shown)}, not {sorted(expected)}")
    for key, row in shown.items():
        demand(row == expected[key], "rows", f"row {key} is {row}, it should be {expected[key]}")


def _shown(world: World) -> Rows | None:
    """As the newest version shows them; None: the table is gone."""
    snapshot = world.reference.store.open_snapshot()
    table = world.newest
    if not table.names:
        return None
    try:
        newest = snapshot.newest(table.name)
    except UnknownTable:
        return None
    rows = {}
    for key, row in snapshot.scan(newest, None, None, rows_max=ROWS_MAX):
        columns = {n: row.values.get(c.element_id) for n, c in newest.by_name.items()}
        rows[int(key[0])] = {n: value for n, value in columns.items() if n != "id"}
    return rows


def _expected(world: World, *, succeeded: bool) -> Rows:
    """By the names that the table shows at the end."""
    definition = world.definition
    renamed = definition.renamed if succeeded else {}
    convert = {c: CONVERSIONS[to] for c, to in definition.converted.items()} if succeeded else {}
    names = {n: renamed.get(n, n) for n in world.newest.by_name if n != "id"}
    rows: Rows = {}
    for key, row in _played(world).items():
        rows[key] = {}
        for shown, name in names.items():
            value = row.get(name)
            conversion = convert.get(name)
            rows[key][shown] = value if conversion is None or value is None else conversion(value)
    return rows


def _played(world: World) -> Rows:
    """By the names from before the job; in rows that did not give a column, its fill."""
    definition = world.definition
    former = definition.renamed
    rows: Rows = {}

    def inserted(given: dict[str, Any], content: int) -> dict[str, Any]:
        filled = {c: definition.filled(c, max(content, 0)) for c in definition.fill}
        return filled | {former.get(c, c): v for c, v in given.items()}

    for row in definition.rows:
        rows[row["id"]] = inserted({c: v for c, v in row.items() if c != "id"}, 0)
    for _lsn, commit in world.reference.in_order:
        asked = world.asked.get(commit.request_id)
        if asked is None or asked.write is None or not commit.versions:
            continue
        write, key = asked.write, asked.write.at(asked.shift)
        given = write.given(asked.shift)
        if write.op == "delete":
            rows.pop(key, None)
        elif key in rows:
            demand(write.op != "insert", "T1", f"row {key} was inserted twice")
            rows[key].update({former.get(c, c): v for c, v in given.items()})
        elif write.op != "update":
            rows[key] = inserted(given, world.content(commit.versions[world.table_id]))
    return rows
