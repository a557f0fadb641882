"""What most tests of replication begin with."""

from __future__ import annotations

import pytest

from tests.support.replication.world import TABLE, World


@pytest.fixture
def world() -> World:
    made = World()
    assert made.ask({"sql": TABLE}).lsn == 1
    return made
