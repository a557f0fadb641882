"""Scenario 57: rows are inserted, updated and deleted at every stage of ADD COLUMN, and counted.

As CockroachDB's own definition of it has it: 3 rows of before, 2 more at each stage; whatever a
stage deletes it puts back. So there are 2 · stages + 3 of them, and all hold 42 in the end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from leasehold.catalog.job import Status
from tests.matrix.definition import TABLE, read
from tests.matrix.finish import _demand_answers, _demand_nodes
from tests.matrix.rows import _shown
from tests.matrix.world import OK, World

BEFORE: Final = ({"id": -1}, {"id": -2}, {"id": -3})
ADDED: Final = {
    "required": ("add_column_not_null_default", "c int NOT NULL DEFAULT 42"),
    "nullable": ("add_column_default", "c int DEFAULT 42"),
    "required, by key": ("add_column_not_null_default_by_key", "c int NOT NULL DEFAULT 42"),
    "nullable, by key": ("add_column_default_by_key", "c int DEFAULT 42"),
}


def at_a_stage(stage: int, versions: tuple[int, int]) -> list[dict[str, Any]]:
    """Under both live versions: an insert each; a row of before is deleted under the one and comes
    back under the other, the next one is updated."""
    older, newer = versions
    said: list[tuple[str, int, int]] = [
        ("insert", 2 * stage, older),
        ("insert", 2 * stage + 1, newer),
        ("delete", -1, older),
        ("insert", -1, newer),
        ("update", -2, older),
        ("update", 2 * stage, newer),
    ]
    made = []
    for op, key, version in said:
        one = {"table": TABLE, "op": op, "key": {"id": key}, "schema_version": version}
        made.append(one if op == "delete" else {**one, "values": {"a": stage}})
    return made


@pytest.mark.parametrize("added", ADDED)
def test_57_add_column_every_stage_dml(added: str) -> None:
    name, column = ADDED[added]
    item = replace(read(name), statement=f"ALTER TABLE m ADD COLUMN {column}", rows=BEFORE)
    world = World(item)
    world.begin()
    stages = 0
    while (place := world.next_place()) is not None:
        stages += 1
        versions = world.live(TABLE)
        for write in at_a_stage(stages, versions):
            request_id = world.expect(f"{write} at {place}", write, {OK}, here=True)
        world.decided(request_id)
        rows = _shown(world)
        assert len(rows) == 2 * stages + 3, (place, rows)
        shown = {row["c"] for row in rows.values() if "c" in row}
        assert shown <= {42}, (place, rows)
    assert world.the_job.status is Status.SUCCEEDED
    filled = any(step.backfills for step in world.the_job.steps)
    assert filled == item.older
    assert stages >= len(item.states) * 2 + filled, "each step is published, drained, some filled"
    rows = _shown(world)
    assert len(rows) == 2 * stages + 3
    assert {row["c"] for row in rows.values()} == {42}, rows
    world._goal = world.reference.position.offset
    world.until(world._caught_up, "everybody to catch up")
    _demand_answers(world)
    _demand_nodes(world)
