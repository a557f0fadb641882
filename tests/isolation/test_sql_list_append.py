"""Goal: no history of SQL sessions shows an anomaly that its level prevents (scenario 38), and what
is allowed does happen. Method: as `test_list_append.py`. LEASEHOLD_SEED replays one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from leasehold.transaction.isolation import Level
from tests.isolation.list_append import TRANSACTIONS
from tests.isolation.sql_list_append import LOCKS, WRITES, SqlListAppend
from tests.isolation.test_list_append import GIVEN, MAY
from tests.models.mutants.transaction import LockRules, VerifyRules, broken
from tests.models.summary import Tell

SEEDS: Final = (int(GIVEN),) if GIVEN else (1, 2)
MORE: Final = pytest.mark.long("the same with other seeds")
GROUPS: Final = [pytest.param(SEEDS, id="few"), pytest.param((3, 4), id="more", marks=MORE)]
ENDINGS = {"40001", "57P03", "72000"}


@pytest.mark.parametrize("seeds", GROUPS)
@pytest.mark.parametrize("level", list(Level))
def test_no_anomaly_that_the_level_prevents(
    level: Level, seeds: tuple[int, ...], tmp_path: Path, tell: Tell
) -> None:
    seen: set[str] = set()
    ended: Counter[str] = Counter()
    committed = crashes = repeated = 0
    for seed in seeds:
        run = SqlListAppend(tmp_path / str(seed), seed, level)
        run.run()
        crashes += run.crashes
        repeated += run.sql_stage.repeated
        found = run.anomalies(real_time=level is Level.LINEARIZABLE)
        run.close()
        assert found <= MAY[level], f"seed {seed}: {found} at {level.value}"
        seen |= found
        ended.update(run.ended)
        committed += sum(t.committed for t in run.history)
    told = ", ".join(sorted(seen)) or "none"
    tell(
        f"SQL list-append, {level.value}: seeds {seeds}, {committed} commits,"
        f" refused {dict(ended)}, {repeated} requests twice, {crashes} crashes of a master;"
        f" seen: {told}"
    )
    assert set(ended) <= ENDINGS
    if not GIVEN:
        assert bool(seen) == bool(MAY[level]), "what is allowed does happen in such histories"


@pytest.mark.parametrize("seeds", GROUPS)
@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("locks", [LOCKS, WRITES, (*LOCKS, *WRITES)], ids=["lock", "write", "both"])
def test_who_locks_a_row_first_is_serializable_at_every_level(
    level: Level, seeds: tuple[int, ...], locks: tuple[str, ...], tmp_path: Path, tell: Tell
) -> None:
    """By FOR UPDATE and its like, or, where own writes are seen, by changing it. In PostgreSQL each
    would wait for the one before it."""
    may = MAY[level] if level is Level.DEFAULT and locks is not LOCKS else frozenset[str]()
    ended: Counter[str] = Counter()
    committed = 0
    for seed in seeds:
        run = SqlListAppend(tmp_path / str(seed), seed, level, locks=locks)
        run.run()
        found = run.anomalies(real_time=level is Level.LINEARIZABLE)
        run.close()
        assert found <= may, f"seed {seed}: {found} at {level.value}"
        ended.update(run.ended)
        committed += sum(t.committed for t in run.history)
    tell(
        f"SQL list-append behind {locks[0]}, {level.value}: seeds {seeds}, {committed} commits,"
        f" refused {dict(ended)}; seen: none"
    )
    assert set(ended) <= ENDINGS
    assert committed > len(seeds) * TRANSACTIONS // 10


LOCK_RULES: Final = {
    "locked_rows_are_written": {"G-single", "G2-item"},
    "selects_behind_locks_are_compared": {"G-single", "G2-item"},
    "unwritten_locks_are_checked": {"G-single"},
}
WRITE_RULES: Final = {
    "changed_rows_are_held": {"G-single", "G2-item"},
    "updates_before_what_is_shown_are_verified": {"G-single", "G2-item"},
}


@pytest.mark.parametrize("rule", [*LOCK_RULES, *WRITE_RULES])
def test_without_a_rule_of_row_locks_it_is_not(rule: str, tmp_path: Path) -> None:
    locks = LOCKS if rule in LOCK_RULES else WRITES[:1]
    found: set[str] = set()
    for seed in SEEDS:
        run = SqlListAppend(tmp_path / str(seed), seed, "read committed", locks=locks)
        with broken(LockRules(**{rule: False})):
            run.run()
        found |= run.anomalies()
        run.close()
    assert found
    assert found <= (LOCK_RULES if rule in LOCK_RULES else WRITE_RULES)[rule]


def test_without_the_check_of_what_was_read_there_is_write_skew(tmp_path: Path) -> None:
    found: set[str] = set()
    for seed in SEEDS:
        run = SqlListAppend(tmp_path / str(seed), seed, "serializable")
        with broken(VerifyRules(reads_are_validated=False)):
            run.run()
        found |= run.anomalies()
        run.close()
    assert found == {"G2-item"}
