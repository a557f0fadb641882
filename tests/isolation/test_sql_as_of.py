"""Goal: AS OF a time says the same for ever: what was committed by then, of all that ever will be.

Method: sessions on the in-memory system read times just past while records take their time; what
each saw is compared with the log at the end.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from leasehold.in_process.node import MemoryNode
from leasehold.model.errors import LeaseholdError
from leasehold.replication.master.batch_limits import BatchSettings
from leasehold.replication.master.settings import MasterSettings
from tests.isolation.sql_stage import SQL_NODES, SqlStage
from tests.support.sql_session.sql_client import SqlClient

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_US = 86_400_000_000
SMALL = BatchSettings(record_bytes_max=8_000, large_operations=10, slice_operations=10)
Make = Callable[..., SqlStage]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[SqlStage] = []

    def stage(**options: Any) -> SqlStage:
        made.append(SqlStage(tmp_path / str(len(made)), **options))
        made[-1].ask_sql("r1", "create table e (id bigint primary key)")
        made[-1].passing(1_500)
        return made[-1]

    yield stage
    for each in made:
        each.close()


def master(stage: SqlStage) -> MemoryNode:
    found = stage.master
    assert found is not None
    return found


def clock_us(stage: SqlStage, node: str = "r1") -> int:
    return stage.node(node).now().wall_us


def as_of(stage: SqlStage, at_us: int, node: str = "r1") -> set[int]:
    timestamp = EPOCH + timedelta(microseconds=at_us)
    client = SqlClient(stage, node)
    try:
        client.ask(f"begin as of timestamp '{timestamp.isoformat()}'")
        return {key for (key,) in client.ask("select id from e")}
    finally:
        client.session.close()


def refused(stage: SqlStage, at_us: int) -> LeaseholdError:
    with pytest.raises(LeaseholdError) as error:
        as_of(stage, at_us)
    return error.value


def insert(*keys: int) -> dict[str, Any]:
    rows = [{"table": "e", "op": "insert", "key": {"id": key}, "values": {}} for key in keys]
    return {"transaction": rows}


def test_l9_what_is_on_its_way_is_waited_for(make: Make) -> None:
    """A commit of before that time arrives after it: who asks meanwhile sees it all the same."""
    stage = make()
    hops = stage.scripted[master(stage).settings.name]
    hops.produce_ms = 150
    stage.ask(insert(1))
    stage.passing(100)
    then_us = clock_us(stage) - 10_000
    first = as_of(stage, then_us)
    hops.produce_ms = 1
    stage.passing(600)
    assert first == as_of(stage, then_us) == {1}


@pytest.mark.parametrize("seed", range(6))
def test_l9_every_answer_is_what_the_log_says_in_the_end(seed: int, make: Make) -> None:
    """Records that take up to 200 ms, large requests in slices, two nodes whose clocks differ."""
    rng = random.Random(seed)
    stage = make(master=MasterSettings(batch=SMALL))
    stage.node("r2").clock.wall_shift_us = rng.randrange(-400_000, 400_000)
    hops = stage.scripted[master(stage).settings.name]
    seen: list[tuple[int, set[int]]] = []
    for turn in range(60):
        hops.produce_ms = rng.choice((1, 1, 30, 200))
        if rng.random() < 0.7:
            count = rng.choice((1, 1, 3, 60))
            stage.ask(insert(*range(100 * turn, 100 * turn + count)))
        stage.passing(rng.randrange(1, 120))
        node = rng.choice(SQL_NODES)
        at_us = clock_us(stage, node) - rng.choice((0, 1_000, 30_000, 400_000))
        seen.append((at_us, as_of(stage, at_us, node)))
    stage.passing(2_000)
    times = {
        change.key[0]: commit.commit_us
        for _, commit in stage.reference.every
        for change in commit.changes
        if change.table_id == stage.reference.catalog.resolve("e").table_id
    }
    assert len(times) > 50
    for at_us, rows in seen:
        assert rows == {key for key, time_us in times.items() if time_us <= at_us}, at_us


def test_l9_a_time_ahead_is_refused(make: Make) -> None:
    stage = make()
    error = refused(stage, clock_us(stage) + 5_000_000)
    assert (error.sqlstate, "lies ahead" in error.message) == ("57P03", True)


def test_l9_a_time_that_the_master_has_not_reached_is_not_waited_for_long(make: Make) -> None:
    """Its clock is half a minute behind that of the node that is asked."""
    stage = make()
    stage.ask(insert(1))
    stage.passing(300)
    stage.node("r1").clock.wall_shift_us = 30_000_000
    begun_ns = stage.scheduler.now_ns
    error = refused(stage, clock_us(stage) - 1_000)
    assert (error.sqlstate, "not known here yet" in error.message) == ("57P03", True)
    assert stage.scheduler.now_ns - begun_ns < 2_000_000_000
    assert as_of(stage, clock_us(stage) - 31_000_000) == {1}


def test_l9_times_of_before_a_reset_are_refused(make: Make) -> None:
    """All clocks were ten days ahead when a master took office; then they are right, and somebody
    has the log's time set back."""
    stage = make()
    for node in stage.cluster.nodes.values():
        node.clock.wall_shift_us = 10 * DAY_US
    master(stage).crash()
    stage.until(lambda: stage.master is not None, "another master")
    stage.settle(insert(1))
    for node in stage.cluster.nodes.values():
        node.clock.wall_shift_us = 0
    stage.settle(insert(2))
    stage.passing(300)
    before_us = clock_us(stage)
    assert as_of(stage, before_us) == set(), "what was committed since has a time of then"
    stage.settle({"clock": "reset"})
    stage.settle(insert(3))
    stage.passing(300)
    error = refused(stage, before_us - 1)
    assert error.sqlstate == "72000"
    assert "leasehold clock reset" in error.message
    for name in SQL_NODES:
        assert as_of(stage, clock_us(stage), name) == {1, 2, 3}
