"""Goal: no history shows an anomaly that its level prevents (scenario 38), and the checker would
see one: at weaker levels it does.

Method: random list-append transactions under seeds, judged by cycles. LEASEHOLD_SEED replays one.
"""

from __future__ import annotations

import os
from typing import Final

import pytest

from leasehold.transaction.isolation import Level
from tests.isolation.cycles import Transaction, anomalies
from tests.isolation.list_append import ListAppend
from tests.models.mutants.transaction import VerifyRules, broken
from tests.models.summary import Tell

GIVEN: Final = os.environ.get("LEASEHOLD_SEED")
SEEDS: Final = (int(GIVEN),) if GIVEN else tuple(range(1, 7))
MAY: Final = {
    Level.DEFAULT: {"G-single", "G2-item"},
    Level.READ_COMMITTED: {"G-single", "G2-item"},
    Level.SNAPSHOT: {"G2-item"},
    Level.SERIALIZABLE: set[str](),
    Level.LINEARIZABLE: set[str](),
}


@pytest.mark.parametrize("level", list(Level))
def test_no_anomaly_that_the_level_prevents(level: Level, tell: Tell) -> None:
    seen: set[str] = set()
    committed = 0
    for seed in SEEDS:
        run = ListAppend(seed, level)
        run.run()
        found = run.anomalies(real_time=level is Level.LINEARIZABLE)
        assert found <= MAY[level], f"seed {seed}: {found} at {level.value}"
        seen |= found
        committed += sum(t.committed for t in run.history)
    told = ", ".join(sorted(seen)) or "none"
    tell(f"list-append, {level.value}: seeds {SEEDS}, {committed} commits; seen: {told}")
    if not GIVEN:
        assert bool(seen) == bool(MAY[level]), "what is allowed does happen in such histories"


def test_without_the_check_of_what_was_read_there_is_write_skew() -> None:
    found: set[str] = set()
    for seed in SEEDS:
        run = ListAppend(seed, "serializable")
        with broken(VerifyRules(reads_are_validated=False)):
            run.run()
        found |= run.anomalies()
    assert found == {"G2-item"}


def test_without_the_check_of_what_is_changed_updates_are_lost() -> None:
    found: set[str] = set()
    for seed in SEEDS[:2]:
        run = ListAppend(seed, "read committed")
        with broken(VerifyRules(genids_are_verified=False)):
            run.run()
        found |= run.anomalies()
    assert "lost update" in found


# ------------------------------------------------------------------ the checker by itself


def t(number: int, appends: str = "", reads: str = "", *, committed: bool = True) -> Transaction:
    """Appends like `0:1` (value 1 to list 0), reads like `0:1,2` and `0:` (empty)."""
    made = Transaction(number, committed=committed, begun=number, ended=number)
    for part in appends.split():
        key, value = part.split(":")
        made.appends.append((int(key), int(value)))
    for part in reads.split():
        key, values = part.split(":")
        made.reads.append((int(key), tuple(int(v) for v in values.split(",") if v)))
    return made


@pytest.mark.parametrize(
    ("history", "final", "found"),
    [
        ([t(0, "0:1"), t(1, "0:2", "0:1")], {0: (1, 2)}, set()),
        ([t(0, "0:1 1:3"), t(1, "0:2 1:4")], {0: (1, 2), 1: (4, 3)}, {"G0", "G1c"}),
        ([t(0, "0:1", committed=False), t(1, "", "0:1")], {0: ()}, {"G1a"}),
        ([t(0, "0:1 0:2"), t(1, "", "0:1")], {0: (1, 2)}, {"G1b"}),
        ([t(0, "0:1", "1:2"), t(1, "1:2", "0:1")], {0: (1,), 1: (2,)}, {"G1c"}),
        ([t(0, "0:1 1:2"), t(1, "", "0: 1:2")], {0: (1,), 1: (2,)}, {"G-single"}),
        ([t(0, "0:1", "1:"), t(1, "1:2", "0:")], {0: (1,), 1: (2,)}, {"G2-item"}),
        ([t(0, "0:1"), t(1, "0:2")], {0: (2,)}, {"lost update"}),
        ([t(0, "0:1"), t(1, "", "0:")], {0: (1,)}, {"outdated read"}),
    ],
)
def test_the_checker_sees(
    history: list[Transaction], final: dict[int, tuple[int, ...]], found: set[str]
) -> None:
    assert anomalies(history, final, real_time=True) == found
