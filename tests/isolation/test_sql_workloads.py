"""Scenario 37: Jepsen's workloads for Comdb2 in SQL sessions on different replicants, each at every
level, in calm and under a nemesis: masters that crash, appends that are lost or late, nodes that
are paused or cut off, clocks that jump, requests that come twice. LEASEHOLD_SEED replays one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from leasehold.transaction.isolation import Level
from tests.isolation.crowd import Crowd
from tests.isolation.crowd_workloads import A6, G2, AtomicWrites, Bank, DirtyReads, Register, Sets
from tests.isolation.test_list_append import GIVEN
from tests.models.mutants.transaction import VerifyRules, broken
from tests.models.summary import Tell

SEEDS = (int(GIVEN),) if GIVEN else (1,)
ENDINGS = {"40001", "57P03", "72000", "08007"}
EVERY_LEVEL = list(Level)
SERIALIZABLE = [Level.SERIALIZABLE, Level.LINEARIZABLE]

level = pytest.mark.parametrize("level", EVERY_LEVEL)
CALM = pytest.mark.long("the same with faults, which goes through more, is in make test")
weather = pytest.mark.parametrize(
    "nemesis", [pytest.param(False, id="calm", marks=CALM), pytest.param(True, id="nemesis")]
)


def shown(
    folder: Path,
    make: Any,
    level: Level,
    *,
    nemesis: bool,
    tell: Tell,
    seeds: Sequence[int] = (),
) -> list[str]:
    """What was wrong, over all seeds; in calm weather one is enough, unless more are given."""
    seeds = seeds or SEEDS[: None if nemesis else 1]
    wrong: list[str] = []
    ended: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    committed = 0
    for seed in seeds:
        crowd = Crowd(folder / str(seed), seed, level, make, nemesis=nemesis)
        try:
            crowd.run()
            wrong += [f"seed {seed}: {words}" for words in crowd.wrong()]
        finally:
            crowd.close()
        ended += crowd.ended
        faults += crowd.faults
        committed += sum(each.committed for each in crowd.attempts)
    tell(
        f"{make.__name__}, {level.value}: seeds {seeds}, {committed} commits, refused"
        f" {dict(ended)}, {dict(faults) or 'no faults'}; {len(wrong)} wrong"
    )
    assert set(ended) <= ENDINGS
    assert bool(faults) == nemesis, "a nemesis that breaks nothing proves nothing"
    return wrong


@weather
@level
def test_37_bank(level: Level, nemesis: bool, tmp_path: Path, tell: Tell) -> None:
    assert shown(tmp_path, Bank, level, nemesis=nemesis, tell=tell) == []


@weather
@level
def test_37_register(level: Level, nemesis: bool, tmp_path: Path, tell: Tell) -> None:
    """Single values are linearizable at every level: coherent replicants show all that was answered
    (C1)."""
    assert shown(tmp_path, Register, level, nemesis=nemesis, tell=tell) == []


@weather
@level
def test_37_sets(level: Level, nemesis: bool, tmp_path: Path, tell: Tell) -> None:
    assert shown(tmp_path, Sets, level, nemesis=nemesis, tell=tell) == []


@weather
@level
def test_37_dirty_reads(level: Level, nemesis: bool, tmp_path: Path, tell: Tell) -> None:
    assert shown(tmp_path, DirtyReads, level, nemesis=nemesis, tell=tell) == []


@weather
@level
def test_37_atomic_writes(level: Level, nemesis: bool, tmp_path: Path, tell: Tell) -> None:
    assert shown(tmp_path, AtomicWrites, level, nemesis=nemesis, tell=tell) == []


@weather
@pytest.mark.parametrize("level", SERIALIZABLE)
def test_37_a6(level: Level, nemesis: bool, tmp_path: Path, tell: Tell) -> None:
    assert shown(tmp_path, A6, level, nemesis=nemesis, tell=tell) == []


@weather
@pytest.mark.parametrize("level", SERIALIZABLE)
def test_37_g2(level: Level, nemesis: bool, tmp_path: Path, tell: Tell) -> None:
    assert shown(tmp_path, G2, level, nemesis=nemesis, tell=tell) == []


# ------------------------------------------------------------------ and the checkers see it

EVERY = VerifyRules()
UNVERIFIED = VerifyRules(genids_are_verified=False)
UNVALIDATED = VerifyRules(reads_are_validated=False)


@pytest.mark.parametrize(
    ("make", "level", "rules"),
    [
        (A6, Level.SNAPSHOT, EVERY),
        (G2, Level.DEFAULT, EVERY),
        (G2, Level.READ_COMMITTED, EVERY),
        (G2, Level.SNAPSHOT, EVERY),
        (A6, Level.SERIALIZABLE, UNVALIDATED),
        (G2, Level.SERIALIZABLE, UNVALIDATED),
        (Bank, Level.SNAPSHOT, UNVERIFIED),
        (Register, Level.READ_COMMITTED, UNVERIFIED),
    ],
    ids=lambda each: getattr(each, "__name__", "") or getattr(each, "value", ""),
)
def test_37_what_a_level_allows_or_a_rule_prevents_is_seen(
    make: Any, level: Level, rules: VerifyRules, tmp_path: Path, tell: Tell
) -> None:
    with broken(rules):
        assert shown(tmp_path, make, level, nemesis=False, tell=tell, seeds=(*SEEDS, 3))
