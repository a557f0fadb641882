"""Goal: a group that measures how cost grows runs, on the real parts, as small as it works; its
figures are those that it promises. What they say is for `make bench`."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

from infra.local_cluster import ROOT
from tests.bench.bench_settings import BenchSettings
from tests.bench.groups import GROUPS
from tests.bench.tables import METRICS, PER_TABLE, sizes_of

DEADLINE_S: Final = 400.0
pytestmark = pytest.mark.long("each group starts a cluster of its own; `make bench` runs them")
TRIED: Final = {
    **{name: GROUPS[name] for name in ("agents", "bootstrap", "rows", "backup", "import")},
    "tables": (
        *(f"{each}_{size}" for size in sizes_of(BenchSettings().for_trial()) for each in METRICS),
        *PER_TABLE,
    ),
}


@pytest.mark.parametrize("group", TRIED)
def test_a_trial_prints_every_figure(group: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.bench", "--trial", "--only", group],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    lines = [line.split(" ") for line in ended.stdout.splitlines()]
    assert tuple(metric for metric, _, _ in lines) == TRIED[group]
    for metric, value, unit in lines:
        assert float(value) >= 0, metric
        assert unit
