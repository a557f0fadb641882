"""Which level prevents which anomaly, in SQL sessions on different replicants.

Goal: the rows of the design. Method: the stories of Hermitage as SQL text, on replicas that keep
their rows in SQLite, once per level, and once more with VERIFYRETRY OFF.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from leasehold.transaction.isolation import Level
from tests.isolation.hermitage import CASES
from tests.isolation.sql_stage import SqlScene
from tests.isolation.test_hermitage import ALLOWED, table
from tests.models.summary import Tell


def allowed(folder: Path, level: Level, *, verify_retry: bool = True) -> set[str]:
    """Anomalies that come about."""
    found = set()
    for name, story in CASES.items():
        scene = SqlScene(folder / f"{level} {name}", level.value, verify_retry=verify_retry)
        if not story(scene):
            found.add(name)
        scene.close()
    return found


def test_sql_levels_and_anomalies(tmp_path: Path, tell: Tell) -> None:
    found = {level: allowed(tmp_path, level) for level in Level}
    tell("SQL sessions\n" + "\n".join(table(found)))
    assert found == ALLOWED


@pytest.mark.parametrize("level", list(Level))
def test_without_replays_no_update_is_lost(level: Level, tmp_path: Path) -> None:
    """Note (1) of the design: what a client computed is lost by a replay, and only by one."""
    assert allowed(tmp_path, level, verify_retry=False) == ALLOWED[level] - {"P4"}
